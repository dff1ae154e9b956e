//! The cutoff law: an answer at T is a function of pages 1..T, byte for byte (retrieval.md section 6).

use crate::support::{NOW, post, secret, send, service_of, token};
use axum::Router;
use axum::body::Body;
use axum::http::Request;
use gsj_cutoff::tokens::{Claims, mint};
use gsj_retrieval::Library;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestError, TestRng, TestRunner};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Numbers that follow from a seed.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// Words of which those from 100 on stand only on pages after the cutoff.
fn word(number: u64) -> String {
    match number % 9 {
        0 => format!("SN-{:07}", 100_000 + number),
        1 => format!("Größe{number}straße"),
        2 => ["the", "of", "der", "und", "page", "md"][(number % 6) as usize].to_owned(),
        3 => format!("{number}"),
        4 => format!("wörter{number}s"),
        5 => format!("crates{}", number / 3),
        _ => format!("word{number}"),
    }
}

/// A page; what it says depends on the seed, its number and on which side of the cutoff it stands, so that pages 1..T are
/// the same whatever follows them.
fn page(seed: u64, number: u32, later: bool) -> String {
    let mut numbers = Numbers(seed ^ (u64::from(number) << 32));
    let mut text = if numbers.below(4) == 0 { String::new() } else { format!("## Page {number}\r\n\r\n") };
    for _ in 0..numbers.below(6) {
        let opening = numbers.below(12);
        text.push_str(match opening {
            0 => "| ",
            1 => "- ",
            _ => "",
        });
        for _ in 0..=numbers.below(9) {
            let chosen = if later { 50 + numbers.below(150) } else { numbers.below(100) };
            text.push_str(&word(chosen));
            text.push(' ');
        }
        text.push_str(if numbers.below(3) == 0 { ".\n\n" } else { ". " });
    }
    text
}

/// Queries, every other of them with words that stand only after the cutoff.
fn queries(seed: u64, count: u64) -> Vec<String> {
    let mut numbers = Numbers(seed);
    let of = |number: u64| -> String {
        let words = (0..=numbers.below(5)).map(|place| {
            let late = number.is_multiple_of(2) && (place == 0 || numbers.below(2) == 0);
            word(if late { 100 + numbers.below(100) } else { numbers.below(100) })
        });
        words.collect::<Vec<_>>().join(" ")
    };
    (0..count).map(of).collect()
}

/// A case of pages 1..T, and the same with later pages.
#[derive(Debug, Clone)]
struct Case {
    seed: u64,
    seen: u32,
    later: u32,
    k: u32,
}

fn case() -> impl Strategy<Value = Case> {
    (any::<u64>(), 20_u32..=200, 1_u32..=100, 1_u32..=20).prop_map(|(seed, pages, share, k)| {
        let later = (pages * share / 100).clamp(1, pages - 1);
        Case { seed, seen: pages - later, later, k }
    })
}

fn serve(case: &Case, later: u32) -> Router {
    let pages = (1..=case.seen + later).map(|number| page(case.seed, number, number > case.seen)).collect();
    service_of(Library::from_pages(BTreeMap::from([("alpha".to_owned(), pages)])).expect("valid")).router()
}

fn tool(name: &str, arguments: Value) -> String {
    let params = json!({"name": name, "arguments": arguments});
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string()
}

