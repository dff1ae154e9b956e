//! Tests over the crate's public surface.
#![expect(clippy::print_stderr, reason = "a skipped test says so")]

#[cfg(feature = "git")]
mod attacks;
#[cfg(feature = "git")]
mod audit;
#[cfg(feature = "git")]
mod checkout;
#[cfg(feature = "git")]
mod cut;
mod features;
#[cfg(feature = "fetch")]
mod fetch;
#[cfg(feature = "git")]
mod field;
#[cfg(feature = "git")]
mod git;
#[cfg(feature = "git")]
mod hostile;
#[cfg(feature = "git")]
mod leaks;
#[cfg(feature = "fetch")]
mod mirror;
mod scan;
#[cfg(feature = "tokens")]
mod tokens;

/// Finds a file or folder of the shared vectors; says loudly when it is not there.
fn shared(path: &str) -> Option<std::path::PathBuf> {
    let found = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared").join(path);
    if found.exists() {
        return Some(found);
    }
    eprintln!("SKIPPED: {} is not there", found.display());
    None
}
