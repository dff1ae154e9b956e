//! What was asked for, now or when the estate was stood up.

use std::path::{Path, PathBuf};

use gsj_estate::home::{EngineRecord, Home, Record};

use super::Args;
use crate::commands::engine::Dialect;
use crate::commands::given::Given;
use crate::environment;
use crate::error::{CliError, Context as _};

/// Name under which the folder of an estate lies in the state folder.
const FOLDER: &str = "estate";

/// Everything that a run of `up` works with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Choice {
    pub(super) corpus: PathBuf,
    pub(super) lock_dir: Option<PathBuf>,
    pub(super) engine: EngineRecord,
    pub(super) agent: String,
    pub(super) agents_dir: Option<PathBuf>,
    pub(super) tokenizer: Option<PathBuf>,
    /// The state folder that agents are installed in.
    pub(super) state: PathBuf,
    /// Where the server is to listen, when that was said, now or before.
    pub(super) listen: Option<String>,
    /// Whether it was said now.
    pub(super) listen_now: bool,
}

/// The folder of the estate that is meant.
pub(crate) fn home(given: Option<&Path>) -> Result<Home, CliError> {
    Ok(Home::new(absolute(&given.map_or_else(|| environment::state_dir().join(FOLDER), Path::to_owned))?))
}

pub(crate) fn absolute(path: &Path) -> Result<PathBuf, CliError> {
    std::path::absolute(path).map_err(|error| CliError::usage(format!("`{}`: {error}", path.display())))
}

/// A base URL as the configuration has it: without `/v1`.
fn base(url: &str) -> String {
    let url = url.trim_end_matches('/');
    url.strip_suffix("/v1").unwrap_or(url).trim_end_matches('/').to_owned()
}

impl Choice {
    /// Takes what is said on the command line, else what was said before.
    pub(super) fn of(args: &Args, before: Option<&Record>) -> Result<Self, CliError> {
        let missing = |what: &str, option: &str| {
            CliError::usage(format!("{what}? No estate stands here yet, so it has to be said"))
                .hint(format!("{option}; the first `up` needs --corpus, --engine-url and --engine-model"))
        };
        let corpus = match (&args.corpus, before.and_then(|before| before.corpus.clone())) {
            // Links on the way are resolved, so that the same folder is the same corpus.
            (Some(given), _) => std::fs::canonicalize(given)
                .map_err(|_gone| CliError::usage(format!("`{}` is not a folder", given.display())))?,
            (None, Some(known)) => known,
            (None, None) => return Err(missing("which corpus", "--corpus DIR")),
        };
        let known = before.and_then(|before| before.engine.clone());
        let other = args.engine_url.is_some();
        let url = args.engine_url.clone().or_else(|| known.as_ref().map(|known| known.url.clone()));
        let model = args.engine_model.clone().or_else(|| known.as_ref().map(|known| known.model.clone()));
        let kind = match (args.engine, &known) {
            (Some(kind), _) => kind,
            (None, Some(known)) if known.kind == "sglang" => Dialect::Sglang,
            (None, _) => Dialect::Vllm,
        };
        let url = base(&url.ok_or_else(|| missing("which engine", "--engine-url URL"))?);
        if !url.starts_with("http://") && !url.starts_with("https://") {
            return Err(CliError::usage(format!("--engine-url {url}: must begin with http:// or https://")));
        }
        // Another engine's key is not that of the one before.
        let key = known.as_ref().filter(|known| !other || url == known.url);
        let engine = EngineRecord {
            kind: match kind {
                Dialect::Vllm => "vllm".to_owned(),
                Dialect::Sglang => "sglang".to_owned(),
            },
            url,
            model: model.ok_or_else(|| missing("which model", "--engine-model NAME"))?,
            api_key_env: args.engine_api_key_env.clone().or_else(|| key.and_then(|known| known.api_key_env.clone())),
        };
        let path = |given: &Option<PathBuf>, before: Option<PathBuf>| match given {
            Some(given) => absolute(given).map(Some),
            None => Ok(before),
        };
        let listen = args.listen.clone().or_else(|| before.and_then(|before| before.listen.clone()));
        if let Some(listen) = &listen
            && listen.parse::<std::net::SocketAddr>().is_err()
        {
            return Err(CliError::usage(format!("--listen {listen}: must be an address and port, as 127.0.0.1:8080")));
        }
        Ok(Self {
            lock_dir: path(&args.lock.lock_dir, before.and_then(|before| before.lock_dir.clone()))?,
            corpus,
            engine,
            agent: args.agent.clone().or_else(|| before.and_then(|b| b.agent.clone())).unwrap_or_else(|| "pi".into()),
            agents_dir: path(&args.agents_dir, before.and_then(|before| before.agents_dir.clone()))?,
            tokenizer: path(&args.tokenizer, before.and_then(|before| before.tokenizer.clone()))?,
            state: path(&args.state, before.and_then(|before| before.state.clone()))?
                .map_or_else(|| absolute(&environment::state_dir()), Ok)?,
            listen,
            listen_now: args.listen.is_some(),
        })
    }

