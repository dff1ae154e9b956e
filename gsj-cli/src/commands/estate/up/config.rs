//! The estate's `rollout.yaml`: written whole, edited by people, and read as the server reads it.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use gsj_estate::home::{Home, Record};
use gsj_estate::{Recipe, Settings};
use gsj_server::config::{Config, ReadContext};
use gsj_trace::canonical::bytes_sha256;

use super::{Asker, Choice};
use crate::environment;
use crate::error::{CliError, Context as _};
use crate::inputs;
use crate::terminal::progress;

/// The name of the file in the record.
const NAME: &str = "rollout.yaml";
/// The port of the server when nobody says and it is free.
const USUAL: u16 = 8080;

/// What became of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Became {
    /// It says what is wanted.
    Unchanged,
    /// Somebody edited it, and it says what is wanted all the same.
    Edited,
    /// It was written.
    Written,
}

/// Has the configuration say what was chosen, and reads it.
pub(super) fn settle(
    home: &Home,
    choice: &Choice,
    settings: &Settings,
    recipe: Recipe,
    record: &mut Record,
    asker: Asker,
) -> Result<(Config, Became), CliError> {
    let path = home.config();
    let there = std::fs::read(&path).ok();
    let stands = there.as_deref().map(String::from_utf8_lossy).and_then(|text| address(home, &text));
    let listen = listen(choice.listen.as_deref(), stands)?;
    record.listen = Some(listen.clone());
    let wanted = text(home, choice, settings, recipe, &listen);
    let digest = bytes_sha256(wanted.as_bytes());
    let before = record.written.insert(NAME.to_owned(), digest.clone());
    let became = match &there {
        Some(there) if bytes_sha256(there) == digest => Became::Unchanged,
        Some(there) if before.as_ref() != Some(&bytes_sha256(there)) => {
            let edited = String::from_utf8_lossy(there);
            match disagreement(home, &edited, &wanted, choice.listen_now)? {
                None => {
                    // What it says of ours stays known as what `up` wrote last.
                    record.written.extend(before.map(|before| (NAME.to_owned(), before)));
                    Became::Edited
                }
                Some(what) => {
                    asker.confirm(&format!(
                        "`{}` was edited, and {what}. Write it anew (the edited one stays as {})?",
                        path.display(),
                        home.config_before().display()
                    ))?;
                    inputs::write_whole(&home.config_before(), there)?;
                    Became::Written
                }
            }
        }
        _ => Became::Written,
    };
    if became == Became::Written {
        inputs::write_whole(&path, wanted.as_bytes())?;
        progress(&format!("wrote {}", path.display()));
    }
    let config = read(home)?;
    if became == Became::Edited {
        // An edited address is the one that counts.
        record.listen = Some(config.server.listen.clone());
    }
    Ok((config, became))
}

/// The configuration as the estate's server reads it: with the estate's own pins, whatever the environment says.
pub(crate) fn read(home: &Home) -> Result<Config, CliError> {
    let context = ReadContext { path: home.config(), default_state_dir: environment::state_dir(), pins_path: None };
    Ok(Config::read(&context).usage()?.0)
}

/// What an edited configuration says otherwise than it must.
fn disagreement(home: &Home, edited: &str, wanted: &str, address: bool) -> Result<Option<String>, CliError> {
    let context = || ReadContext { path: home.config(), default_state_dir: environment::state_dir(), pins_path: None };
    let edited = match Config::from_yaml(edited, &context()) {
        Ok((config, _)) => config,
        Err(error) => return Ok(Some(format!("cannot be used ({error})"))),
    };
    let (wanted, _) = Config::from_yaml(wanted, &context()).failed()?;
    let of = |config: &Config| {
        let document = serde_json::to_value(config).unwrap_or_default();
        OURS.map(|at| document.pointer(at).cloned().unwrap_or_default())
    };
    if address && edited.server.listen != wanted.server.listen {
        return Ok(Some(format!("says server.listen {} instead of {}", edited.server.listen, wanted.server.listen)));
    }
    let (has, must) = (of(&edited), of(&wanted));
    let differs = OURS.iter().zip(has.iter().zip(&must)).find(|(_, (has, must))| has != must);
    Ok(differs.map(|(at, (has, must))| format!("says {} {has} instead of {must}", at[1..].replace('/', "."))))
}

