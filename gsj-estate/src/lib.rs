//! From a folder of pages to repositories: the corpus contract, deterministic git, the lock.
