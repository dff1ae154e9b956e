//! One bare repository on disk, brought to hold exactly what it should.
//!
//! It holds one pack, named by the set of its objects, and one file of refs. So one look at names tells whether anything
//! is to be done, and one rename moves all branches at once.

use crate::corpus::Case;
use crate::error::EstateError;
use crate::files;
use crate::names::shown;
use crate::recipe::{Plan, Shared, blob, up_to};
use gix::ObjectId;
use gix::objs::Kind;
use gix::zlib::Compression;
use gsj_cutoff::{CutoffError, PackWriter};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

const CONFIG: &str = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = true\n";
/// As git writes it, the blank at the end included.
const REFS_HEADER: &str = "# pack-refs with: peeled fully-peeled sorted \n";
/// The longest configuration or list of refs that is read, in bytes.
const LONGEST_TEXT: u64 = 64 << 20;
/// Files of a repository that could add refs, or take history away.
const FOREIGN: [&str; 4] = ["logs", "FETCH_HEAD", "ORIG_HEAD", "shallow"];

/// What a repository should hold, and where its bytes come from.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub(crate) case: &'a Case,
    pub(crate) plan: &'a Plan,
    pub(crate) shared: &'a Shared,
    /// The blobs of the case's pages.
    pub(crate) pages: &'a [ObjectId],
}

/// What stands on disk and should not, or the other way round.
struct Difference {
    pack: PathBuf,
    missing_pack: bool,
    stray_refs: Vec<PathBuf>,
    stray_objects: Vec<PathBuf>,
    refs: bool,
    head: bool,
    /// Whether a file or folder that every repository has is missing, or a run that was killed left its own.
    skeleton: bool,
}

impl Difference {
    fn is_empty(&self) -> bool {
        let wanting = self.missing_pack || self.refs || self.head || self.skeleton;
        !wanting && self.stray_refs.is_empty() && self.stray_objects.is_empty()
    }
}

/// Brings the repository to what is wanted; tells whether anything had to be written.
///
/// The order makes every moment a good one to stop at: objects before the refs that name them, stray objects last.
pub(crate) fn write(path: &Path, wanted: Wanted<'_>, dry_run: bool) -> Result<bool, EstateError> {
    let ids = wanted.plan.ids(wanted.shared, wanted.pages);
    let difference = compare(path, wanted.plan, &ids)?;
    if dry_run || difference.is_empty() {
        return Ok(!difference.is_empty());
    }
    for directory in ["objects/info", "objects/pack", "refs/heads", "refs/tags"] {
        let directory = path.join(directory);
        fs::create_dir_all(&directory).map_err(|error| EstateError::file("create", &directory, error))?;
    }
    if !path.join("config").exists() {
        replace(&path.join("config"), CONFIG)?;
    }
    let beside = unfinished(&difference.pack);
    if files::kind(&beside).is_some() {
        fs::remove_dir_all(&beside).map_err(|error| EstateError::file("remove", &beside, error))?;
    }
    if difference.missing_pack {
        write_pack(&difference.pack, wanted, &ids)?;
    }
    replace(&path.join("packed-refs"), &refs_of(wanted.plan))?;
    remove(&difference.stray_refs, &path.join("refs"))?;
    if difference.head {
        replace(&path.join("HEAD"), &head_of(wanted.plan))?;
    }
    remove(&difference.stray_objects, &path.join("objects"))?;
    let branches = wanted.plan.branches.iter();
    let expected = branches.map(|(name, branch)| (format!("refs/heads/{name}"), Some(branch.commit))).collect();
    if refs(path)? != expected {
        return Err(EstateError::repository(path, "does not hold the branches that were written to it"));
    }
    Ok(true)
}

/// All refs of a repository and what they name directly, as any reader finds them; HEAD is not among them.
pub(crate) fn refs(path: &Path) -> Result<BTreeMap<String, Option<ObjectId>>, EstateError> {
    let fault = |error: gix::Error| EstateError::repository(path, format!("cannot be read: {error}"));
    let repository = open(path)?;
    let mut found = BTreeMap::new();
    for reference in repository.references().map_err(fault)?.all().map_err(fault)? {
        let reference = reference.map_err(|error| EstateError::repository(path, error))?;
        found.insert(reference.name().as_bstr().to_string(), reference.try_id().map(gix::Id::detach));
    }
    Ok(found)
}

/// Opens a bare repository with nothing of the environment or of anyone's configuration.
///
/// A pipe or device in it would be waited for, or read without end, so there may be none.
pub(crate) fn open(path: &Path) -> Result<gix::Repository, EstateError> {
    for file in listed(path)? {
        if files::kind(&file) != Some(files::Kind::File) {
            let name = shown(&file.strip_prefix(path).unwrap_or(&file).to_string_lossy());
            return Err(EstateError::repository(path, format!("cannot be opened: `{name}` is no regular file")));
        }
    }
    gix::open_opts(path, gix::open::Options::isolated().open_path_as_is(true))
        .map_err(|error| EstateError::repository(path, format!("cannot be opened: {error}")))
}

