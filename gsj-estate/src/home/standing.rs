//! How far the repositories and the bank of an estate are what its corpus gives now.

use super::Home;
use crate::corpus::Corpus;
use crate::error::EstateError;
use crate::lock::Lock;
use crate::recipe::Recipe;
use crate::scaffold::{ScaffoldOptions, scaffold};
use crate::taskbank::{BANK_FILE, bank_digest, digest};
use serde::Serialize;

/// What would change if everything were made anew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Standing {
    /// Cases whose repositories are not there or hold something else.
    pub changed: Vec<String>,
    /// Cases that left the corpus and whose repositories are still there.
    pub left: Vec<String>,
    /// Whether the lock's text would be another one, the task bank's block apart.
    pub lock_changed: bool,
    /// How many cases the corpus has.
    pub cases: usize,
    /// The task bank.
    pub bank: BankStanding,
}

/// The task bank against the corpus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct BankStanding {
    /// Tasks that the corpus gives.
    pub rows: u64,
    /// Of these, for training.
    pub train: u64,
    /// Of these, for evaluation.
    pub eval: u64,
    /// Whether the file is there, is what the corpus gives, and is what the lock claims.
    pub unchanged: bool,
}

impl Standing {
    /// Whether nothing would change.
    #[must_use]
    pub fn is_unchanged(&self) -> bool {
        self.changed.is_empty() && self.left.is_empty() && !self.lock_changed && self.bank.unchanged
    }
}

/// Compares a corpus with the repositories in an estate's folder, its lock and its bank; writes nothing.
///
/// # Errors
/// A file cannot be read, or the lock is none.
pub fn standing(corpus: &Corpus, home: &Home, recipe: Recipe) -> Result<Standing, EstateError> {
    let mut options = ScaffoldOptions::folder(&home.repos(), recipe);
    options.dry_run = true;
    let before = Lock::read(&corpus.lock_dir)?;
    let made = scaffold(corpus, &options)?;
    let mut changed: Vec<String> =
        made.repos.iter().filter(|repo| repo.changed).map(|repo| repo.case_id.clone()).collect();
    changed.dedup();
    let mut left: Vec<String> = made.forgotten.iter().map(|one| one.case_id.clone()).collect();
    left.dedup();
    let text = before.as_ref().map(Lock::text);
    let claim = before.as_ref().map(Lock::taskbank).transpose()?.flatten();
    let (counts, sha256) = bank_digest(corpus)?;
    let there = digest(&corpus.lock_dir.join(BANK_FILE))?;
    let unchanged = there.as_deref() == Some(sha256.as_str())
        && claim.is_some_and(|claim| claim.sha256 == sha256 && claim.rows == counts.rows);
    Ok(Standing {
        changed,
        left,
        lock_changed: text.as_deref() != Some(made.lock.as_str()),
        cases: corpus.cases.len(),
        bank: BankStanding { rows: counts.rows, train: counts.train, eval: counts.eval, unchanged },
    })
}

/// SHA-256 over the commits of a corpus's lock: another one means that a server has to read the repositories anew.
///
/// # Errors
/// There is no lock, or it cannot be read.
pub fn lock_digest(corpus: &Corpus) -> Result<String, EstateError> {
    use sha2::{Digest as _, Sha256};
    let lock = Lock::read(&corpus.lock_dir)?.ok_or_else(|| EstateError::NoLock { root: corpus.lock_dir.clone() })?;
    let mut hash = Sha256::new();
    for id in lock.case_ids() {
        let Some(case) = lock.case(id)? else { continue };
        hash.update(format!("{id} {:?} {:?}\n", case.refs, case.full_refs));
    }
    Ok(hex::encode(hash.finalize()))
}
