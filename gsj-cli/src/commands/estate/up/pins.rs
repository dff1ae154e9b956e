//! The approved sets: what can be derived is derived, the rest is what one bring-up episode showed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use gsj_estate::home::{BringUpRecord, Home, Record, what_changed};
use gsj_estate::{Corpus, Split};
use gsj_gateway::GenerationTail;
use gsj_pins::derive::Derivation;
use gsj_pins::diff::diff;
use gsj_pins::{Pins, Set};
use gsj_server::agent::Installed;
use gsj_server::config::{Config, Thinking};
use gsj_server::{BringUp, BringUpError, BroughtUp, bring_up};
use gsj_trace::canonical::bytes_sha256;
use gsj_trace::json::{Value, ValueRef};
use serde_json::json;

use super::{Asker, Choice};
use crate::commands::{runtime, serve};
use crate::environment;
use crate::error::{CliError, Context as _, Kind};
use crate::inputs;
use crate::terminal::{progress, warn};

/// The pins file in the record, and what the sets are derived from, beside it.
const NAME: &str = "pins.json";
const SETTINGS: &str = "settings.json";
const ENGINE: &str = "engine.json";

/// How often it is said that an episode still goes on.
const STILL: Duration = Duration::from_secs(30);

/// What became of the pins.
#[derive(Debug, Clone, Default)]
pub(super) struct Settled {
    /// Whether the file was written.
    pub(super) written: bool,
    /// The folder of the episode that they rest on.
    pub(super) folder: PathBuf,
}

/// What the values depend on that only an episode shows, by name and digest.
pub(super) fn basis(
    choice: &Choice,
    corpus: &Corpus,
    config: &Config,
    installed: &Installed,
) -> Result<BTreeMap<String, String>, CliError> {
    let digest = |bytes: &[u8]| bytes_sha256(bytes);
    let agent = serde_json::to_vec(installed.identity()).failed()?;
    let tools = match &config.retrieval.tools_file {
        Some(path) => inputs::read(path)?,
        None => gsj_retrieval::Tools::builtin().failed()?.listing().to_string().into_bytes(),
    };
    let engine = &choice.engine;
    let engine = json!([engine.kind, engine.url, engine.model]).to_string();
    let offered = json!([config.harness.tools_allowlist, config.harness.thinking, config.harness.settings]).to_string();
    let parts: [(&str, &[u8]); 5] = [
        ("AGENTS.md", &corpus.agents_md),
        ("agent", &agent),
        ("engine", engine.as_bytes()),
        ("retrieval tools", &tools),
        ("settings", offered.as_bytes()),
    ];
    Ok(parts.into_iter().map(|(name, bytes)| (name.to_owned(), digest(bytes))).collect())
}

/// Why an episode is due; `None` when the one before still holds.
pub(super) fn due(home: &Home, record: &Record, basis: &BTreeMap<String, String>) -> Option<String> {
    let Some(before) = &record.bring_up else { return Some("there was none yet".to_owned()) };
    let moved = what_changed(&before.basis, basis);
    if !moved.is_empty() {
        return Some(format!("changed since: {}", moved.join(", ")));
    }
    let kept = home.bring_up().join(&before.session).join("session.log").is_file();
    (!kept || !home.pins_folder().join(ENGINE).is_file()).then(|| "what the last one left is gone".to_owned())
}

/// Asks the engine how it opens a turn; the first thing that shows whether it is there.
pub(super) fn ask_engine(choice: &Choice, config: &Config) -> Result<GenerationTail, CliError> {
    progress(&format!("asking the engine at {} how it ends a prompt", choice.engine.url));
    runtime::block_on(choice.given().tail(thinks(config)))
}

fn thinks(config: &Config) -> bool {
    config.harness.thinking != Thinking::Off
}

