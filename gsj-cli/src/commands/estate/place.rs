//! What the phases have in common: which corpus, which host, which service.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use gsj_estate::{
    Api, Corpus, EstateError, Host, Recipe, Remote, Report, ScaffoldOptions, Scaffolded, Service, Token,
    credential_variable, scaffold, validate, validate_only,
};

use super::report;
use crate::commands::token;
use crate::environment;
use crate::error::{CliError, Context as _, Kind};
use crate::output::Format;
use crate::terminal::{progress, warn};

/// The corpus, and which cases of it.
#[derive(Debug, clap::Args)]
pub(super) struct CorpusArgs {
    /// The corpus folder
    #[arg(long)]
    pub(super) corpus: PathBuf,
    /// Only these cases; faults inside others are not looked at
    #[arg(long, value_name = "CASE", num_args = 1.., value_delimiter = ',')]
    pub(super) only: Vec<String>,
}

/// Where lock and task bank are.
#[derive(Debug, clap::Args)]
pub(super) struct LockArgs {
    /// Folder of lock and task bank, for a corpus folder that cannot be written to [default: the corpus folder]
    #[arg(long, value_name = "DIR")]
    pub(super) lock_dir: Option<PathBuf>,
}

impl LockArgs {
    /// The corpus, with its lock where it was asked to be.
    pub(super) fn place(&self, corpus: Corpus) -> Result<Corpus, CliError> {
        let Some(folder) = &self.lock_dir else { return Ok(corpus) };
        if real(folder) != real(&corpus.root) {
            outside("--lock-dir", folder, &corpus.root)?;
        }
        Ok(corpus.with_lock_dir(folder.clone()))
    }
}

impl CorpusArgs {
    pub(super) fn is_partial(&self) -> bool {
        !self.only.is_empty()
    }

    /// All findings about the corpus.
    pub(super) fn validate(&self) -> Result<Report, CliError> {
        if !self.corpus.is_dir() {
            return Err(CliError::usage(format!("`{}` is not a folder", self.corpus.display())));
        }
        if self.is_partial() { validate_only(&self.corpus, &self.only).usage() } else { Ok(validate(&self.corpus)) }
    }

    /// Reads the corpus; one that does not pass has its table printed and gives the exit code.
    pub(super) fn read(&self, lock: &LockArgs, format: Format) -> Result<Result<Corpus, ExitCode>, CliError> {
        if !self.corpus.is_dir() {
            return Err(CliError::usage(format!("`{}` is not a folder", self.corpus.display())));
        }
        let read =
            if self.is_partial() { Corpus::read_only(&self.corpus, &self.only) } else { Corpus::read(&self.corpus) };
        match read {
            Ok(corpus) => lock.place(corpus).map(Ok),
            Err(EstateError::Invalid { report, .. }) => {
                report::print("validate", &report, format);
                Ok(Err(ExitCode::from(1)))
            }
            Err(error) => Err(of(&error)),
        }
    }
}

/// Refuses to write where the next run would find something that is no part of a corpus.
fn outside(option: &str, folder: &Path, corpus: &Path) -> Result<(), CliError> {
    if real(folder).starts_with(real(corpus)) {
        return Err(CliError::usage(format!(
            "{option}: `{}` is inside the corpus folder, where nothing but the corpus may stand",
            folder.display()
        ))
        .hint("name a folder beside the corpus folder"));
    }
    Ok(())
}

/// A path without links and dots, as far as it is there.
fn real(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    for there in path.ancestors() {
        if let (Ok(real), Ok(rest)) = (std::fs::canonicalize(there), path.strip_prefix(there)) {
            return if rest.as_os_str().is_empty() { real } else { real.join(rest) };
        }
    }
    path
}

/// Says that a run will wait, before it does.
pub(super) fn tell_of_waiting(corpus: &Corpus, dry_run: bool) {
    if !dry_run && gsj_estate::is_in_use(&corpus.lock_dir) {
        progress(&format!("another run works on the lock in `{}`; waiting for it", corpus.lock_dir.display()));
    }
}

