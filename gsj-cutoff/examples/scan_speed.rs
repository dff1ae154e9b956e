//! How many megabytes a second the leak scanner passes on one core, for `cargo xtask bench`.
//!
//! Prints one JSON line a text: `{"bench":"scan","text":..,"bytes":..,"mb_per_s":..}`; the budget is 200. Where the
//! system tells it, the time is what the thread had of a core, since other programs may run beside it.
#![expect(clippy::print_stdout, reason = "a benchmark's result is its output")]

use gsj_cutoff::scan::Fingerprints;
use std::time::Instant;

/// Text scanned in each round, in bytes.
const BYTES: usize = 64 << 20;
const ROUNDS: usize = 5;

const WORDS: [&str; 48] = [
    "the",
    "of",
    "and",
    "clerk",
    "warehouse",
    "register",
    "settlement",
    "in",
    "to",
    "key",
    "Monday",
    "was",
    "shows",
    "ledger",
    "entry",
    "against",
    "postpone",
    "until",
    "crates",
    "delivered",
    "depot",
    "without",
    "remark",
    "a",
    "hearing",
    "insurance",
    "claim",
    "foundation",
    "advised",
    "writing",
    "survey",
    "instruments",
    "testified",
    "no",
    "one",
    "entered",
    "between",
    "two",
    "visits",
    "page",
    "court",
    "orders",
    "following",
    "from",
    "second",
    "boiler",
    "costs",
    "fall",
];

/// Words in an order that a small generator gives.
fn prose(seed: u64, bytes: usize) -> String {
    let mut state = seed | 1;
    let mut text = String::with_capacity(bytes + 16);
    while text.len() < bytes {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        text.push_str(WORDS[(state >> 33) as usize % WORDS.len()]);
        text.push_str(if state >> 60 == 0 { ".\n" } else { " " });
    }
    text
}

/// Seconds of a core that this thread has had, or those on the wall.
fn seconds(started: Instant) -> f64 {
    let scheduled = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = scheduled.and_then(|text| text.split_whitespace().next()?.parse::<f64>().ok());
    nanoseconds.map_or_else(|| started.elapsed().as_secs_f64(), |nanoseconds| nanoseconds / 1e9)
}

fn main() {
    let started = Instant::now();
    let pages: Vec<String> = (0..40).map(|page| prose(page + 1, 2_000)).collect();
    let prints = Fingerprints::of((9..=40).zip(&pages[8..]), &pages[..8]);
    let plain = prose(4711, BYTES);
    let escaped = format!("{{\"text\":\"{}\"}}", plain.replace('\n', "\\n"));
    let code: String = "fn main() { let x = vec![1, 2, 3]; println!(\"{}\", x.len()); } // ok\n".repeat(BYTES / 70);
    for (name, text) in [("prose", &plain), ("prose in JSON", &escaped), ("code", &code)] {
        let best = (0..ROUNDS)
            .map(|_| {
                let start = seconds(started);
                assert!(prints.scan(text).is_empty(), "nothing of the pages is in the text");
                seconds(started) - start
            })
            .fold(f64::INFINITY, f64::min);
        #[expect(clippy::cast_precision_loss, reason = "some megabytes")]
        let rate = text.len() as f64 / 1e6 / best;
        println!(r#"{{"bench":"scan","text":"{name}","bytes":{},"mb_per_s":{rate:.0}}}"#, text.len());
    }
}
