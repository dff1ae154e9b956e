//! Ranking by vectors beside words: what is found, what is asked of the endpoint, and what is kept.

use crate::fake_endpoint::{Endpoint, Fault};
use crate::support::{call, corpus, post, send, service_of, texts, token};
use gsj_retrieval::{Embedder, Library, Opened, Progress, Rebuild, RetrievalError, Sources};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::json;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

fn near(endpoint: &Endpoint) -> Library {
    let library = Library::from_pages(corpus()).expect("valid corpus");
    library.embedded(endpoint.embedder(), &Progress::default()).expect("embedded")
}

fn pages(library: &Library, timestep: u32, query: &str) -> Vec<u32> {
    let vector = library.embedder().expect("one").query_blocking(query).expect("a vector");
    let hits = library.search_case_near("alpha", timestep, query, vector.as_deref(), 5).expect("served");
    hits.into_iter().map(|hit| hit.page).collect()
}

#[test]
fn other_words_for_it_are_found_and_identifiers_still_come_first() {
    let endpoint = Endpoint::start();
    let library = near(&endpoint);
    assert_eq!(library.search_case("alpha", 4, "licence", 5).expect("served").len(), 0, "no page has the word");
    assert_eq!(pages(&library, 4, "the licence is")[0], 2);
    assert_eq!(pages(&library, 4, "cash")[0], 4);
    assert_eq!(pages(&library, 6, "cash, witness, kestrel, miller: SN-0100031")[0], 2, "what is asked for by number");
    assert!(pages(&library, 3, "cash").iter().all(|page| *page <= 3));
    assert_eq!(pages(&library, 6, " ?! ").len(), 0);
}

#[test]
fn an_explanation_says_which_ranking_put_a_page_where_it_stands() {
    let endpoint = Endpoint::start();
    let library = near(&endpoint);
    let query = "cash for the heron";
    let vector = library.embedder().expect("one").query_blocking(query).expect("a vector");
    let hits = library.search_case_near("alpha", 6, query, vector.as_deref(), 20).expect("served");
    assert_eq!(hits.len(), 6, "every page is named by one of the rankings");
    for hit in &hits {
        let why = library.explain_near("alpha", 6, query, vector.as_deref(), hit.page).expect("served");
        let why = why.expect("it was found");
        assert_eq!((why.page, why.score), (hit.page, hit.score));
        let fused = why.fused.expect("both");
        let vote = |rank: Option<usize>| rank.map_or(0.0, |rank| 1.0 / (60.0 + rank as f64));
        let sum =
            fused.weight_of_words * vote(fused.rank_by_words) + fused.weight_of_vectors * vote(fused.rank_by_vectors);
        assert_eq!(sum, hit.score, "{fused:?}");
        assert!(fused.nearest.is_none_or(|sentence| hit.text.contains(&sentence)));
        assert!((0.0..=1.0).contains(&fused.weight_of_words));
        assert!((0.01..=1.0).contains(&fused.weight_of_vectors));
    }
    assert!(library.explain_near("alpha", 5, query, vector.as_deref(), 6).is_err(), "not in view");
    assert!(library.explain_near("alpha", 6, query, None, 1).expect("served").is_some_and(|why| why.fused.is_none()));
}

#[test]
fn a_request_holds_sentences_of_one_page_and_one_is_under_way_at_a_time() {
    let endpoint = Endpoint::start();
    let mut options = endpoint.options();
    options.batch = std::num::NonZeroUsize::new(2).expect("two");
    let embedder = Arc::new(Embedder::new(options).expect("usable"));
    let page = "## Rule\n\nOne. Two.\n\n---\n\n| a | b |\n|---|---|\n\nThree.";
    let case = vec![page.to_owned(), " \n".to_owned(), "Four.".to_owned()];
    let cases = BTreeMap::from([("alpha".to_owned(), case)]);
    Library::from_pages(cases).expect("valid").embedded(embedder, &Progress::default()).expect("embedded");
    // Each between those beside it, on its page.
    let expected: &[&[&str]] = &[
        &["## Rule One.", "## Rule One. Two."],
        &["One. Two. | a | b |", "Two. | a | b | Three."],
        &["| a | b | Three."],
        &["Four."],
    ];
    assert_eq!(endpoint.requests(), expected);
    assert_eq!(endpoint.most_under_way(), 1);
}

