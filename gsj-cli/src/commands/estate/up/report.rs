//! What stands, and what to do next.

use std::path::Path;

use super::steps::{Stands, Steps};
use super::{pins_standing, server};
use crate::environment;
use crate::error::CliError;
use crate::output::{self, Format};
use crate::terminal::{BOLD, DIM, GREEN, paint};

pub(super) fn print(steps: &Steps<'_>, stands: &Stands, format: Format) -> Result<(), CliError> {
    let home = steps.home;
    let url = server::url(&stands.serving);
    let bank = &stands.standing.bank;
    let next = next(steps, stands);
    let (values, _) = pins_standing(home);
    if format == Format::Json {
        output::json(&serde_json::json!({
            "home": home.root(), "corpus": steps.choice.corpus, "cases": stands.standing.cases,
            "recipe": steps.recipe.as_str(),
            "bank": {"path": bank_path(steps), "rows": bank.rows, "train": bank.train, "eval": bank.eval},
            "engine": steps.record.engine, "config": home.config(),
            "pins": {"path": home.pins(), "values": values, "on_trust": ["system_prompt_hash", "tool_roster_hash"],
                "bring_up": stands.pins.folder},
            "server": {"url": url, "pid": stands.serving.pid, "since": stands.serving.since, "log": home.log()},
            "secret": home.secret(), "changed": !steps.done.is_empty(), "done": steps.done, "next": next,
        }));
        return Ok(());
    }
    let line = |name: &str, text: &str| output::line(&format!("{} {text}", paint(BOLD, &format!("{name:<8}"))));
    line("estate", &home.root().display().to_string());
    line(
        "corpus",
        &format!(
            "{}: {} cases, {} tasks ({} train, {} eval)",
            steps.choice.corpus.display(),
            stands.standing.cases,
            bank.rows,
            bank.train,
            bank.eval
        ),
    );
    let engine = &steps.choice.engine;
    line("engine", &format!("{} {} with {}", engine.kind, engine.url, engine.model));
    line("pins", &format!("{}: {values} values", home.pins().display()));
    let folder = stands.pins.folder.display();
    line("", &paint(DIM, &format!("system prompt and tools on trust, as the bring-up episode showed them: {folder}")));
    line("config", &format!("{} (profile {})", home.config().display(), profile(stands)));
    line("secret", &format!("{} (for its owner only)", home.secret().display()));
    let export = format!("export {}=\"$(cat {})\"", environment::TOKEN_SECRET, quoted(&home.secret()));
    line("", &paint(DIM, &format!("for `gsj estate ingest` and `gsj token`: {export}")));
    let under_way = server::under_way(&stands.health);
    line("server", &format!("{} {url}, {under_way} sessions under way", paint(GREEN, "healthy")));
    line("", &paint(DIM, &format!("log: {}", home.log().display())));
    output::line("");
    let word = if steps.done.is_empty() { "nothing changed; the estate stands" } else { "the estate stands" };
    output::line(&paint(GREEN, word));
    if !next.is_empty() {
        output::line(&format!("next: {}", next.join("\n      ")));
    }
    if walled(stands) && bank.eval > 0 {
        output::line(&paint(
            DIM,
            "tasks of eval cases are refused: estate.split_wall is on, and estate.evaluation is off",
        ));
    }
    Ok(())
}

fn profile(stands: &Stands) -> &'static str {
    match stands.config.checks.profile {
        gsj_server::config::ProfileName::Strict => "strict",
        gsj_server::config::ProfileName::Reference => "reference",
    }
}

fn bank_path(steps: &Steps<'_>) -> std::path::PathBuf {
    steps.corpus.lock_dir.join(gsj_estate::BANK_FILE)
}

/// The commands that submit everything that the server takes, one for each split.
fn next(steps: &Steps<'_>, stands: &Stands) -> Vec<String> {
    let bank = &stands.standing.bank;
    let program = program();
    let base = format!(
        "{program} submit --config {} --from-bank {} --all",
        quoted(&steps.home.config()),
        quoted(&bank_path(steps))
    );
    let train = format!("{base} --split train --out results");
    match (bank.train, bank.eval) {
        (0, 1..) if walled(stands) => Vec::new(),
        (0, _) | (_, 0) => vec![format!("{base} --out results")],
        _ if walled(stands) => vec![train],
        _ => vec![train, format!("{base} --split eval --out results-eval")],
    }
}

/// Whether this server takes no task of an eval case.
fn walled(stands: &Stands) -> bool {
    stands.config.estate.split_wall && !stands.config.estate.evaluation
}

/// How this program is called: by its name where the search path finds it, else by its path.
fn program() -> String {
    let Ok(this) = std::env::current_exe() else { return "gsj".to_owned() };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join("gsj")).find(|file| file.is_file());
    let same = found.is_some_and(|found| std::fs::canonicalize(found).ok() == std::fs::canonicalize(&this).ok());
    if same { "gsj".to_owned() } else { quoted(&this) }
}

/// A path as a word of the shell.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = text.chars().all(|c| c.is_ascii_alphanumeric() || "/._-+@%:,".contains(c));
    if plain { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_one_word_of_the_shell() {
        assert_eq!(quoted(Path::new("/srv/a-b/c.yaml")), "/srv/a-b/c.yaml");
        assert_eq!(quoted(Path::new("/srv/it's $x")), "'/srv/it'\\''s $x'");
    }
}
