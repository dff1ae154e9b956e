//! The checkout of an episode, as the server asks for it.

use crate::cut::{Cut, CutRequest, cut};
use crate::error::CutoffError;
use crate::evidence::Evidence;
use std::path::Path;

/// What to check out, and where to.
#[derive(Debug, Clone)]
pub struct CheckoutRequest<'a> {
    /// A bare repository on this machine; it is only read.
    pub source: &'a Path,
    /// The branch; for a timestep T it is `timestep-T`.
    pub branch: &'a str,
    /// The case, for the evidence.
    pub case_id: &'a str,
    /// The last page that may be there.
    pub timestep: u32,
    /// Where the repository is served, for the evidence; credentials in it are dropped.
    pub clone_url: &'a str,
    /// The recipe of the repository (`sealed` or `reference`), for the evidence.
    pub recipe: &'a str,
    /// Where to write; absent or an empty directory.
    pub dest: &'a Path,
}

/// Makes a checkout that holds the tip of a branch and nothing else, and audits it.
///
/// The result has one commit, marked as shallow, no remote, no reflog, no hook; files have mode 0644 or 0755 whatever
/// the umask; the bytes under `.git` depend only on the commit and the branch's name. Modification times are the
/// commit's. No process is started, nothing in the environment is read.
///
/// # Errors
/// Fails when the branch is not there, holds other pages than 1..T, holds a name or link that must not be written,
/// when the destination is not empty, or when the result fails its audit. Whatever was written is then gone again.
pub fn checkout(request: &CheckoutRequest<'_>) -> Result<Evidence, CutoffError> {
    if request.timestep == 0 || request.branch != format!("timestep-{}", request.timestep) {
        return Err(CutoffError::BranchTimestep { branch: request.branch.to_owned(), timestep: request.timestep });
    }
    let made = cut(&CutRequest {
        case_id: Some(request.case_id),
        clone_url: Some(request.clone_url),
        recipe: Some(request.recipe),
        ..CutRequest::new(request.source, Cut::Timestep(request.timestep), request.dest)
    })?;
    Ok(made.evidence)
}
