//! One bare repository on disk, brought to hold exactly what it should.

use crate::error::EstateError;
use crate::files;
use crate::scaffold::Contents;
use gix::ObjectId;
use gix::hash::Kind as HashKind;
use gix::objs::Write as _;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

const CONFIG: &str = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = true\n";

/// What stands on disk and should not, or the other way round.
#[derive(Default)]
struct Difference {
    missing_objects: BTreeSet<ObjectId>,
    stray_files: Vec<PathBuf>,
    stale_refs: Vec<String>,
    head: bool,
    skeleton: bool,
}

impl Difference {
    fn is_empty(&self) -> bool {
        self.missing_objects.is_empty()
            && self.stray_files.is_empty()
            && self.stale_refs.is_empty()
            && !self.head
            && !self.skeleton
    }
}

/// Brings the repository to these contents; tells whether anything had to be written.
///
/// The order makes every moment a good one to stop at: objects before the refs that name them, stray objects last.
pub(crate) fn write(path: &Path, contents: &Contents, dry_run: bool) -> Result<bool, EstateError> {
    let difference = compare(path, contents)?;
    if dry_run || difference.is_empty() {
        return Ok(!difference.is_empty());
    }
    for directory in ["objects/info", "objects/pack", "refs/heads", "refs/tags"] {
        let directory = path.join(directory);
        fs::create_dir_all(&directory).map_err(|error| EstateError::file("create", &directory, error))?;
    }
    if !path.join("config").exists() {
        files::write_atomically(&path.join("config"), CONFIG.as_bytes())?;
    }
    let store = gix::odb::loose::Store::at(path.join("objects"), HashKind::Sha1);
    for id in &difference.missing_objects {
        let Some((kind, content)) = contents.objects.get(id) else { continue };
        let written = store.write_buf(*kind, content).map_err(|error| EstateError::repository(path, error))?;
        if written != *id {
            return Err(EstateError::repository(path, format!("object {id} was written as {written}")));
        }
    }
    let (refs, objects): (Vec<_>, Vec<_>) = difference
        .stray_files
        .iter()
        .partition(|stray| stray.strip_prefix(path).is_ok_and(|rest| rest.starts_with("refs")));
    remove(&refs, &path.join("refs"))?;
    for name in &difference.stale_refs {
        let Some(id) = contents.branches.get(name) else { continue };
        files::write_atomically(&path.join("refs/heads").join(name), format!("{id}\n").as_bytes())?;
    }
    if difference.head {
        files::write_atomically(&path.join("HEAD"), format!("ref: refs/heads/{}\n", contents.head).as_bytes())?;
    }
    remove(&objects, &path.join("objects"))?;
    read_back(path, contents)?;
    Ok(true)
}

fn compare(path: &Path, contents: &Contents) -> Result<Difference, EstateError> {
    let mut difference = Difference::default();
    match files::kind(path) {
        None => {}
        Some(files::Kind::Directory) => check_foreign(path)?,
        Some(_) => return Err(EstateError::repository(path, "is no directory")),
    }
    difference.skeleton =
        !path.join("config").is_file() || !path.join("objects").is_dir() || !path.join("refs").is_dir();

    let mut present = BTreeSet::new();
    for file in listed(&path.join("objects"))? {
        match object_id(path, &file) {
            Some(id) if contents.objects.contains_key(&id) => {
                present.insert(id);
            }
            // Packs go too: every object is written loose, and a pack may hold what must not stay.
            _ => difference.stray_files.push(file),
        }
    }
    difference.missing_objects = contents.objects.keys().filter(|id| !present.contains(*id)).copied().collect();

    let heads = path.join("refs/heads");
    for file in listed(&path.join("refs"))? {
        let known = file
            .strip_prefix(&heads)
            .ok()
            .and_then(Path::to_str)
            .is_some_and(|name| contents.branches.contains_key(name));
        if !known {
            difference.stray_files.push(file);
        }
    }
    // Loose refs win over packed ones, and every wanted ref is loose; `packed-refs` could only add others.
    for extra in ["packed-refs", "logs", "FETCH_HEAD", "ORIG_HEAD"] {
        let extra = path.join(extra);
        if extra.is_dir() {
            difference.stray_files.extend(listed(&extra)?);
        } else if extra.exists() {
            difference.stray_files.push(extra);
        }
    }
    for (name, id) in &contents.branches {
        if read_text(&heads.join(name)).as_deref() != Some(&format!("{id}\n")) {
            difference.stale_refs.push(name.clone());
        }
    }
    difference.head = read_text(&path.join("HEAD")).as_deref() != Some(&format!("ref: refs/heads/{}\n", contents.head));
    Ok(difference)
}

/// Refuses a directory that is no bare repository in the plain format, so that nothing of another's is removed.
fn check_foreign(path: &Path) -> Result<(), EstateError> {
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
    if config.contains("refstorage") || config.contains("objectformat") {
        return Err(EstateError::repository(path, "is there in another repository format; it is left alone"));
    }
    Ok(())
}

fn object_id(repository: &Path, file: &Path) -> Option<ObjectId> {
    let name = file.strip_prefix(repository.join("objects")).ok()?.to_str()?;
    let (fan, rest) = name.split_once('/')?;
    if fan.len() != 2 || rest.len() != 38 {
        return None;
    }
    ObjectId::from_hex(format!("{fan}{rest}").as_bytes()).ok()
}

/// All entries below a directory but directories; none when there is no such directory.
fn listed(directory: &Path) -> Result<Vec<PathBuf>, EstateError> {
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

fn read_text(path: &Path) -> Option<String> {
    String::from_utf8(fs::read(path).ok()?).ok()
}

/// Removes files, and the directories that become empty by that, up to `top`.
fn remove(files: &[&PathBuf], top: &Path) -> Result<(), EstateError> {
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

/// Reads the repository as any reader would, and requires what was built.
fn read_back(path: &Path, contents: &Contents) -> Result<(), EstateError> {
    let fault = |error: gix::Error| EstateError::repository(path, format!("cannot be read back: {error}"));
    let repository = gix::open_opts(path, gix::open::Options::isolated().open_path_as_is(true)).map_err(fault)?;
    let mut found = std::collections::BTreeMap::new();
    for reference in repository.references().map_err(fault)?.all().map_err(fault)? {
        let reference = reference.map_err(|error| EstateError::repository(path, error))?;
        let id = reference.try_id().map(gix::Id::detach);
        found.insert(reference.name().as_bstr().to_string(), id);
    }
    let wanted = contents.branches.iter().map(|(name, id)| (format!("refs/heads/{name}"), Some(*id))).collect();
    if found != wanted {
        return Err(EstateError::repository(path, "does not hold the branches that were written to it"));
    }
    Ok(())
}
