//! A server that keeps the splits apart, and what passes it.

use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};

use crate::support::{Estate, Process, fixture, gsj, http, output, scripted_engine, text};

fn submit(config: &Path, server: &Process, more: &[&str]) -> Output {
    let mut command = gsj();
    command.args(["submit", "--format", "json", "--server", &server.url, "--config"]).arg(config);
    output(command.args(more))
}

/// One case of each split, with the first timestep of each.
fn cases(estate: &Estate) -> Vec<(String, String, String)> {
    let lock = std::fs::read(estate.path("corpus/corpus.lock.json")).unwrap();
    let lock: Value = serde_json::from_slice(&lock).unwrap();
    let of = |split: &str| {
        let (case, facts) =
            lock["cases"].as_object().unwrap().iter().find(|(_, facts)| facts["split"] == split).unwrap();
        let timestep = facts["timesteps"].as_object().unwrap().keys().next().unwrap();
        (case.clone(), timestep.clone(), split.to_owned())
    };
    vec![of("train"), of("eval")]
}

#[test]
fn only_tasks_that_state_their_cases_split_pass_and_eval_cases_where_they_are_wanted() {
    let estate = Estate::new();
    estate.install("light");
    let engine = scripted_engine(&fixture("scripts/two-turns.json"), &[]);
    let config = estate.configure(&engine.url, "light", |config| {
        config["estate"]["split_wall"] = json!(true);
        config["estate"]["lock"] = json!("corpus/corpus.lock.json");
    });
    let cases = cases(&estate);
    for evaluation in [false, true] {
        let mut command = gsj();
        command.args(["serve", "--config"]).arg(&config).args(evaluation.then_some("--evaluation"));
        let server = Process::start(&mut command);
        for (case, timestep, split) in &cases {
            for stated in [None, Some("train"), Some("eval")] {
                let mut args = vec!["--case", case, "--timestep", timestep, "--prompt", "Summarise the case."];
                args.extend(stated.iter().flat_map(|stated| ["--split", stated]));
                let ran = submit(&config, &server, &args);
                let passes = stated == Some(split) && (split == "train" || evaluation);
                let wanted = if passes { Some(0) } else { Some(3) };
                assert_eq!(ran.status.code(), wanted, "{case} {stated:?} {evaluation}: {}", text(&ran));
                if !passes {
                    assert!(text(&ran).contains("split"), "it says what was missing: {}", text(&ran));
                }
            }
        }
        // Whoever speaks HTTP alone meets the same wall.
        let body = json!({"task_id": "bare", "instruction": "Read.",
            "agent": {"harness": "light", "settings": {"case_id": cases[1].0, "timestep": 1}}});
        let (code, answer) = http(&format!("{}/rollout/task/submit", server.url), "POST", Some(&body));
        assert_eq!((code, &answer["detail"][0]["loc"]), (422, &json!(["body", "metadata", "split"])), "{answer}");
    }
}

#[test]
fn a_wall_without_a_lock_is_a_fault_of_the_configuration() {
    let estate = Estate::new();
    estate.install("light");
    let serve = |lock: Option<&str>| {
        let config = estate.configure("http://127.0.0.1:9", "light", |config| {
            config["estate"]["split_wall"] = json!(true);
            if let Some(lock) = lock {
                config["estate"]["lock"] = json!(lock);
            }
        });
        output(gsj().args(["serve", "--config"]).arg(&config))
    };
    for (lock, wanted) in [(None, "estate.lock` is missing"), (Some("nowhere.json"), "nowhere.json` cannot be used")] {
        let ran = serve(lock);
        assert_eq!(ran.status.code(), Some(2), "{}", text(&ran));
        assert!(text(&ran).contains(wanted), "{}", text(&ran));
    }
}
