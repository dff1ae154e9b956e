//! Task banks: made, looked into, compared and submitted.

use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::{Value, json};

use crate::support::{Estate, Process, fixture, gsj, output, scripted_engine, text};

fn estate(args: &[&str], paths: &[&Path]) -> Output {
    let mut command = gsj();
    command.arg("estate").args(args).args(paths);
    output(&mut command)
}

fn lines(output: &Output) -> Vec<Value> {
    String::from_utf8_lossy(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn with_bank() -> (Estate, PathBuf) {
    let estate_folder = Estate::new();
    let made = estate(&["taskbank", "--format", "json", "--corpus"], &[&estate_folder.path("corpus")]);
    assert_eq!(made.status.code(), Some(0), "{}", text(&made));
    let bank = estate_folder.path("corpus/taskbank.parquet");
    assert!(bank.is_file());
    (estate_folder, bank)
}

#[test]
fn a_bank_is_made_shown_and_compared() {
    let (folder, bank) = with_bank();
    let corpus = folder.path("corpus");
    let again = estate(&["taskbank", "--format", "human", "--corpus"], &[&corpus]);
    let said = text(&again);
    assert!(said.starts_with("unchanged ") && said.contains(" train and "), "{said}");

    let shown = estate(&["bank", "show", "--format", "json"], &[&bank]);
    assert_eq!(shown.status.code(), Some(0), "{}", text(&shown));
    let facts = &lines(&shown)[0];
    let rows = facts["rows"].as_u64().unwrap();
    assert_eq!(facts["train"].as_u64().unwrap() + facts["eval"].as_u64().unwrap(), rows);
    assert!(facts["train"].as_u64() > Some(0) && facts["eval"].as_u64() > Some(0), "the fixtures have both: {facts}");
    assert_eq!((&facts["ordered"], &facts["compression"]), (&json!(true), &json!(["snappy"])));
    let lock: Value = serde_json::from_slice(&std::fs::read(corpus.join("corpus.lock.json")).unwrap()).unwrap();
    for name in ["rows", "train", "eval"] {
        assert_eq!(lock["taskbank"][name], facts[name], "{name}");
    }
    let human = text(&estate(&["bank", "show", "--format", "human"], &[&bank]));
    for part in ["tasks ", "cases ", "prompts ", "images ", "row group, compression snappy, by gsj-tables"] {
        assert!(human.contains(part), "{part}: {human}");
    }

    let first = lines(&estate(&["bank", "head", "--format", "json", "-n", "1"], &[&bank]));
    assert_eq!(first.len(), 1);
    assert_eq!(first[0]["row"], 0);
    let last = (rows - 1).to_string();
    let rest = estate(&["bank", "head", "--format", "json", "--from", &last, "-n", "9"], &[&bank]);
    assert_eq!(lines(&rest).len(), 1, "{}", text(&rest));
    let human = text(&estate(&["bank", "head", "--format", "human", "-n", "2"], &[&bank]));
    assert!(human.contains(first[0]["case_id"].as_str().unwrap()), "{human}");
    let beyond = estate(&["bank", "head", "--from", "9999"], &[&bank]);
    assert_eq!(beyond.status.code(), Some(2));
    assert!(text(&beyond).contains(&format!("has {rows} rows")), "{}", text(&beyond));

    let same = estate(&["bank", "diff", "--format", "human"], &[&bank, &bank]);
    assert_eq!((same.status.code(), text(&same).trim_end()), (Some(0), &*format!("equal: the same {rows} tasks")));
    let eval = folder.path("eval.parquet");
    let made = output(
        gsj()
            .args(["estate", "taskbank", "--format", "json", "--split", "eval", "--corpus"])
            .arg(&corpus)
            .arg("--out")
            .arg(&eval),
    );
    assert_eq!(made.status.code(), Some(0), "{}", text(&made));
    assert_eq!((&lines(&made)[0]["train"], &lines(&made)[0]["eval"]), (&json!(0), &facts["eval"]));
    let differ = estate(&["bank", "diff", "--format", "json"], &[&bank, &eval]);
    assert_eq!(differ.status.code(), Some(1));
    let changes = lines(&differ);
    assert_eq!(changes.len() as u64, facts["train"].as_u64().unwrap());
    assert!(changes.iter().all(|change| change["change"] == "removed"), "{changes:?}");
}

#[test]
fn what_cannot_be_a_bank_is_refused_with_what_to_do() {
    let (folder, bank) = with_bank();
    let corpus = folder.path("corpus");
    let refused = |args: &[&str], paths: &[&Path], wanted: &str| {
        let ran = estate(args, paths);
        assert_eq!(ran.status.code(), Some(2), "{args:?}: {}", text(&ran));
        assert!(ran.stdout.is_empty() && text(&ran).contains(wanted), "{args:?}: {}", text(&ran));
    };
    refused(&["taskbank", "--only", "a", "--corpus"], &[&corpus], "a task bank of some cases must never exist");
    refused(&["taskbank", "--split", "eval", "--corpus"], &[&corpus], "--out");
    let inside = corpus.join("eval.parquet");
    refused(
        &["taskbank", "--split", "eval", "--out", inside.to_str().unwrap(), "--corpus"],
        &[&corpus],
        "in the corpus folder only the whole bank may stand",
    );
    assert!(!inside.exists());

    let bytes = std::fs::read(&bank).unwrap();
    let odd = folder.path("odd.parquet");
    for action in ["show", "head"] {
        std::fs::write(&odd, &bytes[..bytes.len() / 2]).unwrap();
        refused(&["bank", action], &[&odd], "is damaged: it does not end with PAR1");
        std::fs::write(&odd, "case_id,timestep\n").unwrap();
        refused(&["bank", action], &[&odd], "is no Parquet file: it does not begin with PAR1");
    }
    refused(&["bank", "diff"], &[&bank, &odd], "is no Parquet file");
    refused(&["bank", "show"], &[&folder.path("none.parquet")], "caused by: No such file");

    // No lock, then one of another state.
    std::fs::rename(corpus.join("corpus.lock.json"), folder.path("lock")).unwrap();
    refused(&["taskbank", "--corpus"], &[&corpus], "has no corpus.lock.json; `gsj estate scaffold` writes it");
    let dry = estate(&["taskbank", "--dry-run", "--format", "json", "--corpus"], &[&corpus]);
    assert_eq!((dry.status.code(), &lines(&dry)[0]["sha256"]), (Some(0), &Value::Null), "{}", text(&dry));
    let mut lock: Value = serde_json::from_slice(&std::fs::read(folder.path("lock")).unwrap()).unwrap();
    lock["cases"].as_object_mut().unwrap().remove("harbor-lease");
    std::fs::write(corpus.join("corpus.lock.json"), lock.to_string()).unwrap();
    refused(&["taskbank", "--corpus"], &[&corpus], "of another state of the corpus: harbor-lease is not in it");

    std::fs::write(corpus.join("stray.txt"), "x").unwrap();
    let invalid = estate(&["taskbank", "--format", "human", "--corpus"], &[&corpus]);
    assert_eq!(invalid.status.code(), Some(1));
    assert!(text(&invalid).contains("stray.txt"), "{}", text(&invalid));
}

fn submit(config: &Path, server: &Process, bank: &Path, more: &[&str]) -> Output {
    let mut command = gsj();
    command.args(["submit", "--format", "json", "--server", &server.url, "--config"]).arg(config);
    output(command.arg("--from-bank").arg(bank).args(more))
}

#[test]
fn rows_of_a_bank_are_submitted_and_collected() {
    let (folder, bank) = with_bank();
    folder.install("light");
    let engine = scripted_engine(&fixture("scripts/two-turns.json"), &[]);
    let config = folder.configure(&engine.url, "light", |_| {});
    let server = folder.serve(&config);
    let rows = lines(&estate(&["bank", "head", "--format", "json", "-n", "1000"], &[&bank]));
    let results = folder.path("results");
    let out = results.to_str().unwrap();

    let both = submit(&config, &server, &bank, &["--all"]);
    assert_eq!(both.status.code(), Some(2));
    assert!(
        text(&both).contains("holds both splits") && text(&both).contains("--split train, or --split eval"),
        "{}",
        text(&both)
    );
    for (args, wanted) in [
        (&[][..], "--row N, --rows A..B, or --all"),
        (&["--row", "9999"][..], "row 9999 is not there"),
        (&["--rows", "3..1"][..], "the first one smaller"),
        (&["--row", "0", "--case", "harbor-lease"][..], "cannot be used with"),
        (&["--row", "0", "--export", "jsonl"][..], "--out"),
    ] {
        let ran = submit(&config, &server, &bank, args);
        assert_eq!(ran.status.code(), Some(2), "{args:?}: {}", text(&ran));
        assert!(text(&ran).contains(wanted), "{args:?}: {}", text(&ran));
    }

    let eval: Vec<&Value> = rows.iter().filter(|row| row["split"] == "eval").collect();
    let all = ["--all", "--split", "eval", "--task-id", "nightly", "--out", out];
    let ran = submit(&config, &server, &bank, &all);
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran));
    let mut said = lines(&ran);
    assert_eq!(said.len(), eval.len());
    said.sort_by_key(|line| line["task_id"].to_string());
    let mut wanted: Vec<String> = eval
        .iter()
        .map(|row| {
            format!(
                "nightly.{}.{}.{}",
                row["case_id"].as_str().unwrap(),
                row["timestep"],
                row["prompt_id"].as_str().unwrap()
            )
        })
        .collect();
    wanted.sort();
    assert_eq!(said.iter().map(|line| line["task_id"].as_str().unwrap()).collect::<Vec<_>>(), wanted);
    assert!(said.iter().all(|line| line["status"] == "accepted"), "{said:?}");
    let stored: Value = serde_json::from_slice(&std::fs::read(said[0]["path"].as_str().unwrap()).unwrap()).unwrap();
    let row = eval
        .iter()
        .find(|row| row["prompt_id"] == said[0]["prompt_id"] && row["timestep"] == said[0]["timestep"])
        .unwrap();
    let metadata = &stored["trajectory"]["traces"][0]["metadata"];
    for name in ["case_id", "timestep", "split", "prompt_source", "prompt_id"] {
        assert_eq!(metadata[name], row[name], "{name}");
    }
    let asked = row["prompt_text"].as_str().or(row["skill_card_text"].as_str()).unwrap();
    let messages = stored["trajectory"]["traces"][0]["prompt_messages"].to_string();
    assert!(
        messages.contains(&json!(asked).to_string()[1..asked.len().min(40)]),
        "the agent was asked that: {messages}"
    );

    // The same again collects the same sessions and runs none anew.
    let again = submit(&config, &server, &bank, &[&all[..], &["--export", "jsonl"]].concat());
    assert_eq!(again.status.code(), Some(0), "{}", text(&again));
    let sessions = |lines: &[Value]| {
        let mut all: Vec<String> = lines.iter().map(|line| line["session_id"].as_str().unwrap().to_owned()).collect();
        all.sort();
        all
    };
    assert_eq!(sessions(&lines(&again)), sessions(&said));
    let exported = std::fs::read_to_string(results.join("accepted.jsonl")).unwrap();
    let exported: Vec<Value> = exported.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(sessions(&exported), sessions(&said));
    let of_first = exported.iter().find(|line| line["session_id"] == said[0]["session_id"]).unwrap();
    for name in ["prompt_ids", "response_ids", "loss_mask", "response_logprobs"] {
        assert_eq!(of_first[name], stored["trajectory"]["traces"][0][name], "{name}");
    }
    let parquet = submit(&config, &server, &bank, &[&all[..], &["--export", "parquet"]].concat());
    assert_eq!(parquet.status.code(), Some(0), "{}", text(&parquet));
    let bytes = std::fs::read(results.join("accepted.parquet")).unwrap();
    assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
    let shown = estate(&["bank", "show"], &[&results.join("accepted.parquet")]);
    assert!(text(&shown).contains("is no task bank: column case_id is missing"), "{}", text(&shown));
    assert!(
        !std::fs::read_dir(&results).unwrap().any(|entry| entry
            .unwrap()
            .file_name()
            .to_string_lossy()
            .ends_with(".tmp"))
    );

    let one = submit(&config, &server, &bank, &["--rows", "0..1", "--episodes", "2"]);
    assert_eq!((one.status.code(), lines(&one).len()), (Some(0), 2), "{}", text(&one));
}
