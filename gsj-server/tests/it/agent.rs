//! Agents from a folder, installed, checked, rendered; and pi itself where it is installed.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use gsj_cutoff::tokens::{self, Claims, Secret};
use gsj_retrieval::{Library, Options, Service, Tools};
use gsj_server::agent::{
    self, Agent, AgentError, AgentManifest, Agents, Depth, InstallOptions, Layout, Outcome, Presence, RenderContext,
    SecretText, Thinking,
};
use serde_json::{Value, json};

const PROBE: &str = r#"
name: probe
version: 1.2.3
about: says what it sees
wire_api: openai-completions
install:
  npm: {package: package.json, lock: package-lock.json, version_file: node_modules/probe/package.json}
  files: [bin/probe.sh, notes.txt]
  programs: [{any_of: [/usr/bin/env], apt: coreutils}]
runtime: {name: shell, version: 9.8.7, command: ["{gsj}/bin/probe.sh", version]}
mounts:
  gsj: {from: files, to: /opt/gsj}
  probe: {from: npm/node_modules/probe, to: /opt/probe}
home: {to: /home/agent/probe, files: {settings.json: "{settings}", model.json: {url: "{model_url}", window: "{context_window}"}}}
settings: {quiet: true}
tools: [look]
retrieval_prefix: mcp_gsj_
command: ["{gsj}/bin/probe.sh", "{tools}", "{thinking}"]
env: {WHERE: "{home}", TOKEN_URL: "{mcp_url}"}
prompt: stdin
outcome: {format: json-lines, message: {/type: end}, stop_reason: /why, success: [stop]}
"#;

/// A folder with the probing agent, a state folder, and an npm that does as told.
struct Probe {
    dir: tempfile::TempDir,
    agents: Agents,
}

impl Probe {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let folder = dir.path().join("agents/probe");
        fs::create_dir_all(folder.join("bin")).expect("made");
        fs::write(folder.join("agent.yaml"), PROBE).expect("written");
        fs::write(folder.join("package.json"), "{}").expect("written");
        fs::write(folder.join("package-lock.json"), "{\"lock\": 1}").expect("written");
        fs::write(folder.join("bin/probe.sh"), "#!/bin/sh\necho v9.8.7\n").expect("written");
        fs::write(folder.join("notes.txt"), "notes\n").expect("written");
        let mut agents = Agents::builtin().expect("builtin agents are valid");
        agents.add_folder(&dir.path().join("agents")).expect("the probing agent is valid");
        Self { dir, agents }
    }

    fn agent(&self) -> &Agent {
        self.agents.find("probe").expect("it is there")
    }

    fn state(&self) -> PathBuf {
        self.dir.path().join("state")
    }

    /// Options with an npm of these lines, which also counts how often it ran.
    fn npm(&self, lines: &str) -> InstallOptions {
        let path = self.dir.path().join("npm");
        let count = self.dir.path().join("count");
        fs::write(&path, format!("#!/bin/sh\necho run >> {}\n{lines}\n", count.display())).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("executable");
        InstallOptions { npm: path, ..InstallOptions::default() }
    }

    fn working_npm(&self) -> InstallOptions {
        self.npm("mkdir -p node_modules/probe && echo '{\"version\": \"1.2.3\"}' > node_modules/probe/package.json && chmod 600 node_modules/probe/package.json")
    }

    fn runs(&self) -> usize {
        fs::read_to_string(self.dir.path().join("count")).map_or(0, |text| text.lines().count())
    }
}

#[test]
fn two_installs_at_once_run_npm_once_and_leave_nothing_half_done() {
    let probe = Probe::new();
    let options = probe.working_npm();
    let install =
        || agent::install(probe.agent(), &probe.state(), &options).map(|installed| installed.dir().to_path_buf());
    let (first, second) = std::thread::scope(|scope| {
        let other = scope.spawn(install);
        (install(), other.join().expect("no panic"))
    });
    assert_eq!(first.expect("installed"), second.expect("installed"));
    assert_eq!(probe.runs(), 1);
    let root = probe.state().join("agents/probe");
    let names: Vec<String> = fs::read_dir(&root)
        .expect("there")
        .map(|entry| entry.expect("read").file_name().to_string_lossy().into_owned())
        .collect();
    assert!(names.iter().all(|name| !name.starts_with(".new-")), "{names:?}");
    assert!(names.contains(&probe.agent().lock_sha256()), "the lock's digest names the folder: {names:?}");

    let identity = agent::verify(probe.agent(), &probe.state()).expect("whole");
    let shown = serde_json::to_value(&identity).expect("plain data");
    assert_eq!(
        shown,
        json!({"name": "probe", "version": "1.2.3", "lock_sha256": probe.agent().lock_sha256(), "shell": "9.8.7",
               "manifest_sha256": probe.agent().manifest_sha256(), "wire_api": "openai-completions"})
    );
}

