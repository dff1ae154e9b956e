//! The four tools (retrieval.md section 5).

use crate::support::{call, library, options, post, router, secret, send, service_of, texts, token};
use gsj_retrieval::{Library, Service, TOOL_NAMES, Tools};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};

fn pages(result: &Value) -> Vec<u64> {
    let blocks = texts(result);
    let of = |text: &String| serde_json::from_str::<Value>(text).expect("JSON")["page"].as_u64().expect("a page");
    blocks.iter().map(of).collect()
}

#[tokio::test]
async fn the_listing_has_the_four_names_in_order() {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let message = send(&router(), post(&format!("/mcp/{}", token("alpha", 1)), body.to_string())).await.event();
    let listed = message["result"]["tools"].as_array().expect("tools");
    let names: Vec<&str> = listed.iter().map(|tool| tool["name"].as_str().expect("a name")).collect();
    assert_eq!(names, TOOL_NAMES);
}

#[tokio::test]
async fn a_page_hit_has_the_written_form() {
    let result = call(&router(), &token("alpha", 3), "search_case", json!({"query": "SN-0100031"})).await;
    let score = result["structuredContent"]["result"][0]["score"].as_f64().expect("a score");
    // The page's own CRLF stays; the keys stand in the order of the specification.
    let expected = format!(
        "{{\n  \"page\": 2,\n  \"file\": \"md/page_0002.md\",\n  \"score\": {score},\n  \"text\": \"## Page 2\\r\\n\\r\\nA heron \
         was painted on the door. The permit is SN-0100031.\"\n}}"
    );
    assert_eq!(texts(&result), [expected]);
    assert_eq!(result["isError"], false);
    assert_eq!(result["content"][0]["type"], "text");
    let structured: Value = serde_json::from_str(&texts(&result)[0]).expect("JSON");
    assert_eq!(result["structuredContent"], json!({"result": [structured]}));
}

#[tokio::test]
async fn letters_beyond_ascii_are_written_as_themselves_and_found_without_marks() {
    let result = call(&router(), &token("alpha", 3), "search_case", json!({"query": "GROSSMANN"})).await;
    assert_eq!(pages(&result), [3]);
    assert!(texts(&result)[0].contains("Größmann"));
}

#[tokio::test]
async fn nothing_after_the_timestep_is_found_whatever_is_asked() {
    let router = router();
    let find = async |t, query: &str| {
        pages(&call(&router, &token("alpha", t), "search_case", json!({"query": query, "k": 20})).await)
    };
    assert!(find(5, "kestrel").await.is_empty());
    assert_eq!(find(6, "kestrel").await, [6]);
    assert_eq!(find(4, "heron").await, [2]);
    let mut all = find(6, "heron").await;
    all.sort_unstable();
    assert_eq!(all, [2, 5, 6]);
    let widened = json!({"query": "kestrel", "timestep": 6, "page": 6, "case_id": "beta"});
    assert!(pages(&call(&router, &token("alpha", 5), "search_case", widened).await).is_empty());
}

/// The numbers behind each place where a text stands, of so many digits, or of all that follow.
fn numbers_behind(text: &str, what: &str, digits: Option<usize>) -> Vec<u64> {
    let behind = text.match_indices(what).map(|(at, _)| text[at + what.len()..].trim_start());
    let number = |rest: &str| -> String {
        rest.chars().take_while(char::is_ascii_digit).take(digits.unwrap_or(usize::MAX)).collect()
    };
    behind.map(|rest| number(rest).parse().expect("a number")).collect()
}

#[tokio::test]
async fn what_reads_transcripts_finds_exactly_the_pages_of_the_hits() {
    for timestep in [3, 5, 6] {
        let found = call(&router(), &token("alpha", timestep), "search_case", json!({"query": "heron", "k": 20})).await;
        let text = texts(&found).join("\n");
        assert_eq!(numbers_behind(&text, "\"page\":", None), pages(&found));
        assert_eq!(numbers_behind(&text, "md/page_", Some(4)), pages(&found));
        assert!(pages(&found).iter().all(|page| *page <= u64::from(timestep)));
        assert_eq!(text.matches(".md\"").count(), pages(&found).len());
    }
}

