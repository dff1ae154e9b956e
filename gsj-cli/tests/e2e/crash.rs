//! What is left when something is killed in mid-episode: nothing.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::serve::first_timestep;
use crate::support::{Estate, Process, fixture, get, http, scripted_engine, send, until};

struct Scene {
    estate: Estate,
    engine: Option<Process>,
    config: PathBuf,
}

impl Scene {
    /// An estate whose engine takes so long that the episode is surely under way.
    fn new() -> Self {
        let estate = Estate::new();
        estate.install("light");
        let engine = scripted_engine(&fixture("scripts/two-turns.json"), &["--latency-ms", "60000"]);
        let config = estate.configure(&engine.url, "light", |config| {
            config["engine"]["retries"] = json!(0);
            config["workers"] = json!({"init": 1, "run": 1, "post": 1});
        });
        Self { estate, engine: Some(engine), config }
    }

    fn submit(server: &Process, episodes: u32) {
        let task = json!({
            "task_id": "t", "instruction": "Summarise the case.", "num_samples": episodes, "timeout_seconds": 120,
            "agent": {"harness": "light", "settings": {"case_id": "harbor-lease", "timestep": first_timestep()}},
            "metadata": {"case_id": "harbor-lease", "timestep": first_timestep(), "prompt_source": "free"},
        });
        let (status, answer) = http(&format!("{}/rollout/task/submit", server.url), "POST", Some(&task));
        assert_eq!(status, 200, "{answer}");
    }

    /// Waits until the agent has asked its model something.
    fn under_way(&self, server: &Process) -> Agent {
        let engine = self.engine.as_ref().unwrap();
        until("the first model call", Duration::from_secs(60), || {
            let seen = get(&format!("{}/requests", engine.url));
            seen.as_array().is_some_and(|all| all.iter().any(|r| r["path"] == "/v1/chat/completions")).then_some(())
        });
        let id = until("the agent's process", Duration::from_secs(10), || agent_below(server.id()));
        let agent = Agent { id, processes: namespace(id, "pid").unwrap(), mounts: namespace(id, "mnt").unwrap() };
        assert!(agent.inhabitants().contains(&id), "the sandbox is seen while it is there");
        agent
    }
}

/// The id of an agent's process that descends from `ancestor`.
fn agent_below(ancestor: u32) -> Option<u32> {
    let mut of = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(id) = entry.file_name().to_string_lossy().parse::<u32>() else { continue };
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let parent = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse::<u32>().ok());
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        of.push((id, parent.unwrap_or(0), String::from_utf8_lossy(&line).contains("agent.py")));
    }
    of.iter().filter(|(_, _, agent)| *agent).map(|(id, _, _)| *id).find(|id| {
        let mut at = *id;
        while let Some((_, parent, _)) = of.iter().find(|(other, _, _)| *other == at) {
            if *parent == ancestor {
                return true;
            }
            at = *parent;
        }
        false
    })
}

/// An agent's process and the namespaces of its sandbox.
struct Agent {
    id: u32,
    processes: PathBuf,
    mounts: PathBuf,
}

impl Agent {
    /// The processes in either namespace of the sandbox. A mount namespace, and every mount in it, lives as long as
    /// one of them.
    fn inhabitants(&self) -> Vec<u32> {
        let all = std::fs::read_dir("/proc").unwrap().flatten();
        all.filter_map(|entry| entry.file_name().to_string_lossy().parse::<u32>().ok())
            .filter(|id| {
                namespace(*id, "pid").is_some_and(|ns| ns == self.processes)
                    || namespace(*id, "mnt").is_some_and(|ns| ns == self.mounts)
            })
            .collect()
    }
}

/// Which namespace of a kind a process is in.
fn namespace(id: u32, kind: &str) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/{id}/ns/{kind}")).ok()
}

/// Nobody is left in the sandbox's namespaces, and no mount of the estate is seen from outside.
fn nothing_left(estate: &Estate, agent: &Agent) {
    until("every process of the sandbox to be gone", Duration::from_secs(15), || {
        agent.inhabitants().is_empty().then_some(())
    });
    let home = estate.home.path().to_str().unwrap();
    assert!(!std::fs::read_to_string("/proc/self/mountinfo").unwrap().contains(home), "no mount is left");
}

fn kill(id: u32) {
    assert!(send(id, Signal::KILL), "the agent is there to be killed");
}

fn ended(server: &Process) -> Value {
    until("the task to end", Duration::from_secs(60), || {
        let status = get(&format!("{}/rollout/task/t", server.url));
        (status["status"] != "running").then_some(status)
    })
}

#[test]
fn a_killed_agent_ends_its_session() {
    let scene = Scene::new();
    let server = scene.estate.serve(&scene.config);
    Scene::submit(&server, 1);
    let agent = scene.under_way(&server);
    kill(agent.id);
    let result = ended(&server)["results"][0].clone();
    assert_eq!(result["status"], "ERROR");
    assert!(!result["error"].as_str().unwrap().is_empty(), "it says why");
    nothing_left(&scene.estate, &agent);
}

#[test]
fn a_killed_engine_ends_the_session_by_name() {
    let mut scene = Scene::new();
    let server = scene.estate.serve(&scene.config);
    Scene::submit(&server, 1);
    let agent = scene.under_way(&server);
    let engine = scene.engine.take().unwrap();
    let url = engine.url.clone();
    drop(engine);
    let result = ended(&server)["results"][0].clone();
    assert_eq!(result["status"], "ERROR");
    assert!(result["error"].as_str().unwrap().contains(&url), "{}", result["error"]);
    nothing_left(&scene.estate, &agent);
}

#[test]
fn a_killed_server_leaves_nothing_and_the_next_says_what_became_of_each_session() {
    let scene = Scene::new();
    let mut server = scene.estate.serve(&scene.config);
    Scene::submit(&server, 2);
    let agent = scene.under_way(&server);
    server.signal(Signal::KILL);
    server.wait();
    nothing_left(&scene.estate, &agent);

    // An engine that answers at once, for the session that had not begun.
    let quick = scripted_engine(&fixture("scripts/two-turns.json"), &[]);
    let config = scene.estate.configure(&quick.url, "light", |_| {});
    let server = scene.estate.serve(&config);
    let status = ended(&server);
    let results = status["results"].as_array().unwrap();
    assert_eq!(results.len(), 2, "each session has its result: {status}");
    let interrupted: Vec<&Value> = results.iter().filter(|r| r["status"] == "ERROR").collect();
    let why = |result: &Value| result["error"].as_str().unwrap_or_default().to_owned();
    assert!(interrupted.iter().any(|r| why(r).contains("RUNNING")), "the one that ran: {status}");
    assert!(interrupted.iter().all(|r| why(r).starts_with("interrupted")), "{status}");
    let whole = results.iter().filter(|r| r["status"] == "COMPLETED").count();
    assert_eq!(whole + interrupted.len(), 2, "the other ran on, or says how far it was");
    half_written(scene.estate.home.path());
}

/// No temporary file is left, and every stored result is whole JSON.
fn half_written(folder: &Path) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if entry.file_type().unwrap().is_dir() {
            half_written(&path);
            continue;
        }
        let name = entry.file_name().to_string_lossy().into_owned();
        assert!(!name.ends_with(".tmp") && !name.contains(".tmp."), "{} is left", path.display());
        if name.ends_with(".json") && (folder.ends_with("traces") || folder.ends_with("quarantine")) {
            let whole: Result<Value, _> = serde_json::from_slice(&std::fs::read(&path).unwrap());
            assert!(whole.is_ok(), "{} is whole", path.display());
        }
    }
}
