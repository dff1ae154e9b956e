//! What lies under `.git`.

use super::Leaks;
use super::walk::{self, EntryKind};
use crate::closure::Tree;
use crate::error::CutoffError;
use crate::names::shown;
use crate::objects::Folder;
use gix::ObjectId;
use gix::hash::Kind as HashKind;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// The longest HEAD, ref, configuration or boundary file that is read, in bytes.
const LONGEST_TEXT: u64 = 1 << 20;
/// The longest `packed-refs` or index that is read, in bytes.
const LONGEST_TABLE: u64 = 64 << 20;

/// The files at the top of `.git` that are read for what they say.
const READ_FILES: [&str; 5] = ["HEAD", "config", "index", "packed-refs", "shallow"];

/// The settings that start a program, by their last part; a filter or a monitor starts with the next command.
const PROGRAMS: [&str; 20] = [
    "fsmonitor",
    "hookspath",
    "clean",
    "smudge",
    "process",
    "sshcommand",
    "gitproxy",
    "askpass",
    "pager",
    "editor",
    "helper",
    "program",
    "driver",
    "command",
    "textconv",
    "external",
    "uploadpack",
    "receivepack",
    "cmd",
    "vcs",
];

/// The settings that say how to store files and nothing else.
const PLAIN_SETTINGS: [&str; 7] =
    ["repositoryformatversion", "filemode", "bare", "logallrefupdates", "ignorecase", "precomposeunicode", "symlinks"];

/// The contents of `.git` as far as they are understood; what is not is a leak.
pub(crate) struct DotGit {
    pub(crate) head: ObjectId,
    pub(crate) branch: Option<String>,
    pub(crate) shallow: BTreeSet<ObjectId>,
    pub(crate) remotes: u64,
    pub(crate) objects: Folder,
    /// Every regular file but the objects, for a search by content.
    pub(crate) plain_files: Vec<PathBuf>,
    /// Packs whose bytes no index accounts for, among them.
    pub(crate) unindexed: Vec<PathBuf>,
    index: Option<PathBuf>,
}

/// What the names of the files say.
#[derive(Default)]
struct Listing {
    loose: Vec<ObjectId>,
    packs: BTreeSet<Vec<u8>>,
    pack_indices: BTreeSet<Vec<u8>>,
    refs: Vec<Vec<u8>>,
    remote_files: u64,
    plain: Vec<Vec<u8>>,
    has: BTreeSet<&'static str>,
    split_index: bool,
}