#[tokio::test]
async fn an_empty_list_is_empty_in_both_forms() {
    for query in ["", "  ", "zebra", "\u{0}"] {
        let result = call(&router(), &token("alpha", 3), "search_case", json!({"query": query})).await;
        assert_eq!(
            (&result["content"], &result["structuredContent"]),
            (&json!([]), &json!({"result": []})),
            "{query:?}"
        );
        assert_eq!(result["isError"], false);
    }
}

#[tokio::test]
async fn equal_pages_are_ordered_by_number_and_k_is_clamped() {
    let same = vec!["The same words.".to_owned(); 30];
    let router = service_of(Library::from_pages(BTreeMap::from([("alpha".to_owned(), same)])).expect("valid")).router();
    let find = async |k: Value| {
        pages(&call(&router, &token("alpha", 25), "search_case", json!({"query": "same", "k": k})).await)
    };
    assert_eq!(find(json!(3)).await, [1, 2, 3]);
    assert_eq!(find(json!("2")).await, [1, 2]);
    assert_eq!(find(json!(true)).await, [1]);
    assert_eq!(find(json!(0)).await, [1]);
    assert_eq!(find(json!(1e30)).await, (1..=20).collect::<Vec<_>>());
    assert_eq!(pages(&call(&router, &token("alpha", 25), "search_case", json!({"query": "same"})).await).len(), 5);
}

#[tokio::test]
async fn case_status_is_one_block_without_structure() {
    let result = call(&router(), &token("alpha", 3), "case_status", json!({"timestep": 6})).await;
    let expected = "{\n  \"case_id\": \"alpha\",\n  \"timestep\": 3,\n  \"pages_visible\": 3,\n  \"max_visible_page\": 3,\n  \
                    \"source\": \"service\"\n}";
    assert_eq!(texts(&result), [expected]);
    assert_eq!(result.get("structuredContent"), None);
}

fn decided() -> Service {
    let decisions = json!([
        {"decision_id": "D-2", "court": "LG-A", "year": 2022, "text": "storage"},
        {"decision_id": "D-1", "court": "OLG-B", "year": 2021, "text": "a ruling on storage"},
        {"decision_id": "D-3", "court": "LG-A", "year": 2021, "text": "a ruling"},
    ]);
    let library = library().with_decisions(decisions.to_string().as_bytes()).expect("valid decisions");
    Service::new(library, Tools::builtin().expect("shipped"), vec![secret()], options())
}

#[tokio::test]
async fn decisions_are_found_by_text_court_and_year() {
    let router = decided().router();
    let result = call(&router, &token("alpha", 1), "search_decisions", json!({"query": "OLG-B 2021", "k": 1})).await;
    let score = result["structuredContent"]["result"][0]["score"].as_f64().expect("a score");
    let expected = format!(
        "{{\n  \"decision_id\": \"D-1\",\n  \"court\": \"OLG-B\",\n  \"year\": 2021,\n  \"score\": {score},\n  \"text\": \"a ruling on storage\"\n}}"
    );
    assert_eq!(texts(&result), [expected]);
    let early = call(&router, &token("alpha", 1), "search_decisions", json!({"query": "storage"})).await;
    assert_eq!(early, call(&router, &token("beta", 2), "search_decisions", json!({"query": "storage"})).await);
}

#[tokio::test]
async fn decision_stats_count_what_is_asked() {
    let router = decided().router();
    let count =
        async |arguments: Value| texts(&call(&router, &token("alpha", 1), "decision_stats", arguments).await).remove(0);
    let all = "{\n  \"total\": 3,\n  \"by_year\": {\n    \"2021\": 2,\n    \"2022\": 1\n  },\n  \"by_court\": {\n    \"LG-A\": 2,\n    \"OLG-B\": 1\n  }\n}";
    assert_eq!(count(json!({})).await, all);
    assert_eq!(count(json!({"from_year": null, "to_year": null, "court": null})).await, all);
    let none = "{\n  \"total\": 0,\n  \"by_year\": {},\n  \"by_court\": {}\n}";
    assert_eq!(count(json!({"from_year": 2023, "to_year": 2020})).await, none);
    assert_eq!(count(json!({"court": "lg-a"})).await, none);
    assert!(count(json!({"from_year": "2022", "court": "LG-A"})).await.contains("\"total\": 1"));
}