    /// The engine as it is asked.
    pub(super) fn given(&self) -> Given<'_> {
        Given {
            url: &self.engine.url,
            model: &self.engine.model,
            dialect: if self.engine.kind == "sglang" { Dialect::Sglang } else { Dialect::Vllm },
            api_key_env: self.engine.api_key_env.as_deref(),
        }
    }

    /// Notes what was chosen; says what of it is another choice than before.
    pub(super) fn note(&self, record: &mut Record) -> Vec<String> {
        let mut changed = Vec::new();
        if let Some(before) = record.corpus.as_ref().filter(|before| **before != self.corpus) {
            changed.push(format!("the corpus: {} instead of {}", self.corpus.display(), before.display()));
        }
        if let Some(before) = record.engine.as_ref().filter(|before| **before != self.engine) {
            let told = |engine: &EngineRecord| format!("{} {} with {}", engine.kind, engine.url, engine.model);
            let key = if before.api_key_env == self.engine.api_key_env { "" } else { ", another key" };
            changed.push(format!("the engine: {} instead of {}{key}", told(&self.engine), told(before)));
        }
        if let Some(before) = record.agent.as_ref().filter(|before| **before != self.agent) {
            changed.push(format!("the agent: {} instead of {before}", self.agent));
        }
        record.corpus = Some(self.corpus.clone());
        record.lock_dir.clone_from(&self.lock_dir);
        record.engine = Some(self.engine.clone());
        record.agent = Some(self.agent.clone());
        record.agents_dir.clone_from(&self.agents_dir);
        record.state = Some(self.state.clone());
        record.tokenizer.clone_from(&self.tokenizer);
        changed
    }
}

/// The installed agent; one that is not there is offered to be installed.
pub(super) fn agent(choice: &Choice, asker: super::Asker) -> Result<gsj_server::agent::Installed, CliError> {
    use gsj_server::agent::{self, Depth, InstallOptions};
    let agents = crate::commands::agent::agents(choice.agents_dir.as_deref())?;
    let wanted = agents.find(&choice.agent).usage()?;
    if let Ok(opened) = agent::open(wanted, &choice.state, Depth::Quick) {
        return Ok(opened);
    }
    let command = format!("gsj agent install {} --state {}", choice.agent, choice.state.display());
    asker
        .confirm(&format!("The agent `{}` is not installed in {}. Install it?", choice.agent, choice.state.display()))
        .map_err(|error| error.hint(format!("or by hand: {command}")))?;
    crate::terminal::progress(&format!("installing {} from its lock (a minute the first time)", choice.agent));
    agent::install(wanted, &choice.state, &InstallOptions::default()).usage().map_err(|error| error.hint(command))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_url_is_the_same_however_it_is_written() {
        for url in ["http://h:1", "http://h:1/", "http://h:1/v1", "http://h:1/v1/"] {
            assert_eq!(base(url), "http://h:1", "{url}");
        }
        assert_eq!(base("https://h/proxy/v1"), "https://h/proxy");
    }
}
