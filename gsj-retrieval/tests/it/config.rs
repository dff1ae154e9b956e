//! The configuration file (retrieval.md section 11).

use crate::support::options;
use gsj_retrieval::config::{ConfigError, ServiceConfig};
use gsj_retrieval::{LogField, OnFailure, Rebuild};
use serde_json::{Value, json};
use std::path::Path;

/// A file as the reference's operators have it, every key written down.
const WHOLE: &str = "
source:
  base_url: http://forge:3000
  owner: gsj-admin
  repos: [case_0001, case_0002]
  ref_main: main
  ref_pattern: timestep-{T}
  auth_token_env: null
  clone_cache_dir: cache
embedding:
  model: sentence-transformers/all-MiniLM-L6-v2
  revision: 1110a243fdf4706b3f48f1d95db1a4f5529b4d41
  device: cpu
  batch_size: 32
  normalize: true
chunking:
  max_tokens: 220
  overlap: 40
  respect_page_boundaries: true
index:
  path: index
  rebuild: always
search:
  default_k: 7
  max_k: 10
  method: chroma
decisions:
  seed: 20260204
  corpus_size: 30
auth:
  token_secret_env: GSJ_MCP_TOKEN_SECRET
  leeway_s: 12
server:
  host: 0.0.0.0
  port: 8790
  log_level: INFO
  dns_rebinding_protection: true
  allowed_hosts: ['forge:8790']
  request_log_fields: [event, tool, k, latency_ms]
";

fn least() -> Value {
    json!({
        "source": {"base_url": "file:///srv/repos", "repos": ["case_0001"]},
        "embedding": {}, "chunking": null, "index": {"path": "index"}, "search": {},
    })
}

fn read(document: &Value) -> Result<ServiceConfig, ConfigError> {
    // JSON is YAML.
    ServiceConfig::from_yaml(&document.to_string(), Path::new("/etc/gsj/retrieval.yaml"))
}

/// Sets a member by its path, `a.b`.
fn with(mut document: Value, path: &str, value: Value) -> Value {
    let mut place = &mut document;
    for key in path.split('.') {
        if !place.is_object() {
            *place = json!({});
        }
        place = place.as_object_mut().expect("an object").entry(key).or_insert(Value::Null);
    }
    *place = value;
    document
}

#[test]
fn the_references_file_is_read_whole_and_what_means_nothing_is_named() {
    let config = ServiceConfig::from_yaml(WHOLE, Path::new("/etc/gsj/retrieval.yaml")).expect("valid");
    assert_eq!(
        config.not_used(),
        [
            "embedding.model",
            "embedding.revision",
            "embedding.device",
            "embedding.batch_size",
            "embedding.normalize",
            "chunking.max_tokens",
            "chunking.overlap",
            "search.method",
            "decisions.seed",
            "decisions.corpus_size",
        ]
    );
    assert_eq!(config.index.path, Path::new("/etc/gsj/index"), "relative to the file");
    assert_eq!(config.source.clone_cache_dir.as_deref(), Some(Path::new("/etc/gsj/cache")));
    assert_eq!(config.index.rebuild, Rebuild::Always);
    let mut of_calls = options();
    config.apply(&mut of_calls);
    assert_eq!((of_calls.default_k, of_calls.max_k, of_calls.leeway_s), (7, 10, 12));
    assert_eq!(of_calls.allowed_hosts, Some(vec!["forge:8790".to_owned()]));
    let fields = [LogField::Event, LogField::Tool, LogField::K, LogField::LatencyMs];
    assert_eq!(config.server.log_fields(), Some(fields.to_vec()));
}

#[test]
fn what_is_left_out_has_the_documented_defaults() {
    let config = read(&least()).expect("valid");
    assert_eq!(config.not_used(), [""; 0]);
    assert_eq!(config.source.owner.as_deref(), Some("gsj-admin"));
    assert_eq!((config.source.ref_main.as_str(), config.source.ref_pattern.as_str()), ("main", "timestep-{T}"));
    assert_eq!((config.search.default_k, config.search.max_k, config.index.rebuild), (5, 20, Rebuild::IfStale));
    assert_eq!((config.server.host.as_str(), config.server.port), ("127.0.0.1", 8790));
    assert_eq!((config.auth.token_secret_env.as_str(), config.auth.leeway_s), ("GSJ_MCP_TOKEN_SECRET", 30));
    let (mut applied, plain) = (options(), options());
    config.apply(&mut applied);
    assert_eq!(applied.allowed_hosts, None);
    assert_eq!(applied.calls_per_second_per_episode, plain.calls_per_second_per_episode);
    assert_eq!(config.server.log_fields(), Some(LogField::ALL.to_vec()));
    let without = read(&with(least(), "source.owner", Value::Null)).expect("valid");
    assert_eq!(without.source.owner, None, "null is no owner, absent is the usual one");
    let quiet = read(&with(least(), "server.log_level", json!("warning"))).expect("valid");
    assert_eq!(quiet.server.log_fields(), None);
    let free = read(&with(least(), "limits.calls_per_second_per_episode", json!(0))).expect("valid");
    free.apply(&mut applied);
    assert_eq!(applied.calls_per_second_per_episode, None, "0 is no limit");
}

