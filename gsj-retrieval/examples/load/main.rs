//! Measures the service over HTTP, in a process of its own: `cargo run --release -p gsj-retrieval --example load`.
//!
//! Rows go to standard output as a table in Markdown. Arguments: any of `large`, `later`, `many`, `staging`; none for all; or
//! `own CORPUS CASE` for the last page of a case of a corpus at hand. The queries are those of `benches/queries.txt`.
#![expect(clippy::print_stdout, reason = "its output is its purpose")]
#![expect(
    clippy::panic,
    clippy::format_push_string,
    reason = "a program to measure with, which stops at what is wrong"
)]

mod client;
mod corpus;
mod server;

use server::Server;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Pages of the large case.
const PAGES: usize = 9_999;
/// Searches a second that are aimed at.
const AIM: f64 = 1_000.0;
/// Cases of forty pages in one process.
const CASES: usize = 1_000;
const CASE_PAGES: usize = 40;
/// The small corpus, and what the reference's page of figures says of it.
const STAGING: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/data/staging-corpus");

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [serve, corpus, index] = &arguments[..]
        && serve == "serve"
    {
        server::serve(corpus.as_ref(), index.as_ref());
        return;
    }
    let root = std::env::temp_dir().join(format!("gsj-retrieval-load-{}", std::process::id()));
    fs::create_dir_all(&root).expect("a temporary folder");
    println!("| what | ours | the Python reference | aim |");
    println!("|---|---|---|---|");
    if let [own, corpus, case] = &arguments[..]
        && own == "own"
    {
        large(&root, corpus.as_ref(), case);
    } else {
        let wanted = |what: &str| arguments.is_empty() || arguments.iter().any(|argument| argument == what);
        if wanted("large") {
            let corpus = root.join("large");
            let pages = (1..=PAGES).map(|number| corpus::page(1, number)).collect();
            corpus::write(&corpus, &[("case_00001".to_owned(), pages)]).expect("written");
            large(&root, &corpus, "case_00001");
        }
        if wanted("later") {
            later(&root);
        }
        if wanted("many") {
            many(&root);
        }
        if wanted("staging") {
            staging(&root);
        }
    }
    fs::remove_dir_all(&root).expect("is ours to remove");
}

fn row(what: &str, ours: &str, reference: &str, aim: &str) {
    println!("| {what} | {ours} | {reference} | {aim} |");
}

fn queries() -> Vec<&'static str> {
    include_str!("../../benches/queries.txt").lines().collect()
}

fn pages_of(corpus: &Path, case: &str) -> usize {
    let cases = ["train", "eval"].map(|split| corpus.join(split).join("cases").join(case));
    let folder = cases.iter().find(|path| path.is_dir()).expect("a case of the corpus");
    let steps = fs::read_dir(folder)
        .expect("a folder")
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.strip_prefix("timestep-")?.parse::<usize>().ok());
    steps.max().expect("a timestep")
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// The time that a share of all does not exceed.
fn share(times: &[Duration], share: f64) -> f64 {
    let at = ((times.len() as f64 * share).ceil() as usize).clamp(1, times.len());
    milliseconds(*times.get(at - 1).expect("measured"))
}

fn index_size(index: &Path) -> f64 {
    let entries = fs::read_dir(index).expect("an index");
    entries.map(|entry| entry.expect("an entry").metadata().expect("its size").len()).sum::<u64>() as f64 / 1e6
}

/// One case of many pages: its build, searches a second, and times at half of what is aimed at.
fn large(root: &Path, corpus: &Path, case: &str) {
    let pages = pages_of(corpus, case);
    let index = root.join("large-index");
    let built = Server::start(corpus, &index);
    let built_in = format!("{:.2} s, of CPU {:.2} s", built.ready_after.as_secs_f64(), built.cpu_seconds());
    row(&format!("index {pages} pages, process start to ready"), &built_in, "fails over 5,461 chunks", "");
    let (peak, anonymous) = (built.megabytes("VmHWM"), built.megabytes("RssAnon"));
    row("its memory: peak, anonymous when ready", &format!("{peak:.0} MB, {anonymous:.0} MB"), "", "");
    row("its index on disk", &format!("{:.1} MB", index_size(&index)), "", "");
    drop(built);
    let server = Server::start(corpus, &index);
    row("ready with the index reused", &format!("{:.0} ms", milliseconds(server.ready_after)), "", "");
    let token = server::token(case, pages);
    let requests: Vec<Vec<u8>> = queries().iter().map(|query| client::search(&token, query)).collect();
    client::saturate(server.address, &requests, 8, Duration::from_secs(3));
    let (cpu, own) = (server.cpu_seconds(), server::cpu_seconds("self"));
    let rate = client::saturate(server.address, &requests, 16, Duration::from_secs(10));
    let (cpu, own) = (server.cpu_seconds() - cpu, server::cpu_seconds("self") - own);
    let each = |cpu: f64| cpu / (rate * 10.0) * 1e3;
    row("searches a second, 16 clients", &format!("{rate:.0}"), "44 (66 chunks)", ">= 1,000");
    let each = format!("{:.2} ms, the load's own {:.2} ms", each(cpu), each(own));
    row("CPU of one, of the service", &each, "19.7 ms", "");
    for (what, rate) in [("half of 1,000", AIM / 2.0), ("half of what it can", rate / 2.0)] {
        let times = client::at_rate(server.address, &requests, rate, Duration::from_secs(20));
        let figures = format!(
            "{:.2}, {:.2}, {:.2}, {:.2} ms",
            share(&times, 0.5),
            share(&times, 0.9),
            share(&times, 0.99),
            share(&times, 1.0)
        );
        let reference = "30.2, 41.8, 53.9, 69.8 ms, one client";
        row(&format!("at {what}, {rate:.0} a second: p50, p90, p99, max"), &figures, reference, "p99 < 5 ms");
    }
    let (anonymous, all) = (server.megabytes("RssAnon"), server.megabytes("VmRSS"));
    row(
        "memory after that: anonymous, all",
        &format!("{anonymous:.0} MB, {all:.0} MB"),
        "1,000 to 1,200 MB",
        "< 150 MB",
    );
}

