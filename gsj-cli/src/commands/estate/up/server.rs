//! The estate's one server: starting it in a session of its own, looking at it, ending it.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::OpenOptionsExt as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use gsj_client::{Client, ServerStatus};
use gsj_estate::home::{Guard, Home, HomeError, Serving};
use gsj_server::config::Config;
use gsj_trace::canonical::{bytes_sha256, canonical_sha256};
use gsj_trace::json::Value;

use crate::commands::{runtime, token};
use crate::environment;
use crate::error::{CliError, Context as _, Kind};
use crate::terminal::progress;

/// How long a server may take to read its repositories and to answer.
const START: Duration = Duration::from_secs(900);
/// How often it is looked at meanwhile.
const LOOK: Duration = Duration::from_millis(100);
/// How long one question to it may take.
const ANSWER: Duration = Duration::from_secs(10);
/// How long a server may take to stop at once.
const AT_ONCE: Duration = Duration::from_secs(15);
/// How much of the end of its log is shown when it does not start, in bytes.
const TAIL: u64 = 2000;

/// Makes this process the estate's server: called by the process that was started for it.
pub(crate) fn become_server(home: &Home, config: &Config) -> Result<(Guard, String), CliError> {
    // The terminal's Ctrl-C and hang-up are not for it. Fails only where it leads a session already.
    let _leads = rustix::process::setsid();
    let (told_config, told_pins) = (config_digest(home), pins_digest(home));
    let guard = Guard::take(home, |pid, started, boot| Serving {
        pid,
        started,
        boot,
        since: token::now(),
        listen: config.server.listen.clone(),
        config: told_config,
        pins: told_pins,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    })
    .usage()?;
    let secret = super::secret::read(home)?;
    Ok((guard, secret))
}

fn config_digest(home: &Home) -> String {
    std::fs::read(home.config()).map(|bytes| bytes_sha256(&bytes)).unwrap_or_default()
}

/// Over what the pins approve; where it came from is no matter of a server's.
fn pins_digest(home: &Home) -> String {
    let bytes = std::fs::read(home.pins()).unwrap_or_default();
    let read = Value::parse(&bytes).ok();
    let approved = read.as_ref().and_then(|document| canonical_sha256(document.get("pins")?));
    let mode = read.as_ref().and_then(|document| document.get("mode")?.as_str().map(str::to_owned));
    format!("{} {}", mode.unwrap_or_default(), approved.unwrap_or_default())
}

/// Why the running server is not the one that is wanted; `None` when it is.
pub(super) fn outdated(home: &Home, serving: &Serving) -> Option<&'static str> {
    if config_digest(home) != serving.config {
        Some("its configuration changed")
    } else if pins_digest(home) != serving.pins {
        Some("its pins changed")
    } else if serving.version != env!("CARGO_PKG_VERSION") {
        Some("it is another version of gsj")
    } else {
        None
    }
}

/// Starts the server and waits until it answers.
pub(super) fn start(home: &Home, config: &Config) -> Result<Serving, CliError> {
    let program = std::env::current_exe()
        .map_err(|error| CliError::new(Kind::Failed, format!("find the path of this program: {error}")))?;
    let fault = |error: std::io::Error| CliError::usage(format!("write `{}`: {error}", home.log().display()));
    let log = File::options().append(true).create(true).mode(0o600).open(home.log()).map_err(fault)?;
    let from = log.metadata().map_err(fault)?.len();
    let mut child = Command::new(program)
        .args(["serve", "--config"])
        .arg(home.config())
        .arg("--estate")
        .arg(home.root())
        // The estate has pins of its own.
        .env_remove(environment::PINS_PATH)
        .current_dir(home.root())
        .stdin(Stdio::null())
        .stdout(log.try_clone().map_err(fault)?)
        .stderr(log)
        .spawn()
        .map_err(|error| CliError::new(Kind::Failed, format!("start the server: {error}")))?;
    progress(&format!("starting the server on {}", config.server.listen));
    runtime::block_on(async {
        let mut signals = runtime::Signals::new()?;
        let until = Instant::now() + START;
        loop {
            if let Ok(Some(status)) = child.try_wait() {
                let says = said(home, from);
                return Err(CliError::usage(format!("the server did not start ({status}); it says:\n{says}"))
                    .hint(format!("all of it: {}", home.log().display())));
            }
            let serving = Serving::last(home).filter(|serving| serving.pid == child.id().cast_signed());
            // It says that it listens before anything else may answer in its name.
            if let Some(serving) = serving
                && said(home, from).contains("listening on http://")
                && ask(&serving).await.is_ok()
            {
                return Ok(serving);
            }
            if Instant::now() > until {
                let silent = format!("the server does not answer on {}", config.server.listen);
                return Err(CliError::new(Kind::Server, silent).hint(format!("what it says: {}", home.log().display())));
            }
            if signals.within(LOOK).await {
                return Err(CliError::new(Kind::Failed, "interrupted while the server starts; it goes on")
                    .hint("the same command goes on from there; `gsj estate down` stops it"));
            }
        }
    })
}