/// The branch that HEAD names, without `refs/heads/`.
pub(crate) fn head(path: &Path) -> Option<String> {
    let text = read_text(&path.join("HEAD"))?;
    Some(text.strip_prefix("ref: refs/heads/")?.trim_end().to_owned())
}

fn refs_of(plan: &Plan) -> String {
    let mut text = REFS_HEADER.to_owned();
    for (name, branch) in &plan.branches {
        // Writing into a string does not fail.
        let _ = writeln!(text, "{} refs/heads/{name}", branch.commit);
    }
    text
}

fn head_of(plan: &Plan) -> String {
    format!("ref: refs/heads/{}\n", plan.head)
}

/// The folder in which a pack is written; a run that was killed may leave it.
fn unfinished(pack: &Path) -> PathBuf {
    pack.with_extension("unfinished")
}

fn write_pack(pack: &Path, wanted: Wanted<'_>, ids: &BTreeSet<ObjectId>) -> Result<(), EstateError> {
    let beside = unfinished(pack);
    fs::create_dir(&beside).map_err(|error| EstateError::file("create", &beside, error))?;
    let fault = |error| match error {
        // What the disk said is the source, and is to be told.
        CutoffError::File { action, path, source } => EstateError::file(action, path, source),
        error => EstateError::repository(&beside, error),
    };
    let mut writer = PackWriter::begin(&beside, ids.len()).map_err(fault)?;
    let mut missing = ids.clone();
    for (id, (kind, content)) in wanted.plan.own.iter().chain(&wanted.shared.objects) {
        if missing.remove(id) {
            writer.add(*id, *kind, content, Compression::BEST_SPEED).map_err(fault)?;
        }
    }
    for (page, id) in wanted.case.pages.iter().zip(up_to(wanted.pages, wanted.plan.longest())) {
        if missing.remove(id) {
            let content = page.read()?;
            // The file may have been written between two looks at it.
            if blob(&content) != Some(*id) {
                return Err(EstateError::Changed { path: page.path.clone() });
            }
            writer.add(*id, Kind::Blob, &content, Compression::BEST_SPEED).map_err(fault)?;
        }
    }
    let [made, index] = writer.finish().map_err(fault)?;
    // A pack without its index is nothing to git, so it comes first.
    for (from, to) in [(&made, pack), (&index, &pack.with_extension("idx"))] {
        File::open(from).and_then(|file| file.sync_data()).map_err(|error| EstateError::file("write", from, error))?;
        fs::rename(from, to).map_err(|error| EstateError::file("write", to, error))?;
    }
    fs::remove_dir(&beside).map_err(|error| EstateError::file("remove", &beside, error))
}

/// Whether pack and index are there and belong together, by the digest that both end in.
fn is_whole(pack: &Path) -> bool {
    let ending = |path: &Path, before: i64| -> io::Result<[u8; 20]> {
        let mut file = files::open(path)?;
        file.seek(SeekFrom::End(-before))?;
        let mut digest = [0; 20];
        file.read_exact(&mut digest)?;
        Ok(digest)
    };
    match (ending(pack, 20), ending(&pack.with_extension("idx"), 40)) {
        (Ok(pack), Ok(index)) => pack == index,
        _ => false,
    }
}

fn compare(path: &Path, plan: &Plan, ids: &BTreeSet<ObjectId>) -> Result<Difference, EstateError> {
    match files::kind(path) {
        None => {}
        Some(files::Kind::Directory) => check_foreign(path)?,
        Some(_) => return Err(EstateError::repository(path, "is no directory")),
    }
    let pack = path.join(format!("objects/pack/pack-{}.pack", Plan::digest(ids)));
    let index = pack.with_extension("idx");
    let stray_objects = listed(&path.join("objects"))?.into_iter().filter(|file| *file != pack && *file != index);
    let mut stray_refs = listed(&path.join("refs"))?;
    for extra in FOREIGN {
        let extra = path.join(extra);
        if extra.is_dir() {
            stray_refs.extend(listed(&extra)?);
        } else if extra.exists() {
            stray_refs.push(extra);
        }
    }
    let left = files::kind(&unfinished(&pack)).is_some();
    Ok(Difference {
        stray_objects: stray_objects.collect(),
        stray_refs,
        missing_pack: !is_whole(&pack),
        pack,
        refs: read_text(&path.join("packed-refs")).as_deref() != Some(refs_of(plan).as_str()),
        head: read_text(&path.join("HEAD")).as_deref() != Some(head_of(plan).as_str()),
        skeleton: left || !path.join("config").is_file() || !path.join("refs").is_dir(),
    })
}

