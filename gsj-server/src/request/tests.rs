use serde_json::{Value, json};

use super::{Rules, TaskRequest};
use crate::config::{Config, Thinking};

fn config() -> Config {
    let mut config = Config::default();
    config.estate.clone_url_for = "file:///estate/gsj/{case_id}.git".to_owned();
    config.engine.model = Some("gsj-demo".to_owned());
    config
}

fn body() -> Value {
    json!({
        "task_id": "t-1",
        "instruction": "Summarise the case.",
        "agent": {"harness": "pi", "settings": {"case_id": "case_0001", "timestep": 12}},
        "metadata": {"prompt_source": "free"},
    })
}

fn read(body: &Value) -> Result<TaskRequest, Vec<String>> {
    let agent = |name: &str| match name {
        "pi" | "gsj_rollout.pi_harness:PiHarness" => Ok("pi".to_owned()),
        other => Err(format!("no agent is called `{other}`")),
    };
    Rules { config: &config(), agent: &agent }.read(body).map_err(|details| {
        details
            .iter()
            .map(|detail| {
                let loc = serde_json::to_string(&detail.loc).expect("serialises");
                format!("{loc} {}", detail.kind)
            })
            .collect()
    })
}

fn with(pointer: &str, value: Value) -> Value {
    let mut body = body();
    let (parent, name) = pointer.rsplit_once('/').expect("a pointer");
    let parent = body.pointer_mut(parent).expect("the parent exists");
    if value == json!("(removed)") {
        parent.as_object_mut().expect("an object").remove(name);
    } else {
        parent[name] = value;
    }
    body
}

#[test]
fn a_small_request_gets_the_servers_defaults() {
    let request = read(&body()).expect("a good body");
    let (limits, harness) = (config().limits, config().harness);
    assert_eq!((request.samples, request.timeout.as_secs_f64()), (1, limits.timeout_s));
    let settings = &request.settings;
    assert_eq!((settings.context_window, settings.max_tokens), (harness.context_window, harness.max_tokens));
    assert_eq!(settings.thinking, Thinking::Off);
    assert_eq!(settings.tools, harness.tools_allowlist);
    assert_eq!(request.metadata["case_id"], "case_0001", "the validators read it from the metadata");
    assert_eq!(request.metadata["timestep"], 12);
    assert!(request.warnings.is_empty() && request.substituted.is_empty(), "{request:?}");
}

