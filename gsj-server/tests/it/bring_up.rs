//! The one episode before there are pins, and that nothing of it is ever delivered.

use std::fs;

use gsj_pins::derive::Derivation;
use gsj_server::{BringUp, BringUpError, bring_up};
use serde_json::{Value, json};

use crate::support::{Bench, CANARY, CASE, bash, context, files, holds, task};

fn scripts() -> Value {
    json!({"scripts": {"Summarise": [{"content": "Done."}]}, "default": [bash("ls md; sleep 60"), {"content": "No."}]})
}

fn wanted(bench: &Bench) -> BringUp {
    let folder = bench.root.path().join("bring-up");
    BringUp { case_id: CASE.to_owned(), timestep: 2, split: Some("train".to_owned()), folder }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_call_is_captured_without_pins_and_nothing_is_delivered() {
    let mut bench = Bench::new(scripts()).await.bwrap();
    let pins = bench.config.checks.pins.clone().expect("a path");
    let tail = fs::read(&pins).expect("the bench's own pins");
    fs::remove_file(&pins).expect("removes");
    let made = bring_up(bench.config.clone(), context(), &wanted(&bench)).await.expect("an episode");
    let log = fs::read_to_string(&made.log).expect("a log");
    assert_eq!(log.lines().count(), 1, "no second call was taken");
    assert_eq!(made.finish_reason.as_deref(), Some("length"), "the answer is cut short; the request is what counts");
    assert!(made.prompt_ids.len() > 100 && made.sampled_ids.len() > 5, "{made:?}");
    let record: Value = serde_json::from_str(&log).expect("JSON");
    assert_eq!(record["metadata"]["gsj_bring_up"], true);

    let result = fs::read(&made.result).expect("a result");
    let told: Value = serde_json::from_slice(&result).expect("JSON");
    assert_eq!((&told["status"], &told["metadata"]["gsj_bring_up"]), (&json!("BRING_UP"), &json!(true)));
    assert_eq!(told["trajectory"]["traces"], json!([]));
    let strict = gsj_pins::Pins::from_bytes("own", tail);
    for profile in [gsj_checks::Profile::Strict, gsj_checks::Profile::Reference] {
        let policy = gsj_checks::Policy { profile, ..gsj_checks::Policy::default() };
        let verdict = gsj_checks::validate(&result, &strict, &policy).expect("a verdict");
        assert!(!verdict.findings.is_empty(), "{profile:?} must not accept it");
    }
    assert!(Derivation::new().from_trace("it", &result, None).is_err(), "no pins come from it as from a trace");
    for folder in [&bench.config.receiver.traces_dir, &bench.config.receiver.quarantine_dir] {
        assert!(!folder.as_ref().expect("filled in").exists(), "{folder:?}");
    }
    assert_eq!(files(&bench.root.path().join("bring-up/sessions")), Vec::<std::path::PathBuf>::new());
    assert_eq!(holds(bench.root.path(), CANARY), None, "the secret is in no file");

    // What it shows is what the agent sends: with these pins a trace is accepted.
    let mut derived = Derivation::new();
    derived.from_record("session.log:1", log.trim_end().as_bytes()).expect("roster, prompt and settings");
    let mut ids = vec![257];
    ids.extend("assistant\n".bytes().map(u32::from));
    assert!(made.prompt_ids.ends_with(&ids), "the prompt ends as the template writes it");
    derived.tail("template", "<|im_start|>assistant\n", &ids).expect("a tail");
    fs::write(&pins, derived.to_text()).expect("pins");
    bench.config.builder.tokenizer = None;
    let api = bench.start().await;
    let (code, told) = api.submit(&task("t", "Summarise the case.", 1)).await;
    assert_eq!(code, 200, "{told}");
    api.ended("t").await;
    assert_eq!(bench.traces().len(), 1, "{:?}", bench.quarantined());
    let (_, listed) = api.get("/tasks").await;
    assert!(!listed.to_string().contains("bring-up"), "no API knows of it: {listed}");

    // And once more, while that server runs.
    let again = bring_up(bench.config.clone(), context(), &wanted(&bench)).await.expect("another");
    assert_ne!(again.session, made.session);
    let first = |log: &std::path::Path| -> Value {
        serde_json::from_str(fs::read_to_string(log).expect("a log").lines().next().expect("a line")).expect("JSON")
    };
    assert_eq!(first(&again.log)["request"]["messages"][0], record["request"]["messages"][0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_stands_in_its_way_is_said() {
    let mut bench = Bench::new(scripts()).await;
    bench.kill_engine();
    let error = bring_up(bench.config.clone(), context(), &wanted(&bench)).await.expect_err("no engine");
    let BringUpError::Episode { reason, folder } = error else { panic!("{error:?}") };
    assert!(reason.contains("the engine at http://"), "{reason}");
    assert!(folder.join("session.log").is_file(), "a person can look");

    let late = BringUp { timestep: 9, ..wanted(&bench) };
    let error = bring_up(bench.config.clone(), context(), &late).await.expect_err("no such page");
    assert!(matches!(&error, BringUpError::Episode { reason, .. } if reason.contains("timestep-9")), "{error}");
    bench.config.harness.agent = "mute".to_owned();
    let error = bring_up(bench.config.clone(), context(), &wanted(&bench)).await.expect_err("says nothing");
    assert!(matches!(&error, BringUpError::Episode { reason, .. } if reason.contains("nothing to say")), "{error}");
}
