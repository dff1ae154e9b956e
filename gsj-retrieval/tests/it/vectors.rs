//! Against the shared vectors: the reference estate's declarations, decisions and tokens, and the judged queries.

use crate::support::{call, options, post, secret, send, shared, texts, token};
use axum::http::StatusCode;
use gsj_cutoff::tokens::Secret;
use gsj_retrieval::{Library, Options, Service, Tools};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

fn read(path: &str) -> Option<Value> {
    let path = shared(path)?;
    Some(serde_json::from_slice(&fs::read(path).expect("readable")).expect("JSON"))
}

#[tokio::test]
async fn the_reference_declarations_are_served_as_they_stand() {
    let Some(path) = shared("vectors/retrieval/tools-list.json") else { return };
    let bytes = fs::read(path).expect("readable");
    let document: Value = serde_json::from_slice(&bytes).expect("JSON");
    let tools = Tools::from_bytes(&bytes).expect("usable");
    let router = Service::new(crate::support::library(), tools, vec![secret()], options()).router();
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
    let answer = send(&router, post(&format!("/mcp/{}", token("alpha", 1)), body)).await;
    // Text, not values: the order of members is part of it.
    assert!(answer.body.contains(&document["tools_list"]["tools"].to_string()));
    assert_eq!(answer.event()["result"], document["tools_list"]);
}

#[test]
fn the_reference_decisions_load() {
    let Some(path) = shared("vectors/retrieval/decisions.json") else { return };
    let library = crate::support::library().with_decisions(&fs::read(path).expect("readable")).expect("usable");
    assert_eq!(library.decision_count(), 30);
    let hits = library.search_decisions(1, "AZ-2022-BGH-C-2", 1);
    assert_eq!(hits[0].decision_id, "D-2022-BGH-C-2");
}

#[tokio::test]
async fn the_reference_decisions_are_counted_as_the_reference_counts() {
    let (Some(document), Some(path)) =
        (read("vectors/retrieval/decisions.json"), shared("vectors/retrieval/decisions.json"))
    else {
        return;
    };
    // Compact, with sorted keys; every text is ASCII.
    let sorted = |record: &Value| serde_json::from_value::<BTreeMap<String, Value>>(record.clone()).expect("a record");
    let records: Vec<_> = document["decisions"].as_array().expect("records").iter().map(sorted).collect();
    let digest = hex::encode(Sha256::digest(serde_json::to_string(&records).expect("JSON")));
    assert_eq!(document["canonical_sha256"], json!(digest), "this is the set that the specification names");

    let library = crate::support::library().with_decisions(&fs::read(path).expect("readable")).expect("usable");
    let router = Service::new(library, Tools::builtin().expect("shipped"), vec![secret()], options()).router();
    let stats = document["stats"].as_array().expect("stats");
    assert!(!stats.is_empty());
    for vector in stats {
        let result = call(&router, &token("alpha", 1), "decision_stats", vector["args"].clone()).await;
        // Text, not values: the order of the members counts.
        assert_eq!(
            texts(&result),
            [serde_json::to_string_pretty(&vector["result"]).expect("JSON")],
            "{}",
            vector["args"]
        );
    }
}

#[tokio::test]
async fn token_vectors_get_their_verdicts() {
    let Some(document) = read("vectors/tokens/jwt.json") else { return };
    let cases = document["cases"].as_object().expect("cases");
    let pages = |count: &Value| vec!["x".to_owned(); usize::try_from(count.as_u64().expect("a count")).expect("small")];
    let library =
        Library::from_pages(cases.iter().map(|(id, count)| (id.clone(), pages(count))).collect::<BTreeMap<_, _>>());
    let now = document["now"].as_i64().expect("now");
    let secret = Secret::new(document["secret"].as_str().expect("a secret").as_bytes().to_vec()).expect("long enough");
    let tools = Tools::builtin().expect("shipped");
    let router =
        Service::new(library.expect("valid"), tools, vec![secret], Options::new(Arc::new(move || now))).router();
    let (mut wrong, mut accepts) = (Vec::new(), 0);
    for vector in document["vectors"].as_array().expect("vectors") {
        let token = vector["token"].as_str().expect("a token");
        let encoded: String = token.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let accepted = if vector["kind"] == "admin" {
            // Not every text can stand in a header; what cannot is as good as refused.
            let request = axum::http::Request::get("/health").header("authorization", format!("Bearer {token}"));
            match request.body(axum::body::Body::empty()) {
                Ok(request) => send(&router, request).await.json().get("cases").is_some(),
                Err(_) => false,
            }
        } else {
            let body = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
            send(&router, post(&format!("/mcp/{encoded}"), body)).await.status == StatusCode::OK
        };
        accepts += usize::from(accepted);
        if accepted != (vector["want"] == "accept") {
            wrong.push(format!("{} {}: {accepted}", vector["id"], vector["title"]));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(accepts > 0, "the clock and the secret are those of the vectors");
}

#[test]
fn judged_queries_are_answered_better_than_by_the_reference_and_never_past_the_cutoff() {
    let (Some(queries), Some(reference), Some(corpus)) = (
        read("vectors/retrieval/search.json"),
        read("vectors/retrieval/search-reference.json"),
        shared("data/staging-corpus"),
    ) else {
        return;
    };
    let found_there = |id: &Value| -> Vec<u64> {
        let results = reference["results"].as_array().expect("results");
        let result = results.iter().find(|result| result["id"] == *id).expect("every query was asked there too");
        result["pages"].as_array().expect("pages").iter().filter_map(Value::as_u64).collect()
    };
    let library = Library::from_corpus_dir(&corpus).expect("valid corpus");
    let (mut sum, mut sum_there, mut judged) = (0.0, 0.0, 0_u32);
    for query in queries["queries"].as_array().expect("queries") {
        let timestep = u32::try_from(query["timestep"].as_u64().expect("a timestep")).expect("small");
        let text = query["query"].as_str().expect("a query");
        let hits =
            library.search_case(query["case_id"].as_str().expect("a case"), timestep, text, 5).expect("in range");
        let relevant: Vec<u64> =
            query["relevant"].as_array().expect("pages").iter().filter_map(Value::as_u64).collect();
        assert!(hits.iter().all(|hit| hit.page <= timestep), "{}", query["id"]);
        if query["kind"] == "identifier" {
            let first = hits.first().map(|hit| u64::from(hit.page));
            assert!(first.is_some_and(|page| relevant.contains(&page)), "{}: serial numbers come first", query["id"]);
        }
        if relevant.is_empty() {
            continue;
        }
        let gain = |rank: usize| 1.0 / (rank as f64 + 2.0).log2();
        let best: f64 = (0..relevant.len().min(5)).map(gain).sum();
        let ndcg = |pages: &[u64]| -> f64 {
            let gains =
                pages.iter().enumerate().filter(|(_, page)| relevant.contains(page)).map(|(rank, _)| gain(rank));
            gains.sum::<f64>() / best
        };
        sum += ndcg(&hits.iter().map(|hit| u64::from(hit.page)).collect::<Vec<_>>());
        sum_there += ndcg(&found_there(&query["id"]));
        judged += 1;
    }
    assert!(judged > 0);
    let (ndcg, there) = (sum / f64::from(judged), sum_there / f64::from(judged));
    eprintln!("nDCG@5 over {judged} judged queries: {ndcg:.3}, the reference {there:.3}");
    assert!(ndcg >= 0.82 && ndcg > there, "{ndcg}, the reference {there}");
}
