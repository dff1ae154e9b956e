//! Against an engine with a real model, when one is named: `GSJ_TEST_ENGINE_URL`,
//! `GSJ_TEST_ENGINE_KIND` (`vllm` or `sglang`) and `GSJ_TEST_ENGINE_MODEL`.

use std::env;
use std::time::Duration;

use gsj_gateway::{EngineKind, EngineOptions, Sampling};
use serde_json::{Value, json};

use crate::support::{Gateway, engine_options, user};

#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn named() -> Option<(String, EngineKind, String)> {
    let named = (env::var("GSJ_TEST_ENGINE_URL"), env::var("GSJ_TEST_ENGINE_KIND"), env::var("GSJ_TEST_ENGINE_MODEL"));
    let (Ok(url), Ok(kind), Ok(model)) = named else {
        eprintln!("SKIPPED: no engine is named in GSJ_TEST_ENGINE_URL, GSJ_TEST_ENGINE_KIND and GSJ_TEST_ENGINE_MODEL");
        return None;
    };
    Some((url, kind.parse().unwrap(), model))
}

#[tokio::test]
async fn captured_logprobs_are_those_that_a_replay_gives() {
    let Some((url, kind, model)) = named() else { return };
    for (stream, agent_stream) in [(true, true), (false, true), (true, false), (false, false)] {
        let options = EngineOptions {
            stream,
            model: model.clone(),
            read_timeout: Duration::from_secs(300),
            sampling: Sampling { temperature: Some(0.9), seed: Some(11), max_tokens: Some(24), ..Sampling::default() },
            ..engine_options(kind, &*url)
        };
        let gateway = Gateway::open(options).await;
        let mut request = user("Name three rivers.");
        request["stream"] = json!(agent_stream);
        gateway.ask(&request).await;
        let record = &gateway.records()[0];
        let choice = &record["response"]["choices"][0];
        let prompt =
            if kind == EngineKind::Vllm { &record["response"]["prompt_token_ids"] } else { &choice["input_token_ids"] };
        let (prompt, ids) = (prompt.as_array().unwrap(), choice["token_ids"].as_array().unwrap());
        let entries = choice["logprobs"]["content"].as_array().unwrap();
        assert_eq!(entries.len(), ids.len());
        let whole: Vec<&Value> = prompt.iter().chain(ids).collect();
        let body = json!({"model": model, "prompt": whole, "max_tokens": 0, "echo": true, "logprobs": 0});
        let answer = gateway.client.post(format!("{url}/v1/completions")).body(body.to_string()).send().await.unwrap();
        let answer: Value = serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap();
        let replayed = answer["choices"][0]["logprobs"]["token_logprobs"].as_array().unwrap();
        for (i, entry) in entries.iter().enumerate() {
            assert_eq!(entry["token_id"], ids[i]);
            let (captured, again) = (entry["logprob"].as_f64().unwrap(), replayed[prompt.len() + i].as_f64().unwrap());
            assert!((captured - again).abs() < 1e-4, "token {i}: {captured} captured, {again} replayed");
        }
        assert_eq!(gateway.finish().await.failure, None);
    }
}