/// What is asked of both services: path and body.
fn questions(case: &Case) -> Vec<(String, String)> {
    let path = format!("/mcp/{}", token("alpha", case.seen));
    let mut asked = Vec::new();
    let mut ask = |body: String| asked.push((path.clone(), body));
    for query in queries(case.seed, 8) {
        ask(tool("search_case", json!({"query": query, "k": case.k})));
    }
    let last = case.seen + case.later;
    for query in [
        String::new(),
        "?! …".to_owned(),
        "the of der und".to_owned(),
        format!("page {last} md/page_{last:04}.md"),
        "\u{0}\u{feff}ÄÖÜ ﬁ Ⅻ ٣ 漢字 🦀 e\u{301} STRASSE".to_owned(),
        (0..200).map(|number| word(number) + " ").collect(),
        "word190 ".repeat(2_000),
        "x".repeat(20_000),
    ] {
        ask(tool("search_case", json!({"query": query})));
    }
    let all = json!({"query": word(150), "k": 1e9, "page": last, "timestep": last, "case_id": "beta"});
    ask(tool("search_case", all));
    ask(tool("case_status", json!({"timestep": last})));
    ask(tool("search_decisions", json!({"query": "storage", "k": 3})));
    ask(tool("decision_stats", json!({})));
    // Faults and what is no call of a tool.
    ask(tool("search_case", json!({"query": last, "k": 2})));
    ask(tool("search_case", json!({"query": "word1", "k": last as f32 + 0.5})));
    ask(tool("search_pages", json!({"query": "word1"})));
    ask(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string());
    ask(json!({"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": format!("page:{last}")}})
        .to_string());
    ask("{".to_owned());
    // Refusals.
    let ping = json!({"jsonrpc": "2.0", "id": "x", "method": "ping"}).to_string();
    let expired = Claims { case_id: "alpha".into(), timestep: case.seen, episode_id: "ep-1".into(), exp: NOW - 31 };
    let expired = mint(&expired, &secret()).expect("valid claims");
    for refused in
        [token("alpha", last + 1), token("alpha", 9_999), token("beta", last), expired, "x".into(), String::new()]
    {
        asked.push((format!("/mcp/{refused}"), ping.clone()));
    }
    asked
}

async fn compare(case: &Case) -> Result<(), TestCaseError> {
    let (cut, whole) = (serve(case, 0), serve(case, case.later));
    for (path, body) in questions(case) {
        let of_cut = send(&cut, post(&path, body.clone())).await;
        let of_whole = send(&whole, post(&path, body.clone())).await;
        prop_assert_eq!(of_cut.status, of_whole.status, "{}", body);
        prop_assert_eq!(of_cut.headers, of_whole.headers, "{}", body);
        prop_assert_eq!(of_cut.body, of_whole.body, "{}", body);
    }
    for path in ["/health".to_owned(), format!("/mcp/{}", token("alpha", case.seen)), "/".to_owned()] {
        let get = || Request::get(&path).body(Body::empty()).expect("valid");
        let (of_cut, of_whole) = (send(&cut, get()).await, send(&whole, get()).await);
        prop_assert_eq!(
            (of_cut.status, of_cut.headers, of_cut.body),
            (of_whole.status, of_whole.headers, of_whole.body)
        );
    }
    Ok(())
}

/// Compares random cases, half of them on each of two threads.
#[test]
fn whole_answers_are_equal_with_and_without_later_pages() {
    let cases = if std::env::var_os("GSJ_TEST_ALL").is_some() { 2_000 } else { 16 };
    let half = |number: u8| {
        let config = Config { cases: cases / 2, failure_persistence: None, ..Config::default() };
        let rng = TestRng::from_seed(config.rng_algorithm, &[number; 32]);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        let done = TestRunner::new_with_rng(config, rng).run(&case(), |case| runtime.block_on(compare(&case)));
        done.map_err(|error| match error {
            TestError::Fail(why, case) => format!("{case:?}: {why}"),
            TestError::Abort(why) => why.to_string(),
        })
    };
    std::thread::scope(|scope| {
        for half in [scope.spawn(|| half(1)), scope.spawn(|| half(2))] {
            assert_eq!(half.join().expect("no panic"), Ok(()));
        }
    });
}

/// The comparison can fail: a page more before the cutoff shows.
#[tokio::test]
async fn a_page_before_the_cutoff_does_change_answers() {
    let case = Case { seed: 3, seen: 40, later: 5, k: 5 };
    let (cut, whole) = (serve(&case, 0), serve(&case, case.later));
    let mut differ = 0;
    for query in queries(case.seed, 8) {
        let body = tool("search_case", json!({"query": query}));
        let of_cut = send(&cut, post(&format!("/mcp/{}", token("alpha", 40)), body.clone())).await;
        let of_whole = send(&whole, post(&format!("/mcp/{}", token("alpha", 45)), body)).await;
        differ += usize::from(of_cut.body != of_whole.body);
    }
    assert!(differ > 4, "later pages hold what half of the queries ask for");
}