#[test]
fn unknown_keys_anywhere_name_the_file_and_the_field() {
    for section in
        ["", "source.", "embedding.", "chunking.", "index.", "search.", "decisions.", "auth.", "server.", "limits."]
    {
        let error = read(&with(least(), &format!("{section}surplus"), json!(1))).expect_err(section).to_string();
        assert!(error.contains("/etc/gsj/retrieval.yaml") && error.contains("surplus"), "{section}: {error}");
    }
}

#[test]
fn missing_sections_and_keys_are_named() {
    for key in ["source", "embedding", "chunking", "index", "search", "source.base_url", "source.repos", "index.path"] {
        let mut document = least();
        let (section, member) = key.rsplit_once('.').unwrap_or(("", key));
        let place = if section.is_empty() { &mut document } else { &mut document[section] };
        place.as_object_mut().expect("an object").remove(member);
        let error = read(&document).expect_err(key).to_string();
        assert!(error.contains(member) && error.contains("missing"), "{key}: {error}");
    }
}

#[test]
fn values_that_cannot_be_used_are_named_with_what_would_do() {
    for (field, value) in [
        ("source.base_url", json!("/srv/repos")),
        ("source.base_url", json!("ssh://host/x")),
        ("source.base_url", json!("https://u:hunter2@host")),
        ("source.base_url", json!("file:///srv?x")),
        ("source.owner", json!("../x")),
        ("source.owner", json!("")),
        ("source.repos", json!([])),
        ("source.repos", json!(["c1"])),
        ("source.repos", json!(["case_"])),
        ("source.repos", json!(["-case"])),
        ("source.repos", json!(["a/b"])),
        ("source.repos", json!(["a".repeat(513)])),
        ("source.repos", json!(["case_0001", "case_0001"])),
        ("source.ref_main", json!("")),
        ("source.ref_pattern", json!("timestep-T")),
        ("source.auth_token_env", json!("")),
        ("embedding.normalize", json!(false)),
        ("embedding.batch_size", json!(0)),
        ("chunking.max_tokens", json!(15)),
        ("chunking.overlap", json!(220)),
        ("chunking.respect_page_boundaries", json!(false)),
        ("search.max_k", json!(0)),
        ("search.default_k", json!(0)),
        ("search.method", json!("exact")),
        ("search.method", json!("magic")),
        ("auth.token_secret_env", json!("")),
        ("server.host", json!("")),
        ("server.log_level", json!("loud")),
        ("server.request_log_fields", json!(["token"])),
    ] {
        let document = with(least(), field, value.clone());
        let error = read(&document).expect_err(field).to_string();
        assert!(error.contains(&format!("`{field}`")) && error.contains("retrieval.yaml"), "{field} {value}: {error}");
        assert!(!error.contains("hunter2"), "{error}");
    }
    let named = |document: &Value, field: &str| {
        let error = read(document).expect_err(field).to_string();
        assert!(error.contains(&format!("`{field}`")), "{error}");
    };
    named(&with(least(), "embedding.model", json!("m")), "embedding.revision");
    named(&with(least(), "source.base_url", json!("https://host")), "source.clone_cache_dir");
    named(&with(least(), "server.dns_rebinding_protection", json!(true)), "server.allowed_hosts");
    for (path, value) in
        [("index.rebuild", json!("sometimes")), ("search.max_k", json!("ten")), ("auth.leeway_s", json!(-1))]
    {
        let error = read(&with(least(), path, value)).expect_err(path).to_string();
        assert!(error.contains("retrieval.yaml") && error.contains("line"), "{error}");
    }
}

#[test]
fn an_embeddings_endpoint_is_named_in_a_section_of_its_own() {
    assert!(read(&least()).expect("valid").embeddings.options(None).is_none());
    let section = json!({"base_url": "http://h:8080/v1", "model": "m", "revision": "1", "batch": 8});
    let config = read(&with(least(), "embeddings", section.clone())).expect("valid");
    let options = config.embeddings.options(None).expect("an endpoint");
    assert_eq!((options.base_url.as_str(), options.model.as_str(), options.batch.get()), ("http://h:8080/v1", "m", 8));
    assert_eq!(options.on_failure, OnFailure::Error);
    for (key, value) in [
        ("base_url", json!("http://u:hunter2@h")),
        ("base_url", Value::Null),
        ("model", json!(" ")),
        ("revision", Value::Null),
        ("batch", json!(0)),
        ("timeout_s", json!(-1)),
        ("concurrency", json!(0)),
    ] {
        let document = with(with(least(), "embeddings", section.clone()), &format!("embeddings.{key}"), value);
        let error = read(&document).expect_err(key).to_string();
        assert!(error.contains(&format!("`embeddings.{key}`")) && !error.contains("hunter2"), "{error}");
    }
}

#[test]
fn a_key_that_stands_twice_is_refused() {
    let twice = "source: {base_url: 'file:///a', repos: [abc]}\nindex: {path: a}\nindex: {path: b}\n";
    let error = ServiceConfig::from_yaml(twice, Path::new("r.yaml")).expect_err("twice").to_string();
    assert!(error.contains("index"), "{error}");
}