#[test]
fn each_bad_field_is_named_by_its_path() {
    let table: &[(&str, Value, &str)] = &[
        ("/task_id", json!("(removed)"), r#"["body","task_id"] missing"#),
        ("/task_id", json!(7), r#"["body","task_id"] string_type"#),
        ("/task_id", json!(""), r#"["body","task_id"] value_error"#),
        ("/instruction", json!("(removed)"), r#"["body","instruction"] missing"#),
        ("/instruction", json!(null), r#"["body","instruction"] string_type"#),
        ("/agent", json!("(removed)"), r#"["body","agent"] missing"#),
        ("/agent", json!([]), r#"["body","agent"] dict_type"#),
        ("/num_samples", json!(0), r#"["body","num_samples"] greater_than_equal"#),
        ("/num_samples", json!(true), r#"["body","num_samples"] int_type"#),
        ("/num_samples", json!("4"), r#"["body","num_samples"] int_type"#),
        ("/num_samples", json!(1.5), r#"["body","num_samples"] int_type"#),
        ("/num_samples", json!(1_000_000), r#"["body","num_samples"] less_than_equal"#),
        ("/timeout_seconds", json!(0), r#"["body","timeout_seconds"] greater_than"#),
        ("/timeout_seconds", json!("9"), r#"["body","timeout_seconds"] float_type"#),
        ("/runtime", json!("docker"), r#"["body","runtime"] dict_type"#),
        ("/runtime", json!({"image": 3}), r#"["body","runtime","image"] string_type"#),
        ("/runtime", json!({"backend": "lxc"}), r#"["body","runtime","backend"] value_error"#),
        ("/runtime", json!({"env": {"A": 1}}), r#"["body","runtime","env","A"] string_type"#),
        ("/builder", json!({"strategy": 1}), r#"["body","builder","strategy"] string_type"#),
        ("/builder", json!({"strategy": "mine"}), r#"["body","builder","strategy"] value_error"#),
        ("/builder", json!({"extra": 1}), r#"["body","builder","extra"] extra_forbidden"#),
        (
            "/builder",
            json!({"config": {"end_of_turn_token_id": "x"}}),
            r#"["body","builder","config","end_of_turn_token_id"] int_type"#,
        ),
        (
            "/builder",
            json!({"config": {"generation_prompt_glue_ids": [1, "x"]}}),
            r#"["body","builder","config","generation_prompt_glue_ids",1] int_type"#,
        ),
        ("/evaluator", json!({}), r#"["body","evaluator"] value_error"#),
        ("/callback_url", json!("ftp://x/y"), r#"["body","callback_url"] value_error"#),
        ("/callback_url", json!(1), r#"["body","callback_url"] string_type"#),
        ("/metadata", json!(1), r#"["body","metadata"] dict_type"#),
        ("/metadata/session_id", json!("s"), r#"["body","metadata","session_id"] value_error"#),
        ("/metadata/policy_version", json!(null), r#"["body","metadata","policy_version"] value_error"#),
        ("/metadata/gsj_fidelity", json!({}), r#"["body","metadata","gsj_fidelity"] value_error"#),
        ("/metadata/timestep", json!(13), r#"["body","metadata","timestep"] value_error"#),
        ("/metadata/case_id", json!("case_0002"), r#"["body","metadata","case_id"] value_error"#),
        ("/metadata/case_id", json!(2), r#"["body","metadata","case_id"] string_type"#),
        ("/metadata/prompt_source", json!(1), r#"["body","metadata","prompt_source"] string_type"#),
        ("/metadata/prompt_source", json!(""), r#"["body","metadata","prompt_source"] value_error"#),
        ("/metadata/prompt_source", json!("Free"), r#"["body","metadata","prompt_source"] value_error"#),
        ("/metadata/prompt_source", json!("skill: "), r#"["body","metadata","prompt_source"] value_error"#),
        ("/metadata/split", json!(2), r#"["body","metadata","split"] string_type"#),
        ("/agent/harness", json!("nobody"), r#"["body","agent","harness"] value_error"#),
        ("/agent/harness", json!(1), r#"["body","agent","harness"] string_type"#),
        ("/agent/model_name", json!(1), r#"["body","agent","model_name"] string_type"#),
        ("/agent/color", json!(1), r#"["body","agent","color"] extra_forbidden"#),
        ("/agent/env", json!({"A": 1}), r#"["body","agent","env","A"] string_type"#),
        ("/agent/env", json!({"A=B": "1"}), r#"["body","agent","env","A=B"] value_error"#),
        ("/agent/settings", json!([]), r#"["body","agent","settings"] dict_type"#),
        ("/agent/settings/case_id", json!("(removed)"), r#"["body","agent","settings","case_id"] missing"#),
        ("/agent/settings/case_id", json!("../x"), r#"["body","agent","settings","case_id"] value_error"#),
        ("/agent/settings/timestep", json!("12"), r#"["body","agent","settings","timestep"] int_type"#),
        ("/agent/settings/timestep", json!(0), r#"["body","agent","settings","timestep"] greater_than_equal"#),
        ("/agent/settings/thinking", json!("lots"), r#"["body","agent","settings","thinking"] value_error"#),
        (
            "/agent/settings/tools_allowlist",
            json!("read"),
            r#"["body","agent","settings","tools_allowlist"] list_type"#,
        ),
        (
            "/agent/settings/tools_allowlist",
            json!(["read", 1]),
            r#"["body","agent","settings","tools_allowlist",1] string_type"#,
        ),
        ("/agent/settings/max_tokens", json!(0), r#"["body","agent","settings","max_tokens"] greater_than_equal"#),
    ];
    for (pointer, value, expected) in table {
        assert_eq!(read(&with(pointer, value.clone())), Err(vec![(*expected).to_owned()]), "{pointer} = {value}");
    }
}

#[test]
fn all_problems_are_named_at_once() {
    let found = read(&json!({"num_samples": 0})).expect_err("bad in four ways");
    assert_eq!(found.len(), 4, "{found:?}");
    assert_eq!(read(&json!([])), Err(vec![r#"["body"] dict_type"#.to_owned()]));
}

#[test]
fn nulls_that_clients_write_out_count_as_absent() {
    let mut body = body();
    for name in ["runtime", "builder", "evaluator", "callback_url"] {
        body[name] = Value::Null;
    }
    body["agent"]["import_path"] = Value::Null;
    read(&body).expect("an optional member may be null");
}

#[test]
fn a_reference_request_runs_with_its_names_replaced_and_stated() {
    let mut body = with("/agent/harness", json!("(removed)"));
    body["agent"]["import_path"] = json!("gsj_rollout.pi_harness:PiHarness");
    body["agent"]["model_name"] = json!("gsj/gsj-demo");
    body["builder"] = json!({"strategy": "gsj_rollout.builder:ValidatingPrefixMergingBuilder",
        "config": {"end_of_turn_token_id": 151_645, "generation_prompt_glue_ids": [1, 2]}});
    body["runtime"] = json!({"backend": "docker", "network": "bridge"});
    body["agent"]["settings"]["clone_url_for"] = json!("http://me:secret@git/x/{case_id}.git");
    let request = read(&body).expect("names of the reference are known");
    let fields: Vec<_> = request.substituted.iter().map(|entry| entry.field.as_str()).collect();
    assert_eq!(
        fields,
        ["runtime.backend", "runtime.network", "builder.strategy", "agent.import_path", "agent.settings.clone_url_for"]
    );
    assert_eq!((request.end_of_turn, request.glue), (Some(151_645), vec![1, 2]));
    let told = format!("{:?} {:?}", request.substituted, request.warnings);
    assert!(!told.contains("secret"), "a URL's password must not be told on: {told}");
}

#[test]
fn a_token_outlives_its_episode_unless_the_request_says_otherwise() {
    let mut body = with("/timeout_seconds", json!(7200));
    assert_eq!(read(&body).expect("a good body").settings.token_ttl_s, 7260);
    body["agent"]["settings"]["mcp_token_ttl_s"] = json!(60);
    assert_eq!(read(&body).expect("a good body").settings.token_ttl_s, 60);
}

#[test]
fn a_prompt_is_free_or_of_a_skill_or_does_not_say() {
    for source in [json!("free"), json!("skill:summary"), Value::Null, json!("(removed)")] {
        let body = with("/metadata/prompt_source", source);
        assert!(read(&body).is_ok(), "{body}");
    }
}

#[test]
fn unknown_top_level_fields_are_warned_about_only() {
    let request = read(&with("/priority", json!(3))).expect("accepted");
    assert_eq!(request.warnings, ["priority: unknown field, ignored"]);
}
