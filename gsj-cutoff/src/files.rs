//! Reading the files of a branch without a checkout.

use crate::closure;
use crate::error::CutoffError;
use crate::objects::Objects as _;
use crate::source::SourceRepository;
use gix::objs::Kind;
use gix::objs::tree::EntryKind;
use std::path::Path;

/// The most content of one branch that is read, in bytes.
const MOST_CONTENT: usize = 1 << 30;

/// A file as a branch's commit has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BranchFile {
    /// The path from the root, parts divided by `/`; broken UTF-8 replaced.
    pub path: String,
    /// The number of the page, for a file `md/page_NNNN.md`.
    pub page: Option<u32>,
    /// The bytes.
    pub content: Vec<u8>,
}

/// Reads all regular files of a branch's tip, sorted by path: pages, rules and skills, for [`crate::scan`].
///
/// # Errors
/// Fails when repository, branch, or one of its objects cannot be read, or when it holds more than 1 GiB.
pub fn branch_files(source: &Path, branch: &str) -> Result<Vec<BranchFile>, CutoffError> {
    let repository = SourceRepository::open(source)?;
    let tip = repository.tip(branch)?;
    let mut objects = repository.objects()?;
    let root = closure::read_commit(&mut objects, tip)?.tree;
    let tree = closure::read_tree(&mut objects, root)?;
    let mut files = Vec::new();
    let mut total = 0_usize;
    for file in tree.files.iter().filter(|file| file.kind != EntryKind::Link) {
        let mut content = Vec::new();
        objects.read_as(file.id, Kind::Blob, &mut content)?;
        total = total.saturating_add(content.len());
        if total > MOST_CONTENT {
            return Err(CutoffError::object(file.id, format!("makes the branch larger than {MOST_CONTENT} bytes")));
        }
        let path = String::from_utf8_lossy(&file.path).into_owned();
        files.push(BranchFile { path, page: file.page(), content });
    }
    Ok(files)
}
