//! What bad input gets: the right exit code, the path, and the cure.

use std::path::Path;

use serde_json::json;

use crate::support::{Estate, fixture, gsj, output, text};

#[track_caller]
fn refused(command: &mut std::process::Command, code: i32, words: &[&str]) {
    let ran = output(command);
    let shown = text(&ran);
    assert_eq!(ran.status.code(), Some(code), "{shown}");
    for word in words {
        assert!(shown.contains(word), "`{word}` in: {shown}");
    }
    assert!(!shown.contains("panicked") && !shown.contains("RUST_BACKTRACE"), "{shown}");
}

/// The same command with an end by force.
fn under_time(command: std::process::Command) -> std::process::Command {
    let mut timed = std::process::Command::new("/usr/bin/timeout");
    timed.args(["-s", "KILL", "30"]).arg(command.get_program());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => timed.env(name, value),
            None => timed.env_remove(name),
        };
    }
    timed
}

#[test]
fn every_subcommands_help_ends_with_an_example() {
    let lines = [
        vec!["demo"],
        vec!["serve"],
        vec!["submit"],
        vec!["check"],
        vec!["show"],
        vec!["reconstruct"],
        vec!["pins", "show"],
        vec!["pins", "verify"],
        vec!["pins", "diff"],
        vec!["pins", "derive"],
        vec!["pins", "hash"],
        vec!["engine"],
        vec!["trace", "rerender"],
        vec!["agent", "install"],
        vec!["agent", "list"],
        vec!["agent", "verify"],
        vec!["config", "check"],
        vec!["config", "schema"],
        vec!["cutoff", "checkout"],
        vec!["cutoff", "audit"],
        vec!["cutoff", "scan"],
        vec!["token", "mint"],
        vec!["token", "verify"],
        vec!["retrieval", "search"],
        vec!["estate", "validate"],
        vec!["estate", "ingest"],
        vec!["estate", "verify"],
        vec!["estate", "all"],
        vec!["estate", "scaffold"],
    ];
    for line in lines {
        let ran = output(gsj().args(&line).arg("--help"));
        let shown = text(&ran);
        assert!(ran.status.success(), "{line:?}: {shown}");
        let example = shown.split("Example:").nth(1).unwrap_or_default();
        assert!(example.contains(&format!("gsj {}", line.join(" "))), "{line:?}: {shown}");
    }
}

#[test]
fn help_and_usage_name_what_there_is_to_choose_from() {
    for line in ["search", "explain", "serve"] {
        let shown = text(&output(gsj().args(["retrieval", line, "--help"])));
        let (_, under) = shown.split_once("Embeddings:").unwrap_or_else(|| panic!("{line}: {shown}"));
        let options: Vec<&str> = under.lines().map(str::trim).filter(|line| line.starts_with("--")).collect();
        let strays: Vec<_> = options.iter().filter(|option| !option.starts_with("--embeddings-")).collect();
        assert!(!options.is_empty() && strays.is_empty(), "{line}: {strays:?}");
    }
    refused(gsj().args(["retrieval", "serve"]), 2, &["--config <FILE>|--corpus <CORPUS>"]);
    refused(gsj().args(["retrieval", "serve", "--corpus", "x", "--config", "y"]), 2, &["cannot be used with"]);
    let submit = |more: &[&str]| {
        let mut command = gsj();
        command.args(["submit", "--config", "x.yaml"]).args(more);
        command
    };
    refused(&mut submit(&[]), 2, &["--request <FILE>|--case <CASE>|--from-bank <PARQUET>"]);
    refused(
        &mut submit(&["--case", "c"]),
        2,
        &["--timestep <TIMESTEP>", "--prompt <PROMPT>|--prompt-file <PROMPT_FILE>"],
    );
    let both = ["--case", "c", "--timestep", "1", "--prompt", "p", "--prompt-file", "f"];
    refused(&mut submit(&both), 2, &["cannot be used with"]);
    refused(&mut submit(&["--timestep", "1", "--prompt", "p"]), 2, &["--case <CASE>"]);
    refused(&mut submit(&["--request", "r.json"]), 2, &["x.yaml"]);
}

