//! What the phases of the task bank cost: `cargo run --release -p gsj-estate --features taskbank --example bank -- CORPUS`.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a measurement for people")]

use gsj_estate::{BANK_FILE, Corpus, Recipe, ScaffoldOptions, scaffold, taskbank};

/// CPU seconds of this process so far, all threads and the kernel's share included.
fn cpu() -> f64 {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    used.tv_sec as f64 + used.tv_nsec as f64 / 1e9
}

fn main() {
    let root = std::env::args().nth(1).expect("the corpus folder");
    let root = std::path::Path::new(&root);
    let mut last = cpu();
    let mut took = |what: &str| {
        let now = cpu();
        println!("{what:<28} {:.3} CPU s", now - last);
        last = cpu();
    };
    let corpus = Corpus::read(root).unwrap();
    took("read and validate");
    if !root.join("corpus.lock.json").exists() {
        scaffold(&corpus, &ScaffoldOptions::folder(&root.with_extension("repos"), Recipe::Sealed)).unwrap();
        took("scaffold");
    }
    let _ = std::fs::remove_file(root.join(BANK_FILE));
    let made = taskbank(&corpus, false).unwrap();
    took("bank, new");
    taskbank(&corpus, false).unwrap();
    took("bank, unchanged");
    println!("{} rows, {} bytes", made.counts.rows, std::fs::metadata(made.path).unwrap().len());
}
