//! The `git` program as a child: surroundings of its own, a deadline, and a credential that stands in no argument list.

use gsj_cutoff::GitProgram;
use std::ffi::OsStr;
use std::path::Path;
use std::time::{Duration, Instant};

/// The longest message of git's that is passed on, in characters.
const LONGEST_MESSAGE: usize = 600;

/// How git is run for one host.
#[derive(Clone)]
pub(crate) struct Git<'a> {
    pub(crate) program: &'a Path,
    pub(crate) certificates: Option<&'a Path>,
    /// The URL below which the credential is sent, the header that carries it, and what must not be shown.
    pub(crate) authorization: Option<(String, String, Vec<String>)>,
    pub(crate) deadline: Duration,
}

/// Why git failed.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The host said no, or the call makes no sense: again would be the same.
    Refused(String),
    /// Perhaps for the moment only.
    Passing(String),
}

/// A refusal with a cure that we know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// No credential was sent, or one that the host does not know.
    Unknown,
    /// The credential is known and has not the right.
    Forbidden,
    /// There is no such repository, or none that the credential may see.
    Absent,
}

impl Refusal {
    /// Told by the words of git, which runs in the C locale.
    pub(crate) fn of(said: &str) -> Option<Self> {
        let has = |words: &[&str]| words.iter().any(|words| said.contains(words));
        if has(&["could not read Username", "could not read Password", "Authentication failed", "returned error: 401"])
        {
            Some(Self::Unknown)
        } else if has(&["returned error: 403"]) {
            Some(Self::Forbidden)
        } else if said.contains("fatal: repository ") && said.contains(" not found") {
            Some(Self::Absent)
        } else {
            None
        }
    }
}

impl Git<'_> {
    /// Runs git and gives what it printed.
    pub(crate) fn run<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Result<String, Fault> {
        let git = GitProgram {
            program: self.program,
            protocols: "https:http",
            certificates: self.certificates,
            authorization: self.authorization.as_ref().map(|(url, header, _)| (url.as_str(), header.as_str())),
        };
        let started = Instant::now();
        let settings = [("push.recurseSubmodules", "no"), ("safe.directory", "*")];
        let ran = git
            .run(&settings, arguments, &|| started.elapsed() > self.deadline)
            .map_err(|error| Fault::Refused(format!("`{}` cannot be run: {error}", self.program.display())))?;
        let said = self.shown(&String::from_utf8_lossy(&ran.said));
        match ran.status {
            Some(status) if status.success() => Ok(String::from_utf8_lossy(&ran.printed).into_owned()),
            Some(_) if passing(&said) => Err(Fault::Passing(said)),
            Some(_) => Err(Fault::Refused(said)),
            None => Err(Fault::Passing(format!("no end after {} s", self.deadline.as_secs()))),
        }
    }

    /// What git said, on one line, with the secrets blanked.
    fn shown(&self, said: &str) -> String {
        let mut said = said.trim().replace('\n', "; ");
        for secret in self.authorization.iter().flat_map(|(.., secrets)| secrets) {
            said = said.replace(secret.as_str(), "***");
        }
        let plain: String = said.chars().filter(|character| !character.is_control()).take(LONGEST_MESSAGE).collect();
        if plain.is_empty() { "git said nothing".to_owned() } else { plain }
    }
}

impl std::fmt::Debug for Git<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Git").field("program", &self.program).finish_non_exhaustive()
    }
}

/// Whether what git said may be over in a moment: the network, or a server that has trouble.
fn passing(said: &str) -> bool {
    let server =
        ["500", "502", "503", "504", "429"].iter().any(|code| said.contains(&format!("returned error: {code}")));
    let network = [
        "Could not resolve host",
        "Failed to connect",
        "Couldn't connect",
        "Could not connect",
        "Connection refused",
        "Connection reset",
        "Connection timed out",
        "Operation timed out",
        "Operation too slow",
        "early EOF",
        "unexpected disconnect",
        "Empty reply",
        "hung up unexpectedly",
    ];
    server || network.iter().any(|words| said.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_told_from_troubles() {
        for said in ["fatal: unable to access 'x': The requested URL returned error: 503", "x: Failed to connect to h"]
        {
            assert!(passing(said), "{said}");
        }
        for said in [
            "The requested URL returned error: 403",
            "fatal: Authentication failed for 'x'",
            "fatal: repository 'x' not found",
            "! [remote rejected] main -> main (pre-receive hook declined)",
        ] {
            assert!(!passing(said), "{said}");
        }
    }

    #[test]
    fn a_refusal_is_known_by_what_git_says() {
        for (said, known) in [
            ("fatal: could not read Username for 'http://h': terminal prompts disabled", Some(Refusal::Unknown)),
            ("fatal: Authentication failed for 'https://h/o/c.git/'", Some(Refusal::Unknown)),
            ("fatal: unable to access 'x': The requested URL returned error: 403", Some(Refusal::Forbidden)),
            ("fatal: repository 'https://h/o/c.git/' not found", Some(Refusal::Absent)),
            ("! [remote rejected] main -> main (pre-receive hook declined)", None),
        ] {
            assert_eq!(Refusal::of(said), known, "{said}");
        }
    }

    #[test]
    fn a_child_without_end_is_ended_with_its_children() {
        let git = Git {
            program: Path::new("/bin/sh"),
            certificates: None,
            authorization: None,
            deadline: Duration::from_millis(50),
        };
        assert!(matches!(git.run(["-c", "sleep 600 & sleep 600"]), Err(Fault::Passing(_))));
    }

    #[test]
    fn a_secret_is_blanked_in_what_is_said() {
        let git = Git {
            program: Path::new("/bin/sh"),
            certificates: None,
            authorization: Some(("https://h".into(), "Authorization: x".into(), vec!["hunter2".into()])),
            deadline: Duration::from_secs(10),
        };
        let said = git.run(["-c", "echo bad hunter2 >&2; exit 1"]);
        assert!(matches!(&said, Err(Fault::Refused(said)) if said == "bad ***"), "{said:?}");
        assert!(!format!("{git:?}").contains("hunter2"));
    }
}
