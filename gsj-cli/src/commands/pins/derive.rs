//! `gsj pins derive`: a pins file from artifacts.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use gsj_checks::Policy;
use gsj_pins::derive::{Derivation, DeriveError, Tail};
use gsj_pins::{Key, Pins};
use gsj_trace::canonical::bytes_sha256;
use gsj_trace::json::{Value, ValueRef};
use gsj_trace::tokenizer::Tokenizer;
use gsj_trace::tokens::TokenText as _;

use crate::error::{CliError, Context as _, Kind};
use crate::inputs::{self, Document, Inputs};
use crate::output;
use crate::terminal::{progress, warn};

#[derive(Debug, clap::Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Example:\n  gsj pins derive --tokenizer fixtures/tokenizer/tokenizer.json --skills fixtures/corpus/skills \\\n    --roster fixtures/agent/light/roster.json --end-of-turn 2 --mode thinking-on \\\n    --system-prompt fixtures/agent/light/system_prompt.txt --tail $'<|im_start|>assistant\\n'"
)]
pub(crate) struct Args {
    /// The engine's tokenizer.json
    #[arg(long, value_name = "FILE")]
    tokenizer: Option<PathBuf>,
    /// The template that the engine is started with, or the tokenizer_config.json that holds it
    #[arg(long, value_name = "FILE")]
    chat_template: Option<PathBuf>,
    /// A folder with a folder for each skill, each with its SKILL.md
    #[arg(long, value_name = "DIR")]
    skills: Vec<PathBuf>,
    /// A settings document of the agent (JSON); may be given several times, as the next ones
    #[arg(long, value_name = "FILE")]
    settings: Vec<PathBuf>,
    /// A tool roster as the agent sends it (JSON)
    #[arg(long, value_name = "FILE")]
    roster: Vec<PathBuf>,
    /// A system prompt as the agent sends it, byte for byte
    #[arg(long, value_name = "FILE")]
    system_prompt: Vec<PathBuf>,
    /// What the chat template writes before every reply; needs --tokenizer, which says its ids
    #[arg(long, value_name = "TEXT", requires = "tokenizer")]
    tail: Vec<String>,
    /// The ids that end a turn, or a generation_config.json or tokenizer_config.json that says them
    #[arg(long, value_name = "ID,ID|FILE")]
    end_of_turn: Vec<String>,
    /// Accepted session results to take rosters, prompts, settings and skill cards from; with --tail also the ids that
    /// their prompts end with
    #[arg(long, value_name = "FILE")]
    from_trace: Vec<PathBuf>,
    /// A session's log (`artifacts/<session>/session.log`), for the first pins of an estate: roster, prompt, settings and
    /// skill card are those of its first whole call
    #[arg(long, value_name = "FILE")]
    from_log: Vec<PathBuf>,
    /// The estate's mode, a part of the names of stored results
    #[arg(long, value_name = "NAME", default_value = "thinking-off")]
    mode: String,
    /// Where the pins file goes [default: standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// The engine's tokenizer as it was given.
struct Engine {
    name: String,
    bytes: Vec<u8>,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CliError> {
    let mut derivation = Derivation::new();
    derivation.mode(&args.mode).usage()?;
    let engine = args.tokenizer.as_deref().map(|path| Ok(Engine { name: name(path), bytes: inputs::read(path)? }));
    let engine = engine.transpose()?;
    files(args, engine.as_ref(), &mut derivation)?;
    for path in &args.from_log {
        from_log(path, &mut derivation)?;
    }
    tails(args, engine.as_ref(), &mut derivation)?;
    let text = derivation.to_text();
    accepted_by(&text, &args.from_trace, &derivation)?;
    match &args.out {
        Some(path) => {
            inputs::write_whole(path, text.as_bytes())?;
            progress(&format!("wrote {}", path.display()));
        }
        None => output::exact(text.trim_end()),
    }
    for key in derivation.missing() {
        warn(&format!("nothing was given for `{key}`: {}", source_of(key)));
    }
    Ok(ExitCode::SUCCESS)
}

/// Everything that a file says by itself.
fn files(args: &Args, engine: Option<&Engine>, derivation: &mut Derivation) -> Result<(), CliError> {
    if let Some(engine) = engine {
        // A file that is no tokenizer would be approved for ever otherwise.
        if Value::parse(&engine.bytes).ok().is_none_or(|file| file.get("model").is_none()) {
            return Err(CliError::new(Kind::Failed, format!("`{}` is no tokenizer.json", engine.name)));
        }
        derivation.tokenizer(&engine.name, &engine.bytes);
    }
    if let Some(path) = &args.chat_template {
        let bytes = inputs::read(path)?;
        if path.extension().is_some_and(|extension| extension == "json") {
            derivation.chat_template_of_config(&name(path), &bytes).failed()?;
        } else {
            derivation.chat_template(&name(path), &bytes);
        }
    }
    for folder in &args.skills {
        skills(folder, derivation)?;
    }
    for path in &args.settings {
        let bytes = inputs::read(path)?;
        derivation.settings(&name(path), json(path, &bytes)?.as_ref()).failed()?;
    }
    for path in &args.roster {
        let bytes = inputs::read(path)?;
        derivation.roster(&name(path), json(path, &bytes)?.as_ref()).failed()?;
    }
    for path in &args.system_prompt {
        let text = String::from_utf8(inputs::read(path)?)
            .map_err(|_| CliError::new(Kind::Failed, format!("`{}` is not UTF-8 text", path.display())))?;
        if text.ends_with('\n') {
            warn(&format!("`{}` ends with a line feed, which is a part of what is approved", path.display()));
        }
        derivation.system_prompt(&name(path), &text);
    }
    args.end_of_turn.iter().try_for_each(|given| end_of_turn(given, engine, derivation))
}

fn skills(folder: &Path, derivation: &mut Derivation) -> Result<(), CliError> {
    let fault = |error: std::io::Error| CliError::usage(format!("read `{}`: {error}", folder.display()));
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(fault)? {
        let card = entry.map_err(fault)?.path().join("SKILL.md");
        if card.is_file() {
            found.push(card);
        }
    }
    found.sort();
    if found.is_empty() {
        return Err(CliError::usage(format!("`{}` holds no skill", folder.display()))
            .hint("a skill is a folder with a SKILL.md in it; --skills names the folder around them"));
    }
    for card in found {
        let skill = card.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned();
        derivation.skill_card(&skill, &name(&card), &inputs::read(&card)?);
    }
    Ok(())
}

/// Takes the first call of a log that has a whole answer.
fn from_log(path: &Path, derivation: &mut Derivation) -> Result<(), CliError> {
    for document in Inputs::open(&[path.to_owned()], &["log", "jsonl"])? {
        let Document { source, bytes, .. } = document?;
        let record = json(Path::new(&source), &bytes)?;
        if record.get("outcome").is_none_or(|outcome| outcome.as_str() == Some("completed")) {
            return derivation.from_record(&source, &bytes).failed().map(drop);
        }
    }
    Err(CliError::new(Kind::Failed, format!("`{}` holds no call with a whole answer", path.display()))
        .hint("gsj reconstruct FILE shows what a log holds"))
}

fn end_of_turn(given: &str, engine: Option<&Engine>, derivation: &mut Derivation) -> Result<(), CliError> {
    let listed: Result<Vec<u32>, _> = given.split(',').map(|id| id.trim().parse()).collect();
    if let Ok(ids) = listed {
        let Some(engine) = engine else {
            derivation.end_of_turn_ids("--end-of-turn", &bytes_sha256(given.as_bytes()), &ids);
            return Ok(());
        };
        // The tokenizer vouches for them as far as it can: they are special tokens of it.
        let file = json(Path::new(&engine.name), &engine.bytes)?;
        let added = file.get("added_tokens").and_then(ValueRef::as_array);
        let known = |id: u32| {
            added.is_some_and(|list| list.iter().any(|t| t.get("id").and_then(ValueRef::as_i64) == Some(i64::from(id))))
        };
        if let Some(odd) = ids.iter().find(|id| !known(**id)) {
            return Err(CliError::usage(format!(
                "--end-of-turn {given}: {odd} is no special token of `{}`",
                engine.name
            )));
        }
        derivation.end_of_turn_ids(&engine.name, &bytes_sha256(&engine.bytes), &ids);
        return Ok(());
    }
    let path = Path::new(given);
    let bytes = inputs::read(path).map_err(|error| error.hint("--end-of-turn takes ids (151645,151643) or a file"))?;
    let tokenizer = engine.map(|engine| (engine.name.as_str(), engine.bytes.as_slice()));
    derivation.end_of_turn_of_config(&name(path), &bytes, tokenizer).failed().map(drop)
}

/// The tails, and what accepted traces say: their own ids are the engine's, so they win over what encoding gives.
fn tails(args: &Args, engine: Option<&Engine>, derivation: &mut Derivation) -> Result<(), CliError> {
    let tokenizer = match engine {
        Some(engine) if !args.tail.is_empty() => Some(
            Tokenizer::from_bytes(&engine.bytes)
                .map_err(|error| CliError::from_error(Kind::Failed, &error).named(&engine.name))?,
        ),
        _ => None,
    };
    let mut confirmed: Vec<&str> = Vec::new();
    for document in Inputs::open(&args.from_trace, &["jsonl"])? {
        let Document { source, bytes, .. } = document?;
        let mut refused = None;
        // The trace opens with one of the tails, where several modes are approved at once.
        let tails = args.tail.iter().filter_map(|text| Some(Tail { text, tokens: tokenizer.as_ref()? }));
        let mut tried = false;
        for tail in tails {
            tried = true;
            match derivation.from_trace(&source, &bytes, Some(tail)) {
                Ok(_) => {
                    refused = None;
                    confirmed.push(tail.text);
                    break;
                }
                Err(error) => refused = Some(error),
            }
        }
        if !tried {
            refused = derivation.from_trace(&source, &bytes, None).err();
        }
        if let Some(error) = refused {
            let hint = match error {
                DeriveError::NotAccepted { .. } => "only accepted session results say what to approve",
                _ => "gsj show FILE shows what the result holds",
            };
            return Err(CliError::from_error(Kind::Failed, &error).hint(hint));
        }
    }
    for text in &args.tail {
        let (Some(tokenizer), Some(engine)) = (&tokenizer, engine) else { continue };
        if confirmed.contains(&text.as_str()) {
            continue;
        }
        let ids = tokenizer.encode(text).failed()?;
        let spelled: Vec<u8> = ids.iter().filter_map(|id| tokenizer.bytes(*id)).flatten().copied().collect();
        if spelled != text.as_bytes() {
            return Err(CliError::new(
                Kind::Failed,
                format!("`{}` cannot spell the tail {text:?}: its ids read {:?}", engine.name, tokenizer.decode(&ids)),
            ));
        }
        derivation.tail(&engine.name, text, &ids).failed()?;
    }
    Ok(())
}

/// Judges the traces by what was derived from them: whatever is wrong with them is no matter of pins.
fn accepted_by(document: &str, traces: &[PathBuf], derivation: &Derivation) -> Result<(), CliError> {
    if traces.is_empty() {
        return Ok(());
    }
    if !derivation.missing().is_empty() {
        warn("the traces were not judged: sets are missing");
        return Ok(());
    }
    let pins = Pins::from_bytes("the derived pins", document.as_bytes().to_vec());
    // A trace of the Python reference has no certificate and is as good a source.
    let policy = Policy { require_fidelity: false, ..Policy::default() };
    for document in Inputs::open(traces, &["jsonl"])? {
        let Document { source, bytes, .. } = document?;
        let verdict = gsj_checks::validate(&bytes, &pins, &policy).failed()?;
        if let Some(finding) = verdict.findings.first() {
            let n = verdict.findings.len();
            return Err(CliError::new(
                Kind::Failed,
                format!("`{source}` would be rejected even so: {finding} ({n} findings)"),
            )
            .hint("pins come from accepted traces; gsj show FILE says what is wrong with this one"));
        }
    }
    Ok(())
}

fn source_of(key: Key) -> &'static str {
    match key {
        Key::Settings => "--settings FILE, --from-trace FILE or --from-log FILE",
        Key::ToolRoster => "--roster FILE, --from-trace FILE or --from-log FILE",
        Key::SystemPrompt => "--system-prompt FILE, --from-trace FILE or --from-log FILE",
        Key::TailIds => "--tail TEXT with --tokenizer FILE",
        Key::SkillCard => "--skills DIR",
        Key::Tokenizer => "--tokenizer FILE",
        Key::ChatTemplate => "--chat-template FILE",
        Key::Tail => "--tail TEXT",
    }
}

fn json<'b>(path: &Path, bytes: &'b [u8]) -> Result<Value<'b>, CliError> {
    Value::parse(bytes)
        .map_err(|error| CliError::new(Kind::Failed, format!("`{}` is not JSON: {error}", path.display())))
}

fn name(path: &Path) -> String {
    path.display().to_string()
}
