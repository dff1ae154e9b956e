//! The wall clock, handed in by the program so that nothing here reads it behind its back.

use std::{
    fmt,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

/// Where the server takes the time of day from.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> SystemTime + Send + Sync>);

impl Clock {
    /// Wraps a source of time; a program passes `SystemTime::now`.
    pub fn new(source: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        Self(Arc::new(source))
    }

    pub(crate) fn now(&self) -> SystemTime {
        (self.0)()
    }

    /// Returns seconds since 1970, with fraction; 0 for a clock set before that.
    pub fn seconds(&self) -> f64 {
        self.now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
    }

    /// Returns whole seconds since 1970, as tokens state their expiry.
    pub fn whole_seconds(&self) -> i64 {
        (self.0)().duration_since(UNIX_EPOCH).map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Clock")
    }
}
