//! A copy of a remote's branches on this machine, brought up to date again and again.

use crate::error::CutoffError;
use crate::evidence::without_credentials;
use crate::fetch::{Credential, blanked};
use crate::git_program::GitProgram;
use crate::names;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// What is copied, and where to.
#[derive(Clone, Copy)]
pub struct MirrorRequest<'a> {
    /// An `https://` or `http://` URL without user information. With a credential, `http://` sends it in the clear.
    pub url: &'a str,
    /// What the remote asks for, if it does.
    pub credential: Option<&'a Credential>,
    /// The git program; `git` is looked for in the system's default folders.
    pub program: &'a Path,
    /// A file of certificates to trust instead of the system's.
    pub certificates: Option<&'a Path>,
    /// The bare repository; its folder is there.
    pub into: &'a Path,
    /// Asked while git runs: whether to give up.
    pub stop: &'a (dyn Fn() -> bool + Sync),
}

impl std::fmt::Debug for MirrorRequest<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let url = without_credentials(self.url);
        f.debug_struct("MirrorRequest").field("url", &url).field("into", &self.into).finish_non_exhaustive()
    }
}

/// Brings the branches of a bare repository to what a remote has now: new ones come, others move, forced or not, and those
/// that are gone go. Tags and all else stay behind.
///
/// A repository that is not there is made beside its place and renamed there when it is whole, so one that was stopped
/// half-way is never met again; one that git cannot bring up to date is replaced in the same way. When that fails too, what
/// was there stays as it was. Git is run as [`crate::fetch`] runs it.
///
/// # Errors
/// Fails when the URL is none that may be fetched, when git cannot be run, fails or is told to stop; the message holds what
/// git said, never the credential.
pub fn mirror(request: &MirrorRequest<'_>) -> Result<(), CutoffError> {
    let protocol =
        protocol(request.url).map_err(|what| CutoffError::Url { url: without_credentials(request.url), what })?;
    let there = request.into.join("HEAD").is_file() && request.into.join("objects").is_dir();
    let first = match there.then(|| update(request, protocol, request.into)) {
        Some(Ok(())) => return Ok(()),
        Some(Err(error)) => Some(error),
        None => None,
    };
    let made = if (request.stop)() { Err(fault(request, "it was told to stop")) } else { anew(request, protocol) };
    // What the repository that was there had to say is nearer to the cause.
    made.map_err(|error| first.unwrap_or(error))
}

fn anew(request: &MirrorRequest<'_>, protocol: &str) -> Result<(), CutoffError> {
    let (new, old) = (beside(request.into, ".new"), beside(request.into, ".old"));
    let failed = |doing: &str, error: std::io::Error| fault(request, &format!("{doing}: {error}"));
    let clear = |path: &Path| match fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(failed("remove what is in the way", error)),
        _ => Ok(()),
    };
    clear(&new)?;
    clear(&old)?;
    let arguments = ["init", "--quiet", "--bare", "--template=", "--initial-branch=main", "--"].map(OsString::from);
    run(request, protocol, arguments.into_iter().chain([new.clone().into()]))?;
    update(request, protocol, &new)?;
    let moved = fs::rename(request.into, &old);
    if let Err(error) = moved
        && error.kind() != std::io::ErrorKind::NotFound
    {
        return Err(failed("move the old repository aside", error));
    }
    fs::rename(&new, request.into).map_err(|error| failed("move the new repository to its place", error))?;
    // One that stays is removed the next time.
    let _ = fs::remove_dir_all(&old);
    Ok(())
}

fn update(request: &MirrorRequest<'_>, protocol: &str, repository: &Path) -> Result<(), CutoffError> {
    let mut folder = OsString::from("--git-dir=");
    folder.push(repository);
    let options = ["fetch", "--quiet", "--prune", "--force", "--no-tags", "--no-write-fetch-head", "--"];
    let what = [request.url, "+refs/heads/*:refs/heads/*"];
    run(request, protocol, [folder].into_iter().chain(options.into_iter().chain(what).map(OsString::from)))
}

/// Runs git to its end, or until it is told to stop.
fn run(
    request: &MirrorRequest<'_>,
    protocol: &str,
    arguments: impl Iterator<Item = OsString>,
) -> Result<(), CutoffError> {
    let header = request.credential.map(Credential::header);
    let git = GitProgram {
        program: request.program,
        protocols: protocol,
        certificates: request.certificates,
        authorization: header.as_deref().map(|header| (request.url, header)),
    };
    let ran = git
        .run(&[], arguments, request.stop)
        .map_err(|error| fault(request, &format!("git cannot be run: {error}")))?;
    match ran.status {
        Some(status) if status.success() => Ok(()),
        Some(_) => Err(fault(request, &names::shown_text(&blanked(&ran.said, request.credential)))),
        None => Err(fault(request, "it was told to stop")),
    }
}

/// A hidden name beside a repository.
fn beside(repository: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(repository.file_name().unwrap_or_default());
    name.push(suffix);
    repository.with_file_name(name)
}

fn fault(request: &MirrorRequest<'_>, reason: &str) -> CutoffError {
    CutoffError::Fetch { url: without_credentials(request.url), reason: reason.to_owned() }
}

/// The protocol of a URL that may be copied from, or why it may not.
fn protocol(url: &str) -> Result<&'static str, &'static str> {
    if url.chars().any(|character| character.is_control() || character == ' ') {
        return Err("it is no URL");
    }
    if without_credentials(url) != url {
        return Err("credentials do not belong into a URL, which stands in process lists");
    }
    match url {
        _ if url.starts_with("https://") => Ok("https"),
        _ if url.starts_with("http://") => Ok("http"),
        _ => Err("only https and http are fetched"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request<'a>(url: &'a str, into: &'a Path) -> MirrorRequest<'a> {
        let (credential, certificates) = (None, None);
        MirrorRequest { url, credential, program: Path::new("git"), certificates, into, stop: &|| false }
    }

    #[test]
    fn only_web_addresses_without_a_credential_are_copied() {
        for url in ["ssh://h/x", "file:///srv/x", "ext::sh -c x", "--upload-pack=x", "http://u:p@h/x", "https://h/\nx"]
        {
            let folder = tempfile::tempdir().expect("a folder");
            let error = mirror(&request(url, &folder.path().join("x.git"))).expect_err(url);
            assert!(matches!(error, CutoffError::Url { .. }), "{error}");
            assert!(!error.to_string().contains("u:p"), "{error}");
        }
    }

    #[test]
    fn a_remote_that_is_not_there_leaves_what_was_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = folder.path().join("x.git");
        fs::create_dir_all(place.join("objects")).expect("made");
        fs::write(place.join("HEAD"), "ref: refs/heads/main\n").expect("written");
        let error = mirror(&request("http://127.0.0.1:1/x.git", &place)).expect_err("nobody is there");
        assert!(error.to_string().contains("127.0.0.1:1"), "{error}");
        assert!(place.join("HEAD").is_file(), "it is kept");
    }
}
