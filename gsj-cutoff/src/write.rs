//! Writing a checkout: folders, one pack, an index, a handful of small files, and the working tree.

use crate::closure::{Tree, TreeFile};
use crate::error::CutoffError;
use crate::evidence::History;
use crate::names;
use crate::objects::{Objects as _, Source};
use crate::pack_copy::copy;
use crate::pack_write::PackWriter;
use crate::plan::{self, Kept, Tip};
use gix::ObjectId;
use gix::bstr::BStr;
use gix::hash::Kind as HashKind;
use gix::hashtable::HashMap;
use gix::objs::Kind;
use gix::objs::tree::EntryKind;
use gix::zlib::Compression;
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

/// The most content that the files of one checkout may hold, in bytes.
const LARGEST_CHECKOUT: u64 = 1 << 30;

/// How much content is stored without compressing it, and kept until the files are written, in bytes.
const KEPT_CONTENT: u64 = 16 << 20;

/// The content of files by id.
pub(crate) type Contents = HashMap<ObjectId, Vec<u8>>;

/// The folders of `.git`, each after the one that holds it.
const FOLDERS: [&str; 7] = ["", "objects", "objects/info", "objects/pack", "refs", "refs/heads", "refs/tags"];

/// A checkout about to be written.
pub(crate) struct Written<'a> {
    pub(crate) dest: &'a Path,
    pub(crate) tip: &'a Tip,
    pub(crate) kept: &'a Kept,
    pub(crate) tree: &'a Tree,
    /// The time of every file, in seconds since 1970.
    pub(crate) seconds: i64,
}

