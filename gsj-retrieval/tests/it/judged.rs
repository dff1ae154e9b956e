//! Judged queries over two small cases of our own, one English and one German: what is asked for is found by words alone.

use gsj_retrieval::CaseIndex;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// The pages of a case of the judged set.
fn pages(data: &Path, case: &str) -> Vec<String> {
    let text = std::fs::read_to_string(data.join(format!("{case}.txt"))).expect("readable");
    text.split("=====\n").map(str::to_owned).collect()
}

#[test]
fn what_is_asked_for_is_found_by_words_alone() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/judged");
    let queries: Value =
        serde_json::from_slice(&std::fs::read(data.join("queries.json")).expect("readable")).expect("JSON");
    let cases = ["bridge", "kies"].map(|case| (case, CaseIndex::build(&pages(&data, case)).expect("small")));
    let cases = BTreeMap::from(cases);
    let mut shares: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for query in queries["queries"].as_array().expect("queries") {
        let (case, kind) = (query["case_id"].as_str().expect("a case"), query["kind"].as_str().expect("a kind"));
        let timestep = u32::try_from(query["timestep"].as_u64().expect("a timestep")).expect("small");
        let relevant: Vec<u64> =
            query["relevant"].as_array().expect("pages").iter().filter_map(Value::as_u64).collect();
        let hits = cases[case].view(timestep).expect("in range").search(query["query"].as_str().expect("a query"), 5);
        let gain = |rank: usize| 1.0 / (rank as f64 + 2.0).log2();
        let ranks = hits.iter().enumerate().filter(|(_, hit)| relevant.contains(&u64::from(hit.page)));
        let best: f64 = (0..relevant.len().min(5)).map(gain).sum();
        let share = ranks.map(|(rank, _)| gain(rank)).sum::<f64>() / best;
        for kind in [kind, "all"] {
            shares.entry(kind).or_default().push(share);
        }
    }
    let mean = |kind: &str| shares[kind].iter().sum::<f64>() / shares[kind].len() as f64;
    for (kind, shares) in &shares {
        eprintln!("nDCG@5 {kind:12} n={:2} {:.3}", shares.len(), mean(kind));
    }
    for (kind, floor) in
        [("all", 0.8), ("identifier", 0.9), ("number", 0.9), ("form", 0.85), ("date", 0.9), ("fact", 0.9)]
    {
        assert!(mean(kind) >= floor, "{kind}: {:.3}", mean(kind));
    }
}
