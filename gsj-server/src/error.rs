//! Why a server could not start.

use std::{io, path::PathBuf};

use gsj_gateway::EngineError;
use gsj_pins::PinsError;
use gsj_retrieval::RetrievalError;
use gsj_sandbox::SandboxError;
use gsj_trace::tokenizer::TokenizerError;

use crate::{agent::AgentError, pipeline::EstateError, store::StoreError};

/// Why a server could not start. Nothing runs when one of these is returned; each names the path or key and the cure.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The configuration lacks a value that reading a file would have filled in.
    #[error("`{key}` is not set: read the configuration with `Config::read`, which fills in its default")]
    Unset {
        /// The key.
        key: &'static str,
    },
    /// A folder or file of the server cannot be made or read.
    #[error("{doing} `{path}`: make its folder writable for this user, or name another in the configuration")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// To which path.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// Another server works in this state folder.
    #[error("the state folder `{path}` is in use by another gsj: stop that one, or name another `server.state_dir`")]
    InUse {
        /// The folder.
        path: PathBuf,
    },
    /// The sandbox's user cannot enter the state folder.
    #[error(
        "the sandbox's user cannot reach `{path}`: name a `server.state_dir` below folders that everybody may enter, or run: chmod o+x {blocked_at}"
    )]
    Unreachable {
        /// The state folder.
        path: PathBuf,
        /// The folder on the way that is closed.
        blocked_at: PathBuf,
    },
    /// The splits are to be kept apart, and the lock that tells them cannot be used.
    #[error(
        "estate.lock `{path}` cannot be used: name the corpus's `corpus.lock.json`, which `gsj estate scaffold` writes"
    )]
    Lock {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: io::Error,
    },
    /// The pins cannot be used.
    #[error("pins file `{path}` cannot be used: correct it, or name another in `checks.pins` or GSJ_PINS_PATH")]
    Pins {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: PinsError,
    },
    /// The tokenizer cannot be used.
    #[error("builder.tokenizer `{path}` cannot be used: name the engine's own `tokenizer.json`, or leave the key out")]
    Tokenizer {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: TokenizerError,
    },
    /// The tokenizer is not one that the pins approve.
    #[error(
        "builder.tokenizer `{path}` has the git blob id {identity}, which is not among `pins.tokenizer_hash` of `{pins}`: \
         name the engine's own `tokenizer.json`, or derive the pins from it (gsj pins derive --tokenizer)"
    )]
    TokenizerNotApproved {
        /// The file.
        path: PathBuf,
        /// Its git blob id.
        identity: String,
        /// The pins file.
        pins: PathBuf,
    },
    /// A secret is not in the environment.
    #[error("the environment variable `{name}` ({key}) is not set: {cure}")]
    SecretMissing {
        /// The variable.
        name: String,
        /// The key of the configuration that names it.
        key: &'static str,
        /// What sets it.
        cure: &'static str,
    },
    /// A secret cannot be used; its value is not shown.
    #[error("the value of the environment variable `{name}` ({key}) cannot be used: {reason}")]
    SecretUnusable {
        /// The variable.
        name: String,
        /// The key of the configuration that names it.
        key: &'static str,
        /// Why not.
        reason: String,
    },
    /// The agent of the configuration cannot run here.
    #[error("agent `{agent}` cannot run here: {}", source.cure())]
    Agent {
        /// Its name.
        agent: String,
        /// What is wrong with it.
        #[source]
        source: AgentError,
    },
    /// The agents cannot be read.
    #[error("read the agents of `harness.agents_dir`")]
    Agents(#[source] AgentError),
    /// The sandbox does not work here.
    #[error("the sandbox does not work here: {cure}")]
    Sandbox {
        /// The command that installs or enables it, where known.
        cure: String,
        /// What is wrong.
        #[source]
        source: SandboxError,
    },
    /// The case repositories cannot be used.
    #[error(transparent)]
    Estate(#[from] EstateError),
    /// The retrieval service cannot read its documents, tools or decisions.
    #[error("make the retrieval service ready ({what}): correct the file, or the key that names it")]
    Retrieval {
        /// Which part.
        what: String,
        /// What is wrong.
        #[source]
        source: RetrievalError,
    },
    /// The engine's section cannot be used.
    #[error("the `engine` section of the configuration cannot be used")]
    Engine(#[from] EngineError),
    /// No HTTP client can be made.
    #[error("make the HTTP client for callbacks")]
    Client(#[source] reqwest::Error),
    /// The address of the API is taken or not this machine's.
    #[error("listen on {listen}: choose another `server.listen`, or stop what holds it")]
    Listen {
        /// The address.
        listen: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The state cannot be opened.
    #[error(transparent)]
    Store(#[from] StoreError),
}