/// Makes sure that the destination is an empty directory; tells whether it was made here.
pub(crate) fn prepare(dest: &Path) -> Result<bool, CutoffError> {
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
pub(crate) fn take_away(dest: &Path, created: bool) {
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

impl Written<'_> {
    /// Writes the object store. Gives the content of small cuts' files, so that it need not be read twice.
    pub(crate) fn objects(&self, source: &mut Source, history: History) -> Result<Contents, CutoffError> {
        let mut contents = Contents::default();
        let dot_git = self.dest.join(".git");
        for folder in FOLDERS {
            let folder = dot_git.join(folder);
            create_dir(&folder)?;
        }
        let folder = dot_git.join("objects/pack");
        let pack = if history == History::None {
            // Small, and to be the same however the source is packed: every object whole, in the order of kind and id.
            let blobs: BTreeSet<ObjectId> = self.tree.files.iter().map(|file| file.id).collect();
            let wanted: Vec<(ObjectId, Kind)> = (self.kept.commits.iter().map(|(id, _)| (*id, Kind::Commit)))
                .chain(self.tree.trees.iter().map(|id| (*id, Kind::Tree)))
                .chain(blobs.into_iter().map(|id| (id, Kind::Blob)))
                .collect();
            let mut pack = PackWriter::begin(&folder, wanted.len())?;
            let mut buffer = Vec::new();
            let mut total = 0;
            for (id, kind) in wanted {
                source.read_as(id, kind, &mut buffer).map_err(|error| self.named(error))?;
                total += buffer.len() as u64;
                within(id, total)?;
                let small = total <= KEPT_CONTENT;
                // Compressing a few pages costs more than their bytes.
                pack.add(id, kind, &buffer, if small { Compression::NONE } else { Compression::BEST_SPEED })?;
                if kind == Kind::Blob && small {
                    contents.insert(id, std::mem::take(&mut buffer));
                }
            }
            pack
        } else {
            let wanted = plan::objects(source, self.kept)?;
            copy(&folder, source, &wanted).map_err(|error| self.named(error))?
        };
        for path in pack.finish()? {
            finish(&path, 0o444, self.seconds)?;
        }
        Ok(contents)
    }

    /// Says which file it is whose object cannot be taken.
    fn named(&self, error: CutoffError) -> CutoffError {
        let CutoffError::Object { id, what } = error else { return error };
        let of = ObjectId::from_hex(id.as_bytes()).ok();
        match self.tree.files.iter().find(|file| Some(file.id) == of) {
            Some(file) => CutoffError::Object { id, what: format!("(file `{}`) {what}", names::shown(&file.path)) },
            None => CutoffError::Object { id, what },
        }
    }

    /// Writes the working tree, the index and the small files under `.git`.
    pub(crate) fn files(&self, source: &mut Source, contents: &Contents) -> Result<(), CutoffError> {
        for directory in &self.tree.directories {
            let path = self.dest.join(OsStr::from_bytes(directory));
            create_dir(&path)?;
        }
        let mut index = gix::index::State::new(HashKind::Sha1);
        let mut buffer = Vec::new();
        let mut total = 0;
        for file in &self.tree.files {
            let content = match contents.get(&file.id) {
                Some(content) => content,
                None => {
                    source.read_as(file.id, Kind::Blob, &mut buffer).map_err(|error| self.named(error))?;
                    &buffer
                }
            };
            total += content.len() as u64;
            within(file.id, total)?;
            self.file(file, content)?;
            // Of the file's state only its size is the same on every machine; git compares the content where the rest
            // differs.
            let size = u32::try_from(content.len()).unwrap_or(u32::MAX);
            let stat = gix::index::entry::Stat { size, ..Default::default() };
            let flags = gix::index::entry::Flags::empty();
            index.dangerously_push_entry(stat, file.id, flags, index_mode(file.kind), BStr::new(&file.path));
        }
        for (path, id) in &self.tree.gitlinks {
            let flags = gix::index::entry::Flags::empty();
            index.dangerously_push_entry(
                Default::default(),
                *id,
                flags,
                gix::index::entry::Mode::COMMIT,
                BStr::new(path),
            );
        }
        index.sort_entries();
        self.small_files(index)?;

        let mut directories: Vec<PathBuf> =
            self.tree.directories.iter().map(|path| self.dest.join(OsStr::from_bytes(path))).collect();
        directories.insert(0, self.dest.to_owned());
        directories.extend(FOLDERS.map(|folder| self.dest.join(".git").join(folder)));
        directories.extend(self.branch_folders());
        // Deepest first: writing into a directory moves its time.
        for directory in directories.iter().rev() {
            finish(directory, 0o755, self.seconds)?;
        }
        Ok(())
    }

    /// The folders below `refs/heads` that the branch's name asks for.
    fn branch_folders(&self) -> Vec<PathBuf> {
        let heads = self.dest.join(".git/refs/heads");
        let branch = self.tip.branch.as_deref().unwrap_or_default();
        branch.match_indices('/').map(|(at, _)| heads.join(&branch[..at])).collect()
    }

    fn small_files(&self, index: gix::index::State) -> Result<(), CutoffError> {
        let dot_git = self.dest.join(".git");
        let commit = format!("{}\n", self.tip.commit);
        let put = |path: &Path, content: &[u8]| put(path, content, 0o644, self.seconds);
        match &self.tip.branch {
            Some(branch) => {
                for folder in self.branch_folders() {
                    create_dir(&folder)?;
                }
                put(&dot_git.join("HEAD"), format!("ref: refs/heads/{branch}\n").as_bytes())?;
                put(&dot_git.join("refs/heads").join(branch), commit.as_bytes())?;
            }
            None => put(&dot_git.join("HEAD"), commit.as_bytes())?,
        }
        put(&dot_git.join("config"), CONFIG.as_bytes())?;
        if !self.kept.boundary.is_empty() {
            let lines: String = self.kept.boundary.iter().map(|id| format!("{id}\n")).collect();
            put(&dot_git.join("shallow"), lines.as_bytes())?;
        }
        let path = dot_git.join("index");
        let mut bytes = Vec::new();
        let options = gix::index::write::Options { extensions: gix::index::write::Extensions::None, skip_hash: false };
        gix::index::File::from_state(index, &path)
            .write_to(&mut bytes, options)
            .map_err(|error| CutoffError::file("write", &path, io::Error::other(error.to_string())))?;
        put(&path, &bytes)
    }

    fn file(&self, file: &TreeFile, content: &[u8]) -> Result<(), CutoffError> {
        let path = self.dest.join(OsStr::from_bytes(&file.path));
        if file.kind == EntryKind::Link {
            let depth = file.path.iter().filter(|byte| **byte == b'/').count();
            if let Some(what) = names::link_refusal(content, depth) {
                return Err(CutoffError::Refused { path: names::shown(&file.path), what });
            }
            return std::os::unix::fs::symlink(OsStr::from_bytes(content), &path)
                .map_err(|error| CutoffError::file("create", &path, error));
        }
        put(&path, content, if file.kind == EntryKind::BlobExecutable { 0o755 } else { 0o644 }, self.seconds)
    }
}

/// A new directory in which its owner may write, whatever the umask.
fn create_dir(path: &Path) -> Result<(), CutoffError> {
    fs::create_dir(path)
        .and_then(|()| fs::set_permissions(path, Permissions::from_mode(0o755)))
        .map_err(|error| CutoffError::file("create", path, error))
}

fn within(id: ObjectId, total: u64) -> Result<(), CutoffError> {
    if total <= LARGEST_CHECKOUT {
        return Ok(());
    }
    Err(CutoffError::object(id, format!("makes the checkout larger than {LARGEST_CHECKOUT} bytes")))
}

fn index_mode(kind: EntryKind) -> gix::index::entry::Mode {
    match kind {
        EntryKind::BlobExecutable => gix::index::entry::Mode::FILE_EXECUTABLE,
        EntryKind::Link => gix::index::entry::Mode::SYMLINK,
        EntryKind::Blob | EntryKind::Tree | EntryKind::Commit => gix::index::entry::Mode::FILE,
    }
}

fn put(path: &Path, content: &[u8], mode: u32, seconds: i64) -> Result<(), CutoffError> {
    let fault = |error| CutoffError::file("write", path, error);
    let mut handle = OpenOptions::new().write(true).create_new(true).mode(mode).open(path).map_err(fault)?;
    handle.write_all(content).map_err(fault)?;
    settle(&handle, mode, seconds).map_err(fault)
}

fn finish(path: &Path, mode: u32, seconds: i64) -> Result<(), CutoffError> {
    File::open(path)
        .and_then(|handle| settle(&handle, mode, seconds))
        .map_err(|error| CutoffError::file("set mode and time of", path, error))
}

/// Gives a file its mode, whatever the umask, and its time.
fn settle(handle: &File, mode: u32, seconds: i64) -> io::Result<()> {
    handle.set_permissions(Permissions::from_mode(mode))?;
    handle.set_modified(moment(seconds))
}

fn moment(seconds: i64) -> SystemTime {
    let after = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
    // A commit's date may be beyond what a file system keeps.
    SystemTime::UNIX_EPOCH.checked_add(after).unwrap_or(SystemTime::UNIX_EPOCH)
}
