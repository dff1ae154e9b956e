//! What readers of one repository may take together, however many threads they are.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// Content larger than this is big: one thread at a time has such content in hand, in bytes.
pub(crate) const BIG: usize = 2 << 20;
/// What the caches of delta bases may hold together, in bytes of content.
const LARGEST_CACHE: usize = 32 << 20;
/// The most threads that read one repository.
const MOST_THREADS: usize = 4;
/// What a distrusted folder may inflate to where the caller does not say: in any case, and for each byte of its packs.
const HONEST: (u64, u64) = (8 << 30, 64);

/// Shared by all readers of one repository.
///
/// Each thread holds a base, a delta and a result of at most [`BIG`] bytes beside its part of the cache; larger ones
/// only behind the gate, where they come to 160 MiB at the most.
#[derive(Clone)]
pub(crate) struct Limits {
    gate: Arc<Gate>,
    spent: Arc<AtomicU64>,
    most: u64,
    threads: usize,
}

#[derive(Default)]
struct Gate {
    taken: Mutex<bool>,
    free: Condvar,
}

/// Allows its holder to have something big in hand.
pub(crate) struct Permit(Arc<Gate>);

impl Limits {
    /// No more than `most` bytes are inflated in all, deltas on the way included.
    pub(crate) fn of(most: u64) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self { gate: Arc::default(), spent: Arc::default(), most, threads: cores.min(MOST_THREADS) }
    }

    /// What a folder with packs of so many bytes may honestly inflate to.
    pub(crate) fn honest(packed: u64) -> u64 {
        HONEST.0.saturating_add(packed.saturating_mul(HONEST.1))
    }

    pub(crate) fn most(&self) -> u64 {
        self.most
    }

    /// How many threads are worth it for so many objects.
    pub(crate) fn threads(&self, objects: usize) -> usize {
        const WORTH_A_THREAD: usize = 2_000;
        (objects / WORTH_A_THREAD).clamp(1, self.threads)
    }

    /// What one thread's cache may hold.
    pub(crate) fn cache(&self) -> usize {
        LARGEST_CACHE / self.threads
    }

    /// Counts what is inflated.
    pub(crate) fn spend(&self, bytes: u64) -> Result<(), String> {
        // Wraps after 16 EiB, long after the first refusal.
        let spent = self.spent.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        if spent <= self.most {
            return Ok(());
        }
        Err(format!("is not read: all objects together inflate to more than {} bytes", self.most))
    }

    /// Whether more was to be inflated than may be.
    pub(crate) fn exceeded(&self) -> bool {
        self.spent.load(Ordering::Relaxed) > self.most
    }

    /// Waits until nobody else has a permit.
    pub(crate) fn permit(&self) -> Permit {
        let taken = self.gate.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let mut taken = self.gate.free.wait_while(taken, |taken| *taken).unwrap_or_else(PoisonError::into_inner);
        *taken = true;
        Permit(Arc::clone(&self.gate))
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        *self.0.taken.lock().unwrap_or_else(PoisonError::into_inner) = false;
        self.0.free.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thread_at_a_time_has_a_permit() {
        let limits = Limits::of(u64::MAX);
        let (inside, most) = (AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        let permit = limits.permit();
                        most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        std::thread::yield_now();
                        inside.fetch_sub(1, Ordering::SeqCst);
                        drop(permit);
                    }
                });
            }
        });
        assert_eq!(most.into_inner(), 1);
    }

    #[test]
    fn what_is_spent_counts_for_all_readers() {
        let limits = Limits::of(10);
        let other = limits.clone();
        assert!(limits.spend(6).is_ok() && other.spend(4).is_ok());
        assert!(!limits.exceeded());
        assert!(other.spend(1).expect_err("too much").contains("more than 10 bytes"));
        assert!(limits.exceeded());
    }
}
