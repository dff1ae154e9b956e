//! Approved sets: the pins file, the hashing conventions, derivation.