#[test]
fn a_changed_installation_is_noticed_and_mended() {
    let probe = Probe::new();
    let options = probe.working_npm();
    let installed = agent::install(probe.agent(), &probe.state(), &options).expect("installed");
    let package = installed.dir().join("node_modules/probe/package.json");
    assert_eq!(
        fs::metadata(&package).expect("there").permissions().mode() & 0o777,
        0o644,
        "the sandbox's user can read it"
    );

    fs::write(&package, "{\"version\": \"6.6.6\"}\n").expect("written");
    let error = agent::verify(probe.agent(), &probe.state()).expect_err("the bytes are others");
    assert!(error.to_string().contains("`node_modules/probe/package.json` was changed"), "{error}");
    assert!(
        agent::open(probe.agent(), &probe.state(), Depth::Quick).is_ok(),
        "the size is the same, and nothing was read"
    );

    fs::write(installed.dir().join("extra"), "").expect("written");
    let listed = agent::list(&probe.agents, &probe.state());
    let row = listed.iter().find(|row| row.name == "probe").expect("listed");
    assert_eq!(row.presence, Presence::Damaged("`extra` was added".to_owned()));
    assert_eq!(listed.iter().find(|row| row.name == "pi").expect("listed").presence, Presence::Absent);
    agent::install(probe.agent(), &probe.state(), &options).expect("installed anew");
    assert_eq!(probe.runs(), 2);
    agent::verify(probe.agent(), &probe.state()).expect("whole again");
}

#[test]
fn an_install_that_cannot_be_says_what_is_missing_and_what_npm_said() {
    let probe = Probe::new();
    let install = |options: &InstallOptions| {
        agent::install(probe.agent(), &probe.state(), options).map(|_| ()).expect_err("fails")
    };
    let error = install(&InstallOptions { npm: "/nowhere/npm".into(), ..InstallOptions::default() });
    assert!(error.to_string().contains("apt-get install -y npm"), "{error}");
    let error = install(&probe.npm("echo E404 nothing there >&2; exit 7"));
    assert!(error.to_string().contains("exited with 7") && error.to_string().contains("E404 nothing there"), "{error}");
    let error = install(
        &probe.npm("mkdir -p node_modules/probe && echo '{\"version\": \"1.2.4\"}' > node_modules/probe/package.json"),
    );
    assert!(matches!(error, AgentError::Version { .. }), "{error}");
    let error =
        agent::open(probe.agent(), &probe.state(), Depth::Quick).map(|_| ()).expect_err("nothing was installed");
    assert!(matches!(error, AgentError::NotInstalled { .. }), "{error}");
    let error =
        AgentManifest::from_yaml(&PROBE.replace("/usr/bin/env", "/usr/bin/nothing-of-this-name"), "x").map(|_| ());
    assert!(error.is_ok(), "that a program is missing shows on the machine, not in the manifest");
}

#[test]
fn a_manifest_with_a_mistake_is_refused_with_its_place() {
    for (from, to, expected) in [
        ("prompt: stdin", "prompt: stdin\ncolour: red", "colour"),
        ("{tools}\", ", "{tolls}\", ", "{tolls}"),
        ("from: files,", "from: ../files,", "../files"),
        ("to: /opt/gsj", "to: opt/gsj", "opt/gsj"),
        ("tools: [look]", "tools: [look, look]", "tools"),
        ("wire_api: openai-completions", "wire_api: smoke-signals", "smoke-signals"),
        ("\"{thinking}\"]", "\"{mcp_url}\"]", "token"),
        ("name: probe", "name: Probe", "Probe"),
    ] {
        assert!(PROBE.contains(from), "{from}");
        let error = AgentManifest::from_yaml(&PROBE.replace(from, to), "agents/probe/agent.yaml").expect_err(to);
        let shown = error.to_string();
        assert!(shown.contains(expected) && shown.contains("agents/probe/agent.yaml"), "{to}: {shown}");
    }
}

