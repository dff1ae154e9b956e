//! `gsj estate status`: how an estate that was stood up is.

use std::path::PathBuf;
use std::process::ExitCode;

use gsj_client::ServerStatus;
use gsj_estate::home::{Home, Record, Serving, Standing, lock_digest, standing};
use gsj_estate::{BANK_FILE, Corpus, EstateError, default_recipe};
use gsj_server::agent::{self, Depth};
use gsj_server::config::Config;
use serde_json::json;

use super::up;
use crate::commands::agent::agents;
use crate::error::{CliError, Context as _};
use crate::output::{self, Format, FormatArg};
use crate::terminal::{BOLD, GREEN, RED, YELLOW, paint};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  gsj estate status\n\nExit codes: 0 all is well; 1 something is missing, changed or not running; 3 the server does not answer."
)]
pub(super) struct Args {
    /// The folder of the estate [default: estate in the state folder]
    #[arg(long, value_name = "DIR")]
    home: Option<PathBuf>,
    #[command(flatten)]
    format: FormatArg,
}

/// How one part is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    Well,
    Wanting,
    Silent,
}

/// One line of the answer.
struct Part {
    name: &'static str,
    mark: Mark,
    says: String,
    detail: serde_json::Value,
}

pub(super) fn run(args: &Args) -> Result<ExitCode, CliError> {
    let home = up::home(args.home.as_deref())?;
    if !home.is_one() {
        return Err(CliError::new(
            crate::error::Kind::Failed,
            format!("no estate stands in `{}`", home.root().display()),
        )
        .hint("gsj estate up --corpus DIR --engine-url URL --engine-model NAME"));
    }
    let record = Record::read(&home).usage()?;
    let config = up::config(&home);
    let running = up::find(&home)?;
    let mut parts = server(running.as_ref());
    parts.extend(corpus(&home, &record, running.is_some()));
    parts.push(configuration(&home, config.as_ref().err()));
    parts.push(pins(&home));
    parts.push(installed(&record, config.as_ref().ok()));
    let worst = parts.iter().map(|part| part.mark).fold(Mark::Well, |worst, mark| match (worst, mark) {
        (Mark::Silent, _) | (_, Mark::Silent) => Mark::Silent,
        (Mark::Wanting, _) | (_, Mark::Wanting) => Mark::Wanting,
        _ => Mark::Well,
    });
    match args.format.resolve() {
        Format::Json => {
            let mut document = json!({"home": home.root(), "ok": worst == Mark::Well});
            for part in &parts {
                document[part.name] = json!({"ok": part.mark == Mark::Well, "says": part.says, "detail": part.detail});
            }
            output::json(&document);
        }
        Format::Human => {
            output::line(&format!("{} {}", paint(BOLD, &format!("{:<9}", "estate")), home.root().display()));
            for part in &parts {
                let style = match part.mark {
                    Mark::Well => GREEN,
                    Mark::Wanting => YELLOW,
                    Mark::Silent => RED,
                };
                let sign = if part.mark == Mark::Well { "ok  " } else { "look" };
                output::line(&format!(
                    "{} {} {}",
                    paint(BOLD, &format!("{:<9}", part.name)),
                    paint(style, sign),
                    part.says
                ));
            }
            if worst != Mark::Well {
                output::line("\n`gsj estate up` makes it whole");
            }
        }
    }
    Ok(match worst {
        Mark::Well => ExitCode::SUCCESS,
        Mark::Wanting => ExitCode::from(1),
        Mark::Silent => ExitCode::from(3),
    })
}

fn server(running: Option<&Serving>) -> Vec<Part> {
    let Some(serving) = running else {
        let says = "not running".to_owned();
        return vec![Part { name: "server", mark: Mark::Wanting, says, detail: json!({"running": false}) }];
    };
    let url = up::url(serving);
    let asked = up::health(serving);
    let (mark, word) = if asked.is_ok() { (Mark::Well, "healthy") } else { (Mark::Silent, "does not answer") };
    let status = asked.ok();
    let seconds = (crate::commands::token::now() - serving.since).max(0);
    let mut parts = vec![Part {
        name: "server",
        mark,
        says: format!("{url} {word}, up for {} (process {})", span(seconds), serving.pid),
        detail: json!({"running": true, "answers": status.is_some(), "url": url, "pid": serving.pid,
            "since": serving.since}),
    }];
    parts.extend(status.map(|status| sessions(&status)));
    parts
}

fn sessions(status: &ServerStatus) -> Part {
    let named: Vec<String> = status.sessions.iter().map(|(state, n)| format!("{n} {state}")).collect();
    let says = if named.is_empty() { "none yet".to_owned() } else { named.join(", ") };
    Part { name: "sessions", mark: Mark::Well, says, detail: json!(status.sessions) }
}

