//! Submit tasks, wait for them, collect and re-validate what comes back.