#[test]
fn rendering_gives_the_paths_of_the_layout_and_keeps_the_token_out_of_sight() {
    let probe = Probe::new();
    let installed = agent::install(probe.agent(), &probe.state(), &probe.working_npm()).expect("installed");
    let url = SecretText::new("http://127.0.0.1:{port:1}/mcp/canary-token");
    let tools = ["look".to_owned(), "mcp_gsj_search_case".to_owned()];
    let mut context = RenderContext {
        model: "m/1",
        model_url: "http://127.0.0.1:{port:0}/v1",
        mcp_url: &url,
        tools: &tools,
        context_window: 4096,
        max_tokens: 64,
        thinking: Thinking::High,
        settings: None,
        prompt: "- {home} @x",
        workdir: "/workspace",
        home_dir: Path::new("/state/sessions/s/agent"),
        layout: Layout::Sandbox,
    };
    let inside = agent::render(&installed, &context).expect("renders");
    assert_eq!(inside.command, ["/opt/gsj/bin/probe.sh", "look,mcp_gsj_search_case", "high"]);
    assert_eq!(inside.stdin, b"- {home} @x");
    assert_eq!(inside.env["WHERE"], "/home/agent/probe");
    assert_eq!(inside.env["TOKEN_URL"], "http://127.0.0.1:{port:1}/mcp/canary-token");
    assert_eq!(inside.settings, json!({"quiet": true}));
    let files: Vec<(&str, Value)> = inside
        .files
        .iter()
        .map(|file| (file.path.as_str(), serde_json::from_slice(&file.bytes).expect("JSON")))
        .collect();
    assert_eq!(
        files,
        [
            ("model.json", json!({"url": "http://127.0.0.1:{port:0}/v1", "window": 4096})),
            ("settings.json", json!({"quiet": true}))
        ]
    );
    let mounts: Vec<(String, bool)> =
        inside.mounts.iter().map(|mount| (mount.target.display().to_string(), mount.writable)).collect();
    assert_eq!(
        mounts,
        [("/opt/gsj".to_owned(), false), ("/opt/probe".to_owned(), false), ("/home/agent/probe".to_owned(), true)]
    );
    assert!(!format!("{inside:?} {context:?}").contains("canary"), "the token must not be shown");

    context.layout = Layout::Host;
    let outside = agent::render(&installed, &context).expect("renders");
    assert!(outside.mounts.is_empty() && Path::new(&outside.command[0]).exists(), "{:?}", outside.command);
    assert_eq!(outside.env["WHERE"], "/state/sessions/s/agent");

    for (tools, expected) in
        [(vec!["look".to_owned(), "rm".to_owned()], "`rm`"), (vec![], "empty"), (vec!["look".to_owned(); 2], "twice")]
    {
        let error = agent::render(&installed, &RenderContext { tools: &tools, ..copy(&context) }).expect_err("refused");
        assert!(error.to_string().contains(expected), "{error}");
    }
    let error = agent::render(&installed, &RenderContext { prompt: " \n", ..copy(&context) }).expect_err("refused");
    assert!(error.to_string().contains("blank"), "{error}");
}

fn copy<'a>(context: &RenderContext<'a>) -> RenderContext<'a> {
    RenderContext { ..*context }
}

/// The state folder in which pi is installed for tests, if it is.
fn state_with_pi(agents: &Agents) -> Option<PathBuf> {
    let pi = agents.find("pi").expect("pi is built in");
    let named = std::env::var_os("GSJ_TEST_STATE").map(PathBuf::from);
    let usual = ["/var/lib/gsj-test", "/var/lib/gsj-dev", "/var/lib/gsj"].map(PathBuf::from);
    named.into_iter().chain(usual).find(|state| agent::open(pi, state, Depth::Quick).is_ok())
}