/// Runs the one episode and keeps what it showed.
pub(super) fn episode(
    home: &Home,
    corpus: &Corpus,
    config: &Config,
    secret: String,
    tail: &GenerationTail,
    basis: BTreeMap<String, String>,
    record: &mut Record,
) -> Result<(), CliError> {
    let cases = || corpus.cases.values().filter_map(|case| Some((case, *case.timesteps.first_key_value()?.0)));
    let wanted = cases().filter(|(case, _)| case.split == Split::Train).chain(cases()).next();
    let (case, timestep) =
        wanted.ok_or_else(|| CliError::new(Kind::Failed, "the corpus has no case to bring the estate up with"))?;
    let options = BringUp {
        case_id: case.id.clone(),
        timestep,
        split: Some(case.split.as_str().to_owned()),
        folder: home.bring_up(),
    };
    progress(&format!(
        "bring-up episode on {} at timestep {timestep}: one call of the real agent, never delivered",
        case.id
    ));
    let context = serve::context(config, Some((config.estate.token_secret_env.clone(), secret)))?;
    // Ctrl-C ends this process, and with it, by the kernel, its sandbox.
    let made = runtime::block_on(async {
        let mut episode = Box::pin(bring_up(config.clone(), context, &options));
        let began = Instant::now();
        loop {
            if let Ok(made) = tokio::time::timeout(STILL, &mut episode).await {
                return made.map_err(|error| said(&error));
            }
            progress(&format!("the engine still works on its first prompt, {} s", began.elapsed().as_secs()));
        }
    })?;
    show(&made)?;
    let said = engine_said(config, tail, &made)?;
    inputs::write_whole(&home.pins_folder().join(ENGINE), said.as_bytes())?;
    record.bring_up = Some(BringUpRecord { session: made.session.to_string(), basis });
    Ok(())
}

fn said(error: &BringUpError) -> CliError {
    let kind = match error {
        BringUpError::Server(_) | BringUpError::Task { .. } => Kind::Usage,
        _ => Kind::Failed,
    };
    CliError::from_error(kind, error)
}

/// Lays what a person is to read beside the log, and says where.
fn show(made: &BroughtUp) -> Result<(), CliError> {
    let (line, _) = first_call(&made.log)?;
    let call: serde_json::Value = serde_json::from_slice(&line).failed()?;
    let prompts: Vec<String> = call["request"]["messages"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|message| matches!(message["role"].as_str(), Some("system" | "developer")))
        .map(|message| match &message["content"] {
            serde_json::Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
            text => text.as_str().unwrap_or_default().to_owned(),
        })
        .collect();
    let tools = &call["request"]["tools"];
    let (prompt, roster) = (made.folder.join("system_prompt.txt"), made.folder.join("tools.json"));
    inputs::write_whole(&prompt, prompts.join("\n").as_bytes())?;
    inputs::write_whole(&roster, &serde_json::to_vec_pretty(tools).failed()?)?;
    warn(&format!(
        "the system prompt and the {} tools that the agent offers are taken on trust from this episode: they are \
         approved as it sent them. Read them before you train:\n  {}\n  {}",
        tools.as_array().map_or(0, Vec::len),
        prompt.display(),
        roster.display()
    ));
    Ok(())
}

/// What the engine said of itself, as a document that pins are derived from and verified against.
fn engine_said(config: &Config, tail: &GenerationTail, made: &BroughtUp) -> Result<String, CliError> {
    let url = config.engine.base_url.clone().unwrap_or_default();
    if !made.prompt_ids.ends_with(&tail.ids) {
        let from = made.prompt_ids.len().saturating_sub(tail.ids.len());
        return Err(CliError::new(
            Kind::Failed,
            format!(
                "the engine at {url} ends the agent's prompt with the ids {:?}, and by its /tokenize with {:?}",
                &made.prompt_ids[from..],
                tail.ids
            ),
        )
        .hint("is thinking switched on or off for both? harness.thinking in rollout.yaml decides for the agent"));
    }
    let ended = matches!(made.finish_reason.as_deref(), Some("stop" | "tool_calls"));
    if ended && made.sampled_ids.last().is_some_and(|last| *last != tail.end_of_turn_id) {
        warn(&format!(
            "the engine ended its answer with the id {:?}, and its template ends a turn with {}",
            made.sampled_ids.last(),
            tail.end_of_turn_id
        ));
    }
    let document = json!({
        "engine": {"kind": config.engine.kind, "url": url, "model": config.engine.model},
        "about": "the opening is the first prompt of the bring-up episode; tail and end of turn are by /tokenize",
        "bring_up": made.session,
        "opening": {"prompt_ids": made.prompt_ids},
        "tail_ids": tail.ids,
        "eos_token_id": tail.end_of_turn_id,
    });
    Ok(format!("{document}\n"))
}

/// The first call of a log that was answered whole, and its line, from 1.
fn first_call(log: &Path) -> Result<(Vec<u8>, usize), CliError> {
    let bytes = inputs::read(log)?;
    let whole = |line: &[u8]| {
        Value::parse(line).is_ok_and(|call| call.get("outcome").and_then(ValueRef::as_str) == Some("completed"))
    };
    let found = bytes.split(|byte| *byte == b'\n').enumerate().find(|(_, line)| whole(line));
    found
        .map(|(at, line)| (line.to_vec(), at + 1))
        .ok_or_else(|| CliError::new(Kind::Failed, format!("`{}` holds no call with a whole answer", log.display())))
}

