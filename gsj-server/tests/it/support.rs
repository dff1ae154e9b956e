//! An estate, an engine, pins, and a server over them, all in a temporary folder.

use std::{
    collections::BTreeMap,
    fs,
    net::SocketAddr,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    time::{Duration, SystemTime},
};

use gsj_gateway::{
    EngineKind,
    scripted::{ScriptedEngine, ScriptedOptions},
};
use gsj_pins::derive::Derivation;
use gsj_server::{
    Clock, Context, Running, Server, ServerError,
    agent::{self, Agents, InstallOptions},
    config::{Config, ReadContext},
};
use gsj_trace::json::Value as TraceValue;
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tokio::{net::TcpListener, task::JoinHandle};

pub(crate) const CASE: &str = "case_0001";
pub(crate) const MODEL: &str = "tiny";
/// The secret that must be found nowhere.
pub(crate) const CANARY: &str = "canary-secret-0123456789-0123456789-abcdef";
/// The end of a turn in the tokenizer below.
const END_OF_TURN: i64 = 258;
/// The default of `harness.settings`.
const SETTINGS: &[u8] = br#"{"compaction":{"enabled":false}}"#;
const TAIL: &str = "<|im_start|>assistant\n";
/// How long any wait in these tests may take.
const PATIENCE: Duration = Duration::from_secs(60);

