//! Fetching a repository over https into a bare repository of this machine, from which a cut is made.
//!
//! The one part of the crate that starts a process: the `git` program. gix could fetch too, but its http transport
//! brings an http client with a runtime of its own and needs a TLS provider installed for the whole process; a library
//! that others embed should ask for neither.

use crate::error::CutoffError;
use crate::evidence::without_credentials;
use crate::git_program::GitProgram;
use base64::Engine as _;
use std::ffi::OsStr;
use std::fmt;
use std::num::NonZeroU32;
use std::path::Path;

/// User and secret for a remote. Never printed: its `Debug` form shows neither.
#[derive(Clone)]
pub struct Credential {
    user: String,
    secret: String,
}

impl Credential {
    /// Takes `USER:SECRET`, or a secret alone, as the forges' access tokens are: they look at no user's name then.
    ///
    /// # Errors
    /// Fails for an empty secret and for one with control characters, which no header can carry.
    pub fn new(value: &str) -> Result<Self, CutoffError> {
        let value = value.trim_end_matches(['\r', '\n']);
        let (user, secret) = value.split_once(':').unwrap_or(("git", value));
        if secret.is_empty() || value.chars().any(char::is_control) {
            return Err(CutoffError::Credential);
        }
        Ok(Self { user: user.to_owned(), secret: secret.to_owned() })
    }

    pub(crate) fn header(&self) -> String {
        let pair = format!("{}:{}", self.user, self.secret);
        format!("Authorization: Basic {}", base64::engine::general_purpose::STANDARD.encode(pair))
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credential(..)")
    }
}

/// What to fetch.
#[derive(Debug, Clone)]
pub struct FetchRequest<'a> {
    /// An `https://` URL without user information; `http://` only for a loopback address.
    pub url: &'a str,
    /// What the remote asks for, if it does.
    pub credential: Option<&'a Credential>,
    /// What is needed of it.
    pub refs: FetchRefs<'a>,
    /// How many commits from the tip, where no more are needed.
    pub depth: Option<NonZeroU32>,
    /// The git program; `git` is looked for in the system's default folders.
    pub program: &'a Path,
    /// A file of certificates to trust instead of the system's.
    pub certificates: Option<&'a Path>,
    /// Where the bare repository goes; absent or an empty directory. It is the caller's to remove.
    pub into: &'a Path,
}

/// Which refs to fetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FetchRefs<'a> {
    /// One branch.
    Branch(&'a str),
    /// The branch that the remote's HEAD names.
    Head,
    /// All branches and tags: a commit may be reached by any.
    All,
}

/// Fetches a remote into a bare repository, as the source of a cut.
///
/// The program is run with an environment of its own, without the user's and the system's configuration, prompts,
/// helpers, hooks and proxies. The credential goes to the one host named, in an environment variable of the child (so it
/// can be read by whoever may read this process' memory, and stands in no argument list and on no disk); with a
/// credential no redirect is followed. The result holds whatever the remote sent: only a cut of it is fit to be shown.
///
/// # Errors
/// Fails when the URL is none that may be fetched, when git cannot be run or when it fails; the message holds what git
/// said, never the credential.
pub fn fetch(request: &FetchRequest<'_>) -> Result<(), CutoffError> {
    let fault = |reason: String| CutoffError::Fetch { url: without_credentials(request.url), reason };
    let protocol =
        allowed(request.url).map_err(|what| CutoffError::Url { url: without_credentials(request.url), what })?;
    if let FetchRefs::Branch(branch) = request.refs
        && (branch.is_empty() || branch.starts_with('-'))
    {
        return Err(fault(format!("`{branch}` is no branch")));
    }
    let header = request.credential.map(Credential::header);
    let git = GitProgram {
        program: request.program,
        protocols: protocol,
        certificates: request.certificates,
        authorization: header.as_deref().map(|header| (request.url, header)),
    };
    let mut arguments: Vec<&OsStr> = ["clone", "--quiet", "--bare", "--template="].map(OsStr::new).to_vec();
    match request.refs {
        FetchRefs::Branch(branch) => {
            arguments.extend(["--no-tags", "--single-branch", "--branch", branch].map(OsStr::new));
        }
        FetchRefs::Head => arguments.extend(["--no-tags", "--single-branch"].map(OsStr::new)),
        FetchRefs::All => arguments.push("--no-single-branch".as_ref()),
    }
    let depth = request.depth.map(|depth| depth.to_string());
    if let Some(depth) = &depth {
        arguments.extend(["--depth", depth].map(OsStr::new));
    }
    arguments.extend(["--".as_ref(), request.url.as_ref(), request.into.as_os_str()]);
    // A remote that is silent for a minute ends it by itself.
    let ran = git.run(&[], arguments, &|| false).map_err(|error| fault(format!("git cannot be run: {error}")))?;
    if ran.status.is_some_and(|status| status.success()) {
        return Ok(());
    }
    Err(fault(crate::names::shown_text(&blanked(&ran.said, request.credential))))
}

/// What git said, in one line and without the credential.
pub(crate) fn blanked(said: &[u8], credential: Option<&Credential>) -> String {
    let said = String::from_utf8_lossy(said).trim().replace('\n', "; ");
    match credential {
        Some(credential) => {
            said.replace(&credential.secret, "***").replace(&credential.header()["Authorization: ".len()..], "***")
        }
        None => said,
    }
}

/// The protocol of a URL that may be fetched, or why it may not.
fn allowed(url: &str) -> Result<&'static str, &'static str> {
    if url.chars().any(|character| character.is_control() || character == ' ') {
        return Err("it is no URL");
    }
    if without_credentials(url) != url {
        return Err("credentials do not belong into a URL, which stands in process lists");
    }
    if url.starts_with("https://") {
        return Ok("https");
    }
    let Some(rest) = url.strip_prefix("http://") else { return Err("only https is fetched") };
    let host = rest.split('/').next().unwrap_or_default();
    let host = host.rsplit_once(':').filter(|(_, port)| !port.contains(']')).map_or(host, |(host, _)| host);
    let loopback = matches!(host, "localhost" | "127.0.0.1" | "[::1]");
    if loopback { Ok("http") } else { Err("only https is fetched, and http from this machine") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_https_and_this_machine_are_fetched() {
        for url in ["https://h.invalid/x.git", "http://127.0.0.1:80/x", "http://localhost/x", "http://[::1]:8080/x"] {
            assert!(allowed(url).is_ok(), "{url}");
        }
        for url in [
            "http://h.invalid/x.git",
            "http://127.0.0.1.h.invalid/x",
            "ssh://h.invalid/x",
            "ext::sh -c x",
            "ext::sh",
            "file:///srv/x.git",
            "https://u:p@h.invalid/x",
            "--upload-pack=x",
            "https://h.invalid/\nx",
        ] {
            assert!(allowed(url).is_err(), "{url}");
        }
    }

    #[test]
    fn a_credential_is_never_printed() {
        for value in ["user:hunter2", "hunter2", "hunter2\n"] {
            let credential = Credential::new(value).expect("usable");
            assert!(!format!("{credential:?}").contains("hunter2"));
        }
        assert_eq!(Credential::new("a:b").expect("usable").header(), "Authorization: Basic YTpi");
        assert!(Credential::new("").is_err() && Credential::new("a\nb").is_err() && Credential::new("user:").is_err());
    }
}
