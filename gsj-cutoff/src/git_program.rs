//! The `git` program with surroundings of its own.

use std::path::Path;
use std::process::Command;

/// How the `git` program is run on a repository or a remote that nobody vouches for: without the environment, the user's
/// and the system's configuration, prompts, credential helpers, hooks and proxies.
#[derive(Clone, Copy)]
pub struct GitProgram<'a> {
    /// The program; a name alone is looked for in the system's default folders.
    pub program: &'a Path,
    /// The protocols that may be spoken, as `https` or `https:http`.
    pub protocols: &'a str,
    /// A file of certificates to trust instead of the system's.
    pub certificates: Option<&'a Path>,
    /// A URL, and the header that every request below it carries; no redirect is followed then. It stands in an
    /// environment variable of the child: in no argument list and on no disk.
    pub authorization: Option<(&'a str, &'a str)>,
}

impl std::fmt::Debug for GitProgram<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GitProgram").field("program", &self.program).finish_non_exhaustive()
    }
}

impl GitProgram<'_> {
    /// A command without arguments yet, in the root folder. `settings` are added to those that are the same for all.
    #[must_use]
    pub fn command(&self, settings: &[(&str, &str)]) -> Command {
        let mut command = Command::new(self.program);
        command.env_clear().current_dir("/").envs([
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_ATTR_NOSYSTEM", "1"),
            ("HOME", "/nonexistent"),
            ("XDG_CONFIG_HOME", "/nonexistent"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_ALLOW_PROTOCOL", self.protocols),
            ("LC_ALL", "C"),
        ]);
        if let Some(certificates) = self.certificates {
            command.env("GIT_SSL_CAINFO", certificates);
        }
        let always = [
            ("core.hooksPath", "/dev/null"),
            ("core.fsmonitor", "false"),
            ("credential.helper", ""),
            ("fetch.recurseSubmodules", "false"),
            ("gc.auto", "0"),
            ("maintenance.auto", "false"),
            ("transfer.bundleURI", "false"),
            // A remote that sends next to nothing for a minute is given up.
            ("http.lowSpeedLimit", "1000"),
            ("http.lowSpeedTime", "60"),
        ];
        let header = self.authorization.map(|(url, header)| (format!("http.{url}.extraHeader"), header));
        let authorized =
            header.iter().flat_map(|(key, header)| [("http.followRedirects", "false"), (key.as_str(), header)]);
        let mut count = 0_usize;
        for (key, value) in always.into_iter().chain(settings.iter().copied()).chain(authorized) {
            command.env(format!("GIT_CONFIG_KEY_{count}"), key).env(format!("GIT_CONFIG_VALUE_{count}"), value);
            count += 1;
        }
        command.env("GIT_CONFIG_COUNT", count.to_string());
        command
    }
}
