//! The task bank: that it is the file which the lock names.

use super::Found;
use crate::corpus::Corpus;
use crate::files;
use crate::lock::Lock;
#[cfg(feature = "taskbank")]
use crate::lock::LockedBank;
use crate::names::shown;
use crate::report::Place;
#[cfg(feature = "taskbank")]
use crate::taskbank::task_rows;
#[cfg(feature = "taskbank")]
use gsj_tables::{Bank, Counts, RawRow};
use sha2::{Digest as _, Sha256};
use std::io;

/// The bank's name in the corpus folder.
const BANK_FILE: &str = "taskbank.parquet";

pub(super) fn check(corpus: &Corpus, lock: &Lock, found: &mut Found) {
    let place = Place::corpus("taskbank").of_file(BANK_FILE);
    let block = match lock.taskbank() {
        Ok(Some(block)) => block,
        Ok(None) => {
            found.fail(&place, "verify.taskbank", "the lock has no block taskbank: the phase taskbank was not run");
            return;
        }
        Err(error) => {
            found.fail(&place, "verify.taskbank", error.to_string());
            return;
        }
    };
    if block.path != BANK_FILE {
        let detail = format!("the lock names `{}` instead of {BANK_FILE}", shown(&block.path));
        found.fail(&place, "verify.taskbank", detail);
        return;
    }
    let mut digest = Sha256::new();
    // Not through a link, and not from a pipe or device, which would have no end.
    let digested = files::open(&corpus.lock_dir.join(BANK_FILE)).and_then(|mut file| {
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("it is no regular file"));
        }
        io::copy(&mut file, &mut Sink(&mut digest))
    });
    if let Err(error) = digested {
        found.fail(&place, "verify.taskbank", format!("{BANK_FILE} cannot be read: {error}"));
        return;
    }
    let digest = hex::encode(digest.finalize());
    let wrong = if digest == block.sha256 {
        Vec::new()
    } else {
        vec![format!("SHA-256 of {BANK_FILE} is {digest}, the lock has {}", shown(&block.sha256))]
    };
    found.judge(&place, "verify.taskbank", &wrong, format!("SHA-256 {}", &digest[..16]));
    #[cfg(feature = "taskbank")]
    rows(corpus, &block, found);
}

/// Every row against the task that the tree gives at its place; both are in the same order.
#[cfg(feature = "taskbank")]
fn rows(corpus: &Corpus, block: &LockedBank, found: &mut Found) {
    let place = Place::corpus("taskbank rows").of_file(BANK_FILE);
    let bank = match Bank::open(&corpus.lock_dir.join(BANK_FILE)) {
        Ok(bank) => bank,
        Err(error) => return found.fail(&place, "verify.taskbank-rows", error.to_string()),
    };
    let mut wrong = Vec::new();
    let mut counts = Counts::default();
    let mut have = bank.raw_rows(0..bank.len());
    let mut number = 0_u64;
    for task in task_rows(corpus) {
        counts.add(task.split);
        // Past a hundred the rest is more of the same; what follows is counted all the same.
        if wrong.len() > 100 {
            continue;
        }
        match have.next() {
            Some(Ok(row)) => {
                wrong.extend(differing(&row, &RawRow::from(&task)).map(|what| format!("row {number}: {what}")));
            }
            Some(Err(error)) => wrong.push(error.to_string()),
            None => wrong.push(format!("{} is missing", task.key())),
        }
        number += 1;
    }
    if bank.len() > counts.rows {
        wrong.push(format!("{} rows more than the tree gives", bank.len() - counts.rows));
    }
    let sums =
        [("rows", block.rows, counts.rows), ("train", block.train, counts.train), ("eval", block.eval, counts.eval)];
    let sums = sums.into_iter().filter(|(_, have, want)| have != want);
    // First, since a long list is cut.
    wrong.splice(0..0, sums.map(|(name, have, want)| format!("{name}: the lock has {have}, the tree gives {want}")));
    found.judge(&place, "verify.taskbank-rows", &wrong, format!("{} rows as the tree gives them", counts.rows));
}

/// How a row differs from the one that should be there.
#[cfg(feature = "taskbank")]
fn differing(have: &RawRow, want: &RawRow) -> Option<String> {
    let key = |row: &RawRow| (row.case_id.clone(), row.timestep, row.prompt_id.clone());
    if key(have) != key(want) {
        let shown = |row: &RawRow| {
            let text = |value: &Option<String>| value.as_deref().map_or_else(|| "null".to_owned(), shown);
            let timestep = row.timestep.map_or_else(|| "null".to_owned(), |number| number.to_string());
            format!("{} timestep {timestep} {}", text(&row.case_id), text(&row.prompt_id))
        };
        return Some(format!("is {}, the tree gives {} here", shown(have), shown(want)));
    }
    let columns = [
        ("split", have.split != want.split),
        ("prompt_source", have.prompt_source != want.prompt_source),
        ("prompt_text", have.prompt_text != want.prompt_text),
        ("skill_card_text", have.skill_card_text != want.skill_card_text),
        ("sandbox_image", have.sandbox_image != want.sandbox_image),
    ];
    let names: Vec<&str> = columns.iter().filter(|(_, differs)| *differs).map(|(name, _)| *name).collect();
    (!names.is_empty()).then(|| format!("another {} than the tree gives", names.join(", ")))
}

struct Sink<'a>(&'a mut Sha256);

impl io::Write for Sink<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