#[tokio::test]
async fn faults_are_results_that_name_the_tool() {
    for (tool, arguments) in [
        ("search_case", json!({})),
        ("search_case", json!({"query": 5})),
        ("search_case", json!({"query": null})),
        ("search_case", json!({"query": "a", "k": 2.5})),
        ("search_case", json!({"query": "a", "k": null})),
        ("search_decisions", json!({"query": ["a"]})),
        ("decision_stats", json!({"from_year": 2.5})),
        ("decision_stats", json!({"court": 3})),
        ("drop_tables", json!({})),
        ("", json!({})),
    ] {
        let result = call(&router(), &token("alpha", 3), tool, arguments.clone()).await;
        assert_eq!(result["isError"], true, "{tool} {arguments}");
        let text = texts(&result).remove(0);
        assert!(text.starts_with(&format!("Error executing tool {tool}: ")), "{text}");
        assert_eq!(result.get("structuredContent"), None);
    }
}

#[tokio::test]
async fn more_searches_than_permits_wait_and_all_are_answered() {
    let mut few = options();
    few.concurrent_searches = NonZeroUsize::MIN;
    let router = Service::new(library(), Tools::builtin().expect("shipped"), vec![secret()], few).router();
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..32 {
        let router = router.clone();
        tasks.spawn(async move { call(&router, &token("alpha", 6), "search_case", json!({"query": "heron"})).await });
    }
    let all = tasks.join_all().await;
    assert!(all.iter().all(|result| *result == all[0] && texts(result).len() == 3));
}

/// Collects what a subscriber would print.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("not poisoned").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test(flavor = "current_thread")]
async fn every_call_is_logged_with_its_outcome_and_never_a_token() {
    let lines = Lines::default();
    let writer = lines.clone();
    // Everything, rmcp's own traces too: no level may show a token.
    let subscriber = tracing_subscriber::fmt()
        .json()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || writer.clone())
        .finish();
    // With one dispatcher alive, tracing asks the thread that meets a call site first, which may be another test's. A
    // second one makes it ask every dispatcher.
    let _second = tracing::Dispatch::new(tracing_subscriber::registry());
    let guard = tracing::subscriber::set_default(subscriber);
    let router = router();
    let token = token("alpha", 3);
    call(&router, &token, "search_case", json!({"query": "heron", "k": 99})).await;
    call(&router, &token, "search_case", json!({"query": "heron", "k": 2.5})).await;
    call(&router, &token, "case_status", json!({})).await;
    send(&router, post(&format!("/mcp/{token}x"), "{}")).await;
    drop(guard);
    let text = String::from_utf8(lines.0.lock().expect("not poisoned").clone()).expect("UTF-8");
    assert!(!text.contains(&token) && !text.contains(token.rsplit('.').next().expect("a signature")), "{text}");
    let ours: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON line"))
        .filter(|line| line["target"] == "gsj_retrieval")
        .map(|line| line["fields"].clone())
        .collect();
    let brief: Vec<_> = ours
        .iter()
        .map(|fields| {
            format!(
                "{} {} {} {} {}",
                fields["event"], fields["tool"], fields["k"], fields["n_results"], fields["outcome"]
            )
        })
        .collect();
    assert_eq!(
        brief,
        [
            r#""tool_call" "search_case" "99" 1 "ok""#,
            r#""tool_call" "search_case" "2.5" 0 "bad_arguments""#,
            r#""tool_call" "case_status" "default" 1 "ok""#,
            r#""refused" null null null null"#,
        ]
    );
    assert_eq!(
        (&ours[0]["episode_id"], &ours[0]["case_id"], &ours[0]["timestep"]),
        (&json!("ep-1"), &json!("alpha"), &json!(3))
    );
    assert!(ours[0]["latency_ms"].is_number());
}