/// A corpus of two cases in a folder, and an index beside it.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().expect("a folder"));
        place.write("alpha", &["A heron.", "A kestrel.", "A crane."]);
        place.write("beta", &["A ferry.", "A barge."]);
        place
    }

    fn write(&self, case: &str, pages: &[&str]) {
        let case = self.0.path().join(format!("corpus/train/cases/{case}"));
        drop(fs::remove_dir_all(&case));
        let folder = case.join(format!("timestep-{}/pages", pages.len()));
        fs::create_dir_all(&folder).expect("a folder");
        for (number, page) in (1..).zip(pages) {
            fs::write(folder.join(format!("page_{number:04}.md")), page).expect("a page");
        }
    }

    fn index(&self) -> std::path::PathBuf {
        self.0.path().join("index")
    }

    fn open(&self, embedder: Option<Arc<Embedder>>, rebuild: Rebuild) -> Result<(Library, Opened), RetrievalError> {
        let corpus = self.0.path().join("corpus");
        Library::stored_near(&self.index(), Sources::Corpus(&corpus), rebuild, &Progress::default(), embedder)
    }

    fn file(&self, start: &str, end: &str) -> Option<std::path::PathBuf> {
        let names = fs::read_dir(self.index()).expect("the index").map(|entry| entry.expect("an entry").path());
        let fits = |path: &Path| {
            let name = path.file_name().and_then(|name| name.to_str()).expect("UTF-8");
            name.starts_with(start) && name.ends_with(end)
        };
        names.into_iter().find(|path| fits(path))
    }
}

/// All texts of some requests.
fn asked(endpoint: &Endpoint) -> Vec<String> {
    let mut texts = endpoint.requests().concat();
    texts.sort();
    texts
}

#[test]
fn only_pages_that_changed_are_embedded_again() {
    let (endpoint, place) = (Endpoint::start(), Place::new());
    let (_, opened) = place.open(Some(endpoint.embedder()), Rebuild::IfStale).expect("built");
    assert_eq!((opened.built, opened.reused), (2, 0));
    assert_eq!(asked(&endpoint), ["A barge.", "A crane.", "A ferry.", "A heron.", "A kestrel."]);
    assert_eq!(endpoint.most_under_way(), 1, "several cases are built at once, but not embedded");

    let (library, again) = place.open(Some(endpoint.embedder()), Rebuild::Never).expect("there");
    assert_eq!((again.reused, &again.fingerprint), (2, &opened.fingerprint));
    assert_eq!(pages(&library, 3, "bird")[0], 1);
    assert_eq!(asked(&endpoint), ["bird"], "nothing but the query");

    place.write("alpha", &["A heron.", "A kestrel, ringed.", "A crane.", "A new page."]);
    let (_, opened) = place.open(Some(endpoint.embedder()), Rebuild::IfStale).expect("built");
    assert_eq!((opened.built, opened.reused), (1, 1));
    assert_eq!(asked(&endpoint), ["A kestrel, ringed.", "A new page."]);

    let mut options = endpoint.options();
    options.revision = "2".to_owned();
    let other = Arc::new(Embedder::new(options).expect("usable"));
    let (_, other) = place.open(Some(other), Rebuild::IfStale).expect("built");
    assert_ne!(other.fingerprint, opened.fingerprint);
    assert_eq!(asked(&endpoint).len(), 6, "vectors of other weights are not reused");
    assert_eq!(fs::read_dir(place.index()).expect("the index").count(), 2 + 4, "and the old ones are gone");
}

#[test]
fn an_index_without_vectors_stays_as_it_is_and_keeps_those_there_are() {
    let (endpoint, place) = (Endpoint::start(), Place::new());
    let (_, plain) = place.open(None, Rebuild::IfStale).expect("built");
    let index = fs::read(place.file("alpha.", ".gsjcase").expect("its file")).expect("its bytes");
    let (_, opened) = place.open(Some(endpoint.embedder()), Rebuild::IfStale).expect("built");
    assert_ne!(plain.fingerprint, opened.fingerprint);
    assert_eq!(asked(&endpoint).len(), 5);
    assert_eq!(fs::read(place.file("alpha.", ".gsjcase").expect("its file")).expect("its bytes"), index);
    let (library, again) = place.open(None, Rebuild::IfStale).expect("built");
    assert_eq!(again.fingerprint, plain.fingerprint);
    assert!(library.embedder().is_none());
    place.open(Some(endpoint.embedder()), Rebuild::IfStale).expect("built");
    assert_eq!(asked(&endpoint).len(), 0, "what was embedded was kept");
}

#[test]
fn damaged_vectors_are_noticed_and_embedded_again() {
    let (endpoint, place) = (Endpoint::start(), Place::new());
    place.open(Some(endpoint.embedder()), Rebuild::IfStale).expect("built");
    let path = place.file("beta.", ".gsjvec").expect("its file");
    let whole = fs::read(&path).expect("its bytes");
    endpoint.requests();
    for damaged in [whole[..whole.len() - 8].to_vec(), Vec::new(), {
        let mut bytes = whole.clone();
        *bytes.last_mut().expect("some") ^= 1;
        bytes
    }] {
        fs::write(&path, damaged).expect("written");
        let error = place.open(Some(endpoint.embedder()), Rebuild::Never).expect_err("it is no more what was built");
        assert!(matches!(&error, RetrievalError::NotRebuilt { problem, .. } if problem.contains("beta.")), "{error}");
        let (_, opened) = place.open(Some(endpoint.embedder()), Rebuild::IfStale).expect("built");
        assert_eq!((opened.built, opened.reused), (1, 1));
        assert_eq!(asked(&endpoint), ["A barge.", "A ferry."]);
        assert_eq!(fs::read(&path).expect("its bytes"), whole);
    }
}