/// How repositories are made.
#[derive(Debug, clap::Args)]
pub(super) struct BuildArgs {
    /// The commit recipe [default: the lock's; `reference` beside a lock without one; else `sealed`]
    #[arg(long, value_enum)]
    recipe: Option<RecipeArg>,
    /// Leave the repositories of cases that left the corpus
    #[arg(long)]
    keep_forgotten: bool,
}

impl BuildArgs {
    /// Makes the repositories of a corpus on a host.
    pub(super) fn scaffold(
        &self,
        corpus: &Corpus,
        which: &CorpusArgs,
        host: &HostArgs,
        dry_run: bool,
    ) -> Result<Scaffolded, CliError> {
        let mut options = ScaffoldOptions::new(host.resolve(corpus, true)?, recipe(self.recipe, &corpus.lock_dir)?);
        options.owner_override.clone_from(&host.owner_override);
        options.partial = which.is_partial();
        options.keep_forgotten = self.keep_forgotten;
        options.dry_run = dry_run;
        if let Host::Folder(folder) = &options.host {
            outside("--base-url", folder, &corpus.root)?;
        }
        tell_of_waiting(corpus, dry_run);
        scaffold(corpus, &options).map_err(|error| of(&error))
    }
}

/// Where the repositories are.
#[derive(Debug, clap::Args)]
pub(super) struct HostArgs {
    /// Where the repositories are, `file://` and a folder or `https://` and a host [default: the corpus's]
    #[arg(long, value_name = "URL")]
    pub(super) base_url: Option<String>,
    /// Another owner than the corpus's, and so another credential
    #[arg(long, value_name = "OWNER")]
    pub(super) owner_override: Option<String>,
    /// What an http host is: `forge` (Forgejo, Gitea) makes repositories by its API, `git` has them already
    #[arg(long, value_enum, default_value_t = HostKind::Forge)]
    pub(super) host: HostKind,
    /// Certificates to trust instead of the system's
    #[arg(long, value_name = "FILE")]
    pub(super) certificates: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum HostKind {
    /// Forgejo or Gitea.
    Forge,
    /// Any other git host.
    Git,
}

impl HostArgs {
    /// The host for a corpus; `pushes` says that a credential is needed.
    pub(super) fn resolve(&self, corpus: &Corpus, pushes: bool) -> Result<Host, CliError> {
        let base = self.base_url.as_deref().unwrap_or(&corpus.settings.base_url);
        if let Some(folder) = base.strip_prefix("file://") {
            if !folder.starts_with('/') {
                return Err(CliError::usage(format!("`{base}` is no file:// and an absolute path"))
                    .hint("--base-url file:///srv/repos"));
            }
            return Ok(Host::Folder(PathBuf::from(folder)));
        }
        if !base.starts_with("https://") && !base.starts_with("http://") {
            // A URL may hold a secret, and then it is not repeated.
            let shown = if base.contains('@') { "..." } else { base };
            let fault = CliError::usage(format!("`{shown}` is none of file:///FOLDER, https://HOST and http://HOST"));
            let folder = std::path::absolute(base).unwrap_or_else(|_| PathBuf::from(base));
            return Err(match folder.parent().is_some_and(Path::is_dir) && shown == base {
                true => fault.hint(format!("a folder: --base-url file://{}", folder.display())),
                false => fault.hint("--base-url file:///srv/repos"),
            });
        }
        let variable = credential_variable(self.owner_override.as_deref().unwrap_or(&corpus.settings.owner));
        let token =
            match environment::value(&variable) {
                Some(value) => Some(Token::new(&value).ok_or_else(|| {
                    CliError::usage(format!("the value of {variable} holds what no header can carry"))
                })?),
                None if pushes => {
                    let what = match self.host {
                        HostKind::Forge => "an access token with write:repository and write:user",
                        HostKind::Git => "what the host takes as the owner's password",
                    };
                    return Err(CliError::usage(format!("the environment variable {variable} is not set"))
                        .hint(format!("export {variable}=... ({what})"))
                        .hint("or into a folder: --base-url file:///srv/repos"));
                }
                None => None,
            };
        let mut remote = Remote::new(base, token, git()?, std::env::temp_dir()).usage()?;
        if self.host == HostKind::Git {
            remote.api = Api::None;
        }
        remote.certificates.clone_from(&self.certificates);
        // The library tries in silence; whoever waits should know for what.
        progress(&format!(
            "asking {base}; when it does not answer it is tried again for {} s",
            remote.patience.as_secs()
        ));
        if remote.token.is_some() && remote.is_clear() {
            warn(&format!("{base} is not https: the credential travels in the clear"));
        }
        Ok(Host::Remote(remote))
    }
}

/// The git program by its absolute path: children of ours have no search path.
fn git() -> Result<PathBuf, CliError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join("git"))
        .find(|program| program.is_file())
        .ok_or_else(|| CliError::usage("no git program is found, which a host over http needs").hint("install git"))
}

