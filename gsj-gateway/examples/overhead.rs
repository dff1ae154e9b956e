//! What the gateway adds to one model call: the same calls to the scripted engine with and
//! without it, one after the other, printed as medians.
//!
//! `cargo run --release -p gsj-gateway --features scripted-engine --example overhead [calls]`

#![expect(clippy::print_stdout, reason = "a program for people")]

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gsj_gateway::scripted::{ScriptedEngine, ScriptedOptions};
use gsj_gateway::{Engine, EngineKind, EngineOptions, Session, SessionOptions};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Words make tokens enough here; the special token ends a turn.
const TOKENIZER: &str = r#"{"version":"1.0","truncation":null,"padding":null,"added_tokens":[{"id":2,"content":"<|im_end|>","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true}],"normalizer":null,"pre_tokenizer":{"type":"WhitespaceSplit"},"post_processor":null,"decoder":null,"model":{"type":"WordLevel","vocab":{"[unk]":0,"word":1,"<|im_end|>":2},"unk_token":"[unk]"}}"#;
const TEMPLATE: &str = "{% for m in messages %}{{ m.content }}<|im_end|>{% endfor %}";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let calls: usize = std::env::args().nth(1).map_or(Ok(300), |n| n.parse())?;
    let script = serde_json::json!([{"content": "word ".repeat(200)}]).to_string();
    let engine = ScriptedEngine::new(ScriptedOptions::new(script, TOKENIZER, TEMPLATE, EngineKind::Vllm, "m"))?;
    let stop = CancellationToken::new();
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let direct = format!("http://{}", listener.local_addr()?);
    let serving = tokio::spawn({
        let stop = stop.clone();
        async move { engine.serve(listener, stop).await }
    });
    let folder = std::env::temp_dir().join(format!("gsj-overhead-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;

    println!("median of {calls} calls, a prompt of 3,000 words, 200 tokens back");
    for (name, stream) in [("streamed", true), ("whole", false)] {
        let options = EngineOptions { stream, ..EngineOptions::new(EngineKind::Vllm, &*direct, "m") };
        let session = Session::open(Arc::new(Engine::new(options)?), SessionOptions::new("s", folder.join(name)))?;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let proxied = format!("http://{}", listener.local_addr()?);
        let gateway = tokio::spawn(axum::serve(listener, session.router()).into_future());
        // Each side in turn, so that a busy machine is busy for both.
        let client = reqwest::Client::builder().no_proxy().tls_certs_only([]).build()?;
        let (mut bare, mut through) = (Vec::new(), Vec::new());
        for _ in 0..calls {
            bare.push(call(&client, &direct, stream).await?);
            through.push(call(&client, &proxied, stream).await?);
        }
        let (bare, through) = (median(bare), median(through));
        let added = [through.0.saturating_sub(bare.0), through.1.saturating_sub(bare.1)];
        println!("{name:9} first byte {:?} + {:?}   whole call {:?} + {:?}", bare.0, added[0], bare.1, added[1]);
        session.finish().await;
        gateway.abort();
    }
    stop.cancel();
    serving.await??;
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}

/// Times to the first byte and to the last.
async fn call(client: &reqwest::Client, url: &str, stream: bool) -> reqwest::Result<(Duration, Duration)> {
    let request = serde_json::json!({
        "model": "m", "messages": [{"role": "user", "content": "word ".repeat(3000)}], "stream": stream,
        "logprobs": true, "top_logprobs": 0, "return_token_ids": true,
    });
    let body = request.to_string();
    let begun = Instant::now();
    let mut response = client.post(format!("{url}/v1/chat/completions")).body(body).send().await?.error_for_status()?;
    let mut first = None;
    while response.chunk().await?.is_some() {
        first.get_or_insert_with(|| begun.elapsed());
    }
    Ok((first.unwrap_or_default(), begun.elapsed()))
}

fn median(mut times: Vec<(Duration, Duration)>) -> (Duration, Duration) {
    let middle = times.len() / 2;
    times.sort_by_key(|time| time.0);
    let first = times.get(middle).map_or(Duration::ZERO, |time| time.0);
    times.sort_by_key(|time| time.1);
    (first, times.get(middle).map_or(Duration::ZERO, |time| time.1))
}
