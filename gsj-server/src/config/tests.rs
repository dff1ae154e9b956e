use std::path::PathBuf;

use super::{Config, ConfigError, ReadContext};

const MINIMAL: &str = "estate:\n  clone_url_for: \"file:///srv/repos/o/{case_id}.git\"\nengine:\n  base_url: http://127.0.0.1:8000\n  model: m\n";

fn context() -> ReadContext {
    ReadContext { path: "/etc/gsj/rollout.yaml".into(), default_state_dir: "/var/lib/gsj".into(), pins_path: None }
}

fn refused(text: &str) -> String {
    match Config::from_yaml(text, &context()) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("accepted: {text}"),
    }
}

#[test]
fn defaults_are_filled_in_from_the_state_folder() {
    let (config, warnings) = Config::from_yaml(MINIMAL, &context()).unwrap();
    assert_eq!(warnings, [], "a file of our own has nothing to warn about");
    assert_eq!(config.receiver.traces_dir, Some(PathBuf::from("/var/lib/gsj/traces")));
    assert_eq!(config.receiver.quarantine_dir, Some(PathBuf::from("/var/lib/gsj/quarantine")));
    assert_eq!(config.harness.artifacts_dir, Some(PathBuf::from("/var/lib/gsj/artifacts")));
}

#[test]
fn relative_paths_start_at_the_files_folder() {
    let text = format!("{MINIMAL}checks:\n  pins: pins/p.json\nserver:\n  state_dir: state\n");
    let (config, _) = Config::from_yaml(&text, &context()).unwrap();
    assert_eq!(config.checks.pins, Some(PathBuf::from("/etc/gsj/pins/p.json")));
    assert_eq!(config.server.state_dir, Some(PathBuf::from("/etc/gsj/state")));
}

#[test]
fn the_environments_pins_path_wins() {
    let text = format!("{MINIMAL}checks:\n  pins: pins/p.json\n");
    let with = ReadContext { pins_path: Some("/elsewhere/p.json".into()), ..context() };
    let (config, _) = Config::from_yaml(&text, &with).unwrap();
    assert_eq!(config.checks.pins, Some(PathBuf::from("/elsewhere/p.json")));
}

#[test]
fn keys_of_the_reference_that_mean_nothing_are_named() {
    let text = format!(
        "{MINIMAL}polar:\n  gateway:\n    public_url: http://x\n    a: 1\nruntime:\n  gpus: 2\nuser:\n  any: [1]\n"
    );
    let (config, warnings) = Config::from_yaml(&text, &context()).unwrap();
    let paths: Vec<_> = warnings.iter().map(|w| w.path.as_str()).collect();
    assert_eq!(paths, ["runtime.gpus", "polar.gateway.public_url", "polar.gateway.a"]);
    assert_eq!(config.user, serde_json::json!({"any": [1]}), "the user's section is kept");
}

#[test]
fn unknown_keys_of_our_own_sections_are_refused_with_line_and_name() {
    for section in ["estate", "engine", "checks", "builder", "server", "sandbox", "workers", "limits", "retrieval"] {
        let text = if MINIMAL.contains(&format!("{section}:")) {
            MINIMAL.replace(&format!("{section}:\n"), &format!("{section}:\n  no_such_key: 1\n"))
        } else {
            format!("{MINIMAL}{section}:\n  no_such_key: 1\n")
        };
        let message = refused(&text);
        assert!(message.contains("no_such_key") && message.contains("/etc/gsj/rollout.yaml"), "{message}");
        assert!(message.contains("line"), "the place is named: {message}");
    }
    assert!(refused(&format!("{MINIMAL}nonsense: 1\n")).contains("nonsense"));
}

#[test]
fn a_key_that_stands_in_the_file_is_not_repeated() {
    let message = refused(&MINIMAL.replace("  model: m", "  api_key: sk-canary\n  model: m"));
    assert!(message.contains("api_key") && !message.contains("sk-canary"), "{message}");
    assert_eq!(message.lines().count(), 1, "one line: {message}");
    let message = refused(&format!("{MINIMAL}engine:\n  base_url: sk-canary\n"));
    assert!(!message.contains("sk-canary") && message.contains("duplicate"), "{message}");
}

