//! The wall: truncated git checkouts, audits, scoped tokens.
