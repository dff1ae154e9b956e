//! `gsj retrieval serve`: the four tools over MCP, without a rollout server.

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use gsj_cutoff::Credential;
use gsj_retrieval::config::ServiceConfig;
use gsj_retrieval::{
    CallRecord, Embedder, Hosted, IndexFault, IndexSource, Indexer, Library, LogField, Mirrors, Options, Progress,
    Rebuild, RetrievalError, Service, Sources, Tools,
};

use super::embeddings::{self, EmbeddingsArgs};
use crate::commands::{runtime, token};
use crate::environment;
use crate::error::{CliError, Context as _, Kind};
use crate::output;
use crate::terminal::warn;

pub(super) const EXAMPLE: &str = "Example:\n  gsj retrieval serve --corpus corpus --port 8790";
/// Where the service listens unless it is told otherwise.
const PORT: u16 = 8790;

#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("source").required(true).args(["config", "corpus"]))]
pub(super) struct Args {
    /// The service's configuration: repositories, index, limits
    #[arg(long, value_name = "FILE", conflicts_with = "index")]
    config: Option<PathBuf>,
    /// The corpus folder, each case at its largest timestep
    #[arg(long)]
    corpus: Option<PathBuf>,
    /// Where the index of a corpus folder is kept [default: in memory]
    #[arg(long, value_name = "DIR")]
    index: Option<PathBuf>,
    /// The port, on 127.0.0.1 unless the configuration says otherwise; 0 picks a free one [default: 8790]
    #[arg(long)]
    port: Option<u16>,
    /// Name of the variable that holds the secret [default: the configuration's, or GSJ_MCP_TOKEN_SECRET]
    #[arg(long, value_name = "NAME")]
    secret_env: Option<String>,
    /// Tool declarations in the form of a `tools/list` answer
    #[arg(long, value_name = "FILE")]
    tools_file: Option<PathBuf>,
    #[command(flatten)]
    embeddings: EmbeddingsArgs,
}

/// A corpus folder, read anew with each index run.
struct Folder {
    corpus: PathBuf,
    index: Option<PathBuf>,
    embedder: Option<Arc<Embedder>>,
}

impl Folder {
    fn read(&self, progress: &Progress) -> Result<Library, RetrievalError> {
        match &self.index {
            Some(index) => {
                let sources = Sources::Corpus(&self.corpus);
                let embedder = self.embedder.clone();
                Library::stored_near(index, sources, Rebuild::IfStale, progress, embedder).map(|(library, _)| library)
            }
            None => {
                let library = Library::from_corpus_dir(&self.corpus)?;
                match &self.embedder {
                    Some(embedder) => library.embedded(Arc::clone(embedder), progress),
                    None => Ok(library),
                }
            }
        }
    }
}

impl IndexSource for Folder {
    fn index(&mut self, progress: &Progress) -> Result<Library, IndexFault> {
        Ok(self.read(progress)?)
    }
}

/// The repositories and decisions that a configuration names, read anew with each index run.
struct Estate {
    hosted: Hosted,
    index: PathBuf,
    rebuild: Rebuild,
    embedder: Option<Arc<Embedder>>,
    decisions: Option<PathBuf>,
}

impl IndexSource for Estate {
    fn index(&mut self, progress: &Progress) -> Result<Library, IndexFault> {
        let sources = self.hosted.sources(progress)?;
        let (sources, embedder) = (Sources::Repos(&sources), self.embedder.clone());
        let (mut library, _) = Library::stored_near(&self.index, sources, self.rebuild, progress, embedder)?;
        // `always` means each start.
        if self.rebuild == Rebuild::Always {
            self.rebuild = Rebuild::IfStale;
        }
        if let Some(path) = &self.decisions {
            let bytes = std::fs::read(path).map_err(|source| RetrievalError::Read { path: path.clone(), source })?;
            library = library.with_decisions(&bytes)?;
        }
        Ok(library)
    }
}

pub(super) fn run(args: &Args) -> Result<ExitCode, CliError> {
    match (&args.config, &args.corpus) {
        (Some(file), _) => configured(file, args),
        (None, Some(corpus)) => folder(corpus, args),
        (None, None) => Err(CliError::usage("neither a configuration nor a corpus is named")),
    }
}

fn folder(corpus: &Path, args: &Args) -> Result<ExitCode, CliError> {
    let secret = token::secret_to_serve(args.secret_env.as_deref().unwrap_or(environment::TOKEN_SECRET))?;
    let tools = tools(args.tools_file.as_deref())?;
    let embedder = args.embeddings.embedder(args.index.is_some())?;
    let folder = Folder { corpus: corpus.to_owned(), index: args.index.clone(), embedder };
    // A folder that cannot be read is a mistake of whoever named it, and is told before anybody may call.
    let library = folder.read(&Progress::default()).map_err(|error| match &error {
        RetrievalError::Embed(fault) => embeddings::told(fault),
        _ => CliError::from_error(Kind::Usage, &error),
    })?;
    let mut options = Options::new(Arc::new(token::now));
    options.call_log = Some(log(LogField::ALL.to_vec()));
    let service = Service::starting(tools, vec![secret], options);
    service.publish(library);
    serve(&service, folder, SocketAddr::from(([127, 0, 0, 1], args.port.unwrap_or(PORT))), false)
}