/// With the reference's declarations, what pi tells the model is what the reference's pi told it.
#[test]
fn pi_offers_the_reference_roster_byte_by_byte() {
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared");
    let agents = Agents::builtin().expect("builtin agents are valid");
    let (Some(state), true) = (state_with_pi(&agents), shared.is_dir()) else {
        eprintln!(
            "SKIPPED: pi_offers_the_reference_roster_byte_by_byte: pi is not installed (gsj agent install pi), or ../shared is not there"
        );
        return;
    };
    let declarations =
        fs::read(shared.join("vectors/retrieval/tools-list.json")).expect("the reference's declarations");
    let request = first_request(&agents, &state, Tools::from_bytes(&declarations).expect("declarations"));
    let captured: Value =
        serde_json::from_slice(&fs::read(shared.join("data/tools.captured.json")).expect("captured")).expect("JSON");
    assert_eq!(request["tools"].to_string(), captured.to_string());
    let tools = gsj_trace::json::Value::parse(request["tools"].to_string().as_bytes()).expect("JSON").into_owned();
    assert_eq!(
        gsj_trace::canonical::canonical_sha256(tools.as_ref()).as_deref(),
        Some("a7a7956b4842b79f8b20448d43bc8225eebe6360c3d1d3979d41c6f9b9948e56")
    );
    let kwargs = json!({"enable_thinking": false, "preserve_thinking": true});
    assert_eq!((&request["stream"], &request["chat_template_kwargs"]), (&json!(true), &kwargs));
}

/// What pi sends first, with this retrieval service, on the host's own paths.
fn first_request(agents: &Agents, state: &Path, tools: Tools) -> Value {
    const ROSTER: &str = "read,ls,grep,find,write,edit,bash,mcp_gsj_search_case,mcp_gsj_search_decisions,mcp_gsj_case_status,mcp_gsj_decision_stats";
    const NOW: i64 = 1_800_000_000;
    let installed = agent::open(agents.find("pi").expect("built in"), state, Depth::Quick).expect("installed");
    let secret = || Secret::new(vec![7; 32]).expect("long enough");
    let claims = Claims { case_id: "c".to_owned(), timestep: 1, episode_id: "e".to_owned(), exp: NOW + 60 };
    let token = tokens::mint(&claims, &secret()).expect("minted");
    let library = Library::from_pages([("c".to_owned(), vec!["one page".to_owned()])].into()).expect("a library");
    let service = Service::new(library, tools, vec![secret()], Options::new(Arc::new(|| NOW)));

    let seen = Arc::new(Mutex::new(Value::Null));
    let keep = Arc::clone(&seen);
    let chat = axum::routing::post(move |body: axum::body::Bytes| {
        *keep.lock().expect("not poisoned") = serde_json::from_slice(&body).expect("pi sends JSON");
        let chunk = json!({"id": "1", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": "Done."}, "finish_reason": "stop"}]});
        std::future::ready(([("content-type", "text/event-stream")], format!("data: {chunk}\n\ndata: [DONE]\n\n")))
    });
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).expect("a port");
    let address = listener.local_addr().expect("bound");
    runtime.spawn(axum::serve(listener, service.router().route("/v1/chat/completions", chat)).into_future());

    let work = tempfile::tempdir().expect("a temporary folder");
    let tools: Vec<String> = ROSTER.split(',').map(str::to_owned).collect();
    let rendered = agent::render(
        &installed,
        &RenderContext {
            model: "Qwen/Qwen3-0.6B",
            model_url: &format!("http://{address}/v1"),
            mcp_url: &SecretText::new(format!("http://{address}/mcp/{token}")),
            tools: &tools,
            context_window: 32_768,
            max_tokens: 8192,
            thinking: Thinking::Off,
            settings: None,
            prompt: "- begins with a dash",
            workdir: &work.path().display().to_string(),
            home_dir: work.path(),
            layout: Layout::Host,
        },
    )
    .expect("renders");
    for file in &rendered.files {
        fs::write(work.path().join(&file.path), &file.bytes).expect("written");
    }
    let prompt = work.path().join("prompt");
    fs::write(&prompt, &rendered.stdin).expect("written");
    let output = Command::new("/usr/bin/timeout")
        .arg("120")
        .args(&rendered.command)
        .env_clear()
        .envs(&rendered.env)
        .current_dir(&rendered.cwd)
        .stdin(Stdio::from(fs::File::open(prompt).expect("there")))
        .output()
        .expect("timeout starts");
    let outcome = installed.manifest().judge(&output.stdout);
    assert_eq!(
        outcome,
        Outcome::Success { stop_reason: "stop".to_owned() },
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    seen.lock().expect("not poisoned").take()
}