#[test]
fn a_build_that_ended_early_goes_on_where_it_stopped() {
    let (endpoint, place) = (Endpoint::start(), Place::new());
    fs::remove_dir_all(place.0.path().join("corpus/train/cases/beta")).expect("removed");
    let two = [
        Fault::Data(json!([{"index": 0, "embedding": [1.0, 0.5]}])),
        Fault::Data(json!([{"index": 0, "embedding": [0.5, 1.0]}])),
    ];
    endpoint.fail(two.into_iter().chain([Fault::Status(400)]));
    let error = place.open(Some(endpoint.embedder()), Rebuild::IfStale).expect_err("the third page is refused");
    assert!(error.to_string().contains("400"), "{error}");
    assert!(!place.index().join("index.json").exists(), "nothing half-built is served");
    assert_eq!(endpoint.requests().len(), 3);
    endpoint.serve_dimension(2);
    place.open(Some(endpoint.embedder()), Rebuild::IfStale).expect("built");
    assert_eq!(asked(&endpoint), ["A crane."]);
    assert!(place.file("alpha.stopped", "").is_none(), "and what was kept for that is gone");
}

fn word() -> impl Strategy<Value = String> {
    (0_u32..90).prop_map(|number| match number % 7 {
        0 => format!("SN-{number:07}"),
        _ => format!("word{number}"),
    })
}

fn page() -> impl Strategy<Value = String> {
    let sentence = vec(word(), 1..6).prop_map(|words| words.join(" "));
    vec(sentence, 0..4).prop_map(|sentences| sentences.join(".\n\n"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    /// Also with an endpoint whose vectors depend on what is embedded with them: no request holds two pages.
    #[test]
    fn whole_answers_are_equal_with_and_without_later_pages(
        seen in vec(page(), 1..8),
        later in vec(page(), 1..8),
        queries in vec(vec(word(), 0..4).prop_map(|words| words.join(" ")), 1..4),
        k in 1_u32..21,
    ) {
        let endpoint = Endpoint::start();
        endpoint.make_noisy();
        let timestep = u32::try_from(seen.len()).expect("few pages");
        let serve = |pages: Vec<String>| {
            let library = Library::from_pages(BTreeMap::from([("alpha".to_owned(), pages)])).expect("valid");
            service_of(library.embedded(endpoint.embedder(), &Progress::default()).expect("embedded")).router()
        };
        let cut = serve(seen.clone());
        let whole = serve(seen.into_iter().chain(later).collect());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        for query in queries {
            let params = json!({"name": "search_case", "arguments": {"query": query, "k": k}});
            let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
            let path = format!("/mcp/{}", token("alpha", timestep));
            let of_cut = runtime.block_on(send(&cut, post(&path, body.clone())));
            let of_whole = runtime.block_on(send(&whole, post(&path, body)));
            prop_assert!(!of_cut.body.contains("isError\":true"), "{}", of_cut.body);
            prop_assert_eq!(&of_cut.body, &of_whole.body);
            prop_assert_eq!(of_cut.headers, of_whole.headers);
        }
    }
}

#[tokio::test]
async fn a_query_is_asked_for_once_and_only_for_searches_of_pages() {
    let endpoint = Endpoint::start();
    let library = tokio::task::spawn_blocking({
        let embedder = endpoint.embedder();
        move || Library::from_pages(corpus()).expect("valid").embedded(embedder, &Progress::default())
    });
    let router = service_of(library.await.expect("ended").expect("embedded")).router();
    endpoint.requests();
    let token = token("alpha", 4);
    for _ in 0..3 {
        let result = call(&router, &token, "search_case", json!({"query": " the  licence\nis"})).await;
        assert!(texts(&result)[0].starts_with("{\n  \"page\": 2,"), "{result}");
    }
    call(&router, &token, "search_case", json!({"query": "?"})).await;
    call(&router, &token, "search_case", json!({"query": 7})).await;
    call(&router, &token, "search_decisions", json!({"query": "lease"})).await;
    let status = call(&router, &token, "case_status", json!({})).await;
    assert!(texts(&status)[0].contains("\"timestep\": 4"));
    assert_eq!(endpoint.requests(), [["the licence is"]], "whatever the blanks, and once");
}