impl DotGit {
    pub(crate) fn read(dir: &Path, most_inflated: Option<u64>, leaks: &mut Leaks) -> Result<Self, CutoffError> {
        let root = dir.join(".git");
        let unfit = |what: &str| CutoffError::NotACheckout { path: dir.to_owned(), what: what.to_owned() };
        let found = std::fs::symlink_metadata(&root).map_err(|error| CutoffError::file("look at", &root, error))?;
        if found.is_symlink() {
            return Err(unfit("its `.git` is a symbolic link"));
        }
        if !found.is_dir() {
            return Err(unfit("its `.git` is a file that points elsewhere"));
        }
        let listing = Listing::of(&root, leaks)?;

        let head = if listing.has.contains("HEAD") { text(&root.join("HEAD"))? } else { None };
        let head = head.ok_or_else(|| unfit("its HEAD is missing or unreadable"))?;
        let (branch_ref, detached) =
            parse_head(&head).ok_or_else(|| unfit("its HEAD names neither branch nor commit"))?;
        let mut refs = BTreeMap::new();
        if listing.has.contains("packed-refs") {
            packed_refs(&root.join("packed-refs"), &mut refs, leaks)?;
        }
        for name in &listing.refs {
            let content = text(&root.join(OsStr::from_bytes(name)))?.unwrap_or_default();
            match parse_id(&content) {
                Some(id) => {
                    refs.insert(name.clone(), id);
                }
                None if content.starts_with("ref:") => {
                    leaks.add(format!(".git/{}", shown(name)), "symbolic ref");
                }
                None => leaks.add(format!(".git/{}", shown(name)), "ref that names no object"),
            }
        }
        for name in refs.keys().filter(|name| Some(*name) != branch_ref.as_ref()) {
            leaks.add(format!(".git/{}", shown(name)), format!("ref beside the branch of HEAD: {}", ref_kind(name)));
        }
        let head = match (&branch_ref, detached) {
            (Some(name), _) => refs.get(name).copied(),
            (None, id) => id,
        };
        let head = head.ok_or_else(|| unfit("the branch of its HEAD has no commit"))?;

        let mut shallow = BTreeSet::new();
        if listing.has.contains("shallow") {
            for line in text(&root.join("shallow"))?.unwrap_or_default().lines() {
                match parse_id(line) {
                    Some(id) => {
                        shallow.insert(id);
                    }
                    None => leaks.add(".git/shallow", "line that is no commit id"),
                }
            }
        }
        let mut remotes = listing.remote_files;
        if listing.has.contains("config") {
            remotes += settings(&root.join("config"), leaks)?;
        }

        let objects_dir = root.join("objects");
        let indices: Vec<PathBuf> = listing
            .pack_indices
            .iter()
            .filter(|name| listing.packs.contains(*name))
            .map(|name| root.join(OsStr::from_bytes(&[name, &b".idx"[..]].concat())))
            .collect();
        for name in listing.packs.symmetric_difference(&listing.pack_indices) {
            leaks.add(format!(".git/{}", shown(name)), "pack without its index, or index without its pack");
        }
        let mut unindexed: Vec<PathBuf> = listing
            .packs
            .difference(&listing.pack_indices)
            .map(|name| root.join(OsStr::from_bytes(&[name, &b".pack"[..]].concat())))
            .collect();
        let (objects, faults) = Folder::open(&objects_dir, listing.loose.iter().copied(), &indices, most_inflated);
        for (path, what) in faults {
            unindexed.push(path.with_extension("pack"));
            leaks.add(path.strip_prefix(dir).unwrap_or(&path).display().to_string(), what);
        }
        Ok(Self {
            head,
            branch: branch_ref.map(|name| String::from_utf8_lossy(&name[b"refs/heads/".len()..]).into_owned()),
            shallow,
            remotes,
            objects,
            unindexed,
            plain_files: listing.plain.iter().map(|name| root.join(OsStr::from_bytes(name))).collect(),
            index: (listing.has.contains("index") && !listing.split_index).then(|| root.join("index")),
        })
    }

    /// Compares the index with the tree: it can name files that are in neither tree nor working tree.
    pub(crate) fn compare_index(&self, tree: &Tree, leaks: &mut Leaks) {
        let Some(path) = &self.index else { return };
        match std::fs::symlink_metadata(path) {
            Ok(found) if found.len() <= LONGEST_TABLE => {}
            _ => return leaks.add(".git/index", "index that is unreadable or too long"),
        }
        let limit = usize::try_from(LONGEST_TABLE).ok();
        let options =
            gix::index::decode::Options { thread_limit: Some(1), alloc_limit_bytes: limit, ..Default::default() };
        let index = match gix::index::File::at(path, HashKind::Sha1, false, options) {
            Ok(index) => index,
            Err(error) => return leaks.add(".git/index", format!("unreadable index: {error}")),
        };
        let files: BTreeMap<&[u8], ObjectId> = tree
            .files
            .iter()
            .map(|file| (&file.path[..], file.id))
            .chain(tree.gitlinks.iter().map(|(path, id)| (&path[..], *id)))
            .collect();
        for entry in index.entries() {
            let path: &[u8] = entry.path(&index);
            if files.get(path) != Some(&entry.id) {
                leaks.add(".git/index", format!("entry `{}` that the commit does not have", shown(path)));
            }
        }
        if index.resolve_undo().is_some() || index.untracked().is_some() || index.fs_monitor().is_some() {
            leaks.add(".git/index", "extension that keeps names of other files");
        }
    }
}

impl Listing {
    fn of(root: &Path, leaks: &mut Leaks) -> Result<Self, CutoffError> {
        let mut listing = Self::default();
        for entry in walk::list(root, &[])? {
            match entry.kind {
                EntryKind::Directory => {}
                EntryKind::File { .. } => listing.file(&entry.path, leaks),
                EntryKind::Link => leaks.add(format!(".git/{}", shown(&entry.path)), "symbolic link"),
                EntryKind::Other => leaks.add(format!(".git/{}", shown(&entry.path)), "neither file nor directory"),
            }
        }
        Ok(listing)
    }

