//! Time and memory of a large bank, written and read: `cargo run --release -p gsj-tables --example million -- [ROWS]`.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a measurement for people")]

use std::fs::File;
use std::io::BufWriter;
use std::sync::Arc;

use gsj_tables::{Ask, Bank, BankWriter, Split, TaskRow};

/// A line of this process's own state, as the kernel has it.
fn state(name: &str) -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    status.lines().find_map(|line| line.strip_prefix(name)).map_or_else(String::new, |rest| rest.trim().to_owned())
}

fn main() {
    let count: u64 = std::env::args().nth(1).map_or(1_000_000, |text| text.parse().unwrap());
    let card: Arc<str> = "# Skill\n\nWork from the pages and cite them.\n".repeat(50).into();
    let image: Arc<str> = "registry.invalid/harness:1".into();
    let path = std::env::temp_dir().join(format!("gsj-million-{}.parquet", std::process::id()));
    let started = std::time::Instant::now();
    let mut writer = BankWriter::new(BufWriter::new(File::create(&path).unwrap())).unwrap();
    for number in 0..count {
        let free = number % 2 == 0;
        let ask = if free {
            Ask::Free { text: format!("What is new on page {number}? Answer with pages.") }
        } else {
            Ask::Skill { name: "summarize".into(), card: card.clone() }
        };
        let row = TaskRow {
            case_id: format!("case_{:08}", number / 10),
            timestep: u32::try_from(number % 10 / 2).unwrap() * 8 + 8,
            prompt_id: if free { "free:new".into() } else { "skill:summarize".into() },
            split: if number / 10 % 5 == 0 { Split::Eval } else { Split::Train },
            ask,
            sandbox_image: image.clone(),
        };
        writer.push(&row).unwrap();
    }
    writer.finish().unwrap();
    let bytes = std::fs::metadata(&path).unwrap().len();
    println!(
        "wrote {count} rows, {bytes} bytes, {:.2} s, most memory {}",
        started.elapsed().as_secs_f64(),
        state("VmHWM:")
    );
    let started = std::time::Instant::now();
    let read = Bank::open(&path).unwrap().all().map(Result::unwrap).count();
    println!("read {read} rows, {:.2} s, most memory {}", started.elapsed().as_secs_f64(), state("VmHWM:"));
    std::fs::remove_file(path).unwrap();
}
