//! The patch id of a change, as `git diff-tree -p --full-index | git patch-id --stable` gives it.
//!
//! Git defines it by the text of the patch: lines without their white space, hunk headers and object names left out,
//! one SHA-1 for each file, the digests added up. So the same diff must be made (Myers, git's indentation heuristic,
//! three lines of context, no renames) and the same reader of its lines be run.

use crate::closure::DEEPEST;
use crate::error::CutoffError;
use crate::objects::Objects;
use gix::ObjectId;
use gix::diff::blob::{Algorithm, Diff, InternedInput};
use gix::hash::Kind as HashKind;
use gix::objs::tree::{EntryKind, EntryMode};
use gix::objs::{Kind, TreeRef};
use sha1::{Digest as _, Sha1};
use std::collections::BTreeMap;

/// Lines of context around a change.
const CONTEXT: usize = 3;
/// How many bytes git looks at to tell binary content from text.
const LOOKED_AT: usize = 8_000;
/// The most files and directories of one change; more is taken for an attack.
const MOST_CHANGES: usize = 1_000_000;

type Entry = (EntryMode, ObjectId);

/// The patch id of the change from one tree (none: the empty one) to another; `None` when nothing differs.
pub(crate) fn of(
    objects: &mut impl Objects,
    before: Option<ObjectId>,
    after: ObjectId,
) -> Result<Option<ObjectId>, CutoffError> {
    let mut patch = Patch::default();
    trees(objects, &mut patch, &mut Vec::new(), before, Some(after))?;
    Ok(patch.finish())
}

/// The entries of a tree in git's order: a directory sorts as if its name ended in a slash.
fn entries(objects: &mut impl Objects, tree: Option<ObjectId>) -> Result<BTreeMap<Vec<u8>, Entry>, CutoffError> {
    let Some(id) = tree else { return Ok(BTreeMap::new()) };
    let mut buffer = Vec::new();
    objects.read_as(id, Kind::Tree, &mut buffer)?;
    let tree = TreeRef::from_bytes(&buffer, HashKind::Sha1)
        .map_err(|error| CutoffError::object(id, format!("is no valid tree: {error}")))?;
    let key = |entry: &gix::objs::tree::EntryRef<'_>| {
        let mut name = entry.filename.to_vec();
        if entry.mode.is_tree() {
            name.push(b'/');
        }
        name
    };
    Ok(tree.entries.iter().map(|entry| (key(entry), (entry.mode, entry.oid.to_owned()))).collect())
}

/// Tells of all files that differ. Recursion ends, since a path may have so many parts and no more.
fn trees(
    objects: &mut impl Objects,
    patch: &mut Patch,
    path: &mut Vec<u8>,
    before: Option<ObjectId>,
    after: Option<ObjectId>,
) -> Result<(), CutoffError> {
    if before == after {
        return Ok(());
    }
    let refused = |path: &[u8], what| Err(CutoffError::Refused { path: crate::names::shown(path), what });
    if path.iter().filter(|byte| **byte == b'/').count() > DEEPEST {
        return refused(path, "it is nested too deeply");
    }
    let (old, new) = (entries(objects, before)?, entries(objects, after)?);
    let mut names: Vec<&Vec<u8>> = old.keys().chain(new.keys()).collect();
    names.sort();
    names.dedup();
    for name in names {
        let (was, is) = (old.get(name), new.get(name));
        if was == is {
            continue;
        }
        patch.changes += 1;
        if patch.changes > MOST_CHANGES {
            return refused(path, "the change has too many entries");
        }
        let length = path.len();
        path.extend_from_slice(name);
        if name.ends_with(b"/") {
            trees(objects, patch, path, was.map(|(_, id)| *id), is.map(|(_, id)| *id))?;
        } else {
            file(objects, patch, path, was, is)?;
        }
        path.truncate(length);
    }
    Ok(())
}

fn file(
    objects: &mut impl Objects,
    patch: &mut Patch,
    path: &[u8],
    was: Option<&Entry>,
    is: Option<&Entry>,
) -> Result<(), CutoffError> {
    let class = |entry: &Entry| match entry.0.kind() {
        EntryKind::Blob | EntryKind::BlobExecutable => 0,
        EntryKind::Link => 1,
        EntryKind::Tree | EntryKind::Commit => 2,
    };
    // What changes from a file to a link is shown as gone and come.
    if let (Some(old), Some(new)) = (was, is)
        && class(old) != class(new)
    {
        file(objects, patch, path, was, None)?;
        return file(objects, patch, path, None, is);
    }
    let (old, new) = (content(objects, was)?, content(objects, is)?);
    let (a, b) = (quoted(b"a/", path), quoted(b"b/", path));
    patch.line(&[b"diff --git ", &a[..], b" ", &b].concat());
    let mode = |entry: &Entry| format!("{:06o}", entry.0.value()).into_bytes();
    match (was, is) {
        (None, Some(new)) => patch.line(&[&b"new file mode "[..], &mode(new)].concat()),
        (Some(old), None) => patch.line(&[&b"deleted file mode "[..], &mode(old)].concat()),
        (Some(old), Some(new)) if old.0 != new.0 => {
            patch.line(&[&b"old mode "[..], &mode(old)].concat());
            patch.line(&[&b"new mode "[..], &mode(new)].concat());
        }
        _ => {}
    }
    let null = ObjectId::null(HashKind::Sha1);
    let id = |entry: Option<&Entry>| entry.map_or(null, |(_, id)| *id);
    if id(was) == id(is) {
        return Ok(());
    }
    let binary = |content: &[u8]| content[..content.len().min(LOOKED_AT)].contains(&0);
    if binary(&old) || binary(&new) {
        patch.binary(id(was), id(is));
        return Ok(());
    }
    let from = if was.is_some() { a } else { b"/dev/null".to_vec() };
    let to = if is.is_some() { b } else { b"/dev/null".to_vec() };
    text(patch, &old, &new, &[b"--- ", &from[..]].concat(), &[b"+++ ", &to[..]].concat());
    Ok(())
}

