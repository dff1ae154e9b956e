//! Rows, and banks made of them.

use gsj_tables::{Ask, Bank, BankWriter, RawRow, Split, TaskRow};
use std::path::{Path, PathBuf};

/// Finds a file of the shared data; says loudly when it is not there.
pub(crate) fn shared(path: &str) -> Option<PathBuf> {
    let found = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared").join(path);
    if found.exists() {
        return Some(found);
    }
    eprintln!("SKIPPED: {} is not there", found.display());
    None
}

/// Some tasks of both kinds and splits, in order.
pub(crate) fn tasks(cases: u32) -> Vec<TaskRow> {
    let mut rows = Vec::new();
    for case in 0..cases {
        for timestep in [8, 16, 120] {
            for (id, ask) in [
                ("free:B", Ask::Free { text: format!("What is new in {case}? é\r\n") }),
                ("free:a", Ask::Free { text: " ".into() }),
                ("skill:sum", Ask::Skill { name: "sum".into(), card: "# Card\r\n\u{feff}".into() }),
            ] {
                rows.push(TaskRow {
                    case_id: format!("case_{case:05}"),
                    timestep,
                    prompt_id: id.into(),
                    split: if case % 5 == 0 { Split::Eval } else { Split::Train },
                    ask,
                    sandbox_image: "registry.invalid/harness:1".into(),
                });
            }
        }
    }
    rows
}

pub(crate) fn written(rows: &[TaskRow]) -> Vec<u8> {
    let mut writer = BankWriter::new(Vec::new()).expect("begins");
    for row in rows {
        writer.push(row).expect("takes the row");
    }
    let (counts, bytes) = writer.finish().expect("ends");
    assert_eq!(counts.rows, rows.len() as u64);
    assert_eq!(counts.train + counts.eval, counts.rows);
    bytes
}

pub(crate) fn opened(bytes: Vec<u8>) -> Bank {
    Bank::from_bytes("bank", bytes.into()).expect("a bank")
}

pub(crate) fn raw(bank: &Bank) -> Vec<RawRow> {
    bank.raw_rows(0..bank.len()).collect::<Result<_, _>>().expect("rows")
}
