//! Work on many items at once, with results in the items' order.

use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The most threads that are started.
const MOST_THREADS: usize = 8;

/// As many threads as the machine has processors, and not more than is of use.
pub(crate) fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, NonZeroUsize::get).min(MOST_THREADS)
}

/// Applies `work` to each item on several threads. After a failure no further item is begun, and the failure of the first
/// item that failed is given.
pub(crate) fn map<T: Sync, R: Send, E: Send>(
    items: &[T],
    threads: usize,
    work: impl Fn(&T) -> Result<R, E> + Sync,
) -> Result<Vec<R>, E> {
    if threads < 2 || items.len() < 2 {
        return items.iter().map(work).collect();
    }
    let next = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    let done = Mutex::new(Vec::with_capacity(items.len()));
    let worker = || {
        while !failed.load(Ordering::Relaxed) {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(at) else { return };
            let result = work(item);
            if result.is_err() {
                failed.store(true, Ordering::Relaxed);
            }
            // A lock is poisoned by a panic alone, and then the scope below panics with it.
            if let Ok(mut done) = done.lock() {
                done.push((at, result));
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..threads.min(items.len()) {
            scope.spawn(worker);
        }
    });
    let mut done = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order_and_the_first_failure_is_told() {
        let items: Vec<usize> = (0..1_000).collect();
        assert_eq!(map(&items, 4, |item| Ok::<_, ()>(item * 2)), Ok(items.iter().map(|item| item * 2).collect()));
        let fails = |item: &usize| if item % 2 == 1 { Err(*item) } else { Ok(()) };
        assert_eq!(map(&items, 1, fails), Err(1));
        assert!(map(&items, 4, fails).is_err());
        assert_eq!(map(&[0; 0], 4, |_| Err::<(), ()>(())), Ok(Vec::new()));
    }
}