/// Derives the sets and has the file approve them.
pub(super) fn settle(
    home: &Home,
    choice: &Choice,
    corpus: &Corpus,
    config: &Config,
    record: &mut Record,
    asker: Asker,
) -> Result<Settled, CliError> {
    let session = record.bring_up.as_ref().map(|made| made.session.clone()).unwrap_or_default();
    let folder = home.bring_up().join(&session);
    let text = derive(home, choice, corpus, config, &session)?;
    let path = home.pins();
    let wanted = Pins::from_bytes(path.display().to_string(), text.clone().into_bytes());
    wanted.check_whole().failed()?;
    let digest = bytes_sha256(text.as_bytes());
    let there = std::fs::read(&path).ok();
    let before = record.written.insert(NAME.to_owned(), digest.clone());
    let mut settled = Settled { folder, ..Settled::default() };
    if let Some(there) = there {
        let own = before.as_ref() == Some(&bytes_sha256(&there));
        let known = Pins::from_bytes(path.display().to_string(), there.clone());
        if bytes_sha256(&there) == digest {
            return Ok(settled);
        }
        let moved = diff(&known, &wanted).ok();
        let approves = moved
            .as_ref()
            .is_some_and(|moved| moved.mode.is_none() && moved.sets.iter().all(|set| set.added.is_empty()));
        if !own && approves && known.check_whole().is_ok() {
            // Somebody approves more; that is theirs to say.
            record.written.extend(before.map(|before| (NAME.to_owned(), before)));
            progress(&format!("pins: {} approves more than was derived, and is kept", path.display()));
            return Ok(settled);
        }
        let same = moved.as_ref().is_some_and(|moved| moved.mode.is_none() && moved.sets.is_empty());
        if !same {
            for set in moved.iter().flat_map(|moved| &moved.sets) {
                let moved = [(set.removed.len(), "no longer approved"), (set.added.len(), "newly approved")];
                let words = moved.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}"));
                progress(&format!("pins: {}: {}", set.set, words.collect::<Vec<_>>().join(", ")));
            }
            let by = if own { "" } else { ", which was changed by hand" };
            asker.confirm(&format!("Replace the approved sets in {}{by}?", path.display()))?;
        }
        let beside = home.pins_folder().join(format!("pins.before-{}.json", &bytes_sha256(&there)[..8]));
        inputs::write_whole(&beside, &there)?;
        progress(&format!("pins: those before are kept as {}", beside.display()));
    }
    inputs::write_whole(&path, text.as_bytes())?;
    progress(&format!("wrote {}", path.display()));
    settled.written = true;
    Ok(settled)
}

fn derive(home: &Home, choice: &Choice, corpus: &Corpus, config: &Config, session: &str) -> Result<String, CliError> {
    let mut derivation = Derivation::new();
    derivation.mode(if thinks(config) { "thinking-on" } else { "thinking-off" }).failed()?;
    let settings = config.harness.settings.to_string();
    write(&home.pins_folder().join(SETTINGS), settings.as_bytes())?;
    derivation.settings(SETTINGS, Value::parse(settings.as_bytes()).failed()?.as_ref()).failed()?;
    if let Some(path) = &choice.tokenizer {
        derivation.tokenizer(&path.display().to_string(), &inputs::read(path)?);
    }
    for (name, card) in &corpus.skills {
        let path = corpus.root.join("skills").join(name).join("SKILL.md");
        derivation.skill_card(name, &path.display().to_string(), card);
    }
    derivation.from_engine(ENGINE, &inputs::read(&home.pins_folder().join(ENGINE))?).failed()?;
    let log = home.bring_up().join(session).join("session.log");
    let (line, number) = first_call(&log)?;
    derivation.from_record(&format!("../bring-up/{session}/session.log:{number}"), &line).failed()?;
    Ok(derivation.to_text())
}

/// How many values the pins file approves, and which fault it has.
pub(crate) fn standing(home: &Home) -> (usize, Option<String>) {
    let pins = Pins::read(&home.pins());
    let count = |pins: &Pins| pins.values().map(|all| all.iter().filter(|one| one.set != Set::SkillCards).count());
    (count(&pins).unwrap_or(0), pins.check_whole().err().map(|fault| fault.to_string()))
}

/// Says when the environment has other pins used than the estate's.
pub(super) fn warn_of_others(home: &Home) {
    if let Some(other) = environment::pins_path().filter(|other| *other != home.pins()) {
        warn(&format!(
            "{} is set to {}: `gsj submit` and `gsj check` use that file instead of the estate's",
            environment::PINS_PATH,
            other.display()
        ));
    }
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), CliError> {
    if std::fs::read(path).is_ok_and(|there| there == bytes) {
        return Ok(());
    }
    inputs::write_whole(path, bytes)
}