/// Refuses a directory that is no bare repository in the plain format, so that nothing of another's is removed.
pub(crate) fn check_foreign(path: &Path) -> Result<(), EstateError> {
    let empty = fs::read_dir(path).map_err(|error| EstateError::file("list", path, error))?.next().is_none();
    // An earlier run that was stopped has left at least these two behind, in this order.
    let begun = path.join("objects").is_dir();
    if empty || (begun && !path.join("config").exists() && !path.join("HEAD").exists()) {
        return Ok(());
    }
    let config = read_text(&path.join("config")).unwrap_or_default().to_lowercase();
    if !begun || !config.contains("bare = true") {
        return Err(EstateError::repository(path, "is there and is no bare repository; it is left alone"));
    }
    if config.contains("refstorage") || config.contains("objectformat") || config.contains("[extensions") {
        return Err(EstateError::repository(path, "is there in another repository format; it is left alone"));
    }
    Ok(())
}

/// All entries below a directory but directories; none when there is no such directory.
pub(crate) fn listed(directory: &Path) -> Result<Vec<PathBuf>, EstateError> {
    let mut found = Vec::new();
    let mut pending = vec![directory.to_owned()];
    while let Some(directory) = pending.pop() {
        let entries = match fs::read_dir(&directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(EstateError::file("list", &directory, error)),
        };
        for entry in entries {
            let entry = entry.map_err(|error| EstateError::file("list", &directory, error))?;
            let kind = entry.file_type().map_err(|error| EstateError::file("list", &directory, error))?;
            if kind.is_dir() { pending.push(entry.path()) } else { found.push(entry.path()) }
        }
    }
    found.sort();
    Ok(found)
}

/// A small file's text; nothing for what is no regular file, no text or too long.
fn read_text(path: &Path) -> Option<String> {
    String::from_utf8(files::bounded(path, LONGEST_TEXT).ok()??).ok()
}

/// What a clone would stumble over that no object shows: the repository's format, what it hides, and packs whose bytes are
/// not those that their digests were made of.
pub(crate) fn uncloneable(path: &Path) -> Result<Vec<String>, EstateError> {
    let mut wrong = Vec::new();
    let config = read_text(&path.join("config")).unwrap_or_default().to_lowercase();
    let keys = config.lines().filter_map(|line| line.split_once('=')).map(|(key, value)| (key.trim(), value.trim()));
    for (key, value) in keys {
        match key {
            "repositoryformatversion" if value != "0" => {
                wrong.push(format!("config: the format version is {}", shown(value)));
            }
            "hiderefs" => wrong.push(format!("config: hides the refs {}", shown(value))),
            _ => {}
        }
    }
    if config.lines().any(|line| line.trim_start().starts_with("[extensions")) {
        wrong.push("config: names extensions of the format".to_owned());
    }
    for file in listed(&path.join("objects/pack"))? {
        let name = shown(&file.file_name().unwrap_or_default().to_string_lossy());
        match file.extension().and_then(|extension| extension.to_str()) {
            Some("pack" | "idx") => {}
            _ => continue,
        }
        match ends_in_its_digest(&file) {
            Ok(true) => {}
            Ok(false) => wrong.push(format!("{name} does not end in the digest of its bytes")),
            Err(error) => wrong.push(format!("{name} cannot be read: {error}")),
        }
        if file.extension() == Some("pack".as_ref()) && !is_whole(&file) {
            wrong.push(format!("{name} has no index that belongs to it"));
        }
    }
    Ok(wrong)
}

/// Whether the last 20 bytes of a file are the SHA-1 of those before.
fn ends_in_its_digest(path: &Path) -> io::Result<bool> {
    let mut file = files::open(path)?;
    let length = file.metadata()?.len();
    let Some(mut left) = length.checked_sub(20) else { return Ok(false) };
    let mut digest = gix::hash::hasher(gix::hash::Kind::Sha1);
    let mut buffer = vec![0; 1 << 16];
    while left > 0 {
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        let read = file.read(buffer.get_mut(..most).unwrap_or_default())?;
        if read == 0 {
            return Ok(false);
        }
        digest.update(buffer.get(..read).unwrap_or_default());
        left -= read as u64;
    }
    let mut ending = [0; 20];
    file.read_exact(&mut ending)?;
    // Bytes that were made to collide are no digest either.
    Ok(digest.try_finalize().is_ok_and(|digest| digest.as_slice() == ending))
}

/// Replaces a small file by a rename.
fn replace(path: &Path, content: &str) -> Result<(), EstateError> {
    if read_text(path).as_deref() == Some(content) {
        return Ok(());
    }
    files::write_atomically(path, content.as_bytes())
}

/// Removes files, and the directories that become empty by that, up to `top`.
fn remove(files: &[PathBuf], top: &Path) -> Result<(), EstateError> {
    for file in files {
        match fs::remove_file(file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(EstateError::file("remove", file, error));
            }
            _ => {}
        }
        let mut directory = file.parent();
        while let Some(parent) = directory.filter(|parent| parent.starts_with(top) && *parent != top) {
            // A directory that is not empty stays, and so do those above it.
            if ["heads", "tags", "info", "pack"].iter().any(|kept| parent == top.join(kept))
                || fs::remove_dir(parent).is_err()
            {
                break;
            }
            directory = parent.parent();
        }
    }
    Ok(())
}