/// A time as people say it, by its largest two units.
fn span(seconds: i64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        3600..86_400 => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds % 86_400 / 3600),
    }
}

/// The corpus against its lock and the repositories, and the task bank.
fn corpus(home: &Home, record: &Record, runs: bool) -> Vec<Part> {
    let part = |mark, says: String| Part { name: "corpus", mark, says, detail: json!({"path": record.corpus}) };
    let Some(root) = &record.corpus else {
        return vec![part(Mark::Wanting, "none was named yet".to_owned())];
    };
    let lock_dir = record.lock_dir.as_ref().unwrap_or(root);
    let read = Corpus::read(root).and_then(|corpus| {
        let corpus = corpus.with_lock_dir(lock_dir.clone());
        let recipe = default_recipe(lock_dir)?;
        let standing = standing(&corpus, home, recipe)?;
        Ok((lock_digest(&corpus).ok(), standing))
    });
    let (lock, standing) = match read {
        Ok(read) => read,
        Err(EstateError::Invalid { failed, first, .. }) => {
            let says = format!("{}: {failed} findings, the first is {first}", root.display());
            return vec![part(Mark::Wanting, says)];
        }
        Err(error) => return vec![part(Mark::Wanting, error.to_string())],
    };
    let Standing { changed, left, lock_changed, cases, bank } = &standing;
    let mut wrong = Vec::new();
    if !changed.is_empty() {
        wrong.push(format!("changed since: {}", changed.join(", ")));
    }
    if !left.is_empty() {
        wrong.push(format!("left: {}", left.join(", ")));
    }
    if *lock_changed && wrong.is_empty() {
        wrong.push("the lock is behind".to_owned());
    }
    if runs && wrong.is_empty() && lock != record.served {
        wrong.push("the server has not read it yet".to_owned());
    }
    let how = if wrong.is_empty() { "unchanged".to_owned() } else { wrong.join("; ") };
    let mark = |well: bool| if well { Mark::Well } else { Mark::Wanting };
    let bank_says = format!(
        "{} tasks ({} train, {} eval){}",
        bank.rows,
        bank.train,
        bank.eval,
        if bank.unchanged { "" } else { ", and the file is another" }
    );
    vec![
        Part {
            name: "corpus",
            mark: mark(wrong.is_empty()),
            says: format!("{}: {cases} cases, {how}", root.display()),
            detail: json!({"path": root, "cases": cases, "changed": changed, "left": left, "lock_changed": lock_changed}),
        },
        Part {
            name: "bank",
            mark: mark(bank.unchanged),
            says: bank_says,
            detail: json!({"path": lock_dir.join(BANK_FILE), "rows": bank.rows, "train": bank.train, "eval": bank.eval}),
        },
    ]
}

fn configuration(home: &Home, fault: Option<&String>) -> Part {
    let path = home.config();
    let (mark, says) = match fault {
        None => (Mark::Well, path.display().to_string()),
        Some(fault) => (Mark::Wanting, fault.clone()),
    };
    Part { name: "config", mark, says, detail: json!({"path": path, "fault": fault}) }
}

fn pins(home: &Home) -> Part {
    let (values, fault) = up::pins_standing(home);
    let path = home.pins();
    let fault = if path.exists() { fault } else { Some("none yet".to_owned()) };
    let (mark, says) = match &fault {
        None => (Mark::Well, format!("{}: whole, {values} values", path.display())),
        Some(fault) => (Mark::Wanting, fault.clone()),
    };
    Part { name: "pins", mark, says, detail: json!({"path": path, "values": values, "fault": fault}) }
}

fn installed(record: &Record, config: Option<&Config>) -> Part {
    let name = record.agent.clone().unwrap_or_else(|| "pi".to_owned());
    let state = config.and_then(|config| config.harness.installed_in.clone()).or_else(|| record.state.clone());
    let state = state.unwrap_or_else(crate::environment::state_dir);
    let opened = agents(record.agents_dir.as_deref()).and_then(|known| {
        let wanted = known.find(&name).usage()?;
        agent::open(wanted, &state, Depth::Quick).usage()
    });
    let (mark, says) = match &opened {
        Ok(opened) => (Mark::Well, format!("{name} {} installed", opened.identity().version)),
        Err(_absent) => (Mark::Wanting, format!("{name} is not installed in {}", state.display())),
    };
    Part { name: "agent", mark, says, detail: json!({"name": name, "state": state}) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_said_by_its_largest_units() {
        let said: Vec<String> = [5, 61, 3700, 90_000].into_iter().map(span).collect();
        assert_eq!(said, ["5 s", "1 min", "1 h 1 min", "1 d 1 h"]);
    }
}
