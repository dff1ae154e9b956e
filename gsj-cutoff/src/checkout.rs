//! Making a truncated checkout: one commit, its trees and files, and nothing else.

use crate::audit::{Expectation, audit};
use crate::closure::{self, Tree, TreeFile};
use crate::error::CutoffError;
use crate::evidence::Evidence;
use crate::names;
use crate::objects::{Objects as _, Source};
use crate::source::SourceRepository;
use gix::ObjectId;
use gix::bstr::BStr;
use gix::hash::Kind as HashKind;
use gix::objs::tree::EntryKind;
use gix::objs::{Kind, Write as _};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The whole configuration of a checkout: no remote, no filter, no hook.
const CONFIG: &str = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n";

/// The most content that one checkout may hold, in bytes.
const LARGEST_CHECKOUT: u64 = 1 << 30;

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
    let repository = SourceRepository::open(request.source)?;
    let commit_id = repository.tip(request.branch)?;
    let mut source = repository.objects()?;
    let commit = closure::read_commit(&mut source, commit_id)?;
    let tree = closure::read_tree(&mut source, commit.tree)?;
    check_pages(request, &tree)?;

    let created = prepare(request.dest)?;
    let written = write(request, &mut source, commit_id, commit.seconds, &tree).and_then(|()| inspect(request));
    if written.is_err() {
        take_away(request.dest, created);
    }
    written
}

fn inspect(request: &CheckoutRequest<'_>) -> Result<Evidence, CutoffError> {
    let expectation = Expectation {
        case_id: Some(request.case_id.to_owned()),
        timestep: Some(request.timestep),
        clone_url: Some(request.clone_url.to_owned()),
        recipe: Some(request.recipe.to_owned()),
        forbid_from: None,
    };
    let found = audit(request.dest, &expectation)?;
    match found.leaks.first() {
        None => Ok(found.evidence),
        Some(leak) => {
            Err(CutoffError::Leaks { path: request.dest.to_owned(), count: found.leaks.len(), first: leak.to_string() })
        }
    }
}

fn check_pages(request: &CheckoutRequest<'_>, tree: &Tree) -> Result<(), CutoffError> {
    let fault =
        |found: String| CutoffError::Pages { branch: request.branch.to_owned(), timestep: request.timestep, found };
    for file in &tree.files {
        let under_md = file.path == b"md" || file.path.starts_with(b"md/");
        if under_md && (file.page().is_none() || file.kind == EntryKind::Link) {
            return Err(fault(format!("`{}`, which is no page,", names::shown(&file.path))));
        }
    }
    let pages = tree.pages();
    if let Some(later) = pages.iter().find(|page| **page > request.timestep) {
        return Err(fault(format!("page {later}")));
    }
    if pages != (1..=request.timestep).collect::<BTreeSet<_>>() {
        let missing = (1..=request.timestep).find(|page| !pages.contains(page)).unwrap_or_default();
        return Err(fault(format!("{} pages (the first missing is {missing})", pages.len())));
    }
    Ok(())
}

/// Makes sure that the destination is an empty directory; tells whether it was made here.
fn prepare(dest: &Path) -> Result<bool, CutoffError> {
    let refuse = |what| Err(CutoffError::Destination { path: dest.to_owned(), what });
    match fs::symlink_metadata(dest) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            fs::create_dir_all(dest).map_err(|error| CutoffError::file("create", dest, error))?;
            Ok(true)
        }
        Err(error) => Err(CutoffError::file("look at", dest, error)),
        Ok(found) if found.is_symlink() => refuse("is a symbolic link"),
        Ok(found) if !found.is_dir() => refuse("is not a directory"),
        Ok(_) => {
            let mut entries = fs::read_dir(dest).map_err(|error| CutoffError::file("list", dest, error))?;
            if entries.next().is_some() { refuse("is not empty") } else { Ok(false) }
        }
    }
}