fn content(objects: &mut impl Objects, entry: Option<&Entry>) -> Result<Vec<u8>, CutoffError> {
    let mut buffer = Vec::new();
    match entry {
        None => {}
        Some((mode, id)) if mode.is_commit() => buffer = format!("Subproject commit {id}\n").into_bytes(),
        Some((_, id)) => objects.read_as(*id, Kind::Blob, &mut buffer)?,
    }
    Ok(buffer)
}

fn text(patch: &mut Patch, old: &[u8], new: &[u8], from: &[u8], to: &[u8]) {
    let lines = |content| <[u8]>::split_inclusive(content, |byte| *byte == b'\n');
    let mut input: InternedInput<&[u8]> = InternedInput::default();
    input.update_before(lines(old));
    input.update_after(lines(new));
    let mut diff = Diff::compute(Algorithm::Myers, &input);
    diff.postprocess_lines(&input);
    let changes: Vec<_> =
        diff.hunks().map(|hunk| (hunk.before.start as usize..hunk.before.end as usize, hunk.after)).collect();
    if changes.is_empty() {
        return;
    }
    patch.line(from);
    patch.line(to);
    let before: Vec<&[u8]> = input.before.iter().map(|token| input.interner[*token]).collect();
    let after: Vec<&[u8]> = input.after.iter().map(|token| input.interner[*token]).collect();
    for hunk in changes.chunk_by(|(one, _), (two, _)| two.start - one.end <= 2 * CONTEXT) {
        let (Some((first, _)), Some((last, _))) = (hunk.first(), hunk.last()) else { continue };
        let mut at = first.start.saturating_sub(CONTEXT);
        let end = (last.end + CONTEXT).min(before.len());
        for (gone, come) in hunk {
            before[at..gone.start].iter().for_each(|line| patch.content(b' ', line));
            before[gone.clone()].iter().for_each(|line| patch.content(b'-', line));
            let come = come.start as usize..come.end as usize;
            after[come].iter().for_each(|line| patch.content(b'+', line));
            at = gone.end;
        }
        before[at..end].iter().for_each(|line| patch.content(b' ', line));
    }
}

/// A path as it stands in the head of a patch: quoted when a byte of it is neither printable nor ASCII.
fn quoted(prefix: &[u8], path: &[u8]) -> Vec<u8> {
    let special = |byte: &u8| *byte < 0x20 || *byte >= 0x7f || matches!(byte, b'"' | b'\\');
    if !path.iter().any(special) {
        return [prefix, path].concat();
    }
    let mut out = [b"\"", prefix].concat();
    for byte in path {
        let short = match byte {
            0x07 => b'a',
            0x08 => b'b',
            b'\t' => b't',
            b'\n' => b'n',
            0x0b => b'v',
            0x0c => b'f',
            b'\r' => b'r',
            b'"' | b'\\' => *byte,
            _ if special(byte) => {
                out.extend_from_slice(format!("\\{byte:03o}").as_bytes());
                continue;
            }
            _ => {
                out.push(*byte);
                continue;
            }
        };
        out.extend_from_slice(&[b'\\', short]);
    }
    out.push(b'"');
    out
}

/// The reader of a patch's lines, with the states that git's has.
#[derive(Default)]
struct Patch {
    digest: Sha1,
    sum: [u8; 20],
    /// Whether the two lines with the names have come: only then the next file begins with a new digest.
    in_hunks: bool,
    any: bool,
    /// After a binary change git takes the next file's first line for the end of that change and leaves it out.
    swallow: bool,
    /// How many files and directories were told of.
    changes: usize,
}

impl Patch {
    /// A line of a file's head.
    fn line(&mut self, line: &[u8]) {
        if line.starts_with(b"diff ") {
            if std::mem::take(&mut self.swallow) {
                return;
            }
            if std::mem::take(&mut self.in_hunks) {
                self.flush();
            }
        }
        self.in_hunks |= line.starts_with(b"+++ ");
        self.add(line);
    }

    fn content(&mut self, sign: u8, line: &[u8]) {
        self.add(&[sign]);
        // The text is read as a string that ends at a zero byte.
        let end = line.iter().position(|byte| *byte == 0).unwrap_or(line.len());
        self.add(&line[..end]);
    }

    /// The line that stands for a binary change, and the two object names that stand for its content.
    fn binary(&mut self, was: ObjectId, is: ObjectId) {
        self.digest.update(was.to_string());
        self.digest.update(is.to_string());
        self.any = true;
        self.flush();
        self.swallow = true;
    }

    fn add(&mut self, line: &[u8]) {
        let kept: Vec<u8> = line.iter().copied().filter(|byte| !matches!(byte, b' ' | b'\t' | b'\n' | b'\r')).collect();
        self.any |= !kept.is_empty();
        self.digest.update(&kept);
    }

    /// Adds the digest so far to the sum, the first byte being the lowest.
    fn flush(&mut self) {
        let digest: [u8; 20] = std::mem::take(&mut self.digest).finalize().into();
        let mut carry = 0_u16;
        for (sum, byte) in self.sum.iter_mut().zip(digest) {
            carry += u16::from(*sum) + u16::from(byte);
            [*sum, _] = carry.to_le_bytes();
            carry >>= 8;
        }
    }

    fn finish(mut self) -> Option<ObjectId> {
        if !self.any {
            return None;
        }
        self.flush();
        Some(ObjectId::Sha1(self.sum))
    }
}
