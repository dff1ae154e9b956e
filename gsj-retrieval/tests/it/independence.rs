//! The cutoff law: an answer at T is a function of pages 1..T, byte for byte (retrieval.md section 6).

use crate::support::{post, send, service_of, token};
use gsj_retrieval::Library;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::json;
use std::collections::BTreeMap;

/// Words of which some can only stand on pages after the cutoff.
fn word(pool: std::ops::Range<u32>) -> impl Strategy<Value = String> {
    pool.prop_map(|number| match number % 7 {
        0 => format!("SN-{number:07}"),
        1 => format!("wort{number}straße"),
        _ => format!("word{number}"),
    })
}

fn page(pool: std::ops::Range<u32>) -> impl Strategy<Value = String> {
    let sentence = vec(word(pool), 1..8).prop_map(|words| words.join(" "));
    vec(sentence, 0..5).prop_map(|sentences| sentences.join(". "))
}

fn serve(pages: Vec<String>) -> axum::Router {
    service_of(Library::from_pages(BTreeMap::from([("alpha".to_owned(), pages)])).expect("valid")).router()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn whole_answers_are_equal_with_and_without_later_pages(
        seen in vec(page(0..60), 1..24),
        later in vec(page(30..120), 1..24),
        queries in vec(vec(word(0..120), 0..5).prop_map(|words| words.join(" ")), 1..4),
        k in 1_u32..21,
    ) {
        let timestep = u32::try_from(seen.len()).expect("few pages");
        let cut = serve(seen.clone());
        let whole = serve(seen.into_iter().chain(later).collect());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        for query in queries {
            for tool in ["search_case", "case_status"] {
                let params = json!({"name": tool, "arguments": {"query": query, "k": k}});
                let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
                let path = format!("/mcp/{}", token("alpha", timestep));
                let of_cut = runtime.block_on(send(&cut, post(&path, body.clone())));
                let of_whole = runtime.block_on(send(&whole, post(&path, body)));
                prop_assert_eq!(&of_cut.body, &of_whole.body);
                prop_assert_eq!(of_cut.headers, of_whole.headers);
            }
        }
    }
}
