//! Endpoints that answer wrongly, late or not at all.

use crate::fake_endpoint::{Endpoint, Fault, KEY};
use crate::support::{call, corpus, service_of, texts, token};
use gsj_retrieval::{EmbedError, EmbedOptions, Embedder, Library, OnFailure, Progress, RetrievalError};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

fn one_page(embedder: Embedder) -> Result<Library, RetrievalError> {
    let pages = vec!["One sentence. Another one.".to_owned()];
    let library = Library::from_pages(BTreeMap::from([("alpha".to_owned(), pages)])).expect("valid");
    library.embedded(Arc::new(embedder), &Progress::default())
}

fn of(options: EmbedOptions) -> Embedder {
    Embedder::new(options).expect("usable")
}

#[test]
fn an_answer_that_is_not_whole_is_refused_and_says_what_to_do() {
    let endpoint = Endpoint::start();
    let one = |index: u64| json!({"index": index, "embedding": [1.0, 0.5]});
    for (fault, says) in [
        (Fault::Data(json!([one(0)])), "1 vectors for 2 texts"),
        (Fault::Data(json!([one(0), one(1), one(2)])), "3 vectors for 2 texts"),
        (Fault::Data(json!([one(1), one(1)])), "stands twice"),
        (Fault::Data(json!([one(0), {"index": 1, "embedding": [1.0]}])), "has 1 numbers, not 2"),
        (Fault::Data(json!([one(0), {"index": 1, "embedding": [null, 1.0]}])), "another form"),
        (Fault::Data(json!([one(0), {"index": 1, "embedding": [1e39, 1.0]}])), "out of range"),
        (Fault::Data(json!([one(0), {"index": 1, "embedding": [0.0, 0.0]}])), "all zeros"),
        (Fault::Text("<html>hello</html>"), "another form"),
        (Fault::Text("{\"data\": [{\"index\": 0, \"embedding\": [NaN]}]}"), "another form"),
        (Fault::Status(404), "`base_url` and `model`"),
        (Fault::Status(413), "lower `batch`"),
    ] {
        endpoint.fail([fault]);
        let error = one_page(of(endpoint.options())).expect_err(says);
        let error = error.to_string();
        assert!(error.contains(says) && error.contains(&endpoint.url()), "{error}");
        assert!(!error.contains(KEY), "{error}");
        assert_eq!(endpoint.requests().len(), 1, "{says}: asking again would not help");
    }
}

#[test]
fn a_passing_fault_is_passed_over_and_a_lasting_one_is_not_waited_for_for_ever() {
    let endpoint = Endpoint::start();
    endpoint.fail([Fault::Status(429), Fault::Status(500), Fault::Status(503)]);
    one_page(of(endpoint.options())).expect("embedded at last");
    assert_eq!(endpoint.requests().len(), 4);
    endpoint.fail(vec![Fault::Status(503); 9]);
    let error = one_page(of(endpoint.options())).expect_err("it never gets better").to_string();
    assert!(error.contains("503") && error.contains("[api key]") && !error.contains(KEY), "{error}");
    assert_eq!(endpoint.requests().len(), 5, "one, and four more");
    endpoint.heal();

    let mut wrong = endpoint.options();
    wrong.key = None;
    let error = one_page(of(wrong)).expect_err("it wants a key").to_string();
    assert!(error.contains("401") && error.contains("`api_key_env`"), "{error}");

    let gone = endpoint.options();
    drop(endpoint);
    let error = one_page(of(gone)).expect_err("nobody is there").to_string();
    assert!(error.contains("gives no answer") && error.contains("5 tries"), "{error}");
}

#[test]
fn a_late_answer_is_none() {
    let endpoint = Endpoint::start();
    let mut options = endpoint.options();
    options.timeout = Duration::from_millis(50);
    options.retries = 1;
    endpoint.fail(vec![Fault::Late(Duration::from_secs(600)); 2]);
    let error = one_page(of(options.clone())).expect_err("it is late").to_string();
    assert!(error.contains("no answer in time") && error.contains("2 tries"), "{error}");
    // A query has one deadline, however often it is tried.
    options.timeout = Duration::from_millis(50);
    options.retries = 1000;
    endpoint.fail(vec![Fault::Status(503); 2000]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let error = runtime.block_on(of(options).query("word")).expect_err("it is never given");
    assert!(matches!(error, EmbedError::Late { .. } | EmbedError::Unreachable { .. }), "{error}");
}

#[test]
fn a_build_that_waits_for_the_endpoint_can_be_stopped() {
    let endpoint = Endpoint::start();
    endpoint.fail([Fault::Late(Duration::from_secs(600))]);
    let progress = Arc::new(Progress::default());
    let stopper = std::thread::spawn({
        let (progress, seen) = (Arc::clone(&progress), endpoint.embedder());
        move || {
            drop(seen);
            progress.stop();
        }
    });
    let library = Library::from_pages(corpus()).expect("valid");
    let error = library.embedded(endpoint.embedder(), &progress).expect_err("it was stopped");
    assert!(matches!(error, RetrievalError::Stopped), "{error}");
    stopper.join().expect("ended");
}

#[tokio::test]
async fn what_a_search_does_without_a_vector_is_chosen() {
    for on_failure in [OnFailure::Error, OnFailure::Lexical] {
        let endpoint = Endpoint::start();
        let mut options = endpoint.options();
        options.retries = 0;
        options.on_failure = on_failure;
        let embedder = Arc::new(of(options));
        let library = tokio::task::spawn_blocking(move || {
            Library::from_pages(corpus()).expect("valid").embedded(embedder, &Progress::default())
        });
        let library = library.await.expect("ended").expect("embedded");
        let plain = library.search_case("alpha", 4, "heron", 5).expect("served");
        let router = service_of(library).router();
        endpoint.fail([Fault::Status(500)]);
        let result = call(&router, &token("alpha", 4), "search_case", json!({"query": "heron"})).await;
        if on_failure == OnFailure::Error {
            assert_eq!(result["isError"], true);
            let text = texts(&result).concat();
            assert_eq!(text, "Error executing tool search_case: the search is unavailable for now; try again");
        } else {
            assert_eq!(result["structuredContent"]["result"], json!(plain), "by words alone");
        }
        let again = call(&router, &token("alpha", 4), "search_case", json!({"query": "heron"})).await;
        assert_ne!(again["structuredContent"]["result"], json!(plain), "a failure is not kept");
        // The endpoint now serves another model than the index was built with.
        endpoint.serve_dimension(16);
        let other = call(&router, &token("alpha", 4), "search_case", json!({"query": "kestrel"})).await;
        assert_eq!(other["isError"], true, "{other}");
    }
}

#[test]
fn options_that_cannot_work_are_refused_at_once() {
    let new = |base: &str, model: &str, revision: &str| Embedder::new(EmbedOptions::new(base, model, revision));
    assert!(new("http://h", "m", "r").is_ok());
    assert!(matches!(new("http://h", "m", " "), Err(EmbedError::Label)));
    assert!(matches!(new("http://h", "", "r"), Err(EmbedError::Label)));
    let error = new("http://bob:hunter2@h/v1", "m", "r").expect_err("a password").to_string();
    assert!(error.contains("http://h") && !error.contains("hunter2"), "{error}");
    let shown = format!("{:?}", of(Endpoint::start().options()));
    assert!(!shown.contains(KEY), "{shown}");
}