/// The end of what the server said from a place in its log on.
fn said(home: &Home, from: u64) -> String {
    let read = || {
        let mut file = File::open(home.log())?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(from.max(length.saturating_sub(TAIL))))?;
        let mut bytes = Vec::new();
        file.take(TAIL).read_to_end(&mut bytes)?;
        Ok::<_, std::io::Error>(bytes)
    };
    read().map(|bytes| String::from_utf8_lossy(&bytes).trim().to_owned()).unwrap_or_default()
}

/// The address at which the server of this machine is asked: one that it listens on for all is none to ask at.
pub(crate) fn url(serving: &Serving) -> String {
    match serving.listen.parse::<std::net::SocketAddr>() {
        Ok(address) if address.ip().is_unspecified() => match address {
            std::net::SocketAddr::V4(_) => format!("http://127.0.0.1:{}", address.port()),
            std::net::SocketAddr::V6(_) => format!("http://[::1]:{}", address.port()),
        },
        _ => format!("http://{}", serving.listen),
    }
}

/// Asks the server how it is.
pub(crate) fn health(serving: &Serving) -> Result<ServerStatus, CliError> {
    runtime::block_on(ask(serving))
}

async fn ask(serving: &Serving) -> Result<ServerStatus, CliError> {
    let url = url(serving);
    let asked = async {
        let client = Client::new(&url).server()?;
        client.health().await.server()?;
        client.status_all().await.server()
    };
    tokio::time::timeout(ANSWER, asked)
        .await
        .unwrap_or_else(|_| Err(CliError::new(Kind::Server, format!("{url} does not answer"))))
}

/// How many sessions a server has under way, as far as it says.
pub(crate) fn under_way(status: &ServerStatus) -> u64 {
    status.nodes.iter().filter_map(|node| node.get("running")?.as_u64()).sum()
}

/// Ends the server: lets its sessions end until the deadline, then ends it at once.
///
/// The first Ctrl-C meanwhile has it stop at once, the second kills it.
pub(crate) fn stop(home: &Home, serving: &Serving, deadline: Duration) -> Result<(), CliError> {
    if !serving.terminate() {
        return Ok(());
    }
    let ended = runtime::block_on(async {
        let mut signals = runtime::Signals::new()?;
        if drained(serving, deadline, &mut signals).await {
            return Ok(true);
        }
        progress("stopping at once; what ran ends as interrupted");
        let _asked = serving.terminate();
        let until = Instant::now() + AT_ONCE;
        while Instant::now() < until {
            if serving.wait(Duration::ZERO) {
                return Ok(true);
            }
            if signals.within(LOOK).await {
                break;
            }
        }
        Ok(false)
    })?;
    if !ended {
        progress(&format!("killing process {}", serving.pid));
        let _killed = serving.kill();
        if !serving.wait(AT_ONCE) {
            return Err(CliError::new(Kind::Failed, format!("process {} does not end", serving.pid)));
        }
    }
    // What a server that was cut off left behind; one that ended by itself left nothing.
    if let Err(error) = gsj_sandbox::reap(&home.state().join("run")) {
        crate::terminal::warn(&format!("look for sandboxes left behind: {error}"));
    }
    Ok(())
}

/// Waits for the end of what is under way, and says what that is; false when the time is up or a person wants no more.
async fn drained(serving: &Serving, deadline: Duration, signals: &mut runtime::Signals) -> bool {
    let until = Instant::now() + deadline;
    let mut last = 0;
    while !serving.wait(Duration::ZERO) {
        // A draining server still answers; one that has closed its door is about to end.
        let now = ask(serving).await.map_or(0, |status| under_way(&status));
        if now != last && now > 0 {
            let noun = if now == 1 { "session" } else { "sessions" };
            progress(&format!("waiting for {now} {noun} under way; Ctrl-C to stop at once"));
        }
        last = now;
        if signals.within(LOOK).await {
            return false;
        }
        if Instant::now() > until && now > 0 {
            progress("the sessions did not end in time");
            return false;
        }
        // One that has nothing under way only has to close its door.
        if Instant::now() > until + AT_ONCE {
            return false;
        }
    }
    true
}

/// The server that runs, if one does.
pub(crate) fn find(home: &Home) -> Result<Option<Serving>, CliError> {
    Serving::find(home).map_err(|error: HomeError| CliError::from_error(Kind::Usage, &error))
}