const TEMPLATE: &str = r#"{%- for t in tools or [] %}{{ t | tojson }}
{%- endfor %}{%- for m in messages %}<|im_start|>{{ m.role }}
{{ m.content or '' }}{% for c in m.tool_calls or [] %}{% if m.content or not loop.first %}{{ '\n' }}{% endif -%}
<tool_call>
{"name": {{ c.function.name | tojson }}, "arguments": {{ c.function.arguments | tojson }}}
</tool_call>{% endfor %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"#;

/// An agent that ends at once and says nothing to its model.
const MUTE: &str = r#"
name: mute
version: 0.1.0
about: ends without a word
wire_api: openai-completions
install: {files: []}
tools: [bash]
retrieval_prefix: mcp_gsj_
command: [/usr/bin/sh, -c, "echo nothing to say >&2; exit 3"]
env: {PATH: /usr/bin:/bin}
prompt: stdin
outcome:
  format: json-lines
  message: {/type: message_end}
  stop_reason: /message/stopReason
  success: [stop]
"#;

/// One estate with everything that a server needs.
pub(crate) struct Bench {
    pub(crate) root: TempDir,
    pub(crate) config: Config,
    engine: Option<JoinHandle<()>>,
}

impl Bench {
    /// An estate with the `none` backend, whose engine speaks from these scripts, by a part of the prompt.
    pub(crate) async fn new(scripts: Value) -> Self {
        let root = tempfile::tempdir().expect("a folder");
        // The sandbox's user must get in.
        fs::set_permissions(root.path(), fs::Permissions::from_mode(0o755)).expect("a mode");
        scaffold(&root.path().join("repos"));
        let agents = root.path().join("agents");
        copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../agents/light"), &agents.join("light"));
        fs::create_dir_all(agents.join("mute")).expect("a folder");
        fs::write(agents.join("mute/agent.yaml"), MUTE).expect("a manifest");
        let pins = root.path().join("pins.json");
        fs::write(&pins, pins_of(&agents.join("light/agent.py"))).expect("pins");
        let (address, engine) = engine(scripts).await;
        let yaml = json!({
            "estate": {"clone_url_for": format!("file://{}/repos/{{case_id}}.git", root.path().display())},
            "engine": {"base_url": format!("http://{address}"), "model": MODEL, "retries": 0},
            "harness": {"agent": "light", "agents_dir": agents, "tools_allowlist": ["bash", "mcp_gsj_search_case"]},
            "sandbox": {"backend": "none"},
            "builder": {"end_of_turn_token_id": END_OF_TURN},
            "checks": {"pins": pins},
            "server": {"listen": "127.0.0.1:0", "state_dir": root.path().join("state"),
                "callback": {"attempts": 3, "timeout_s": 5.0}},
        });
        let context = ReadContext {
            path: root.path().join("rollout.yaml"),
            default_state_dir: root.path().join("state"),
            pins_path: None,
        };
        // JSON is YAML.
        let (config, warnings) = Config::from_yaml(&yaml.to_string(), &context).expect("a good configuration");
        assert!(warnings.is_empty(), "{warnings:?}");
        for name in ["light", "mute"] {
            let mut known = Agents::default();
            known.add_folder(&agents).expect("two agents");
            let agent = known.find(name).expect("it is there");
            agent::install(agent, &root.path().join("state"), &InstallOptions::default()).expect("installs");
        }
        Self { root, config, engine: Some(engine) }
    }

    pub(crate) fn bwrap(mut self) -> Self {
        self.config.sandbox.backend = gsj_server::config::SandboxBackendName::Bwrap;
        self
    }

    pub(crate) async fn start(&self) -> Api {
        Api::new(self.try_start().await.expect("the server starts"))
    }

    pub(crate) async fn try_start(&self) -> Result<Running, ServerError> {
        Server::start(self.config.clone(), context()).await
    }

    pub(crate) fn kill_engine(&mut self) {
        if let Some(engine) = self.engine.take() {
            engine.abort();
        }
    }

    pub(crate) fn traces(&self) -> Vec<PathBuf> {
        files(self.config.receiver.traces_dir.as_deref().expect("filled in"))
    }

    pub(crate) fn quarantined(&self) -> Vec<PathBuf> {
        files(self.config.receiver.quarantine_dir.as_deref().expect("filled in"))
    }

    pub(crate) fn artifacts(&self, session: &str) -> PathBuf {
        self.config.harness.artifacts_dir.as_deref().expect("filled in").join(session)
    }

    pub(crate) fn sessions_left(&self) -> Vec<PathBuf> {
        files(&self.root.path().join("state/sessions"))
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.kill_engine();
    }
}

pub(crate) fn context() -> Context {
    Context {
        init: PathBuf::from(env!("CARGO_BIN_EXE_gsj-server-init")),
        init_args: Vec::new(),
        clock: Clock::new(SystemTime::now),
        environment: Arc::new(|name| (name == "GSJ_MCP_TOKEN_SECRET").then(|| CANARY.to_owned())),
        agents: Agents::default(),
    }
}

/// A running server and a client for it.
pub(crate) struct Api {
    running: Option<Running>,
    pub(crate) address: SocketAddr,
    pub(crate) client: reqwest::Client,
}

impl Api {
    fn new(running: Running) -> Self {
        let address = running.api_addr;
        let client = reqwest::Client::builder().no_proxy().timeout(PATIENCE).build().expect("a client");
        Self { running: Some(running), address, client }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) async fn get(&self, path: &str) -> (u16, Value) {
        answer(self.client.get(self.url(path))).await
    }

    pub(crate) async fn delete(&self, path: &str) -> (u16, Value) {
        answer(self.client.delete(self.url(path))).await
    }

    pub(crate) async fn submit(&self, body: &Value) -> (u16, Value) {
        answer(self.client.post(self.url("/rollout/task/submit")).json(body)).await
    }

    /// Waits until a task has ended; its status with all results.
    pub(crate) async fn ended(&self, task: &str) -> Value {
        let path = format!("/rollout/task/{task}");
        self.until(&path, |status| status["status"] != "running").await
    }

    /// Asks again until the answer is as wanted.
    pub(crate) async fn until(&self, path: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let asking = async {
            loop {
                let (status, value) = self.get(path).await;
                assert_eq!(status, 200, "{path}: {value}");
                if wanted(&value) {
                    return value;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let found = tokio::time::timeout(PATIENCE, asking).await;
        let last = if found.is_ok() { Value::Null } else { self.get(path).await.1 };
        assert!(found.is_ok(), "{path} stays at: {last}");
        found.expect("what was awaited came in time")
    }

    pub(crate) async fn drain(mut self) {
        let running = self.running.take().expect("runs");
        tokio::time::timeout(PATIENCE, running.drain()).await.expect("drains in time");
    }

    pub(crate) async fn stop(mut self) {
        let running = self.running.take().expect("runs");
        tokio::time::timeout(PATIENCE, running.stop()).await.expect("stops in time");
    }

    /// Ends the server as a crash would.
    pub(crate) fn crash(mut self) {
        drop(self.running.take());
    }
}

async fn answer(request: reqwest::RequestBuilder) -> (u16, Value) {
    let response = request.send().await.expect("an answer");
    let status = response.status().as_u16();
    let text = response.text().await.expect("a body");
    (status, serde_json::from_str(&text).expect(&text))
}

pub(crate) fn task(id: &str, prompt: &str, samples: u32) -> Value {
    json!({
        "task_id": id,
        "instruction": prompt,
        "num_samples": samples,
        "timeout_seconds": 60,
        "agent": {"harness": "light", "model_name": format!("gsj/{MODEL}"), "settings": {"case_id": CASE, "timestep": 2}},
        "metadata": {"prompt_source": "free", "split": "train"},
    })
}

/// A turn of the scripted engine that calls a tool.
pub(crate) fn call(name: &str, arguments: Value) -> Value {
    json!({"content": "I look.", "tool_calls": [{"name": name, "arguments": arguments}]})
}

pub(crate) fn bash(command: &str) -> Value {
    call("bash", json!({"command": command}))
}

/// Every file below a folder, hidden ones too, in order.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(folder)
        .map(|entries| entries.map(|entry| entry.expect("an entry").path()).collect())
        .unwrap_or_default();
    found.sort();
    found
}

/// Whether any file below a folder holds a text.
pub(crate) fn holds(folder: &Path, text: &str) -> Option<PathBuf> {
    for path in files(folder) {
        if path.is_dir() {
            if let Some(found) = holds(&path, text) {
                return Some(found);
            }
        } else if fs::read(&path).is_ok_and(|bytes| bytes.windows(text.len()).any(|part| part == text.as_bytes())) {
            return Some(path);
        }
    }
    None
}

async fn engine(scripts: Value) -> (SocketAddr, JoinHandle<()>) {
    let options = ScriptedOptions::new(scripts.to_string(), tokenizer(), TEMPLATE, EngineKind::Vllm, MODEL);
    let engine = ScriptedEngine::new(options).expect("a good script");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let serving = tokio::spawn(async move {
        axum::serve(listener, engine.router()).await.expect("serves");
    });
    (address, serving)
}

/// One token a byte, and three special ones.
fn tokenizer() -> Vec<u8> {
    let plain = |byte: u32| matches!(byte, 33..=126 | 161..=172 | 174..=255);
    let mut moved = 256..;
    let vocab: BTreeMap<String, u32> = (0..=255)
        .map(|byte| {
            let code = if plain(byte) { byte } else { moved.next().expect("endless") };
            (char::from_u32(code).expect("a character").to_string(), byte)
        })
        .collect();
    let special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"].iter().zip(256..).map(|(text, id)| {
        json!({"id": id, "content": text, "single_word": false, "lstrip": false, "rstrip": false,
            "normalized": false, "special": true})
    });
    let bytes = json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false});
    let model = json!({"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
        "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "vocab": vocab, "merges": []});
    let whole = json!({"version": "1.0", "truncation": null, "padding": null,
        "added_tokens": special.collect::<Vec<_>>(), "normalizer": null, "pre_tokenizer": bytes,
        "post_processor": null, "decoder": bytes, "model": model});
    whole.to_string().into_bytes()
}

/// Pins for the light agent, from what it is made of.
fn pins_of(script: &Path) -> String {
    let prompt = python(&format!(
        "import ast,json\n\
         tree = ast.parse(open({:?}).read())\n\
         print(json.dumps(next(ast.literal_eval(n.value) for n in tree.body \
         if isinstance(n, ast.Assign) and n.targets[0].id == 'SYSTEM')))",
        script.display().to_string()
    ));
    let prompt: String = serde_json::from_str(&prompt).expect("a string");
    let listing = gsj_retrieval::Tools::builtin().expect("the built-in tools").listing();
    let search = listing["tools"]
        .as_array()
        .expect("a list")
        .iter()
        .find(|tool| tool["name"] == "search_case")
        .expect("it is there")
        .clone();
    let function = |name: &str, description: &Value, parameters: Value| {
        json!({"type": "function", "function":
            {"name": name, "description": description, "parameters": parameters, "strict": false}})
    };
    let bash = json!({"type": "object", "required": ["command"],
        "properties": {"command": {"type": "string", "description": "Command for bash"}}});
    let roster = json!([
        function("bash", &json!("Run a bash command in the working directory and read its output."), bash),
        function("mcp_gsj_search_case", &search["description"], declared(&search["inputSchema"])),
    ])
    .to_string();
    let mut ids = vec![257];
    ids.extend("assistant\n".bytes().map(u32::from));
    let mut pins = Derivation::new();
    pins.tokenizer("tokenizer.json", &tokenizer());
    pins.chat_template("template.jinja", TEMPLATE.as_bytes());
    pins.system_prompt("agent.py", &prompt);
    pins.settings("settings", TraceValue::parse(SETTINGS).expect("an object").as_ref()).expect("settings");
    pins.roster("roster", TraceValue::parse(roster.as_bytes()).expect("a list").as_ref()).expect("a roster");
    pins.tail("tail", TAIL, &ids).expect("a tail");
    pins.to_text()
}

/// A schema as the light agent declares it to its model.
fn declared(schema: &Value) -> Value {
    match schema {
        Value::Object(members) => Value::Object(
            members
                .iter()
                .filter(|(name, _)| *name != "title" && *name != "default")
                .map(|(name, value)| (name.clone(), declared(value)))
                .collect::<Map<_, _>>(),
        ),
        Value::Array(items) => items.iter().map(declared).collect(),
        Value::String(text) if text == "integer" => json!("number"),
        other => other.clone(),
    }
}

fn python(program: &str) -> String {
    let output = Command::new("/usr/bin/python3").args(["-c", program]).output().expect("python3 is there");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// A bare repository with three timesteps and, on `main`, all three pages.
fn scaffold(repos: &Path) {
    let work = repos.join("work");
    fs::create_dir_all(work.join("md")).expect("a folder");
    fs::create_dir_all(work.join("out")).expect("a folder");
    fs::write(work.join("out/.gitkeep"), "").expect("a file");
    git(&work, &["init", "-q", "-b", "main"]);
    for page in 1..=3 {
        let text = format!("# Page {page}\n\nThe witness of page {page} saw the wall number{page} being built.\n");
        fs::write(work.join(format!("md/page_{page:04}.md")), text).expect("a page");
        git(&work, &["checkout", "-q", "--orphan", &format!("timestep-{page}")]);
        git(&work, &["add", "-A"]);
        git(&work, &["commit", "-q", "-m", &format!("Pages 1 to {page}")]);
    }
    git(&work, &["branch", "-q", "main"]);
    git(repos, &["clone", "-q", "--bare", "work", &format!("{CASE}.git")]);
    fs::remove_dir_all(work).expect("removes");
}

fn git(folder: &Path, arguments: &[&str]) {
    let output = Command::new("git")
        .current_dir(folder)
        .args(["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"])
        .args(arguments)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("HOME", folder)
        .output()
        .expect("git is there");
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for path in files(from) {
        let target = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).expect("copies");
        }
    }
}
