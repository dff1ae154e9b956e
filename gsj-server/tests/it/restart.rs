//! A server that ends without warning loses nothing that it called stored, and tells what became of the rest.

use std::fs;

use serde_json::{Value, json};

use crate::support::{Bench, bash, copy, files, task};

/// A change that makes a configuration unusable.
type Change<'a> = &'a dyn Fn(&mut gsj_server::config::Config);

fn scripts() -> Value {
    json!({"scripts": {"Hang": [bash("sleep 600")]}, "default": [{"content": "Done."}]})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_crash_what_ran_is_interrupted_and_what_waited_runs() {
    let mut bench = Bench::new(scripts()).await.bwrap();
    (bench.config.workers.init, bench.config.workers.run, bench.config.workers.post) = (1, 1, 1);
    let api = bench.start().await;
    api.submit(&task("done", "Hello.", 1)).await;
    let done = api.ended("done").await;
    api.submit(&task("hang", "Hang on.", 1)).await;
    api.until("/tasks/hang/sessions", |sessions| sessions["sessions"][0]["status"] == "RUNNING").await;
    // Past the first call, so that the record holds something.
    let session =
        api.get("/tasks/hang/sessions").await.1["sessions"][0]["session_id"].as_str().expect("an id").to_owned();
    let log = bench.artifacts(&session).join("session.log");
    for _ in 0..3000 {
        if fs::metadata(&log).is_ok_and(|found| found.len() > 0) {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    for number in 0..4 {
        api.submit(&task(&format!("wait-{number}"), "Hello.", 1)).await;
    }
    api.crash();
    let traces = bench.config.receiver.traces_dir.clone().expect("filled in");
    fs::write(traces.join(".ses_x.thinking-off.json.unfinished"), "{").expect("a leftover");

    let api = bench.start().await;
    let hang = api.ended("hang").await;
    let result = &hang["results"][0];
    assert_eq!(result["error"], "interrupted: the server stopped while the session was RUNNING");
    assert_eq!(result["trajectory"]["traces"].as_array().map(Vec::len), Some(1), "its record was kept and read");
    assert_eq!(api.ended("done").await, done, "an ended task is answered as before");
    for number in 0..4 {
        let waited = api.ended(&format!("wait-{number}")).await;
        let result = &waited["results"][0];
        let interrupted = result["error"].as_str().is_some_and(|error| error.starts_with("interrupted: "));
        assert!(result["status"] == "COMPLETED" || interrupted, "{result}");
    }
    let last = api.ended("wait-3").await;
    assert_eq!(last["results"][0]["status"], "COMPLETED", "what nobody had taken runs on");
    api.drain().await;
    assert!(bench.sessions_left().is_empty());
    assert!(files(&traces).iter().all(|path| !path.display().to_string().contains("unfinished")));
    assert!(files(&bench.root.path().join("state/run")).is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_result_that_was_written_but_not_recorded_is_taken_over_once() {
    let bench = Bench::new(scripts()).await;
    let api = bench.start().await;
    api.submit(&task("t", "Hello.", 1)).await;
    let before = api.ended("t").await;
    api.drain().await;
    // As if the server had been killed between writing the file and recording the end.
    let store = rusqlite::Connection::open(bench.root.path().join("state/gsj.sqlite")).expect("opens");
    store.execute("UPDATE sessions SET state = 'BUILDING', result_path = NULL", []).expect("updates");
    store.execute("UPDATE runs SET status = 'running'", []).expect("updates");
    drop(store);
    let api = bench.start().await;
    assert_eq!(api.ended("t").await, before, "the very result, and no second one");
    api.drain().await;
    assert_eq!(bench.traces().len() + bench.quarantined().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_state_folder_has_one_server() {
    let bench = Bench::new(scripts()).await;
    let api = bench.start().await;
    let error = bench.try_start().await.expect_err("a second one");
    assert!(error.to_string().contains("is in use by another gsj"), "{error}");
    api.drain().await;
    bench.start().await.drain().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_session_will_need_is_checked_before_anything_starts() {
    let bench = Bench::new(scripts()).await;
    let root = bench.root.path();
    let (elsewhere, damaged) = (root.join("elsewhere"), root.join("damaged"));
    let install = format!("run `gsj agent install light --state {}`", elsewhere.display());
    copy(&root.join("state/agents"), &damaged.join("agents"));
    for folder in files(&damaged.join("agents/light")).iter().filter(|path| path.is_dir()) {
        fs::write(folder.join("extra"), "").expect("adds a file");
    }
    let table: [(&str, Change<'_>, &str); 8] = [
        ("pins", &|config| config.checks.pins = Some(root.join("nowhere.json")), "pins file"),
        (
            "secret",
            &|config| config.estate.token_secret_env = "NO_SUCH".to_owned(),
            "`NO_SUCH` (estate.token_secret_env)",
        ),
        ("unknown agent", &|config| config.harness.agent = "foo".to_owned(), "name one of light, mute"),
        ("agent", &|config| config.harness.installed_in = Some(elsewhere.clone()), &install),
        ("damaged agent", &|config| config.harness.installed_in = Some(damaged.clone()), "delete `"),
        ("cases", &|config| config.estate.cases = Some(vec!["x".to_owned()]), "case `x` has no repository"),
        ("scheme", &|config| config.estate.clone_url_for = "ftp://git/{case_id}.git".to_owned(), "file:///"),
        (
            "a host that lists nothing",
            &|config| config.estate.clone_url_for = "http://git/{case_id}.git".to_owned(),
            "list the cases in `estate.cases`",
        ),
    ];
    for (name, change, wanted) in table {
        let mut config = bench.config.clone();
        change(&mut config);
        let error = gsj_server::Server::start(config, crate::support::context()).await.expect_err(name);
        assert!(error.to_string().contains(wanted), "{name}: {error}");
    }
}
