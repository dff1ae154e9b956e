//! The demo's estate: corpus, repositories, pins and configuration in one folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use gsj_estate::Recipe;
use gsj_server::config::{Config, ReadContext};
use serde_json::{Value, json};

use super::engine::Engine;
use crate::commands::engine::Dialect;
use crate::commands::{estate, token};
use crate::error::{CliError, Context as _, Kind};

/// Name under which the demo's own secret is looked up; it is random, new in every run, and in no file.
const SECRET_NAME: &str = "GSJ_DEMO_TOKEN_SECRET";
/// The one episode; the script of the scripted engine is written for it.
const CASE: &str = "harbor-lease";
const TIMESTEP: u32 = 12;
const INSTRUCTION: &str = "Summarise this case as it stands today: the parties, what each claims, and the dates that matter. Write the \
     summary to out/summary.md and name the page behind every statement.";

/// Files of `fixtures/` that ride in the program.
#[derive(rust_embed::RustEmbed)]
#[folder = "../fixtures"]
#[include = "corpus/**"]
#[include = "scripts/demo.json"]
#[include = "tokenizer/tokenizer.json"]
#[include = "template/chat_template.jinja"]
#[include = "pins/thinking-off.json"]
struct Fixtures;

/// A file of the built-in fixtures.
pub(crate) fn fixture(name: &str) -> Result<Vec<u8>, CliError> {
    Fixtures::get(name)
        .map(|file| file.data.into_owned())
        .ok_or_else(|| CliError::new(Kind::Failed, format!("`{name}` is not built into this program")))
}

/// The task that the demo submits.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) task_id: String,
    pub(crate) case_id: String,
    pub(crate) timestep: u32,
    pub(crate) about: String,
    pub(crate) body: Value,
}

/// Where everything of the demo lies.
#[derive(Debug)]
pub(crate) struct Estate {
    home: PathBuf,
    state: PathBuf,
    secret: String,
    owner: String,
    task_id: String,
}

impl Estate {
    /// Lays corpus and repositories into `home`; what is there already and equal is kept.
    pub(crate) fn lay(home: &Path, state: &Path) -> Result<Self, CliError> {
        let corpus = home.join("corpus");
        for name in Fixtures::iter() {
            if let Some(below) = name.strip_prefix("corpus/") {
                write(&corpus.join(below), &fixture(&name)?)?;
            }
        }
        estate::build(&corpus, &home.join("repos"), Recipe::Sealed, false)?;
        let owner = gsj_estate::Corpus::read(&corpus).usage()?.settings.owner;
        let started = SystemTime::now().duration_since(UNIX_EPOCH).map(|d| d.as_millis()).unwrap_or_default();
        Ok(Self {
            home: home.to_owned(),
            state: state.to_owned(),
            secret: token::draw()?,
            owner,
            task_id: format!("demo-{started}"),
        })
    }

    /// Name and value of the secret that signs retrieval tokens.
    pub(crate) fn secret(&self) -> (String, String) {
        (SECRET_NAME.to_owned(), self.secret.clone())
    }

    pub(crate) fn pins_path(&self) -> PathBuf {
        self.home.join("pins.json")
    }

    pub(crate) fn traces(&self) -> PathBuf {
        self.home.join("traces")
    }

    pub(crate) fn quarantine(&self) -> PathBuf {
        self.home.join("quarantine")
    }

    pub(crate) fn artifacts(&self, session: &str) -> PathBuf {
        self.home.join("artifacts").join(session)
    }

    pub(crate) fn config_path(&self) -> PathBuf {
        self.home.join("rollout.yaml")
    }

