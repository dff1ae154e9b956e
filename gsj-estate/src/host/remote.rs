//! A git host over https: repositories are made by its API where it has one, and pushed to by git.

use super::forge::Forge;
use super::git::{Fault, Git, Refusal};
use super::scratch::Scratch;
use crate::error::EstateError;
use crate::recipe::Plan;
use crate::repository::{self, Wanted};
use crate::web::Web;
use base64::Engine as _;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How many repositories are pushed at once: a host has others to serve.
pub(crate) const AT_ONCE: usize = 4;

/// A secret. Its `Debug` form does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// Takes an access token; `None` for one that no header can carry.
    #[must_use]
    pub fn new(secret: &str) -> Option<Self> {
        let secret = secret.trim_end_matches(['\r', '\n']);
        let fits = !secret.is_empty() && secret.bytes().all(|byte| byte.is_ascii_graphic());
        fits.then(|| Self(secret.to_owned()))
    }

    pub(crate) fn secret(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

/// What a host can do beside git.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Api {
    /// The API of Forgejo and Gitea below `/api/v1`: repositories are made when they are absent.
    Forge,
    /// None that is known: repositories must be there, and their HEAD is the host's business.
    None,
}

/// A git host.
#[derive(Debug, Clone)]
pub struct Remote {
    base_url: String,
    /// What pushes, and reads what is not public; without it only reading what is public can work.
    pub token: Option<Token>,
    /// What the host can do.
    pub api: Api,
    /// The git program.
    pub git: PathBuf,
    /// A file of certificates to trust instead of the system's.
    pub certificates: Option<PathBuf>,
    /// Where repositories are built before they are pushed, and cloned to be read.
    pub scratch: PathBuf,
    /// How long what may be tried again is tried.
    pub patience: Duration,
    /// How long one push or clone may take.
    pub deadline: Duration,
}

impl Remote {
    /// A Forgejo or Gitea below an `https://` or `http://` URL, with a minute's patience.
    ///
    /// # Errors
    /// Refuses what is no such URL, or holds user information, which would stand in the lock and in process lists.
    pub fn new(base_url: &str, token: Option<Token>, git: PathBuf, scratch: PathBuf) -> Result<Self, EstateError> {
        let base_url = base_url.trim_end_matches('/');
        let rest = base_url.strip_prefix("https://").or_else(|| base_url.strip_prefix("http://"));
        let authority = rest.map(|rest| rest.split('/').next().unwrap_or_default()).unwrap_or_default();
        let fault = |what: &str| {
            // What may hold a secret is not repeated.
            let url = if base_url.contains('@') { "..." } else { base_url };
            EstateError::BaseUrl { url: crate::names::shown(url), what: what.to_owned() }
        };
        if base_url.contains('@') {
            return Err(fault("holds user information: a credential belongs into the environment"));
        }
        if authority.is_empty() || base_url.chars().any(|c| c.is_control() || c.is_whitespace() || "?#\"\\".contains(c))
        {
            return Err(fault("is none of https://HOST and http://HOST"));
        }
        Ok(Self {
            base_url: base_url.to_owned(),
            token,
            api: Api::Forge,
            git,
            certificates: None,
            scratch,
            patience: Duration::from_secs(60),
            deadline: Duration::from_secs(900),
        })
    }

    /// Whether a credential would travel in the clear over a network.
    #[must_use]
    pub fn is_clear(&self) -> bool {
        let host = self.base_url.strip_prefix("http://").map(|rest| rest.split('/').next().unwrap_or_default());
        let local = |host: &str| ["localhost", "127.0.0.1", "[::1]"].iter().any(|name| host.starts_with(name));
        host.is_some_and(|host| !local(host))
    }

    pub(crate) fn open<'a>(&'a self, owner: &'a str) -> Result<Session<'a>, EstateError> {
        let authorization = self.token.as_ref().map(|token| {
            let pair = base64::engine::general_purpose::STANDARD.encode(format!("{owner}:{}", token.secret()));
            let header = format!("Authorization: Basic {pair}");
            (format!("{}/{owner}", self.base_url), header, vec![token.secret().to_owned(), pair])
        });
        let git = Git {
            program: &self.git,
            certificates: self.certificates.as_deref(),
            authorization,
            deadline: self.deadline,
        };
        let forge = match (&self.token, self.api) {
            (Some(token), Api::Forge) => {
                let web = Web::new(&self.base_url, self.certificates.as_deref(), self.patience)?;
                let forge = Forge { web, base: &self.base_url, owner, token };
                forge.check_owner()?;
                Some(forge)
            }
            _ => None,
        };
        Ok(Session { remote: self, owner, git, forge })
    }
}

