use gsj_gateway::{EngineKind, EngineOptions, Sampling};
use serde_json::{Value, json};

use crate::support::{Answer, Gateway, KINDS, Served, engine_options, scripted_options, user};

fn script() -> Value {
    json!([
        {"content": "I look.", "reasoning": "First the folder.\nThen more of it, which takes a while.",
         "tool_calls": [{"name": "bash", "arguments": {"command": "ls -la \"ä ö\" | head"}}, {"name": "read", "arguments": {"path": "a.md"}}]},
        {"content": "All is well, and there is nothing more to be said about it. ✓"},
    ])
}

/// What a record says of one call, whatever form it came in.
fn essence(record: &Value) -> Value {
    let choice = &record["response"]["choices"][0];
    let prompt = [&choice["input_token_ids"], &choice["prompt_token_ids"], &record["response"]["prompt_token_ids"]]
        .into_iter()
        .find(|ids| ids.is_array())
        .cloned();
    let logprobs: Vec<Value> = choice["logprobs"]["content"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| json!([e["token_id"], e["logprob"]]))
        .collect();
    let ids: Vec<&Value> = choice["token_ids"].as_array().unwrap().iter().collect();
    assert_eq!(ids.len(), logprobs.len(), "an entry for each id");
    assert!(ids.iter().zip(&logprobs).all(|(id, pair)| **id == pair[0]), "entries are stamped with their ids");
    json!({"prompt": prompt, "logprobs": logprobs, "finish_reason": choice["finish_reason"],
        "usage": record["response"]["usage"]["completion_tokens"]})
}

fn assert_clean(text: &str) {
    for hidden in ["token_ids", "meta_info", "\"logprob\"", "\"logprobs\":{", "\"reasoning\":", "token_id"] {
        assert!(!text.contains(hidden), "the agent did not ask for {hidden}: {text}");
    }
}

/// Two turns with tool calls; gives what the agent understood and what was recorded.
async fn converse(kind: EngineKind, engine_stream: bool, agent_stream: bool) -> (Vec<Answer>, Value) {
    let engine = Served::scripted(scripted_options(&script(), kind)).await;
    let options = EngineOptions { stream: engine_stream, ..engine_options(kind, engine.url()) };
    let gateway = Gateway::open(options).await;
    let mut request = user("do");
    request["stream"] = json!(agent_stream);
    let first = gateway.ask(&request).await;
    let messages = request["messages"].as_array_mut().unwrap();
    let mut said = first.message.clone();
    said["role"] = json!("assistant");
    // An agent writes arguments its own way: `{"command":..}` without blanks.
    for call in said["tool_calls"].as_array_mut().unwrap() {
        let arguments: Value = serde_json::from_str(call["function"]["arguments"].as_str().unwrap()).unwrap();
        call["function"]["arguments"] = json!(arguments.to_string());
    }
    messages.push(said);
    messages.push(json!({"role": "tool", "tool_call_id": first.message["tool_calls"][0]["id"], "content": "a.md"}));
    let second = gateway.ask(&request).await;
    for answer in [&first, &second] {
        assert_clean(&answer.text);
    }
    let records = gateway.records();
    let recorded = gateway.finish().await;
    assert_eq!((recorded.calls, recorded.aborted, recorded.failure), (2, 0, None));
    let document: Value = serde_json::from_str(&recorded.document.to_json()).unwrap();
    assert_eq!(document["completions"][1]["response"], records[1]["response"], "the document holds what the log holds");
    assert_eq!(document["completions"][1]["original_request"], request, "the request as the agent sent it");
    (vec![first, second], records.iter().map(essence).collect())
}

/// Message, finish reason, usage.
type Understood = (Value, Value, Value);

