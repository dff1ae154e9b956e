//! Every environment variable that the command reads, and what comes of it.

use std::io::IsTerminal as _;
use std::path::PathBuf;

use tracing_subscriber::EnvFilter;

/// First argument with which this program becomes the init of a sandbox; not for people.
pub(crate) const SANDBOX_INIT: &str = "sandbox-init";
/// The approved sets: path of the pins file, wins over the configuration (spec `checks.md` 5.2).
pub(crate) const PINS_PATH: &str = "GSJ_PINS_PATH";
/// Filter of the log on stderr, for example `info` or `gsj_server=debug`.
pub(crate) const LOG: &str = "GSJ_LOG";
/// The secret that signs retrieval tokens, where the configuration names no other variable.
pub(crate) const TOKEN_SECRET: &str = "GSJ_MCP_TOKEN_SECRET";
/// State folder where neither option nor configuration names one.
pub(crate) const STATE_DIR: &str = "GSJ_STATE_DIR";
/// Set and not empty: no colours.
const NO_COLOR: &str = "NO_COLOR";
const STATE_HOME: &str = "XDG_STATE_HOME";
const HOME: &str = "HOME";

/// The variable's value, when it is set and not empty.
pub(crate) fn value(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// The pins file that the environment names.
pub(crate) fn pins_path() -> Option<PathBuf> {
    std::env::var_os(PINS_PATH).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// State folder where neither option nor configuration names one (spec `api.md`): a sandbox with a user of its own
/// can't reach below root's home.
pub(crate) fn state_dir() -> PathBuf {
    if let Some(own) = std::env::var_os(STATE_DIR).filter(|value| !value.is_empty()) {
        return PathBuf::from(own);
    }
    if rustix::process::geteuid().is_root() {
        return PathBuf::from("/var/lib/gsj");
    }
    let home = || std::env::var_os(HOME).map_or_else(std::env::temp_dir, PathBuf::from).join(".local/state");
    std::env::var_os(STATE_HOME).filter(|v| !v.is_empty()).map_or_else(home, PathBuf::from).join("gsj")
}

/// Sends the log to stderr: what a server does for those who run one, else warnings, unless the environment says more.
pub(crate) fn start_tracing(serves: bool) {
    // How a session ended is a result of the commands that run one themselves, and told as such.
    let default = if serves { "warn,gsj_server=info,rmcp=error" } else { "warn,rmcp=error,gsj_gateway::session=error" };
    let filter = EnvFilter::try_from_env(LOG).unwrap_or_else(|_| EnvFilter::new(default));
    let colours = std::io::stderr().is_terminal() && value(NO_COLOR).is_none();
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_target(false)
        .with_ansi(colours);
    // A second call can only mean that a subscriber is there already.
    drop(subscriber.try_init());
}

/// Names the one TLS provider; clients can't be built before.
pub(crate) fn install_tls() {
    drop(rustls::crypto::ring::default_provider().install_default());
}