fn embeddings(keys: &str) -> String {
    format!("{MINIMAL}retrieval:\n  embeddings: {{{keys}}}\n")
}

#[test]
fn an_embeddings_endpoint_is_asked_as_the_section_says() {
    let text = embeddings(
        "base_url: \"http://h/v1\", model: m, revision: r, timeout_s: 2, on_failure: lexical, dimensions: 7",
    );
    let (config, _) = Config::from_yaml(&text, &context()).unwrap();
    let options = config.retrieval.embeddings.options(None).unwrap();
    assert_eq!(
        (options.base_url.as_str(), options.model.as_str(), options.revision.as_str()),
        ("http://h/v1", "m", "r")
    );
    assert_eq!(options.timeout, std::time::Duration::from_secs(2));
    assert_eq!((options.batch.get(), options.concurrency.get()), (32, 1));
    assert_eq!(options.dimensions.map(std::num::NonZeroUsize::get), Some(7));
    assert_eq!(options.on_failure, gsj_retrieval::OnFailure::Lexical);
    let (config, _) = Config::from_yaml(MINIMAL, &context()).unwrap();
    assert!(config.retrieval.embeddings.options(None).is_none());
}

#[test]
fn unusable_values_are_refused_by_field() {
    for (field, text) in [
        ("estate.clone_url_for", "estate:\n  clone_url_for: file:///x.git\n".to_owned()),
        ("estate.clone_url_for", "estate:\n  clone_url_for: \"https://u:p@h/{case_id}.git\"\n".to_owned()),
        ("engine.base_url", "estate:\n  clone_url_for: \"file:///{case_id}\"\n".to_owned()),
        ("engine.model", "estate:\n  clone_url_for: \"file:///{case_id}\"\nengine:\n  base_url: http://h\n".to_owned()),
        ("server.listen", format!("{MINIMAL}server:\n  listen: here\n")),
        ("workers.run", format!("{MINIMAL}workers:\n  run: 0\n")),
        ("sandbox.uid", format!("{MINIMAL}sandbox:\n  uid: 0\n")),
        ("harness.settings", format!("{MINIMAL}harness:\n  settings: 1\n")),
        ("limits.timeout_s", format!("{MINIMAL}limits:\n  timeout_s: .nan\n")),
        ("retrieval.embeddings.base_url", format!("{MINIMAL}retrieval:\n  embeddings: {{model: m}}\n")),
        ("retrieval.embeddings.base_url", embeddings("base_url: \"http://u:p@h\", model: m, revision: r")),
        ("retrieval.embeddings.model", embeddings("base_url: \"http://h\", revision: r")),
        ("retrieval.embeddings.revision", embeddings("base_url: \"http://h\", model: m")),
        ("retrieval.embeddings.batch", embeddings("base_url: \"http://h\", model: m, revision: r, batch: 0")),
        ("retrieval.embeddings.timeout_s", embeddings("base_url: \"http://h\", model: m, revision: r, timeout_s: 0")),
    ] {
        match Config::from_yaml(&text, &context()) {
            Err(ConfigError::Value { field: named, .. }) => assert_eq!(named, field),
            other => panic!("{field}: {other:?}"),
        }
    }
}

#[test]
fn the_references_own_file_is_read_as_it_is() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/data/rollout.reference.yaml");
    let Ok(text) = std::fs::read_to_string(&path) else {
        eprintln!("SKIPPED: {} is not there", path.display());
        return;
    };
    let (config, warnings) = Config::from_yaml(&text, &context()).unwrap();
    assert_eq!(config.engine.base_url.as_deref(), Some("http://127.0.0.1:8021"));
    assert_eq!(config.engine.model.as_deref(), Some("Qwen/Qwen3-0.6B"));
    assert_eq!(config.builder.end_of_turn_token_id, Some(151_645));
    assert_eq!(config.harness.tools_allowlist.len(), 11);
    assert_eq!(config.receiver.traces_dir, Some(PathBuf::from("/tmp/gsj-traces")));
    assert_eq!(warnings.iter().map(|w| w.path.as_str()).collect::<Vec<_>>(), ["polar.gateway.public_url"]);
}

#[test]
fn the_configuration_page_is_up_to_date() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/configuration.md");
    let page = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(page, super::reference_markdown(), "run `cargo xtask docs`");
}