/// Where the retrieval service is.
#[derive(Debug, clap::Args)]
pub(super) struct ServiceArgs {
    /// Where the retrieval service is [default: the corpus's]
    #[arg(long, value_name = "URL")]
    pub(super) mcp_url: Option<String>,
    /// Name of the variable that holds the service's secret
    #[arg(long, value_name = "NAME", default_value = environment::TOKEN_SECRET)]
    pub(super) secret_env: String,
    /// How long the service may take to index, in seconds
    #[arg(long, value_name = "S", default_value_t = 900)]
    pub(super) ingest_timeout: u64,
}

impl ServiceArgs {
    /// The service's address, where there is one.
    pub(super) fn url<'a>(&'a self, corpus: &'a Corpus) -> Option<&'a str> {
        self.mcp_url.as_deref().or(corpus.settings.mcp_url.as_deref())
    }

    /// The service, where there is one.
    pub(super) fn resolve(&self, corpus: &Corpus) -> Result<Option<Service>, CliError> {
        let Some(url) = self.url(corpus) else { return Ok(None) };
        let secret = token::secret(&self.secret_env)
            .map_err(|error| error.hint(format!("without the service at {url}: --skip-ingest")))?;
        let mut service = Service::new(url, secret, Arc::new(token::now)).usage()?;
        service.timeout = Duration::from_secs(self.ingest_timeout);
        Ok(Some(service))
    }
}

/// How commits are made (spec `corpus.md` sections 7 and 13).
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum RecipeArg {
    /// Each timestep is a root commit; the full document is in a repository that no episode reads.
    Sealed,
    /// The ids of the Python reference.
    Reference,
}

/// The recipe asked for, or the one that the lock or its absence says.
pub(super) fn recipe(asked: Option<RecipeArg>, lock_dir: &Path) -> Result<Recipe, CliError> {
    match asked {
        Some(RecipeArg::Sealed) => Ok(Recipe::Sealed),
        Some(RecipeArg::Reference) => Ok(Recipe::Reference),
        None => gsj_estate::default_recipe(lock_dir).usage(),
    }
}

/// An error of the library with its exit code: what another machine did is told apart from what was asked of us.
pub(super) fn of(error: &EstateError) -> CliError {
    let kind = if error.is_remote() { Kind::Server } else { Kind::Usage };
    let fault = CliError::from_error(kind, error);
    let generated = |path: &Path| {
        path.file_name()
            .is_some_and(|name| [gsj_estate::LOCK_FILE, gsj_estate::BANK_FILE].iter().any(|own| name == *own))
    };
    match error {
        EstateError::File { path, source, .. } if generated(path) && is_closed(source) => {
            fault.hint("--lock-dir DIR keeps lock and task bank outside of a corpus folder that cannot be written to")
        }
        _ => fault,
    }
}

fn is_closed(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem)
}