    fn file(&mut self, path: &[u8], leaks: &mut Leaks) {
        if let Some(rest) = path.strip_prefix(b"objects/")
            && self.object(path, rest)
        {
            return;
        }
        self.plain.push(path.to_vec());
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
        if let Some(known) = READ_FILES.into_iter().find(|known| known.as_bytes() == path) {
            self.has.insert(known);
            return;
        }
        let what = match path {
            _ if path.starts_with(b"refs/") => return self.refs.push(path.to_vec()),
            b"objects/info/alternates" | b"objects/info/http-alternates" => "alternate object store",
            b"objects/info/commit-graph" => "commit graph",
            _ if path.starts_with(b"objects/info/commit-graphs/") => "commit graph",
            _ if path.starts_with(b"objects/pack/multi-pack-index") => "multi-pack index",
            _ if path.starts_with(b"objects/pack/tmp_") => "unfinished pack",
            _ if path.starts_with(b"objects/") && name.starts_with(b"tmp_obj_") => "unfinished object",
            _ if path.starts_with(b"objects/pack/") && path.ends_with(b".promisor") => {
                "promise that another repository has the rest of the objects"
            }
            b"info/grafts" => "graft",
            b"config.worktree" => "settings of one working tree",
            b"FETCH_HEAD" | b"ORIG_HEAD" | b"MERGE_HEAD" | b"CHERRY_PICK_HEAD" | b"REVERT_HEAD" | b"BISECT_HEAD"
            | b"REBASE_HEAD" | b"AUTO_MERGE" => "head left by another command",
            _ if path.starts_with(b"rebase-") || path.starts_with(b"sequencer/") || path.starts_with(b"BISECT_") => {
                "state of an unfinished command"
            }
            _ if path.starts_with(b"rr-cache/") => "recorded resolution of a merge",
            _ if path.starts_with(b"lfs/") => "large file store",
            _ if path.starts_with(b"info/") => "rules of this clone alone",
            _ if path.starts_with(b"logs/") => "reflog",
            _ if path.starts_with(b"hooks/") => "hook",
            _ if path.starts_with(b"worktrees/") => "second working tree",
            _ if path.starts_with(b"modules/") => "submodule",
            _ if path.starts_with(b"remotes/") || path.starts_with(b"branches/") => {
                self.remote_files += 1;
                "remote"
            }
            _ if path.starts_with(b"sharedindex.") => {
                self.split_index = true;
                "part of a split index"
            }
            _ => "file that no checkout needs",
        };
        leaks.add(format!(".git/{}", shown(path)), what);
    }

    /// Takes an object or pack file; false when it is neither.
    fn object(&mut self, path: &[u8], rest: &[u8]) -> bool {
        if rest.len() == 41 && rest[2] == b'/' {
            let hex = [&rest[..2], &rest[3..]].concat();
            if let Some(id) = std::str::from_utf8(&hex).ok().and_then(parse_id) {
                self.loose.push(id);
                return true;
            }
        }
        if rest.starts_with(b"pack/pack-") {
            if let Some(stem) = path.strip_suffix(b".pack") {
                return self.packs.insert(stem.to_vec());
            }
            if let Some(stem) = path.strip_suffix(b".idx") {
                return self.pack_indices.insert(stem.to_vec());
            }
            return path.ends_with(b".rev");
        }
        false
    }
}

/// What a ref is for, by its name.
fn ref_kind(name: &[u8]) -> &'static str {
    const KINDS: [(&[u8], &str); 9] = [
        (b"refs/heads/", "branch"),
        (b"refs/tags/", "tag"),
        (b"refs/remotes/", "branch of a remote"),
        (b"refs/notes/", "notes"),
        (b"refs/replace/", "replacement of an object"),
        (b"refs/stash", "stash"),
        (b"refs/original/", "what a rewritten branch was before"),
        (b"refs/bisect/", "mark of a search"),
        (b"refs/worktree/", "ref of one working tree"),
    ];
    KINDS.iter().find(|(prefix, _)| name.starts_with(prefix)).map_or("of no kind that git makes", |(_, kind)| *kind)
}