/// The same pages up to T, with few and with many behind them: what is behind must not be felt.
fn later(root: &Path) {
    let (corpus, index) = (root.join("later"), root.join("later-index"));
    let timestep = PAGES - 9_000;
    let pages = |later: usize| (1..=timestep + later).map(|number| corpus::page(1, number)).collect::<Vec<_>>();
    let cases = [("few".to_owned(), pages(10)), ("many".to_owned(), pages(9_000))];
    corpus::write(&corpus, &cases).expect("written");
    let server = Server::start(&corpus, &index);
    let tokens = ["few", "many"].map(|case| server::token(case, timestep));
    let mut connection = client::Connection::open(server.address);
    let mut times = [Vec::new(), Vec::new()];
    for round in 0..21 {
        for query in queries() {
            for place in [round % 2, 1 - round % 2] {
                let request = client::search(tokens.get(place).expect("two"), query);
                let started = Instant::now();
                connection.ask(&request);
                times.get_mut(place).expect("two").push(started.elapsed());
            }
        }
    }
    let medians = times.map(|mut times| {
        times.sort_unstable();
        share(&times, 0.5)
    });
    let [few, many] = medians;
    let figures = format!("{few:.3} ms, {many:.3} ms: {:+.1} %", (many / few - 1.0) * 100.0);
    row("median of an answer at 999 with 10, with 9,000 later pages", &figures, "", "within 5 %");
}

/// Many cases in one process.
fn many(root: &Path) {
    let (corpus, index) = (root.join("many"), root.join("many-index"));
    let pages = |case: usize| (1..=CASE_PAGES).map(|number| corpus::page(case, number)).collect();
    let ids: Vec<String> = (1..=CASES).map(|case| format!("case_{case:05}")).collect();
    for (case, id) in (1..).zip(&ids) {
        corpus::write(&corpus, &[(id.clone(), pages(case))]).expect("written");
    }
    let built = Server::start(&corpus, &index);
    let figures = format!("{:.2} s, of CPU {:.2} s", built.ready_after.as_secs_f64(), built.cpu_seconds());
    row(&format!("index {CASES} cases of {CASE_PAGES} pages"), &figures, "", "");
    drop(built);
    let server = Server::start(&corpus, &index);
    let opened = format!("{:.2} s ({})", server.ready_after.as_secs_f64(), server.said);
    row("open them", &opened, "", "");
    let ready = server.megabytes("VmRSS");
    let asked: Vec<Vec<u8>> = (0..)
        .zip(&ids)
        .flat_map(|(at, id)| {
            let queries = queries();
            let token = server::token(id, CASE_PAGES);
            (0..5)
                .map(|n| client::search(&token, queries.get((at * 5 + n) % queries.len()).expect("a query")))
                .collect::<Vec<_>>()
        })
        .collect();
    let mut connection = client::Connection::open(server.address);
    for request in &asked {
        connection.ask(request);
    }
    let after = format!(
        "{ready:.0} MB, {:.0} MB, of it anonymous {:.0} MB",
        server.megabytes("VmRSS"),
        server.megabytes("RssAnon")
    );
    row("memory when ready, after 5 searches in each", &after, "", "< 500 MB");
}

/// The small corpus: index it, and be ready again.
fn staging(root: &Path) {
    let (corpus, index) = (PathBuf::from(STAGING), root.join("staging-index"));
    if !corpus.is_dir() {
        row("index the staging corpus", "SKIPPED: it is not there", "32 s", "< 1 s");
        return;
    }
    let built = Server::start(&corpus, &index);
    let memory = built.megabytes("RssAnon");
    row(
        "index the staging corpus, process start to ready",
        &format!("{:.0} ms", milliseconds(built.ready_after)),
        "32 s",
        "< 1 s",
    );
    row("its memory", &format!("{memory:.0} MB"), "1,140 MB", "");
    drop(built);
    let mut times: Vec<Duration> = (0..21).map(|_| Server::start(&corpus, &index).ready_after).collect();
    times.sort_unstable();
    let figures = format!("{:.0} ms, at most {:.0} ms", share(&times, 0.5), share(&times, 1.0));
    row("ready with the index reused, 21 times", &figures, "13.7 to 18.8 s", "< 100 ms");
}