#[tokio::test]
async fn every_form_of_a_call_gives_the_same_record_and_the_same_answer() {
    let mut seen: Vec<(Vec<Understood>, Value)> = Vec::new();
    for kind in KINDS {
        for (engine_stream, agent_stream) in [(true, true), (true, false), (false, true), (false, false)] {
            let (answers, record) = converse(kind, engine_stream, agent_stream).await;
            let understood = answers
                .into_iter()
                .map(|answer| {
                    let mut message = answer.message;
                    for call in message["tool_calls"].as_array_mut().into_iter().flatten() {
                        call["id"] = json!("any");
                    }
                    (message, answer.finish_reason, answer.usage)
                })
                .collect();
            seen.push((understood, record));
        }
    }
    let (understood, record) = &seen[0];
    assert_eq!(understood[0].0["content"], "I look.");
    assert_eq!(understood[0].0["reasoning_content"], "First the folder.\nThen more of it, which takes a while.");
    assert_eq!(understood[0].0["tool_calls"][0]["function"]["arguments"], r#"{"command": "ls -la \"ä ö\" | head"}"#);
    assert_eq!(understood[0].1, "tool_calls");
    assert_eq!(understood[1].1, "stop");
    let prompt = record[1]["prompt"].as_array().unwrap();
    let first: Vec<&Value> = record[0]["prompt"]
        .as_array()
        .unwrap()
        .iter()
        .chain(record[0]["logprobs"].as_array().unwrap().iter().map(|p| &p[0]))
        .collect();
    assert!(prompt.iter().zip(&first).all(|(a, b)| a == *b), "the second prompt continues the first turn, id for id");
    assert!(prompt.len() > first.len());
    for (i, other) in seen.iter().enumerate() {
        assert_eq!(other, &seen[0], "combination {i}");
    }
}

#[tokio::test]
async fn replaying_the_captured_ids_gives_the_captured_logprobs() {
    let engine = Served::scripted(scripted_options(&script(), EngineKind::Vllm)).await;
    let gateway = Gateway::open(engine_options(EngineKind::Vllm, engine.url())).await;
    gateway.ask(&user("do")).await;
    let essence = essence(&gateway.records()[0]);
    let prompt = essence["prompt"].as_array().unwrap().clone();
    let pairs = essence["logprobs"].as_array().unwrap();
    let ids: Vec<Value> = prompt.iter().cloned().chain(pairs.iter().map(|pair| pair[0].clone())).collect();
    let body = json!({"prompt": ids, "max_tokens": 0, "echo": true, "logprobs": 0});
    let answer =
        gateway.client.post(format!("{}/v1/completions", engine.url())).body(body.to_string()).send().await.unwrap();
    let answer: Value = serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap();
    let replayed = answer["choices"][0]["logprobs"]["token_logprobs"].as_array().unwrap();
    assert!(replayed[0].is_null(), "nothing precedes the first token");
    for (i, pair) in pairs.iter().enumerate() {
        assert_eq!(replayed[prompt.len() + i], pair[1], "position {i}");
    }
    assert!(pairs.iter().all(|pair| pair[1].as_f64().unwrap() <= 0.0), "no logprob is positive");
}

#[tokio::test]
async fn configured_sampling_reaches_the_engine_and_the_record() {
    let engine = Served::scripted(scripted_options(&json!([]), EngineKind::Vllm)).await;
    let sampling =
        Sampling { temperature: Some(0.8), top_p: Some(0.9), top_k: Some(20), seed: Some(7), max_tokens: Some(64) };
    let options = EngineOptions { sampling, ..engine_options(EngineKind::Vllm, engine.url()) };
    let gateway = Gateway::open_with(options, |session| {
        session.metadata = gsj_trace::json::Value::parse(br#"{"case_id":"c","policy_version":3}"#).unwrap();
    })
    .await;
    let mut request = user("do");
    request["temperature"] = json!(0.0);
    request["max_completion_tokens"] = json!(8192);
    gateway.ask(&request).await;
    let seen: Value = serde_json::from_slice(
        &gateway.client.get(format!("{}/requests", engine.url())).send().await.unwrap().bytes().await.unwrap(),
    )
    .unwrap();
    let sent = &seen[0]["body"];
    assert_eq!(
        [
            &sent["temperature"],
            &sent["top_p"],
            &sent["top_k"],
            &sent["seed"],
            &sent["max_completion_tokens"],
            &sent["model"]
        ],
        [&json!(0.8), &json!(0.9), &json!(20), &json!(7), &json!(64), &json!("tiny")]
    );
    assert!(seen[0]["headers"].get("authorization").is_none(), "the agent's own key goes nowhere");
    let record = &gateway.records()[0];
    assert_eq!(
        record["metadata"]["gsj_sampling"],
        json!({"temperature": 0.8, "top_p": 0.9, "top_k": 20, "seed": 7, "max_tokens": 64, "logprobs_mode": null})
    );
    assert_eq!(record["metadata"]["policy_version"], 3);
    assert_eq!(record["original_request"]["temperature"], 0.0);
    assert_eq!(record["request"]["temperature"], 0.8);
    for extra in ["return_token_ids", "logprobs", "top_logprobs"] {
        assert!(record["request"].get(extra).is_none(), "the record's request does not show {extra}");
    }
    let timing = &record["metadata"]["gsj_timing"];
    assert!(
        timing["engine_ms"].as_f64().unwrap() > 0.0 && timing["total_ms"].as_f64() >= timing["engine_ms"].as_f64(),
        "{timing}"
    );
    let mode = std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(&gateway.log).unwrap());
    assert_eq!(mode & 0o777, 0o600, "the log is its owner's alone");
}

#[tokio::test]
async fn what_the_agent_asks_for_it_gets() {
    let engine = Served::scripted(scripted_options(&json!([]), EngineKind::Vllm)).await;
    let gateway = Gateway::open(engine_options(EngineKind::Vllm, engine.url())).await;
    let mut request = user("do");
    request["logprobs"] = json!(true);
    request["return_token_ids"] = json!(true);
    request["stream_options"] = json!({"include_usage": false});
    let answer = gateway.ask(&request).await;
    assert!(
        answer.text.contains("\"logprobs\":{")
            && answer.text.contains("\"token_ids\":[")
            && answer.text.contains("\"prompt_token_ids\":[")
    );
    assert_eq!(answer.usage, Value::Null, "usage was not asked for");
    request["stream"] = json!(false);
    let answer = gateway.ask(&request).await;
    assert!(answer.text.contains("\"logprobs\":{") && answer.text.contains("\"token_ids\":["));
}
