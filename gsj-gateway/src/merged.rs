//! A session's trajectory while the session runs.

use std::sync::{Mutex, MutexGuard, PoisonError};

use gsj_trace::json::{Value, ValueRef};
use gsj_trace::reconstruct::{Continuity, Incremental, Options};

/// The completed calls, merged one by one as they end.
///
/// Merging goes by order of arrival. Calls that overlapped may end in another order; then nothing is said here, and the
/// trajectory is built from the log.
#[derive(Debug)]
pub(crate) struct Merged(Mutex<Option<State>>);

#[derive(Debug)]
struct State {
    trajectory: Incremental,
    /// Sequence of the call that was taken last.
    last: u64,
    calls: usize,
}

impl Merged {
    /// Nothing is held without options, nor for the reference's mode, which needs all calls at once.
    pub(crate) fn new(options: Option<Options>) -> Self {
        let options = options.filter(|options| options.continuity != Continuity::Reference);
        Self(Mutex::new(options.map(|options| State { trajectory: Incremental::new(options), last: 0, calls: 0 })))
    }

    /// Whether calls are taken.
    pub(crate) fn is_wanted(&self) -> bool {
        self.state().is_some()
    }

    /// Takes a completed call as it stands in the log. Reads the whole line: not for a runtime's threads.
    pub(crate) fn take(&self, sequence: u64, line: &str) {
        let record = Value::parse(line.as_bytes());
        let mut state = self.state();
        match (&mut *state, record) {
            (Some(merging), Ok(record)) if merging.last < sequence => {
                merging.trajectory.push(record.as_ref());
                merging.last = sequence;
                merging.calls += 1;
            }
            _ => *state = None,
        }
    }

    /// The trajectory, when it holds all completed calls; `header` is the session without them.
    pub(crate) fn finish(&self, completed: usize, header: ValueRef<'_>) -> Option<Value<'static>> {
        let merging = self.state().take().filter(|merging| merging.calls == completed)?;
        Some(merging.trajectory.finish(header))
    }

    fn state(&self) -> MutexGuard<'_, Option<State>> {
        // A panic while a call was merged leaves half a state behind, which the count of calls tells.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(prompt: &str, reply: &str) -> String {
        format!(
            r#"{{"completion_id":"c","response":{{"choices":[{{"finish_reason":"stop","input_token_ids":{prompt},"token_ids":{reply}}}]}}}}"#
        )
    }

    fn finished(merged: &Merged, completed: usize) -> Option<String> {
        let header = Value::parse(br#"{"session_id":"s"}"#).unwrap();
        let trajectory = merged.finish(completed, header.as_ref())?;
        trajectory.pointer("/traces/0/response_ids").map(ValueRef::to_json)
    }

    #[test]
    fn calls_in_order_are_merged() {
        let merged = Merged::new(Some(Options::default()));
        merged.take(1, &line("[1]", "[2,9]"));
        merged.take(4, &line("[1,2,9,5]", "[3]"));
        assert_eq!(finished(&merged, 2).as_deref(), Some("[2,9,5,3]"));
        assert_eq!(finished(&merged, 2), None, "it is taken once");
    }

    #[test]
    fn what_is_out_of_order_unreadable_or_missing_is_left_to_the_log() {
        let merged = Merged::new(Some(Options::default()));
        merged.take(2, &line("[1]", "[2]"));
        merged.take(1, &line("[1]", "[2]"));
        assert_eq!(finished(&merged, 2), None);
        let merged = Merged::new(Some(Options::default()));
        merged.take(1, "{");
        assert!(!merged.is_wanted());
        let merged = Merged::new(Some(Options::default()));
        merged.take(1, &line("[1]", "[2]"));
        assert_eq!(finished(&merged, 2), None, "one call is not in it");
        assert!(!Merged::new(Some(Options { continuity: Continuity::Reference, ..Options::default() })).is_wanted());
    }
}
