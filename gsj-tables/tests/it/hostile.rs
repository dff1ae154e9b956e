//! Files that are no banks, or were made to do harm.

use crate::support::{opened, shared, tasks, written};
use gsj_tables::{Bank, RawRow, TableError};
use proptest::prelude::*;

fn open(bytes: &[u8]) -> Result<Bank, TableError> {
    Bank::from_bytes("bank", bytes.to_vec().into())
}

/// Reads everything that can be read; gives the rows, or the first error.
fn read(bytes: &[u8]) -> Result<Vec<RawRow>, TableError> {
    let bank = open(bytes)?;
    let facts = bank.facts();
    assert!(facts.rows == bank.len());
    // A change in the description may claim that values repeat; what is read of it is bounded here, not by the file.
    bank.raw_rows(0..bank.len().min(2_000)).collect()
}

#[test]
fn a_file_that_is_none_says_what_it_is() {
    let said = |bytes: &[u8]| open(bytes).map(drop).unwrap_err().to_string();
    assert_eq!(said(b""), "`bank` is no Parquet file: it is too short");
    assert_eq!(said(b"case_id,timestep\ncase_1,3\n"), "`bank` is no Parquet file: it does not begin with PAR1");
    assert!(said(b"PAR1 and then nothing of the kind").contains("does not end with PAR1, so its end is missing"));
    assert!(said(b"PAR1\0\0\0\0\xff\xff\xff\x7fPAR1").contains("said to be 2147483647 bytes long"));
    assert!(said(b"PAR1\0\0\0\0\x02\0\0\0PARE").contains("encrypted"));
    let missing = Bank::open("/nonexistent/bank.parquet".as_ref()).unwrap_err();
    assert_eq!(missing.to_string(), "read `/nonexistent/bank.parquet`");
    let folder = Bank::open("/tmp".as_ref()).unwrap_err().to_string();
    assert_eq!(folder, "`/tmp` is no Parquet file: it is no regular file");
}

#[test]
fn a_bank_cut_anywhere_is_refused() {
    let bytes = written(&tasks(2));
    for end in 0..bytes.len() {
        assert!(read(&bytes[..end]).is_err(), "cut at {end} of {}", bytes.len());
    }
    assert_eq!(read(&bytes).unwrap().len(), 18);
}

#[test]
fn every_single_byte_may_be_wrong() {
    let mut all = vec![written(&tasks(1))];
    if let Some(path) = shared("vectors/corpus/taskbank-staging.parquet") {
        all.push(std::fs::read(path).unwrap());
    }
    for bytes in all {
        read(&bytes).unwrap();
        let mut refused = 0;
        for at in 0..bytes.len() {
            for wrong in [bytes[at] ^ (1 << (at % 8)), 0xff] {
                let mut changed = bytes.clone();
                changed[at] = wrong;
                // Some bytes carry values, statistics or nothing at all; that no reading fails otherwise is the point.
                refused += usize::from(read(&changed).is_err());
            }
        }
        assert!(refused > bytes.len() / 2, "{refused} of {} changes were refused", bytes.len() * 2);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn whatever_is_changed_it_is_rows_or_an_error(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..4_u8), 1..12),
        from_start in any::<bool>(),
    ) {
        let mut bytes = written(&tasks(3));
        for (at, byte, how) in changes {
            // Half of the runs change the description at the end, which is short and says most.
            let from = if from_start { 0 } else { bytes.len().saturating_sub(1500) };
            let at = from + at.index(bytes.len() - from);
            match how {
                0 => bytes[at] = byte,
                1 => bytes[at] ^= 1 << (byte % 8),
                2 => bytes.insert(at, byte),
                _ => drop(bytes.remove(at)),
            }
        }
        drop(read(&bytes));
    }
}

#[test]
fn a_row_that_is_no_task_ends_the_tasks_and_is_named() {
    // The bank's own values, changed in the file: the split of the first case.
    let mut bytes = written(&tasks(1));
    let at = bytes.windows(4).position(|window| window == b"eval").unwrap();
    bytes[at..at + 4].copy_from_slice(b"test");
    let bank = opened(bytes);
    let mut rows = bank.all();
    let said = rows.next().unwrap().unwrap_err().to_string();
    assert_eq!(said, "`bank` row 0: split `test` is neither `train` nor `eval`");
    assert!(rows.next().is_none(), "nothing comes after an error");
    assert_eq!(bank.raw_rows(0..9).filter_map(Result::ok).count(), 9, "as they stand there they can be read");
}

#[test]
fn text_that_is_no_utf8_is_named() {
    let mut bytes = written(&tasks(1));
    let at = bytes.windows(6).position(|window| window == b"free:B").unwrap();
    bytes[at + 5] = 0xff;
    let said = read(&bytes).unwrap_err().to_string();
    assert_eq!(said, "`bank` row 0: prompt_id is no UTF-8");
}
