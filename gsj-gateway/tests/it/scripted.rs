use gsj_gateway::scripted::ScriptedEngine;
use gsj_gateway::{Engine, EngineKind};
use serde_json::{Value, json};

use crate::support::{KINDS, Served, engine_options, scripted_options, user};

async fn post(engine: &Served, path: &str, body: &Value) -> Value {
    let client = reqwest::Client::builder().no_proxy().tls_certs_only([]).build().unwrap();
    let answer = client.post(format!("{}{path}", engine.url())).body(body.to_string()).send().await.unwrap();
    serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap()
}

#[tokio::test]
async fn it_states_itself_as_scripted() {
    for kind in KINDS {
        let engine = Served::scripted(scripted_options(&json!([]), kind)).await;
        let client = Engine::new(engine_options(kind, engine.url())).unwrap();
        let identity = serde_json::to_value(client.identity().await).unwrap();
        assert_eq!(
            identity,
            json!({"kind": "scripted", "version": concat!("scripted ", env!("CARGO_PKG_VERSION")), "model": "tiny", "tokenizer_hash": null,
                "chat_template_hash": null, "logprobs_mode": null, "measured": ["kind", "model", "version"]})
        );
    }
}

#[tokio::test]
async fn an_engine_that_says_nothing_is_unknown() {
    let other = Served::router(axum::Router::new()).await;
    let identity = Engine::new(engine_options(EngineKind::Vllm, other.url())).unwrap().identity().await;
    assert_eq!((identity.version, identity.model, identity.measured), (None, None, Vec::new()));
}

#[tokio::test]
async fn text_and_ids_go_both_ways() {
    let engine = Served::scripted(scripted_options(&json!([]), EngineKind::Vllm)).await;
    let client = Engine::new(engine_options(EngineKind::Vllm, engine.url())).unwrap();
    let ids = client.tokenize("é<|im_end|>\n").await.unwrap();
    assert_eq!(ids, [0xc3, 0xa9, 258, 10]);
    assert_eq!(post(&engine, "/detokenize", &json!({"tokens": ids})).await["prompt"], "é<|im_end|>\n");
    let rendered = post(&engine, "/tokenize", &user("do")).await;
    let text = post(&engine, "/detokenize", &json!({"tokens": rendered["tokens"]})).await;
    assert_eq!(
        text["prompt"],
        "<|im_start|>system\ns<|im_end|>\n<|im_start|>user\ndo<|im_end|>\n<|im_start|>assistant\n"
    );
}

#[tokio::test]
async fn the_thinking_switch_reaches_the_template() {
    let engine = Served::scripted(scripted_options(&json!([]), EngineKind::Vllm)).await;
    let mut request = user("do");
    request["chat_template_kwargs"] = json!({"enable_thinking": false});
    let rendered = post(&engine, "/tokenize", &request).await;
    let text = post(&engine, "/detokenize", &json!({"tokens": rendered["tokens"]})).await;
    assert!(text["prompt"].as_str().unwrap().ends_with("assistant\n<think>\n\n</think>\n\n"), "{text}");
}

#[tokio::test]
async fn limits_cut_what_is_said() {
    let engine = Served::scripted(scripted_options(
        &json!([{"content": "long text"}, {"content": "x", "finish_reason": "length"}]),
        EngineKind::Vllm,
    ))
    .await;
    let mut request = user("do");
    request["stream"] = json!(false);
    request["model"] = json!("tiny");
    request["max_tokens"] = json!(4);
    let answer = post(&engine, "/v1/chat/completions", &request).await;
    assert_eq!(
        (&answer["choices"][0]["message"]["content"], &answer["choices"][0]["finish_reason"]),
        (&json!("long"), &json!("length"))
    );
    request["messages"].as_array_mut().unwrap().push(json!({"role": "assistant", "content": "long"}));
    request["return_token_ids"] = json!(true);
    let answer = post(&engine, "/v1/chat/completions", &request).await;
    assert_eq!(answer["choices"][0]["finish_reason"], "length");
    assert_eq!(answer["choices"][0]["token_ids"], json!([120]), "a forced length has no end of turn");
}

#[test]
fn what_it_is_made_of_is_checked_at_the_start() {
    let mut broken = scripted_options(&json!([]), EngineKind::Vllm);
    broken.tokenizer = b"{}".to_vec();
    assert!(ScriptedEngine::new(broken).unwrap_err().to_string().starts_with("read tokenizer.json"));
    let mut broken = scripted_options(&json!([]), EngineKind::Vllm);
    broken.template = "{% if %}".to_owned();
    assert!(ScriptedEngine::new(broken).unwrap_err().to_string().starts_with("compile the chat template"));
    let broken = scripted_options(&json!({"script": []}), EngineKind::Vllm);
    assert!(ScriptedEngine::new(broken).unwrap_err().to_string().starts_with("read the script"));
    let whole = ScriptedEngine::new(scripted_options(&json!([]), EngineKind::Vllm)).unwrap();
    assert_eq!(whole.end_of_turn_token_id(), 258);
}
