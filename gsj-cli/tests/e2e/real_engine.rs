//! Episodes against a small real model, replayed through the engine that gave the logprobs.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde_json::{Value, json};

use crate::support::{Process, agents_state, get, gsj, http, output, real_engine, text};

/// The model takes both cores; two at once would only wait for each other.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

const MODEL: &str = "HuggingFaceTB/SmolLM2-135M-Instruct";

/// One episode against a running engine: its trace, the gateway's record, and the calls that the engine saw.
struct Episode {
    url: String,
    trace: Value,
    log: Vec<Value>,
    chats: Vec<Value>,
}

fn chats(url: &str) -> Vec<Value> {
    let requests = get(&format!("{url}/requests"));
    let all = requests.as_array().unwrap().iter();
    all.filter(|r| r["path"] == "/v1/chat/completions").map(|r| r["body"].clone()).collect()
}

fn episode(state: &Path, engine: &Process, dialect: &str, stream: &str) -> Episode {
    let home = tempfile::Builder::new().prefix("gsj-real-").tempdir_in("/tmp").unwrap();
    std::fs::set_permissions(home.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let before = chats(&engine.url).len();
    let ran = output(
        gsj()
            .args(["demo", "--format", "json", "--engine-url", &engine.url, "--engine-model", MODEL])
            .args(["--engine", dialect, "--engine-stream", stream, "--keep"])
            .arg(home.path())
            .arg("--state")
            .arg(state),
    );
    assert!(ran.status.success(), "the episode is accepted: {}", text(&ran));
    let report: Value = serde_json::from_slice(&ran.stdout).unwrap();
    let read = |path: &Path| std::fs::read_to_string(path).unwrap();
    let result: Value = serde_json::from_str(&read(Path::new(report["trace"].as_str().unwrap()))).unwrap();
    let log = PathBuf::from(report["artifacts"].as_str().unwrap()).join("session.log");
    let log = read(&log).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let chats = chats(&engine.url).split_off(before);
    assert!(chats.iter().all(|c| c["stream"] == json!(stream == "on")), "the engine was asked as configured");
    Episode { url: engine.url.clone(), trace: result["trajectory"]["traces"][0].clone(), log, chats }
}

fn ids(value: &Value) -> Vec<u64> {
    value.as_array().unwrap().iter().map(|id| id.as_u64().unwrap()).collect()
}

impl Episode {
    fn mask(&self) -> Vec<u64> {
        ids(&self.trace["loss_mask"])
    }

    fn turns(&self) -> usize {
        let mask = self.mask();
        usize::from(mask[0] == 1) + mask.windows(2).filter(|w| w == &[0, 1]).count()
    }

    fn sampled_logprobs(&self) -> Vec<f64> {
        let all = self.trace["response_logprobs"].as_array().unwrap();
        self.mask().iter().zip(all).filter(|(m, _)| **m == 1).map(|(_, lp)| lp.as_f64().unwrap()).collect()
    }

    /// Feeds the trajectory's ids through the engine and compares each sampled position.
    fn replays_exactly(&self) {
        let prompt = ids(&self.trace["prompt_ids"]);
        let response = ids(&self.trace["response_ids"]);
        let all: Vec<u64> = prompt.iter().chain(&response).copied().collect();
        let ask = json!({"prompt": all, "echo": true, "logprobs": 1, "max_tokens": 0});
        let (status, answer) = http(&format!("{}/v1/completions", self.url), "POST", Some(&ask));
        assert_eq!(status, 200);
        let replayed = answer["choices"][0]["logprobs"]["token_logprobs"].as_array().unwrap().clone();
        let captured = self.trace["response_logprobs"].as_array().unwrap();
        let mut compared = 0;
        for (index, mask) in self.mask().iter().enumerate().filter(|(_, m)| **m == 1) {
            let (ours, theirs) = (captured[index].as_f64().unwrap(), replayed[prompt.len() + index].as_f64().unwrap());
            assert!((ours - theirs).abs() < 1e-4, "position {index} (mask {mask}): captured {ours}, replayed {theirs}");
            compared += 1;
        }
        assert!(compared > 0, "something was compared");
    }

    /// What the engine was asked, rendered by its own template, is what the trajectory was built on.
    fn ids_equal_the_engines_requests(&self) {
        assert_eq!(self.chats.len(), self.log.len(), "a record for each call");
        let prompt = ids(&self.trace["prompt_ids"]);
        let response = ids(&self.trace["response_ids"]);
        let mask = self.mask();
        let starts: Vec<usize> = (0..mask.len()).filter(|i| mask[*i] == 1 && (*i == 0 || mask[i - 1] == 0)).collect();
        assert_eq!(starts.len(), self.chats.len(), "a run of sampled tokens for each call");
        for (chat, start) in self.chats.iter().zip(starts) {
            let (status, rendered) = http(&format!("{}/tokenize", self.url), "POST", Some(chat));
            assert_eq!(status, 200);
            let merged: Vec<u64> = prompt.iter().chain(&response[..start]).copied().collect();
            assert_eq!(merged, ids(&rendered["tokens"]), "the context of the run at {start}");
        }
    }

    /// The same ids and logprobs as another episode of the same script.
    fn equals(&self, other: &Self) {
        for key in ["prompt_ids", "response_ids", "loss_mask"] {
            assert_eq!(self.trace[key], other.trace[key], "{key}");
        }
        for (ours, theirs) in self.sampled_logprobs().iter().zip(other.sampled_logprobs()) {
            assert!((ours - theirs).abs() < 1e-4, "{ours} and {theirs}");
        }
    }
}

/// Runs one script streamed and whole. The engine keeps what it computed for the first prompt, so the second is quick.
fn both_forms(dialect: &str, turns: &Value) -> Option<Episode> {
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let state = agents_state()?;
    let script = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(script.path(), turns.to_string()).unwrap();
    let engine = real_engine(script.path(), &["--dialect", dialect])?;
    let streamed = episode(&state, &engine, dialect, "on");
    assert_eq!(streamed.turns(), turns.as_array().unwrap().len());
    streamed.ids_equal_the_engines_requests();
    let whole = episode(&state, &engine, dialect, "off");
    whole.ids_equal_the_engines_requests();
    whole.equals(&streamed);
    streamed.replays_exactly();
    Some(streamed)
}

#[test]
fn vllm_is_captured_exactly() {
    let turns = json!([
        {"content": "I will look at the pages of this case first.",
         "tool_calls": [{"name": "bash", "arguments": {"command": "ls md | head -5"}}]},
        {"tool_calls": [{"name": "mcp_gsj_case_status", "arguments": {}}]},
        {"content": "Now the summary.", "tool_calls": [{"name": "write", "arguments": {
            "path": "out/summary.md", "content": "The file concerns a dispute about a delivery; zebra quartz umbrella."}}]},
        {"content": "The summary is in out/summary.md. It names the parties, the claim and the dates that matter so far, and it cites the page for each statement that it makes."}
    ]);
    let Some(episode) = both_forms("vllm", &turns) else { return };
    let sampled = episode.sampled_logprobs();
    assert!(sampled.len() >= 80, "{} sampled tokens", sampled.len());
    assert!(sampled.iter().any(|lp| *lp < -5.0), "some token surprised the model");
}

#[test]
fn sglang_is_captured_exactly() {
    let turns = json!([
        {"tool_calls": [{"name": "bash", "arguments": {"command": "echo zebra"}}]},
        {"content": "Done, quartz."}
    ]);
    both_forms("sglang", &turns);
}
