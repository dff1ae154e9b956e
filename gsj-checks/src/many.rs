//! Archives: many bodies, judged on all threads, answered in order.

use std::collections::VecDeque;

use gsj_pins::{Pins, PinsError};

use crate::{Policy, Verdict, validate};

/// How many bodies are held at once for each thread.
const BODIES_PER_THREAD: usize = 16;
/// How many bytes of bodies are held at once, unless a single one is larger.
const BYTES_AT_ONCE: usize = 128 << 20;

/// Judges bodies and answers in their order, one answer for each.
///
/// Bodies are taken from the iterator as answers are asked for, a batch at a time: an iterator that reads files one
/// after the other judges an archive of any size in little memory. With the feature `parallel` a batch is spread over
/// the threads of the rayon pool in which the answers are asked for (`pool.install(|| ..)`), else the global one.
///
/// # Errors
/// Each answer is what [`validate`] says. Unusable pins are usually the same fault for every body: collect into a
/// `Result<Vec<_>, _>` to stop at the first.
///
/// ```
/// use gsj_checks::{Pins, Policy, Profile, Verdict, validate_many};
///
/// let pins = Pins::from_fault("pins.json", "not needed by these bodies");
/// let policy = Policy::of(Profile::Reference);
/// let archive = [&b"{"[..], br#"{"status":"ERROR"}"#];
/// let verdicts: Vec<Verdict> = validate_many(archive, &pins, &policy).collect::<Result<_, _>>()?;
/// assert_eq!(verdicts[1].findings, ["ADM1:status_not_completed:ERROR", "ADM3:trajectory_missing"]);
/// # Ok::<(), gsj_checks::PinsError>(())
/// ```
pub fn validate_many<'c, I>(
    bodies: I,
    pins: &'c Pins,
    policy: &'c Policy,
) -> impl Iterator<Item = Result<Verdict, PinsError>> + use<'c, I>
where
    I: IntoIterator,
    I::Item: AsRef<[u8]> + Send,
{
    map_many(bodies, move |body| validate(body.as_ref(), pins, policy))
}

/// [`validate_many`] with an answer of the caller's own, for bodies that come wrapped in something or whose names go with
/// them.
pub fn map_many<I, A, F>(bodies: I, answer: F) -> impl Iterator<Item = A> + use<I, A, F>
where
    I: IntoIterator,
    I::Item: AsRef<[u8]> + Send,
    A: Send,
    F: Fn(I::Item) -> A + Sync,
{
    let mut bodies = bodies.into_iter().fuse();
    let mut answers = VecDeque::new();
    std::iter::from_fn(move || {
        if answers.is_empty() {
            let batch = take_batch(&mut bodies, BODIES_PER_THREAD * threads());
            answers = judge(batch, &answer);
        }
        answers.pop_front()
    })
}

/// The next bodies, so many that every thread has work and so few that they fit in memory.
fn take_batch<B: AsRef<[u8]>>(bodies: &mut impl Iterator<Item = B>, most: usize) -> Vec<B> {
    let mut batch = Vec::new();
    let mut bytes = 0_usize;
    while batch.len() < most && bytes < BYTES_AT_ONCE {
        let Some(body) = bodies.next() else { break };
        bytes = bytes.saturating_add(body.as_ref().len());
        batch.push(body);
    }
    batch
}

#[cfg(feature = "parallel")]
fn judge<B: Send, A: Send>(batch: Vec<B>, answer: impl Fn(B) -> A + Send + Sync) -> VecDeque<A> {
    use rayon::iter::{IndexedParallelIterator as _, IntoParallelIterator as _, ParallelIterator as _};
    // Bodies differ much in size: let threads take them one by one.
    let answers: Vec<A> = batch.into_par_iter().with_max_len(1).map(answer).collect();
    answers.into()
}

#[cfg(not(feature = "parallel"))]
fn judge<B: Send, A: Send>(batch: Vec<B>, answer: impl Fn(B) -> A + Send + Sync) -> VecDeque<A> {
    batch.into_iter().map(answer).collect()
}

#[cfg(feature = "parallel")]
fn threads() -> usize {
    rayon::current_num_threads()
}

#[cfg(not(feature = "parallel"))]
fn threads() -> usize {
    1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Profile;

    #[test]
    fn answers_come_in_order_and_bodies_are_taken_as_needed() {
        let (pins, policy) = (Pins::from_fault("p", "none"), Policy::of(Profile::Reference));
        let taken = std::cell::Cell::new(0);
        let bodies = (0..1000).map(|n| {
            taken.set(n + 1);
            format!(r#"{{"session_id":"{n}"}}"#)
        });
        let mut answers = validate_many(bodies, &pins, &policy);
        assert_eq!(taken.get(), 0, "nothing is read before an answer is asked for");
        for n in 0..1000 {
            let verdict = answers.next().expect("an answer for each body").expect("pins are not asked");
            assert_eq!(verdict.session_id, Some(n.to_string()));
            assert!(taken.get() <= n + BODIES_PER_THREAD * threads(), "at most a batch ahead");
        }
        assert!(answers.next().is_none());
    }

    #[test]
    fn large_bodies_are_not_held_together() {
        let large = vec![b' '; BYTES_AT_ONCE / 2];
        let mut bodies = std::iter::repeat_n(large.as_slice(), 5);
        assert_eq!(take_batch(&mut bodies, 100).len(), 2);
        assert_eq!(take_batch(&mut bodies, 1).len(), 1);
    }
}