/// Whether a text is a URL with user information.
fn names_a_user(value: &[u8]) -> bool {
    let text = String::from_utf8_lossy(value);
    crate::evidence::without_credentials(&text) != text
}

fn text(path: &Path) -> Result<Option<String>, CutoffError> {
    Ok(walk::read(path, LONGEST_TEXT)?.and_then(|bytes| String::from_utf8(bytes).ok()))
}

fn parse_id(text: &str) -> Option<ObjectId> {
    let text = text.trim_end();
    let canonical = text.len() == 40 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if canonical { ObjectId::from_hex(text.as_bytes()).ok() } else { None }
}

/// The full name of HEAD's branch, or the commit of a detached HEAD.
fn parse_head(text: &str) -> Option<(Option<Vec<u8>>, Option<ObjectId>)> {
    if let Some(name) = text.strip_prefix("ref:") {
        let name = name.trim();
        return name.starts_with("refs/heads/").then(|| (Some(name.as_bytes().to_vec()), None));
    }
    Some((None, Some(parse_id(text)?)))
}

fn packed_refs(path: &Path, refs: &mut BTreeMap<Vec<u8>, ObjectId>, leaks: &mut Leaks) -> Result<(), CutoffError> {
    let Some(content) = walk::read(path, LONGEST_TABLE)? else {
        leaks.add(".git/packed-refs", "table of refs that is too long");
        return Ok(());
    };
    for line in content.split(|byte| *byte == b'\n') {
        // `#` opens the header, `^` gives the commit that the tag above it names; that tag is told already.
        if line.is_empty() || line.starts_with(b"#") || line.starts_with(b"^") {
            continue;
        }
        let id = line.get(..40).and_then(|hex| std::str::from_utf8(hex).ok()).and_then(parse_id);
        match (id, line.get(40), line.get(41..)) {
            (Some(id), Some(b' '), Some(name)) => {
                refs.insert(name.to_vec(), id);
            }
            _ => leaks.add(".git/packed-refs", "line that is no ref"),
        }
    }
    Ok(())
}

/// Reads the settings and counts the remotes. Values are not told, as they may hold credentials.
fn settings(path: &Path, leaks: &mut Leaks) -> Result<u64, CutoffError> {
    let where_ = ".git/config";
    let Some(content) = walk::read(path, LONGEST_TEXT)? else {
        leaks.add(where_, "configuration that is too long");
        return Ok(0);
    };
    let origin = gix::config::file::Metadata::from(gix::config::Source::Local);
    // Reads the bytes alone: no include is followed.
    let Ok(file) = gix::config::File::from_bytes_no_includes(&content, origin, Default::default()) else {
        leaks.add(where_, "configuration that cannot be read");
        return Ok(0);
    };
    let mut remotes = BTreeSet::new();
    for section in file.sections() {
        let name = section.header().name().to_string().to_lowercase();
        let subsection = section.header().subsection_name().map(|name| name.to_string());
        if section.body().value_names().any(|key| {
            section.body().values(&key).iter().any(|value| names_a_user(value))
                || key.eq_ignore_ascii_case("extraheader")
        }) || subsection.as_deref().is_some_and(|name| names_a_user(name.as_bytes()))
        {
            leaks.add(where_, format!("credentials in section `{}`", shown(name.as_bytes())));
        }
        if name == "remote" {
            leaks.add(where_, "remote");
            remotes.insert(subsection);
            continue;
        }
        for key in section.body().value_names() {
            let plain = name == "core" && subsection.is_none() && PLAIN_SETTINGS.contains(&key.to_lowercase().as_str());
            if !plain {
                let last = key.to_lowercase();
                let what = match &name[..] {
                    "include" | "includeif" => "that reads another file",
                    "alias" => "that starts a program",
                    _ if PROGRAMS.contains(&last.as_str()) => "that starts a program",
                    _ => "that no checkout needs",
                };
                let key = shown(format!("{name}.{key}").as_bytes());
                leaks.add(where_, format!("setting `{key}` {what}"));
            }
        }
    }
    Ok(remotes.len() as u64)
}