fn configured(file: &Path, args: &Args) -> Result<ExitCode, CliError> {
    let config = ServiceConfig::read(file).usage()?;
    let unused = config.not_used();
    if !unused.is_empty() {
        warn(&format!("{}: not used here: {}", file.display(), unused.join(", ")));
    }
    let secret = token::secret_to_serve(args.secret_env.as_deref().unwrap_or(&config.auth.token_secret_env))?;
    let tools = tools(args.tools_file.as_deref().or(config.server.tools_file.as_deref()))?;
    let mut estate = Estate {
        hosted: config.hosted(),
        index: config.index.path.clone(),
        rebuild: config.index.rebuild,
        embedder: match args.embeddings.embedder(true)? {
            Some(embedder) => Some(embedder),
            None => embeddings::configured(&config.embeddings)?,
        },
        decisions: config.decisions.file.clone(),
    };
    let credential = credential(&config)?;
    if let Some(cache) = &config.source.clone_cache_dir {
        let mut mirrors = Mirrors::new(cache);
        mirrors.credential = credential;
        mirrors.certificates.clone_from(&config.source.certificates);
        estate.hosted.mirrors = Some(mirrors);
    }
    if let Some(path) = &estate.decisions {
        // Looked at now as well, when a wrong file is still a wrong configuration.
        let bytes =
            std::fs::read(path).map_err(|error| CliError::usage(format!("read `{}`: {error}", path.display())))?;
        let none = Library::from_pages(std::collections::BTreeMap::new()).usage()?;
        none.with_decisions(&bytes).usage().map_err(|error| error.named(&path.display().to_string()))?;
    }
    let address = address(&config.server.host, args.port.unwrap_or(config.server.port))?;
    let mut options = Options::new(Arc::new(token::now));
    config.apply(&mut options);
    options.call_log = config.server.log_fields().map(log);
    let service = Service::starting(tools, vec![secret], options);
    serve(&service, estate, address, true)
}

/// Listens; `first` says that there is no index yet, so that a run begins at once.
fn serve(service: &Service, source: impl IndexSource, address: SocketAddr, first: bool) -> Result<ExitCode, CliError> {
    runtime::block_on(async move {
        let (listener, address) = runtime::listen(address).await?;
        let indexer = Indexer::start(service, source);
        if first {
            indexer.reindex();
        }
        output::line(&format!("listening on http://{address}"));
        let served = runtime::serve_until_signal(listener, service.router()).await;
        indexer.stop().await;
        served
    })?;
    Ok(ExitCode::SUCCESS)
}

/// The git host's credential, from the variable that the configuration names.
fn credential(config: &ServiceConfig) -> Result<Option<Credential>, CliError> {
    let Some(name) = &config.source.auth_token_env else { return Ok(None) };
    let value = environment::value(name).ok_or_else(|| {
        CliError::usage(format!("the environment variable {name} is not set"))
            .hint(format!("export {name}=... (an access token that may read the repositories)"))
            .hint("or `auth_token_env: null`, when the host asks for none")
    })?;
    if config.source.base_url.starts_with("http://") {
        warn(&format!("{} is not https: the credential travels in the clear", config.source.base_url));
    }
    Credential::new(&value).usage().map(Some)
}

fn address(host: &str, port: u16) -> Result<SocketAddr, CliError> {
    let fault = |what: String| CliError::usage(format!("server.host `{host}`: {what}"));
    let mut found = (host, port).to_socket_addrs().map_err(|error| fault(error.to_string()))?;
    found.next().ok_or_else(|| fault("it has no address".to_owned()))
}

/// One JSON line on stderr for each call.
fn log(fields: Vec<LogField>) -> gsj_retrieval::CallLog {
    Arc::new(move |record: &CallRecord| {
        use std::io::Write as _;
        // Whoever reads the log may have gone; calls are answered all the same.
        let _ = writeln!(std::io::stderr().lock(), "{}", record.line(&fields));
    })
}

fn tools(file: Option<&Path>) -> Result<Tools, CliError> {
    let Some(path) = file else { return Tools::builtin().usage() };
    let bytes = std::fs::read(path).map_err(|error| CliError::usage(format!("read `{}`: {error}", path.display())))?;
    Tools::from_bytes(&bytes).usage()
}
