//! The project's own tokenizer, template and scripts, played through the gateway by an agent that
//! writes its history as pi does.

use std::path::Path;

use gsj_gateway::scripted::ScriptedOptions;
use gsj_gateway::{EngineKind, EngineOptions};
use gsj_trace::json::{Value as Json, ValueRef};
use serde_json::{Value, json};

use crate::support::{Gateway, KINDS, MODEL, Served, engine_options};

fn fixture(path: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures").join(path);
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}; `cargo xtask fixtures` writes it", path.display()))
}

fn scripted(script: &str, kind: EngineKind) -> ScriptedOptions {
    let template = String::from_utf8(fixture("template/chat_template.jinja")).unwrap();
    ScriptedOptions::new(fixture(script), fixture("tokenizer/tokenizer.json"), template, kind, MODEL)
}

fn tools() -> Value {
    let parameters = json!({"type": "object", "required": ["path"], "properties": {"path": {"type": "string", "description": "a <path> & 'more'"}}});
    json!([{"type": "function", "function": {"name": "read", "description": "Reads a file.", "parameters": parameters, "strict": false}}])
}

/// Plays the whole script; gives the number of calls.
async fn play(gateway: &Gateway) -> usize {
    let mut request = json!({
        "model": "m", "stream": true, "stream_options": {"include_usage": true}, "store": false, "max_completion_tokens": 8192,
        "messages": [
            {"role": "system", "content": "You help."},
            {"role": "user", "content": [{"type": "text", "text": "Summarize the file."}]},
        ],
        "tools": tools(), "chat_template_kwargs": {"enable_thinking": false, "preserve_thinking": true},
    });
    for turn in 1..50 {
        let answer = gateway.ask(&request).await;
        let calls = answer.message["tool_calls"].as_array().cloned().unwrap_or_default();
        if calls.is_empty() {
            return turn;
        }
        let messages = request["messages"].as_array_mut().unwrap();
        let shown: Vec<Value> = calls
            .iter()
            .map(|call| {
                let arguments: Value = serde_json::from_str(call["function"]["arguments"].as_str().unwrap()).unwrap();
                json!({"id": call["id"], "type": "function", "function": {"name": call["function"]["name"], "arguments": arguments.to_string()}})
            })
            .collect();
        messages.push(json!({"role": "assistant", "content": answer.message["content"], "tool_calls": shown}));
        for call in &calls {
            messages.push(
                json!({"role": "tool", "content": format!("result of turn {turn}\n"), "tool_call_id": call["id"]}),
            );
        }
    }
    panic!("the script does not end");
}

#[tokio::test]
async fn a_whole_script_becomes_one_trajectory_whose_context_is_exact() {
    for (script, kind) in
        ["scripts/demo.json", "scripts/long.json", "scripts/two-turns.json"].into_iter().zip(KINDS.iter().cycle())
    {
        let engine = Served::scripted(scripted(script, *kind)).await;
        let gateway = Gateway::open(EngineOptions { stream: true, ..engine_options(*kind, engine.url()) }).await;
        let turns = play(&gateway).await;
        let recorded = gateway.finish().await;
        assert_eq!((recorded.calls, recorded.failure), (turns, None), "{script}");

        let ids = |record: ValueRef<'_>, key: &str| -> Vec<u32> {
            let choice = record.pointer("/response/choices/0");
            let list = choice.and_then(|c| c.get(key)).or_else(|| record.pointer("/response/prompt_token_ids"));
            list.and_then(ValueRef::as_array).and_then(|a| a.as_u32s()).map(<[u32]>::to_vec).unwrap_or_default()
        };
        let records = recorded.document.get("completions").and_then(ValueRef::as_array).unwrap();
        let mut context: Vec<u32> = Vec::new();
        for (turn, record) in records.iter().enumerate() {
            let prompt = ids(record, "input_token_ids");
            assert!(
                prompt.len() > context.len() && prompt.starts_with(&context),
                "{script}, turn {turn}: what was said stands in the next prompt, id for id"
            );
            context = prompt;
            context.extend(ids(record, "token_ids"));
        }

        let eot = gsj_gateway::scripted::ScriptedEngine::new(scripted(script, *kind)).unwrap().end_of_turn_token_id();
        let options =
            gsj_trace::reconstruct::Options { end_of_turn_token_id: Some(i64::from(eot)), ..Default::default() };
        let trajectory = gsj_trace::reconstruct::build(&recorded.document, &options).unwrap();
        assert_eq!(
            trajectory.get("status").and_then(ValueRef::as_str),
            Some("COMPLETED"),
            "{script}: {:?}",
            trajectory.get("error")
        );
        let traces = trajectory.get("traces").and_then(ValueRef::as_array).map(|t| t.len());
        assert_eq!(traces, Some(1), "{script}");
        let trained = trajectory
            .pointer("/traces/0/loss_mask")
            .and_then(ValueRef::as_array)
            .unwrap()
            .iter()
            .filter(|m| m.as_i64() == Some(1))
            .count();
        assert_eq!(trained as u64, recorded.tokens, "{script}: every sampled token is trained on");
        assert!(Json::parse(trajectory.to_json().as_bytes()).is_ok());
    }
}

#[tokio::test]
async fn the_trajectory_merged_while_the_session_runs_is_that_of_its_log() {
    for kind in KINDS {
        let script = || scripted("scripts/demo.json", kind);
        let eot = gsj_gateway::scripted::ScriptedEngine::new(script()).unwrap().end_of_turn_token_id();
        let engine = Served::scripted(script()).await;
        let builder =
            gsj_trace::reconstruct::Options { end_of_turn_token_id: Some(i64::from(eot)), ..Default::default() };
        let options = EngineOptions { stream: true, ..engine_options(kind, engine.url()) };
        let gateway = Gateway::open_with(options, |options| options.builder = Some(builder.clone())).await;
        let turns = play(&gateway).await;
        let recorded = gateway.finish().await;
        assert_eq!((recorded.calls, recorded.failure), (turns, None));
        let merged = recorded.trajectory.expect("calls came one after another");
        assert_eq!(
            merged.pointer("/metadata/gsj_fidelity/exact").and_then(ValueRef::as_i64),
            i64::try_from(turns).ok()
        );

        let log = std::fs::read(&gateway.log).unwrap();
        let mut document = recorded.document;
        assert_eq!(document.pointer("/completions/0"), None, "the calls are in the trajectory");
        let completions = log.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let completions: Vec<Json<'_>> = completions.map(|line| Json::parse(line).unwrap()).collect();
        document.as_object_mut().unwrap().insert("completions", completions);
        assert_eq!(merged, gsj_trace::reconstruct::build(&document, &builder).unwrap());
    }
}
