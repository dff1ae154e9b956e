//! Against real weights: MiniLM behind a small server of ours, over the staging corpus and its judged queries.
//!
//! Runs with GSJ_TEST_ALL=1 and GSJ_TEST_MINILM_PYTHON, a Python that has what `tests/data/minilm_server.py` needs.

use crate::support::shared;
use gsj_retrieval::{EmbedOptions, Embedder, Library, PageHit, Progress, Rebuild, Sources};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The server; ends with its standard input, so with this.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start(python: &str) -> Self {
        let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/minilm_server.py");
        let mut command = Command::new(python);
        command.arg(script).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("Python starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("a line");
        let url = line.trim().strip_prefix("listening on ").expect("its address").to_owned();
        Self { child, url }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        self.child.wait().expect("it ends");
    }
}

#[expect(clippy::print_stderr, reason = "a skipped test has to say so")]
fn python() -> Option<String> {
    let python = std::env::var("GSJ_TEST_MINILM_PYTHON").ok().filter(|_| std::env::var_os("GSJ_TEST_ALL").is_some());
    if python.is_none() {
        eprintln!("SKIPPED: MiniLM on the judged queries; run `cargo xtask test --all`");
    }
    python
}

#[test]
fn with_real_vectors_paraphrases_are_found_and_nothing_past_the_cutoff() {
    let Some(python) = python() else { return };
    let (Some(queries), Some(corpus)) = (shared("vectors/retrieval/search.json"), shared("data/staging-corpus")) else {
        return;
    };
    let queries: Value = serde_json::from_slice(&std::fs::read(queries).expect("readable")).expect("JSON");
    let server = Server::start(&python);
    let mut options = EmbedOptions::new(&server.url, "sentence-transformers/all-MiniLM-L6-v2", "1110a243");
    // The machine may be busy with other tests.
    options.timeout = Duration::from_secs(300);
    let embedder = Arc::new(Embedder::new(options).expect("usable"));
    let folder = tempfile::tempdir().expect("a folder");
    let open = |rebuild| {
        let (sources, progress) = (Sources::Corpus(&corpus), Progress::default());
        Library::stored_near(folder.path(), sources, rebuild, &progress, Some(Arc::clone(&embedder))).expect("opened").0
    };
    let started = Instant::now();
    open(Rebuild::IfStale);
    eprintln!("staging corpus embedded in {:.1} s", started.elapsed().as_secs_f64());
    let started = Instant::now();
    let library = open(Rebuild::Never);
    eprintln!("reused in {:.1} ms", started.elapsed().as_secs_f64() * 1e3);

    let mut gains: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    let (mut embedding, mut near, mut plain) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
    let queries = queries["queries"].as_array().expect("queries");
    for query in queries {
        let timestep = u32::try_from(query["timestep"].as_u64().expect("a timestep")).expect("small");
        let (case, text) = (query["case_id"].as_str().expect("a case"), query["query"].as_str().expect("a query"));
        let started = Instant::now();
        let vector = embedder.query_blocking(text).expect("a vector");
        embedding += started.elapsed();
        let started = Instant::now();
        let hits = library.search_case_near(case, timestep, text, vector.as_deref(), 5).expect("in range");
        near += started.elapsed();
        let started = Instant::now();
        let by_words = library.search_case(case, timestep, text, 5).expect("in range");
        plain += started.elapsed();
        assert!(hits.iter().all(|hit| hit.page <= timestep), "{}", query["id"]);
        let relevant: Vec<u64> =
            query["relevant"].as_array().expect("pages").iter().filter_map(Value::as_u64).collect();
        if query["kind"] == "identifier" {
            let first = hits.first().map(|hit| u64::from(hit.page));
            assert!(first.is_some_and(|page| relevant.contains(&page)), "{}: serial numbers come first", query["id"]);
        }
        if relevant.is_empty() {
            continue;
        }
        let gain = |rank: usize| 1.0 / (rank as f64 + 2.0).log2();
        let share = |hits: &[PageHit]| {
            let found = hits.iter().enumerate().filter(|(_, hit)| relevant.contains(&u64::from(hit.page)));
            found.map(|(rank, _)| gain(rank)).sum::<f64>() / (0..relevant.len().min(5)).map(gain).sum::<f64>()
        };
        for kind in ["all", query["kind"].as_str().expect("a kind")] {
            gains.entry(kind.to_owned()).or_default().push(share(&hits));
            gains.entry(format!("{kind}, by words")).or_default().push(share(&by_words));
        }
    }
    let mean = |kind: &str| gains[kind].iter().sum::<f64>() / gains[kind].len() as f64;
    for (kind, shares) in &gains {
        eprintln!("nDCG@5 {kind:20} n={:2} {:.3}", shares.len(), mean(kind));
    }
    let each = |time: Duration| time.as_secs_f64() * 1e3 / queries.len() as f64;
    eprintln!(
        "a query: embedding {:.1} ms, search {:.2} ms, by words alone {:.2} ms",
        each(embedding),
        each(near),
        each(plain)
    );
    assert!(mean("all") >= 0.86, "{}", mean("all"));
    assert!(mean("paraphrase") >= 0.55, "{}", mean("paraphrase"));
}