/// What `up` settles; everything else of the file is its reader's.
const OURS: [&str; 16] = [
    "/estate/lock",
    "/estate/clone_url_for",
    "/estate/recipe",
    "/estate/token_secret_env",
    "/engine/kind",
    "/engine/base_url",
    "/engine/model",
    "/engine/api_key_env",
    "/harness/agent",
    "/harness/agents_dir",
    "/harness/installed_in",
    "/harness/artifacts_dir",
    "/checks/pins",
    "/builder/tokenizer",
    "/server/state_dir",
    "/receiver/traces_dir",
];

fn text(home: &Home, choice: &Choice, settings: &Settings, recipe: Recipe, listen: &str) -> String {
    let lock_dir = choice.lock_dir.as_ref().unwrap_or(&choice.corpus);
    // A JSON string is a YAML string.
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let path = |path: &std::path::Path| quoted(&path.display().to_string());
    let mut out = String::new();
    let engine = &choice.engine;
    let secret = environment::TOKEN_SECRET;
    // Writing into a string does not fail.
    let mut line = |text: &str| {
        let _ = writeln!(out, "{text}");
    };
    line(
        "# Written by `gsj estate up`, and yours to edit: sampling, limits, workers and the rest are kept as you set them.",
    );
    line("# Repositories, engine, agent, pins and folders are settled by `up`: say those there.");
    line("# Every key with its default: `gsj config check FILE`, docs/configuration.md.");
    line("estate:");
    line(&format!(
        "  clone_url_for: {}",
        quoted(&format!("file://{}/{}/{{case_id}}.git", home.repos().display(), settings.owner))
    ));
    line(&format!("  recipe: {}", recipe.as_str()));
    line(&format!("  # Signs retrieval tokens. The server of `up` takes it from {}", home.secret().display()));
    line(&format!("  token_secret_env: {secret}"));
    line(
        "  # `true` refuses tasks whose split is not that of their case, and eval cases unless `evaluation: true` stands here.",
    );
    line("  split_wall: false");
    line(&format!("  lock: {}", path(&lock_dir.join(gsj_estate::LOCK_FILE))));
    line("engine:");
    line(&format!("  kind: {}", engine.kind));
    line(&format!("  base_url: {}", quoted(&engine.url)));
    line(&format!("  model: {}", quoted(&engine.model)));
    if let Some(name) = &engine.api_key_env {
        line(&format!("  api_key_env: {}", quoted(name)));
    }
    line("  # What is not set here is the engine's own default.");
    line("  sampling: {}");
    line("harness:");
    line(&format!("  agent: {}", quoted(&choice.agent)));
    if let Some(folder) = &choice.agents_dir {
        line(&format!("  agents_dir: {}", path(folder)));
    }
    line(&format!("  installed_in: {}", path(&choice.state)));
    line(&format!("  artifacts_dir: {}", path(&home.artifacts())));
    line("checks:");
    line(&format!("  pins: {}", path(&home.pins())));
    line("  profile: strict");
    if let Some(tokenizer) = &choice.tokenizer {
        line("builder:");
        line(&format!("  tokenizer: {}", path(tokenizer)));
    }
    line("receiver:");
    line(&format!("  traces_dir: {}", path(&home.traces())));
    line(&format!("  quarantine_dir: {}", path(&home.quarantine())));
    line("server:");
    line(&format!("  listen: {}", quoted(listen)));
    line(&format!("  state_dir: {}", path(&home.state())));
    out
}

/// The address that a configuration has its server listen on.
fn address(home: &Home, text: &str) -> Option<SocketAddr> {
    let context = ReadContext { path: home.config(), default_state_dir: environment::state_dir(), pins_path: None };
    Config::from_yaml(text, &context).ok()?.0.server.listen.parse().ok()
}

/// The address of the server: the one that was said or chosen before, else the usual one or a free port. A port 0 that
/// was said stands for any; it is chosen once.
fn listen(said: Option<&str>, stands: Option<SocketAddr>) -> Result<String, CliError> {
    let said: Option<SocketAddr> = said.and_then(|said| said.parse().ok());
    let stands = stands.filter(|stands| stands.port() != 0);
    let free = |address: SocketAddr| TcpListener::bind(address).and_then(|bound| bound.local_addr()).ok();
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let found = match (said, stands) {
        (Some(said), _) if said.port() != 0 => Some(said),
        (Some(said), Some(stands)) if said.ip() == stands.ip() => Some(stands),
        (Some(said), _) => free(said),
        (None, Some(stands)) => Some(stands),
        (None, None) => free(SocketAddr::from((Ipv4Addr::LOCALHOST, USUAL))).or_else(|| free(any)),
    };
    found.map(|address| address.to_string()).ok_or_else(|| {
        CliError::usage(format!("no port of {} is free", said.unwrap_or(any).ip())).hint("--listen ADDR:PORT")
    })
}