/// A host as one owner uses it.
#[derive(Debug)]
pub(crate) struct Session<'a> {
    remote: &'a Remote,
    owner: &'a str,
    git: Git<'a>,
    forge: Option<Forge<'a>>,
}

/// The refs of a repository on the host.
#[derive(Debug, Default, PartialEq, Eq)]
struct Refs {
    heads: BTreeMap<String, String>,
    tags: bool,
    head: Option<String>,
}

impl Session<'_> {
    pub(crate) fn owner(&self) -> &str {
        self.owner
    }

    pub(crate) fn url(&self, name: &str) -> String {
        format!("{}/{}/{name}.git", self.remote.base_url, self.owner)
    }

    pub(crate) fn put(&self, wanted: Wanted<'_>, dry_run: bool) -> Result<bool, EstateError> {
        if self.remote.token.is_none() {
            return Err(EstateError::Credential {
                variable: super::credential_variable(self.owner),
                what: "is not set, and a push needs it".into(),
            });
        }
        let plan = wanted.plan;
        let name = plan.name(&wanted.case.id);
        if let Some(forge) = &self.forge
            && !forge.exists(&name)?
        {
            if dry_run {
                return Ok(true);
            }
            // What episodes may not read is not public either; the retrieval service reads it with a token.
            forge.create(&name, plan.full, &plan.head)?;
        }
        let before = self.refs(&name)?;
        if self.is_right(plan, &before) || dry_run {
            return Ok(!self.is_right(plan, &before));
        }
        let scratch = self.scratch()?;
        let source = scratch.path().join(format!("{name}.git"));
        repository::write(&source, wanted, false)?;
        let (url, at) = (self.url(&name), format!("--git-dir={}", source.display()));
        let heads = "+refs/heads/*:refs/heads/*";
        self.again(&url, || self.git.run([at.as_str(), "push", "--quiet", "--force", "--", &url, heads]))?;
        // A host does not let go of the branch that its HEAD names, so HEAD moves before anything is pruned.
        if let Some(forge) = self.forge.as_ref().filter(|_| before.head.as_deref() != Some(plan.head.as_str())) {
            forge.set_default_branch(&name, &plan.head)?;
        }
        if before.tags || before.heads.keys().any(|head| !plan.branches.contains_key(head)) {
            let tags = "+refs/tags/*:refs/tags/*";
            self.again(&url, || {
                self.git.run([at.as_str(), "push", "--quiet", "--force", "--prune", "--", &url, heads, tags])
            })?;
        }
        if !self.is_right(plan, &self.refs(&name)?) {
            return Err(self.fault(&url, "does not hold what was pushed to it: does somebody else push there?"));
        }
        Ok(true)
    }

    pub(crate) fn fetch(&self, name: &str) -> Result<Scratch, EstateError> {
        let url = self.url(name);
        let started = Instant::now();
        let mut pause = FIRST_PAUSE;
        loop {
            let scratch = self.scratch()?;
            let path = scratch.path().as_os_str();
            let arguments = ["clone", "--quiet", "--mirror", "--template=", "--", &url].map(std::ffi::OsStr::new);
            match self.git.run(arguments.into_iter().chain([path])) {
                Ok(_) => return Ok(scratch),
                Err(Fault::Refused(said)) => return Err(EstateError::repository(url.as_ref(), self.meant(&said))),
                Err(Fault::Passing(said)) if started.elapsed() + pause > self.remote.patience => {
                    return Err(self.fault(&url, &said));
                }
                Err(Fault::Passing(_)) => std::thread::sleep(pause),
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Whether heads, tags, and HEAD where it is ours to set, are as they should be.
    fn is_right(&self, plan: &Plan, refs: &Refs) -> bool {
        let heads = plan.branches.iter().map(|(name, branch)| (name.clone(), branch.commit.to_string()));
        let head = self.forge.is_none() || refs.head.as_deref() == Some(plan.head.as_str());
        head && !refs.tags && refs.heads == heads.collect()
    }

    fn refs(&self, name: &str) -> Result<Refs, EstateError> {
        let url = self.url(name);
        let text = self.again(&url, || self.git.run(["ls-remote", "--quiet", "--symref", "--", &url]))?;
        let mut refs = Refs::default();
        for line in text.lines() {
            match line.split_once('\t') {
                Some((target, "HEAD")) if target.starts_with("ref: ") => {
                    refs.head = target.strip_prefix("ref: refs/heads/").map(str::to_owned);
                }
                Some((id, reference)) => {
                    refs.tags |= reference.starts_with("refs/tags/");
                    if let Some(head) = reference.strip_prefix("refs/heads/") {
                        refs.heads.insert(head.to_owned(), id.to_owned());
                    }
                }
                None => {}
            }
        }
        Ok(refs)
    }

    /// Runs what may be run again until it is done, refused, or patience ends.
    fn again(&self, url: &str, work: impl Fn() -> Result<String, Fault>) -> Result<String, EstateError> {
        let started = Instant::now();
        let mut pause = FIRST_PAUSE;
        loop {
            match work() {
                Ok(text) => return Ok(text),
                Err(Fault::Refused(said)) => return Err(self.fault(url, &self.meant(&said))),
                Err(Fault::Passing(said)) if started.elapsed() + pause > self.remote.patience => {
                    return Err(self.fault(url, &said));
                }
                Err(Fault::Passing(_)) => std::thread::sleep(pause),
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// What a refusal means for whoever has to do something about it, and what git said.
    fn meant(&self, said: &str) -> String {
        let variable = super::credential_variable(self.owner);
        let held = self.remote.token.is_some();
        let meaning = match Refusal::of(said) {
            Some(Refusal::Unknown) if held => format!("the credential in {variable} is not accepted"),
            Some(Refusal::Unknown) => format!("it asks for a credential, and {variable} is not set"),
            Some(Refusal::Forbidden) if held => format!("the credential in {variable} may not do this"),
            Some(Refusal::Absent) if !held => format!("it is not there, or not public, and {variable} is not set"),
            Some(Refusal::Absent) if self.remote.api == Api::None => {
                "it is not there, or not for this credential to see; on this host repositories are made before, empty"
                    .into()
            }
            _ => return said.to_owned(),
        };
        format!("{meaning} ({said})")
    }

    fn scratch(&self) -> Result<Scratch, EstateError> {
        Scratch::within(&self.remote.scratch)
            .map_err(|error| EstateError::file("make a folder in", &self.remote.scratch, error))
    }

    fn fault(&self, url: &str, what: &str) -> EstateError {
        EstateError::Host { url: url.to_owned(), what: what.to_owned() }
    }
}

const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    fn remote(url: &str) -> Result<Remote, EstateError> {
        Remote::new(url, None, "git".into(), "/tmp".into())
    }

    #[test]
    fn only_plain_addresses_are_taken_and_no_secret_is_repeated() {
        for url in ["https://h", "http://h:3000/", "https://h/sub/path"] {
            assert!(remote(url).is_ok(), "{url}");
        }
        for url in
            ["ssh://h", "https://", "https://u:hunter2@h", "https://h/a b", "https://h/?q", "h", "ext::sh -c hunter2@"]
        {
            let error = remote(url).expect_err(url);
            assert!(!error.to_string().contains("hunter2"), "{error}");
        }
        assert!(remote("http://h:3000").expect("taken").is_clear());
        for url in ["https://h", "http://127.0.0.1:3000", "http://localhost"] {
            assert!(!remote(url).expect("taken").is_clear(), "{url}");
        }
    }

    #[test]
    fn a_token_is_not_shown_and_fits_into_a_header() {
        let token = Token::new("hunter2\n").expect("fits");
        assert_eq!((token.secret(), format!("{token:?}")), ("hunter2", "Token(..)".to_owned()));
        for bad in ["", "\n", "a b", "a\u{e9}", "a\r\nb"] {
            assert_eq!(Token::new(bad), None, "{bad:?}");
        }
    }
}