/// Removes what a failed checkout wrote. The first failure is what the caller hears of, so failures here are not told.
fn take_away(dest: &Path, created: bool) {
    if created {
        let _ = fs::remove_dir_all(dest);
        return;
    }
    for entry in fs::read_dir(dest).into_iter().flatten().flatten() {
        let path = entry.path();
        let directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let _ = if directory { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    }
}

fn write(
    request: &CheckoutRequest<'_>,
    source: &mut Source,
    commit: ObjectId,
    seconds: i64,
    tree: &Tree,
) -> Result<(), CutoffError> {
    let dot_git = request.dest.join(".git");
    let objects = dot_git.join("objects");
    for directory in [
        &dot_git,
        &objects,
        &objects.join("info"),
        &objects.join("pack"),
        &dot_git.join("refs"),
        &dot_git.join("refs/heads"),
        &dot_git.join("refs/tags"),
    ] {
        fs::create_dir(directory).map_err(|error| CutoffError::file("create", directory, error))?;
    }

    let store = gix::odb::loose::Store::at(&objects, HashKind::Sha1);
    let mut buffer = Vec::new();
    source.read_as(commit, Kind::Commit, &mut buffer)?;
    copy(&store, commit, Kind::Commit, &buffer)?;
    for id in &tree.trees {
        source.read_as(*id, Kind::Tree, &mut buffer)?;
        copy(&store, *id, Kind::Tree, &buffer)?;
    }

    for directory in &tree.directories {
        let path = request.dest.join(OsStr::from_bytes(directory));
        fs::create_dir(&path).map_err(|error| CutoffError::file("create", &path, error))?;
    }
    let mut written = BTreeSet::new();
    let mut total = 0;
    let mut index = gix::index::State::new(HashKind::Sha1);
    for file in &tree.files {
        source.read_as(file.id, Kind::Blob, &mut buffer)?;
        total += buffer.len() as u64;
        if total > LARGEST_CHECKOUT {
            return Err(CutoffError::object(
                file.id,
                format!("makes the checkout larger than {LARGEST_CHECKOUT} bytes"),
            ));
        }
        if written.insert(file.id) {
            copy(&store, file.id, Kind::Blob, &buffer)?;
        }
        let size = u32::try_from(buffer.len()).unwrap_or(u32::MAX);
        write_file(request.dest, file, &buffer, seconds)?;
        // Of the file's state only its size is the same on every machine; git compares the content where the rest differs.
        let stat = gix::index::entry::Stat { size, ..Default::default() };
        let flags = gix::index::entry::Flags::empty();
        index.dangerously_push_entry(stat, file.id, flags, index_mode(file.kind), BStr::new(&file.path));
    }
    index.sort_entries();

    plain(&dot_git.join("HEAD"), format!("ref: refs/heads/{}\n", request.branch).as_bytes())?;
    plain(&dot_git.join("config"), CONFIG.as_bytes())?;
    plain(&dot_git.join("shallow"), format!("{commit}\n").as_bytes())?;
    plain(&dot_git.join("refs/heads").join(request.branch), format!("{commit}\n").as_bytes())?;
    let index_path = dot_git.join("index");
    let mut bytes = Vec::new();
    let options = gix::index::write::Options { extensions: gix::index::write::Extensions::None, skip_hash: false };
    gix::index::File::from_state(index, &index_path)
        .write_to(&mut bytes, options)
        .map_err(|error| CutoffError::file("write", &index_path, io::Error::other(error.to_string())))?;
    plain(&index_path, &bytes)?;

    settle(&dot_git, seconds)?;
    // Deepest first: writing into a directory moves its time.
    let mut directories: Vec<PathBuf> =
        tree.directories.iter().map(|path| request.dest.join(OsStr::from_bytes(path))).collect();
    directories.reverse();
    directories.push(request.dest.to_owned());
    for directory in directories {
        set_mode(&directory, 0o755)?;
        set_time(&directory, seconds)?;
    }
    Ok(())
}

fn copy(store: &gix::odb::loose::Store, id: ObjectId, kind: Kind, content: &[u8]) -> Result<(), CutoffError> {
    let written = store
        .write_buf(kind, content)
        .map_err(|error| CutoffError::object(id, format!("cannot be written: {error}")))?;
    if written == id { Ok(()) } else { Err(CutoffError::object(id, format!("was written as {written}"))) }
}

fn index_mode(kind: EntryKind) -> gix::index::entry::Mode {
    match kind {
        EntryKind::BlobExecutable => gix::index::entry::Mode::FILE_EXECUTABLE,
        EntryKind::Link => gix::index::entry::Mode::SYMLINK,
        EntryKind::Blob | EntryKind::Tree | EntryKind::Commit => gix::index::entry::Mode::FILE,
    }
}

fn write_file(dest: &Path, file: &TreeFile, content: &[u8], seconds: i64) -> Result<(), CutoffError> {
    let path = dest.join(OsStr::from_bytes(&file.path));
    if file.kind == EntryKind::Link {
        let depth = file.path.iter().filter(|byte| **byte == b'/').count();
        if let Some(what) = names::link_refusal(content, depth) {
            return Err(CutoffError::Refused { path: names::shown(&file.path), what });
        }
        return std::os::unix::fs::symlink(OsStr::from_bytes(content), &path)
            .map_err(|error| CutoffError::file("create", &path, error));
    }
    let mode = if file.kind == EntryKind::BlobExecutable { 0o755 } else { 0o644 };
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(mode);
    let fault = |error| CutoffError::file("write", &path, error);
    let mut handle = options.open(&path).map_err(fault)?;
    handle.write_all(content).map_err(fault)?;
    handle.set_permissions(Permissions::from_mode(mode)).map_err(fault)?;
    handle.set_modified(moment(seconds)).map_err(fault)
}

fn plain(path: &Path, content: &[u8]) -> Result<(), CutoffError> {
    fs::write(path, content).map_err(|error| CutoffError::file("write", path, error))
}

/// Gives everything under `.git` its mode and time.
fn settle(directory: &Path, seconds: i64) -> Result<(), CutoffError> {
    let fault = |error| CutoffError::file("list", directory, error);
    for entry in fs::read_dir(directory).map_err(fault)? {
        let entry = entry.map_err(fault)?;
        let path = entry.path();
        if entry.file_type().map_err(fault)?.is_dir() {
            settle(&path, seconds)?;
        } else {
            let object = path.parent().and_then(Path::file_name).is_some_and(|name| name.as_bytes().len() == 2);
            set_mode(&path, if object { 0o444 } else { 0o644 })?;
            set_time(&path, seconds)?;
        }
    }
    set_mode(directory, 0o755)?;
    set_time(directory, seconds)
}

fn set_mode(path: &Path, mode: u32) -> Result<(), CutoffError> {
    fs::set_permissions(path, Permissions::from_mode(mode))
        .map_err(|error| CutoffError::file("set the mode of", path, error))
}

fn set_time(path: &Path, seconds: i64) -> Result<(), CutoffError> {
    File::open(path)
        .and_then(|file| file.set_modified(moment(seconds)))
        .map_err(|error| CutoffError::file("set the time of", path, error))
}

fn moment(seconds: i64) -> SystemTime {
    let after = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
    // A commit's date may be beyond what a file system keeps.
    SystemTime::UNIX_EPOCH.checked_add(after).unwrap_or(SystemTime::UNIX_EPOCH)
}
