//! What lies in the working tree, beside what the commit says.

use super::Leaks;
use super::walk::{self, EntryKind};
use crate::closure::Tree;
use crate::error::CutoffError;
use crate::names::{page_like, page_number, shown};
use crate::objects::LARGEST_OBJECT;
use gix::ObjectId;
use gix::hash::Kind as HashKind;
use gix::objs::Kind;
use gix::objs::tree::EntryKind as TreeKind;
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// The files that an agent finds.
#[derive(Debug, Default)]
pub(crate) struct Worktree {
    /// Numbers of the regular files `md/page_NNNN.md`.
    pub(crate) pages: BTreeSet<u32>,
    /// Files and directories elsewhere, or of another form, whose name reads as a page's.
    pub(crate) page_like: Vec<(Vec<u8>, u32)>,
    /// Digest of each skill card by skill name.
    pub(crate) skill_cards: BTreeMap<String, String>,
    /// Regular files that the commit does not have, or has with other content.
    pub(crate) untracked: Vec<Vec<u8>>,
    /// The id that each regular file's content has as a git object.
    pub(crate) blobs: Vec<(Vec<u8>, ObjectId)>,
}

impl Worktree {
    /// Lists the working tree and tells every difference from the commit's tree.
    pub(crate) fn compare(dir: &Path, tree: &Tree, leaks: &mut Leaks) -> Result<Self, CutoffError> {
        let mut expected: BTreeMap<&[u8], _> = tree.files.iter().map(|file| (&file.path[..], file)).collect();
        let directories: BTreeSet<&[u8]> = tree.directories.iter().map(|path| &path[..]).collect();
        let mut worktree = Self::default();
        for entry in walk::list(dir, &[b".git"])? {
            worktree.note_page(&entry.path, entry.kind);
            if entry.kind == EntryKind::Directory {
                if !directories.contains(&entry.path[..]) {
                    leaks.add(shown(&entry.path), "directory that the commit does not have");
                }
                continue;
            }
            let id = worktree.identify(dir, &entry.path, entry.kind, leaks)?;
            let Some(file) = expected.remove(&entry.path[..]) else {
                let nested = entry.path.split(|byte| *byte == b'/').any(|part| part == b".git");
                let what = if nested { "part of another repository" } else { "file that the commit does not have" };
                leaks.add(shown(&entry.path), what);
                worktree.note_untracked(&entry);
                continue;
            };
            let kind = match entry.kind {
                EntryKind::File { executable: true, .. } => Some(TreeKind::BlobExecutable),
                EntryKind::File { executable: false, .. } => Some(TreeKind::Blob),
                EntryKind::Link => Some(TreeKind::Link),
                EntryKind::Directory | EntryKind::Other => None,
            };
            if kind != Some(file.kind) {
                leaks.add(shown(&entry.path), "file of another kind or mode than in the commit");
            } else if id != Some(file.id) {
                leaks.add(shown(&entry.path), "file with other content than in the commit");
                worktree.note_untracked(&entry);
            }
        }
        for path in expected.into_keys() {
            leaks.add(shown(path), "file of the commit that is missing");
        }
        Ok(worktree)
    }

    fn note_untracked(&mut self, entry: &walk::Entry) {
        if matches!(entry.kind, EntryKind::File { .. }) {
            self.untracked.push(entry.path.clone());
        }
    }

    fn note_page(&mut self, path: &[u8], kind: EntryKind) {
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
        let regular = matches!(kind, EntryKind::File { .. });
        match path.strip_prefix(b"md/").filter(|_| regular).and_then(page_number) {
            Some(page) => {
                self.pages.insert(page);
            }
            None => self.page_like.extend(page_like(name).map(|page| (path.to_vec(), page))),
        }
    }

    /// The id that the content has as a git object; `None` for what has none or is too long to read.
    fn identify(
        &mut self,
        dir: &Path,
        path: &[u8],
        kind: EntryKind,
        leaks: &mut Leaks,
    ) -> Result<Option<ObjectId>, CutoffError> {
        let full = dir.join(OsStr::from_bytes(path));
        let content = match kind {
            EntryKind::File { .. } => walk::read(&full, LARGEST_OBJECT)?,
            EntryKind::Link => {
                let target = fs::read_link(&full).map_err(|error| CutoffError::file("read", &full, error))?;
                Some(target.as_os_str().as_bytes().to_vec())
            }
            EntryKind::Directory | EntryKind::Other => return Ok(None),
        };
        let Some(content) = content else {
            leaks.add(shown(path), format!("file of more than {LARGEST_OBJECT} bytes"));
            return Ok(None);
        };
        let id = gix::objs::compute_hash(HashKind::Sha1, Kind::Blob, &content)
            .map_err(|error| CutoffError::object(shown(path), format!("cannot be digested: {error}")))?;
        self.blobs.push((path.to_vec(), id));
        let parts: Vec<&[u8]> = path.split(|byte| *byte == b'/').collect();
        if let ([b"skills", name, b"SKILL.md"], EntryKind::File { .. }) = (&parts[..], kind) {
            let name = String::from_utf8_lossy(name).into_owned();
            self.skill_cards.insert(name, hex::encode(Sha256::digest(&content)));
        }
        Ok(Some(id))
    }
}
