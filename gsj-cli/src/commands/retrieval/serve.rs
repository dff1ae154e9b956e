//! `gsj retrieval serve`: the four tools over MCP, without a rollout server.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use gsj_retrieval::{
    IndexFault, IndexSource, Indexer, Library, Options, Progress, Rebuild, RetrievalError, Service, Sources, Tools,
};

use crate::commands::{runtime, token};
use crate::environment;
use crate::error::{CliError, Context as _};
use crate::output;

pub(super) const EXAMPLE: &str = "Example:\n  gsj retrieval serve --corpus corpus --port 8790";
/// Where the service listens unless it is told otherwise.
const PORT: u16 = 8790;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The corpus folder, each case at its largest timestep
    #[arg(long)]
    corpus: PathBuf,
    /// Where the index is kept [default: in memory]
    #[arg(long, value_name = "DIR")]
    index: Option<PathBuf>,
    /// Port on 127.0.0.1; 0 picks a free one [default: 8790]
    #[arg(long)]
    port: Option<u16>,
    /// Name of the variable that holds the secret
    #[arg(long, default_value = environment::TOKEN_SECRET)]
    secret_env: String,
    /// Tool declarations in the form of a `tools/list` answer
    #[arg(long)]
    tools_file: Option<PathBuf>,
}

/// A corpus folder, read anew with each index run.
struct Folder {
    corpus: PathBuf,
    index: Option<PathBuf>,
}

impl Folder {
    fn read(&self, progress: &Progress) -> Result<Library, RetrievalError> {
        match &self.index {
            Some(index) => {
                let sources = Sources::Corpus(&self.corpus);
                Library::stored_with(index, sources, Rebuild::IfStale, progress).map(|(library, _)| library)
            }
            None => Library::from_corpus_dir(&self.corpus),
        }
    }
}

impl IndexSource for Folder {
    fn index(&mut self, progress: &Progress) -> Result<Library, IndexFault> {
        Ok(self.read(progress)?)
    }
}

pub(super) fn run(args: Args) -> Result<ExitCode, CliError> {
    let secret = token::secret(&args.secret_env)?;
    let tools = tools(args.tools_file.as_deref())?;
    let folder = Folder { corpus: args.corpus, index: args.index };
    // A folder that cannot be read is a mistake of whoever named it, and is told before anybody may call.
    let library = folder.read(&Progress::default()).usage()?;
    let service = Service::new(library, tools, vec![secret], Options::new(Arc::new(token::now)));
    let address = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), args.port.unwrap_or(PORT));
    runtime::block_on(async move {
        let (listener, address) = runtime::listen(address).await?;
        let indexer = Indexer::start(&service, folder);
        output::line(&format!("listening on http://{address}"));
        let served = runtime::serve_until_signal(listener, service.router()).await;
        indexer.stop().await;
        served
    })?;
    Ok(ExitCode::SUCCESS)
}

fn tools(file: Option<&Path>) -> Result<Tools, CliError> {
    let Some(path) = file else { return Tools::builtin().usage() };
    let bytes = std::fs::read(path).map_err(|error| CliError::usage(format!("read `{}`: {error}", path.display())))?;
    Tools::from_bytes(&bytes).usage()
}
