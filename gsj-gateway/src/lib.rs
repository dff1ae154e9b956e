//! The capturing model proxy: wire dialects, engines, the log of a session.
