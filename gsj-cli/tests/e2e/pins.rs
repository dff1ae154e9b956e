//! `gsj pins` on the project's own pins and artifacts.

use std::process::Output;

use serde_json::{Value, json};

use crate::support::{fixture, gsj, output, text};

/// Runs `gsj pins` in the folder of the fixtures.
fn pins(args: &[&str]) -> Output {
    output(gsj().arg("pins").args(args).current_dir(fixture("")))
}

fn stdout(ran: &Output) -> String {
    String::from_utf8(ran.stdout.clone()).unwrap()
}

fn document(ran: &Output) -> Value {
    serde_json::from_slice(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {}", text(ran)))
}

#[test]
fn show_names_each_values_artifact() {
    let ran = pins(&["show", "--format", "human", "pins/light.thinking-on.json"]);
    assert!(ran.status.success(), "{}", text(&ran));
    insta::assert_snapshot!(stdout(&ran), @r#"
    pins/light.thinking-on.json  mode thinking-on
    whole: every gate has what it asks for

    tokenizer_hash          no gate asks for it
      ae566a96943a3b48167a22355b431704e3e04460
          from tokenizer/tokenizer.json  (sha256 f00b16c458a6…)

    chat_template_hash      no gate asks for it
      d77ef871b70930f63f232764b5f4bf1fd19214983eb88f24562fe7e311ef69eb
          from template/chat_template.jinja

    settings_hash           gate G7
      dae8948524be8253e04c4174632477e0333adc0323e791a6e54ace3b31004d20
          from harness.settings (the default)

    tool_roster_hash        gate G3
      dc0a58f35d8458744b4b2c0b05bc6b2170088c8639487b36c7171c60b350d03a
          from agent/light/roster.json

    system_prompt_hash      gate G2
      c0bf0e4c202c72fe223e58e1766e40011e4e67633f625d817f70cc0544bd76e8
          from agent/light/system_prompt.txt

    skill_card_hash         gate G1
      7afe22019442b84a9efa9d0c7b7357647f3d4f376ca2230b05026bcf91203dda  chronology
          from corpus/skills/chronology/SKILL.md
      28ad7c36a5815d83ec1a82f806da2af7e553054e444bf9f2ecc4065eadbe48ba  summarize
          from corpus/skills/summarize/SKILL.md

    g6_expected_tail        no gate asks for it
      "<|im_start|>assistant\n"
          from template/chat_template.jinja  (sha256 fb3832354a86…)

    g6_expected_tail_ids    gate G6
      [1,2083,207]
          from template/chat_template.jinja  (sha256 fb3832354a86…)

    end_of_turn_ids         gate G6
      2
          from tokenizer/tokenizer.json  (sha256 f00b16c458a6…)
    "#);
    let shown = document(&pins(&["show", "pins/light.thinking-on.json"]));
    assert_eq!(shown["mode"], "thinking-on");
    assert_eq!(shown["fault"], Value::Null);
    let cards = shown["sets"].as_array().unwrap().iter().find(|set| set["set"] == "skill_card_hash").unwrap();
    assert_eq!(cards["gate"], "G1");
    assert_eq!(cards["values"][0]["skills"], json!(["chronology"]));
    assert_eq!(cards["values"][0]["sources"][0]["artifact"], "corpus/skills/chronology/SKILL.md");
}

#[test]
fn verify_holds_values_against_their_artifacts() {
    let ran = pins(&["verify", "--format", "human", "pins/light.thinking-on.json"]);
    assert!(ran.status.success(), "{}", text(&ran));
    insta::assert_snapshot!(stdout(&ran), @r#"
    pins/light.thinking-on.json: whole
      confirmed    tokenizer_hash        ae566a96943a…  tokenizer/tokenizer.json
      confirmed    chat_template_hash    d77ef871b709…  template/chat_template.jinja
      unread       settings_hash         dae8948524be…  harness.settings (the default)
                   not found
      confirmed    tool_roster_hash      dc0a58f35d84…  agent/light/roster.json
      confirmed    system_prompt_hash    c0bf0e4c202c…  agent/light/system_prompt.txt
      confirmed    skill_card_hash       7afe22019442…  corpus/skills/chronology/SKILL.md
      confirmed    skill_card_hash       28ad7c36a581…  corpus/skills/summarize/SKILL.md
      recorded     g6_expected_tail      "<|im_start|>assistant\n"  template/chat_template.jinja
                   kept for people; gate G6 asks for its ids
      confirmed    g6_expected_tail_ids  [1,2083,207]  template/chat_template.jinja
      recorded     end_of_turn_ids       2  tokenizer/tokenizer.json
                   it is a special token of the tokenizer; which one ends a turn is the template's
                   choice
    7 confirmed, 2 recorded, 1 unread
    "#);

    let home = tempfile::tempdir().unwrap();
    let changed = std::fs::read_to_string(fixture("pins/light.thinking-on.json")).unwrap();
    let file = home.path().join("pins.json");
    std::fs::write(&file, changed.replace("dc0a58f3", "ffffffff")).unwrap();
    let ran = pins(&["verify", "--format", "json", file.to_str().unwrap()]);
    assert_eq!(ran.status.code(), Some(1), "{}", text(&ran));
    let found = document(&ran);
    let checks = found["checks"].as_array().unwrap();
    let wrong: Vec<&Value> = checks.iter().filter(|check| check["outcome"] == "differs").collect();
    assert_eq!(wrong.len(), 1, "{found}");
    assert_eq!(wrong[0]["set"], "tool_roster_hash");
    assert!(wrong[0]["detail"].as_str().unwrap().contains("dc0a58f3"), "what the artifact gives: {}", wrong[0]);

    std::fs::write(&file, r#"{"pins":{"settings_hash":[]}}"#).unwrap();
    let ran = pins(&["verify", "--format", "human", file.to_str().unwrap()]);
    assert_eq!(ran.status.code(), Some(1), "{}", text(&ran));
    assert!(text(&ran).contains("not whole") && text(&ran).contains("settings_hash"), "{}", text(&ran));

    std::fs::write(&file, "{}").unwrap();
    assert_eq!(pins(&["verify", file.to_str().unwrap()]).status.code(), Some(2), "no pins document at all");
    assert_eq!(pins(&["show", "/no/such.json"]).status.code(), Some(2));
}

#[test]
fn diff_says_which_gate_fails() {
    let ran = pins(&["diff", "--format", "human", "pins/light.thinking-off.json", "pins/light.thinking-on.json"]);
    assert!(ran.status.success(), "{}", text(&ran));
    insta::assert_snapshot!(stdout(&ran), @r#"
    mode  thinking-off -> thinking-on
      the names of stored results carry it

    g6_expected_tail  no gate asks for it, 0 kept
      - "<|im_start|>assistant\n<think>\n\n</think>\n\n"
      + "<|im_start|>assistant\n"
        no gate asks for the text of the tail: it says what the token ids belong to; see that the engine
        runs what is approved now, and that `g6_expected_tail_ids` fits it

    g6_expected_tail_ids  gate G6, 0 kept
      - [1,2083,207,3,301,4,301]
      + [1,2083,207]
        traces made with the removed tail fail G6 now
        whoever still checks with the old file rejects traces made with the added tail, by G6
        G6:prompt_suffix_ne_tail_ids, G6:interstitial_ne_tail_ids
    "#);
    let found = document(&pins(&["diff", "pins/light.thinking-off.json", "pins/thinking-off.json"]));
    assert_eq!(found["mode"], Value::Null);
    assert_eq!(found["sets"][0]["set"], "tool_roster_hash");
    assert_eq!(found["sets"][0]["effects"][0]["under"], "new");
    assert_eq!(found["sets"][0]["effects"][0]["findings"], json!(["G3:tool_roster_hash_not_approved"]));
    let same = pins(&["diff", "--format", "human", "pins/thinking-on.json", "pins/thinking-on.json"]);
    assert_eq!(stdout(&same), "the same values are approved\n");
}

#[test]
fn hash_knows_four_conventions() {
    let of = |convention: &str, file: &str| stdout(&pins(&["hash", convention, file])).trim().to_owned();
    assert_eq!(of("git-blob", "tokenizer/tokenizer.json"), "ae566a96943a3b48167a22355b431704e3e04460");
    let template = "d77ef871b70930f63f232764b5f4bf1fd19214983eb88f24562fe7e311ef69eb";
    assert_eq!(of("chat-template", "template/chat_template.jinja"), template);
    let roster = "dc0a58f35d8458744b4b2c0b05bc6b2170088c8639487b36c7171c60b350d03a";
    assert_eq!(of("canonical-json", "agent/light/roster.json"), roster);
    let prompt = "c0bf0e4c202c72fe223e58e1766e40011e4e67633f625d817f70cc0544bd76e8";
    assert_eq!(of("text", "agent/light/system_prompt.txt"), prompt);
    assert_eq!(pins(&["hash", "md5", "agent/light/roster.json"]).status.code(), Some(2));
    assert_eq!(pins(&["hash", "text", "--text", "agent/light/roster.json"]).status.code(), Some(2));
    let none = pins(&["hash", "canonical-json", "agent/light/system_prompt.txt"]);
    assert_eq!(none.status.code(), Some(1), "no JSON: {}", text(&none));
}

/// Runs `gsj pins derive` in the folder of the fixtures.
fn derive(args: &[&str]) -> Output {
    pins(&[&["derive"], args].concat())
}

#[test]
fn the_examples_of_the_help_work() {
    let program = std::path::PathBuf::from(env!("CARGO_BIN_EXE_gsj"));
    let path = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap_or_default());
    for action in ["show", "verify", "diff", "derive", "hash"] {
        let help = stdout(&output(gsj().args(["pins", action, "--help"])));
        let example = help.split("Example:\n").nth(1).unwrap();
        let mut shell = std::process::Command::new("bash");
        let ran = output(shell.args(["-c", example]).env("PATH", &path).current_dir(fixture("..")));
        assert!(ran.status.success(), "{example}{}", text(&ran));
        assert!(!ran.stdout.is_empty(), "{example}");
    }
}

#[test]
fn derive_makes_the_fixtures_pins_again() {
    // The settings of both agents are the configuration's default, which is no file.
    let home = tempfile::tempdir().unwrap();
    let settings = home.path().join("settings.json");
    std::fs::write(&settings, "{\"compaction\": {\"enabled\": false}}\n").unwrap();
    let out = home.path().join("pins/new.json");
    let (settings, out_option) = (format!("--settings={}", settings.display()), format!("--out={}", out.display()));
    let ran = derive(&[
        "--tokenizer=tokenizer/tokenizer.json",
        "--chat-template=template/chat_template.jinja",
        "--skills=corpus/skills",
        "--roster=agent/light/roster.json",
        "--system-prompt=agent/light/system_prompt.txt",
        "--tail=<|im_start|>assistant\n<think>\n\n</think>\n\n",
        "--end-of-turn=2",
        &settings,
        &out_option,
    ]);
    assert!(ran.status.success(), "{}", text(&ran));
    assert_eq!(stdout(&ran), "", "the file is the result");
    let read = |path: &std::path::Path| -> Value { serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap() };
    let (made, known) = (read(&out), read(&fixture("pins/light.thinking-off.json")));
    assert_eq!(made["pins"], known["pins"]);
    assert_eq!(made["mode"], known["mode"]);
    let verified = document(&pins(&["verify", "--format", "json", out.to_str().unwrap()]));
    let outcome = |set: &str| {
        let checks = verified["checks"].as_array().unwrap();
        checks.iter().find(|check| check["set"] == set).map(|check| check["outcome"].clone()).unwrap()
    };
    assert_eq!(outcome("settings_hash"), "confirmed");
    assert_eq!(outcome("g6_expected_tail_ids"), "confirmed", "by the tokenizer that the file names");
}

#[test]
fn derive_takes_what_an_accepted_trace_was_made_with() {
    let home = tempfile::tempdir().unwrap();
    let path = |name: &str| home.path().join(name).display().to_string();
    let result = crate::showing::result();
    std::fs::write(path("ses_1.json"), result.to_string()).unwrap();
    let from = |trace: &str, out: &str| {
        derive(&[
            "--mode=thinking-on",
            "--tokenizer=tokenizer/tokenizer.json",
            "--tail=<|im_start|>assistant\n",
            "--end-of-turn=2",
            &format!("--from-trace={}", path(trace)),
            &format!("--out={}", path(out)),
        ])
    };
    let ran = from("ses_1.json", "pins.json");
    assert!(ran.status.success(), "{}", text(&ran));
    let checked = output(
        gsj()
            .args(["check", "--policy=require_fidelity=false", "--format=json", "--pins"])
            .args([path("pins.json"), path("ses_1.json")]),
    );
    assert!(checked.status.success(), "its own pins accept it: {}", text(&checked));
    let verified = pins(&["verify", "--format=human", &path("pins.json")]);
    assert!(verified.status.success() && !text(&verified).contains("unread"), "{}", text(&verified));

    let mut odd = result.clone();
    odd["trajectory"]["traces"][0]["response_logprobs"][0] = json!(0.5);
    std::fs::write(path("odd.json"), odd.to_string()).unwrap();
    let ran = from("odd.json", "odd-pins.json");
    assert_eq!(ran.status.code(), Some(1), "{}", text(&ran));
    assert!(text(&ran).contains("LP5:positive_logprob"), "{}", text(&ran));
    assert!(!home.path().join("odd-pins.json").exists(), "nothing is approved by it");

    let mut off = result;
    off["trajectory"]["traces"][0]["prompt_ids"] = json!([5, 1, 2083]);
    std::fs::write(path("off.json"), off.to_string()).unwrap();
    let ran = from("off.json", "off-pins.json");
    assert_eq!(ran.status.code(), Some(1), "{}", text(&ran));
    assert!(text(&ran).contains("does not open with the tail"), "{}", text(&ran));
}

#[test]
fn a_log_gives_the_first_pins() {
    let home = tempfile::tempdir().unwrap();
    let log = home.path().join("session.log");
    let refused = json!({"completion_id": "c1", "outcome": "refused", "request": {}});
    let call = json!({"completion_id": "c2", "outcome": "completed",
        "request": {"tools": [{"a": 1}], "messages": [{"role": "system", "content": "s"}]},
        "metadata": {"prompt_source": "free", "gsj_settings": {"b": 1}}});
    std::fs::write(&log, format!("{refused}\n{call}\n")).unwrap();
    let file = home.path().join("pins.json").display().to_string();
    let ran = derive(&[&format!("--from-log={}", log.display()), &format!("--out={file}")]);
    assert!(ran.status.success(), "{}", text(&ran));
    let verified = document(&pins(&["verify", "--format", "json", &file]));
    let checks = verified["checks"].as_array().unwrap();
    assert_eq!(checks.len(), 3, "{verified}");
    assert!(checks.iter().all(|check| check["outcome"] == "confirmed"), "a line of the log is found again: {verified}");
    std::fs::write(&log, format!("{refused}\n")).unwrap();
    let ran = derive(&[&format!("--from-log={}", log.display())]);
    assert_eq!(ran.status.code(), Some(1), "{}", text(&ran));
    assert!(text(&ran).contains("no call with a whole answer"), "{}", text(&ran));
}

#[test]
fn derive_says_what_is_missing_and_what_is_wrong() {
    let ran = derive(&["--roster=agent/light/roster.json"]);
    assert!(ran.status.success(), "{}", text(&ran));
    assert!(text(&ran).contains("`g6_expected_tail_ids`: --tail TEXT with --tokenizer FILE"), "{}", text(&ran));
    let roster = "dc0a58f35d8458744b4b2c0b05bc6b2170088c8639487b36c7171c60b350d03a";
    assert_eq!(document(&ran)["pins"]["tool_roster_hash"], json!([roster]));
    for (args, code, says) in [
        (vec!["--tail=x"], 2, "--tokenizer"),
        (vec!["--roster=agent/light/system_prompt.txt"], 1, "is not JSON"),
        (vec!["--settings=none.json"], 2, "none.json"),
        (vec!["--settings=agent/light/roster.json"], 1, "settings document"),
        (vec!["--tokenizer=agent/light/roster.json"], 1, "no tokenizer.json"),
        (vec!["--skills=pins"], 2, "holds no skill"),
        (vec!["--end-of-turn=77", "--tokenizer=tokenizer/tokenizer.json"], 2, "77 is no special token"),
        (vec!["--end-of-turn=none.json"], 2, "ids (151645,151643) or a file"),
        (vec!["--mode=a/b"], 2, "mode"),
        (vec!["--from-trace=pins/thinking-on.json"], 1, "not an accepted session result"),
        (vec![], 2, "Usage"),
    ] {
        let ran = derive(&args);
        assert_eq!(ran.status.code(), Some(code), "{args:?}: {}", text(&ran));
        assert!(text(&ran).contains(says), "{args:?}: {}", text(&ran));
    }
}