    /// Writes the approved sets: those of the fixtures, and of another engine the tail that its tokenizer gave.
    pub(crate) fn write_pins(&self, engine: &Engine) -> Result<(), CliError> {
        let mut document = fixture("pins/thinking-off.json")?;
        if let Some(tail) = &engine.tail {
            let mut pins: Value = serde_json::from_slice(&document).failed()?;
            let members = pins
                .get_mut("pins")
                .and_then(Value::as_object_mut)
                .ok_or_else(|| CliError::new(Kind::Failed, "the built-in pins have no member `pins`"))?;
            for codec in ["tokenizer_hash", "chat_template_hash", "g6_expected_tail"] {
                members.remove(codec);
            }
            members.insert("g6_expected_tail_ids".into(), json!([tail.ids]));
            members.insert("end_of_turn_ids".into(), json!([tail.end_of_turn_id]));
            if let Some(provenance) = pins.get_mut("provenance").and_then(Value::as_object_mut) {
                for codec in ["tokenizer_hash", "chat_template_hash", "g6_expected_tail"] {
                    provenance.remove(codec);
                }
                let asked = json!({"source": format!("{}/tokenize", engine.url)});
                provenance.insert("g6_expected_tail_ids".into(), asked.clone());
                provenance.insert("end_of_turn_ids".into(), asked);
            }
            document = serde_json::to_vec_pretty(&pins).failed()?;
            document.push(b'\n');
        }
        write(&self.pins_path(), &document)
    }

    /// Writes the configuration of this run and reads it back as the server would.
    pub(crate) fn write_config(&self, engine: &Engine, stream: bool) -> Result<Config, CliError> {
        let owner = &self.owner;
        let mut config = json!({
            "estate": {
                "clone_url_for": format!("file://{}/{owner}/{{case_id}}.git", self.home.join("repos").display()),
                "recipe": "sealed",
                "token_secret_env": SECRET_NAME,
            },
            "engine": {
                "kind": match engine.dialect { Dialect::Vllm => "vllm", Dialect::Sglang => "sglang" },
                "base_url": engine.url,
                "model": engine.model,
                "stream": stream,
            },
            "harness": {"agent": "pi", "installed_in": self.state, "artifacts_dir": self.home.join("artifacts")},
            "checks": {"pins": self.pins_path(), "profile": "strict"},
            "receiver": {"traces_dir": self.traces(), "quarantine_dir": self.quarantine()},
            "server": {"listen": "127.0.0.1:0", "state_dir": self.home},
        });
        if let Some(name) = &engine.api_key_env {
            config["engine"]["api_key_env"] = json!(name);
        }
        config["builder"] = match &engine.tail {
            Some(tail) => json!({"end_of_turn_token_id": tail.end_of_turn_id}),
            // The scripted engine's own, so that a context which differs can be told apart.
            None => {
                let path = self.home.join("tokenizer.json");
                write(&path, &fixture("tokenizer/tokenizer.json")?)?;
                json!({"tokenizer": path})
            }
        };
        let text = serde_saphyr::to_string(&config).map_err(|error| CliError::new(Kind::Failed, error.to_string()))?;
        write(&self.config_path(), text.as_bytes())?;
        let context = ReadContext {
            path: self.config_path(),
            default_state_dir: self.state.clone(),
            // The demo commits its own pins; another estate's must not slip in.
            pins_path: None,
        };
        Ok(Config::read(&context).failed()?.0)
    }

    /// The task, as a trainer would submit it.
    pub(crate) fn task(&self) -> Task {
        let body = json!({
            "task_id": self.task_id,
            "instruction": INSTRUCTION,
            "num_samples": 1,
            "timeout_seconds": 900,
            "agent": {"harness": "pi", "settings": {"case_id": CASE, "timestep": TIMESTEP}},
            "metadata": {"case_id": CASE, "timestep": TIMESTEP, "prompt_source": "free", "split": "train"},
        });
        let about = INSTRUCTION.split(':').next().unwrap_or(INSTRUCTION).to_owned();
        Task { task_id: self.task_id.clone(), case_id: CASE.to_owned(), timestep: TIMESTEP, about, body }
    }
}

/// Writes a file when its content would change, by a rename.
fn write(path: &Path, bytes: &[u8]) -> Result<(), CliError> {
    let fault = |error: std::io::Error| {
        CliError::usage(format!("write `{}`: {error}", path.display())).hint("another folder: --keep DIR")
    };
    if fs::read(path).is_ok_and(|there| there == bytes) {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(fault)?;
    }
    let beside = path.with_extension("tmp");
    fs::write(&beside, bytes).map_err(fault)?;
    fs::rename(&beside, path).map_err(fault)
}