#[test]
fn nothing_starts_on_unusable_input() {
    let estate = Estate::new();
    estate.install("light");
    // A server that starts none the less is ended, and then its exit code is wrong.
    let serve = |config: &Path| {
        let mut command = under_time(gsj());
        command.args(["serve", "--config"]).arg(config);
        command
    };
    refused(&mut serve(Path::new("/no/such.yaml")), 2, &["/no/such.yaml"]);

    let config = estate.configure("http://127.0.0.1:1", "light", |c| c["estate"]["no_such_key"] = json!(1));
    refused(&mut serve(&config), 2, &["no_such_key", "rollout.yaml", "line"]);

    let config = estate.configure("http://127.0.0.1:1", "light", |c| c["checks"]["pins"] = json!("/no/pins.json"));
    refused(&mut serve(&config), 2, &["/no/pins.json"]);

    std::fs::write(estate.path("empty.json"), r#"{"format":"gsj-pins/1","pins":{"tool_roster_hash":[]}}"#).unwrap();
    let config =
        estate.configure("http://127.0.0.1:1", "light", |c| c["checks"]["pins"] = json!(estate.path("empty.json")));
    refused(&mut serve(&config), 2, &["empty.json"]);

    let config = estate.configure("http://127.0.0.1:1", "no-such-agent", |_| {});
    refused(&mut serve(&config), 2, &["no-such-agent"]);

    let config = estate.configure("http://127.0.0.1:1", "pi", |_| {});
    refused(&mut serve(&config), 2, &["gsj agent install pi"]);

    let config = estate.configure("http://127.0.0.1:1", "light", |c| {
        c["estate"]["clone_url_for"] = json!("file:///no/such/folder/{case_id}.git");
    });
    refused(&mut serve(&config), 2, &["/no/such/folder"]);

    let config = estate.configure("http://127.0.0.1:1", "light", |_| {});
    refused(serve(&config).env_remove("GSJ_MCP_TOKEN_SECRET"), 2, &["GSJ_MCP_TOKEN_SECRET"]);
    refused(serve(&config).env("GSJ_MCP_TOKEN_SECRET", "short"), 2, &["32"]);
}

#[test]
fn a_server_that_is_not_there_is_exit_3() {
    let estate = Estate::new();
    let config = estate.configure("http://127.0.0.1:1", "light", |_| {});
    let mut command = gsj();
    command.args([
        "submit",
        "--server",
        "http://127.0.0.1:1",
        "--case",
        "c",
        "--timestep",
        "1",
        "--prompt",
        "p",
        "--config",
    ]);
    refused(command.arg(config), 3, &["http://127.0.0.1:1", "gsj serve"]);

    let mut search = gsj();
    search.args(["retrieval", "search", "--case", "harbor-lease", "--timestep", "5", "quay", "--corpus"]);
    search.arg(fixture("corpus")).args(["--embeddings-url", "http://127.0.0.1:1", "--embeddings-model", "m"]);
    refused(&mut search, 3, &["http://127.0.0.1:1", "--embeddings-url"]);
}

#[test]
fn check_says_what_it_could_not_use() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("body.json");
    std::fs::write(&file, "{").unwrap();
    let pins = fixture("pins/light.thinking-off.json");
    refused(gsj().args(["check", "--format", "json", "--pins"]).arg(&pins).arg(&file), 1, &["invalid_json"]);
    refused(gsj().args(["check", "--pins"]).arg(&pins).arg("/no/such/file.json"), 2, &["/no/such/file.json"]);
    refused(gsj().arg("check").arg(&file).current_dir(folder.path()), 2, &["--pins", "GSJ_PINS_PATH"]);
    refused(gsj().args(["check", "--profile", "lax", "--pins"]).arg(&pins).arg(&file), 2, &["strict", "reference"]);
    refused(gsj().args(["check", "--policy", "x=1", "--pins"]).arg(&pins).arg(&file), 2, &["x=1", "allow_forks"]);
    refused(gsj().args(["check", "--policy", "x", "--pins"]).arg(&pins).arg(&file), 2, &["KEY=VALUE"]);
    refused(gsj().args(["check", "--pins"]).arg(&pins).arg(folder.path().join("none.jsonl")), 2, &["none.jsonl"]);
    std::fs::write(&file, r#"{"session_id":"s","status":"COMPLETED","trajectory":{"traces":[{}]}}"#).unwrap();
    refused(
        gsj().args(["check", "--format", "json", "--pins", "/no/pins.json"]).arg(&file),
        2,
        &[r#""error":"pins_configuration""#, "/no/pins.json"],
    );
}

#[test]
fn tokens_go_in_and_out_without_a_command_line() {
    let minted = output(gsj().args(["token", "mint", "--case", "harbor-lease", "--timestep", "3", "--episode", "e"]));
    assert!(minted.status.success(), "{}", text(&minted));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, &minted.stdout).unwrap();
    let verify = |file: &Path| {
        let mut command = gsj();
        command.args(["token", "verify", "-", "--format", "json"]).stdin(std::fs::File::open(file).unwrap());
        command.output().unwrap()
    };
    let verified = verify(&file);
    assert!(verified.status.success(), "{}", text(&verified));
    assert!(text(&verified).contains(r#""timestep":3"#));
    std::fs::write(&file, String::from_utf8_lossy(&minted.stdout).replace('.', "x")).unwrap();
    let forged = verify(&file);
    assert_eq!(forged.status.code(), Some(1), "{}", text(&forged));
}

#[test]
fn rerender_names_the_file_that_cannot_be_used() {
    let (tokenizer, template) = (fixture("tokenizer/tokenizer.json"), fixture("template/chat_template.jinja"));
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let with = |tokenizer: &Path, template: &Path, file: &Path| {
        let mut command = gsj();
        command.args(["trace", "rerender", "--format", "human", "--tokenizer"]).arg(tokenizer);
        command.arg("--template").arg(template).arg(file);
        command
    };
    let body = write("body.json", r#"{"session_id": "ses_x", "trajectory": {"traces": [{"prompt_ids": [1]}]}}"#);
    refused(&mut with(Path::new("/no/tokenizer.json"), &template, &body), 2, &["/no/tokenizer.json"]);
    refused(&mut with(&template, &template, &body), 2, &["read tokenizer.json", "chat_template.jinja"]);
    let broken = write("broken.jinja", "a\n{% if %}");
    refused(&mut with(&tokenizer, &broken, &body), 2, &["broken.jinja", "line 2"]);
    let config = write("tokenizer_config.json", "{}");
    refused(&mut with(&tokenizer, &config, &body), 2, &["tokenizer_config.json", "chat_template"]);
    refused(&mut with(&tokenizer, &template, folder.path().join("none.json").as_path()), 2, &["none.json"]);
    refused(with(&tokenizer, &template, &body).args(["--set", "x"]), 2, &["--set x", "NAME=VALUE"]);
    refused(with(&tokenizer, &template, &body).args(["--now", "noon"]), 2, &["noon", "2026-11-29T18:05:00"]);
    refused(&mut with(&tokenizer, &template, &body), 1, &["ses_x", "`response_ids` is missing"]);
    let lines = write("many.jsonl", "{\n\n{}\n");
    refused(&mut with(&tokenizer, &template, &lines), 1, &["many.jsonl:1", "many.jsonl:3", "2 traces, 0 equal, 2 not"]);
}

#[test]
fn text_of_a_later_page_is_found_in_a_trace() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("all/page_0001.md", "The porter had two keys and showed them to nobody but the clerk.");
    write("all/page_0002.md", "Nobody had asked the porter for the second key before the hearing.");
    write("visible/page_0001.md", "The porter had two keys and showed them to nobody but the clerk.");
    write("clean.json", r#"{"text":"The porter had two keys and showed them to nobody but the clerk."}"#);
    write("leak.json", r#"{"text":"nobody had asked\nthe porter for the second key before"}"#);
    let scan = |file: &str| {
        let mut command = gsj();
        command.args(["cutoff", "scan", "--format", "json", "--forbid", "all", "--allow", "visible", file]);
        output(command.current_dir(folder.path()))
    };
    let clean = scan("clean.json");
    assert_eq!((clean.status.code(), &clean.stdout[..]), (Some(0), &b""[..]), "{}", text(&clean));
    let leak = scan("leak.json");
    assert_eq!(leak.status.code(), Some(1), "{}", text(&leak));
    let told: serde_json::Value = serde_json::from_slice(&leak.stdout).unwrap();
    assert_eq!((&told["source"], &told["page"]), (&json!("leak.json"), &json!(2)));
    assert!(told["text"].as_str().unwrap().starts_with("nobody had asked"), "{told}");
    refused(
        gsj().args(["cutoff", "scan", "--forbid", ".", "--allow", ".", "x"]).current_dir(folder.path()),
        2,
        &["page_NNNN.md"],
    );
}

#[test]
fn a_checkout_that_lies_elsewhere_is_told_and_not_entered() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(".git"), "gitdir: /srv/elsewhere\n").unwrap();
    refused(gsj().args(["cutoff", "audit", "--format", "json"]).arg(folder.path()), 1, &["points elsewhere", "leaks"]);
    refused(gsj().args(["cutoff", "audit"]).arg(folder.path().join("none")), 2, &["no folder .git"]);
}
