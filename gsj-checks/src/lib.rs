//! The validators: a session result in, findings out.
