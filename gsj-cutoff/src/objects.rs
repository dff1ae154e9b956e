//! Reading git objects: from a source, and from a folder that is distrusted altogether.

use crate::error::CutoffError;
use crate::limits::Limits;
use crate::lookup::Lookup;
use crate::loose;
use crate::pack::{Pack, Reader, Spot};
use gix::ObjectId;
use gix::hash::Kind as HashKind;
use gix::objs::Kind;
use std::ffi::OsStr;
use std::fs;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) use crate::pack::LARGEST_OBJECT;

/// The most object folders that a source may name one after the other as alternates.
const MOST_ALTERNATES: usize = 16;

/// Something that holds objects.
pub(crate) trait Objects {
    /// Reads an object into `buffer`; `None` when it is not there. The content's digest has been compared with the id.
    fn read(&mut self, id: ObjectId, buffer: &mut Vec<u8>) -> Result<Option<Kind>, CutoffError>;

    /// Reads an object of a kind that must be there.
    fn read_as(&mut self, id: ObjectId, kind: Kind, buffer: &mut Vec<u8>) -> Result<(), CutoffError> {
        match self.read(id, buffer)? {
            Some(found) if found == kind => Ok(()),
            Some(found) => Err(CutoffError::object(id, format!("is a {found} where a {kind} is needed"))),
            None => Err(CutoffError::object(id, "is missing")),
        }
    }
}

fn compared(id: ObjectId, kind: Kind, content: &[u8]) -> Result<Kind, String> {
    let digest = gix::objs::compute_hash(HashKind::Sha1, kind, content)
        .map_err(|error| format!("cannot be digested: {error}"))?;
    if digest == id { Ok(kind) } else { Err(format!("holds the content of {digest}")) }
}

/// The object database of a source repository, replacements not applied.
///
/// Alternates are followed, since an object is what its id says wherever it stands; of each folder only regular files
/// are opened, so that a pipe or a link planted there is passed over.
pub(crate) struct Source {
    store: Arc<Store>,
    reader: Reader,
    verified: bool,
}

struct Store {
    folders: Vec<PathBuf>,
    packs: Vec<Pack>,
    #[cfg(feature = "git")]
    limits: Limits,
}

impl Source {
    pub(crate) fn at(objects_dir: &Path) -> Result<Self, CutoffError> {
        let mut folders = vec![objects_dir.to_owned()];
        let mut next = 0;
        while let Some(folder) = folders.get(next).cloned() {
            next += 1;
            for alternate in alternates(&folder)? {
                if !folders.contains(&alternate) && alternate.is_dir() {
                    folders.push(alternate);
                }
            }
            if folders.len() > MOST_ALTERNATES {
                return Err(CutoffError::Source {
                    path: objects_dir.to_owned(),
                    reason: format!("it names more than {MOST_ALTERNATES} alternate object stores"),
                });
            }
        }
        let mut packs = Vec::new();
        for folder in &folders {
            for index in pack_indices(&folder.join("pack"))? {
                let fault = |reason| CutoffError::Source { path: index.clone(), reason };
                packs.push(Pack::open(&index).map_err(fault)?);
            }
        }
        let limits = Limits::of(u64::MAX);
        let reader = Reader::new(limits.clone());
        let store = Store {
            folders,
            packs,
            #[cfg(feature = "git")]
            limits,
        };
        Ok(Self { store: Arc::new(store), reader, verified: true })
    }

    /// Another reader of the same objects, for another thread.
    #[cfg(feature = "git")]
    pub(crate) fn another(&self) -> Self {
        let reader = Reader::new(self.store.limits.clone());
        Self { store: Arc::clone(&self.store), reader, verified: self.verified }
    }

    #[cfg(feature = "git")]
    pub(crate) fn limits(&self) -> &Limits {
        &self.store.limits
    }

    /// Leaves the comparison of content and id to the audit that follows.
    #[cfg(feature = "git")]
    pub(crate) fn set_verified(&mut self, verified: bool) {
        self.verified = verified;
    }

    /// The first pack that holds an object, in the order of the packs' names, and where in its index.
    #[cfg(feature = "git")]
    pub(crate) fn locate(&self, id: &gix::oid) -> Option<(usize, u32)> {
        self.store.packs.iter().enumerate().find_map(|(number, pack)| Some((number, pack.position(id)?)))
    }

    #[cfg(feature = "git")]
    pub(crate) fn packs(&self) -> &[Pack] {
        &self.store.packs
    }

    fn spot(&self, id: &gix::oid) -> Option<Spot> {
        let packs = self.store.packs.iter().zip(0_u32..);
        packs.filter_map(|(pack, number)| Some(Spot { pack: number, offset: pack.find(id)? })).next()
    }

    pub(crate) fn holds(&self, id: &gix::oid) -> bool {
        self.spot(id).is_some() || self.store.folders.iter().any(|folder| loose::holds(folder, id))
    }
}

impl Objects for Source {
    fn read(&mut self, id: ObjectId, buffer: &mut Vec<u8>) -> Result<Option<Kind>, CutoffError> {
        let fault = |what: String| CutoffError::object(id, what);
        let mut found = None;
        if let Some(spot) = self.spot(&id) {
            found = Some(self.reader.read(&self.store.packs, spot, buffer).map_err(fault)?);
        } else {
            for folder in &self.store.folders {
                found = loose::read(folder, id, &mut self.reader, buffer).map_err(fault)?;
                if found.is_some() {
                    break;
                }
            }
        }
        match found {
            Some(kind) if self.verified => compared(id, kind, buffer).map(Some).map_err(fault),
            found => Ok(found),
        }
    }
}

/// The object folders that another one names as its alternates.
fn alternates(objects_dir: &Path) -> Result<Vec<PathBuf>, CutoffError> {
    const LONGEST: u64 = 1 << 16;
    let path = objects_dir.join("info/alternates");
    if !fs::symlink_metadata(&path).is_ok_and(|found| found.is_file()) {
        return Ok(Vec::new());
    }
    let mut text = Vec::new();
    fs::File::open(&path)
        .and_then(|file| file.take(LONGEST).read_to_end(&mut text))
        .map_err(|error| CutoffError::file("read", &path, error))?;
    let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty() && !line.starts_with(b"#"));
    Ok(lines.map(|line| objects_dir.join(OsStr::from_bytes(line))).collect())
}

/// The index files of a folder of packs, sorted by name; those without their pack are passed over.
fn pack_indices(folder: &Path) -> Result<Vec<PathBuf>, CutoffError> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(CutoffError::file("list", folder, error)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.map_err(|error| CutoffError::file("list", folder, error))?.path();
        let regular = |path: &Path| fs::symlink_metadata(path).is_ok_and(|found| found.is_file());
        if path.extension() == Some(OsStr::new("idx")) && regular(&path) && regular(&path.with_extension("pack")) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// The loose and packed objects of one folder, and of nothing that it points to.
///
/// Loose objects and packs are listed by the caller from a walk that follows no link; this type opens only those.
pub(crate) struct Folder {
    objects_dir: PathBuf,
    packs: Vec<Pack>,
    /// Every copy of every object, sorted by id.
    index: Vec<(ObjectId, Place)>,
    lookup: Lookup,
    limits: Limits,
    reader: Reader,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    Loose,
    Packed(Spot),
}

impl Folder {
    /// Opens the objects in `objects_dir`: the loose ones named, and the packs whose index files are named.
    ///
    /// They may inflate to `most` bytes, or what is honest for such packs. Gives what cannot be read as pairs of file
    /// and reason.
    pub(crate) fn open(
        objects_dir: &Path,
        loose: impl IntoIterator<Item = ObjectId>,
        pack_indices: &[PathBuf],
        most: Option<u64>,
    ) -> (Self, Vec<(PathBuf, String)>) {
        let mut faults = Vec::new();
        let mut packs = Vec::new();
        let mut index: Vec<(ObjectId, Place)> = loose.into_iter().map(|id| (id, Place::Loose)).collect();
        for path in pack_indices {
            let pack = match Pack::open(path) {
                Ok(pack) => pack,
                Err(what) => {
                    faults.push((path.clone(), what));
                    continue;
                }
            };
            faults.extend(pack.fault().map(|what| (path.clone(), what)));
            let number = u32::try_from(packs.len()).unwrap_or(u32::MAX);
            index.extend(pack.ids().map(|(id, offset)| (id, Place::Packed(Spot { pack: number, offset }))));
            packs.push(pack);
        }
        index.sort_unstable();
        let packed = packs.iter().fold(0_u64, |packed, pack| packed.saturating_add(pack.bytes()));
        let limits = Limits::of(most.unwrap_or_else(|| Limits::honest(packed)));
        let lookup = Lookup::of(index.iter().map(|(id, _)| &**id));
        let reader = Reader::strict(limits.clone());
        (Self { objects_dir: objects_dir.to_owned(), packs, index, lookup, limits, reader }, faults)
    }

    /// The ids of all objects, sorted.
    pub(crate) fn ids(&self) -> impl Iterator<Item = &ObjectId> {
        self.index.chunk_by(|(a, _), (b, _)| a == b).map(|same| &same[0].0)
    }

    /// All copies of all objects, sorted by id.
    pub(crate) fn copies(&self) -> &[(ObjectId, Place)] {
        &self.index
    }

    /// Where among the copies an object's first one is.
    pub(crate) fn position(&self, id: &gix::oid) -> Option<usize> {
        self.lookup.find(id, |at| self.index[at].0)
    }

    pub(crate) fn holds(&self, id: &gix::oid) -> bool {
        self.position(id).is_some()
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(crate) fn path(&self) -> &Path {
        &self.objects_dir
    }

    /// Another reader of the same objects, for another thread.
    pub(crate) fn checker(&self) -> Checker<'_> {
        Checker {
            folder: &self.objects_dir,
            packs: &self.packs,
            reader: Reader::strict(self.limits.clone()),
            buffer: Vec::new(),
        }
    }
}

/// Reads copies of objects one after the other and compares each with its id.
pub(crate) struct Checker<'a> {
    folder: &'a Path,
    packs: &'a [Pack],
    reader: Reader,
    buffer: Vec<u8>,
}

impl Checker<'_> {
    /// Hands kind and content of a copy to `sound`, if they are what the id says.
    pub(crate) fn check<T>(
        &mut self,
        id: ObjectId,
        place: Place,
        sound: impl FnOnce(Kind, &[u8]) -> T,
    ) -> Result<T, String> {
        match place {
            Place::Loose => {
                let found = loose::read(self.folder, id, &mut self.reader, &mut self.buffer)?;
                let kind = compared(id, found.ok_or("is missing")?, &self.buffer)?;
                Ok(sound(kind, &self.buffer))
            }
            Place::Packed(spot) => {
                self.reader.begin(&mut self.buffer);
                let content = self.reader.resolve(self.packs, spot)?;
                // A copy that is named over and over costs no inflating, but each time a digest.
                self.reader.spend(content.bytes.len() as u64)?;
                let kind = compared(id, content.kind, &content.bytes)?;
                Ok(sound(kind, &content.bytes))
            }
        }
    }
}

impl Objects for Folder {
    fn read(&mut self, id: ObjectId, buffer: &mut Vec<u8>) -> Result<Option<Kind>, CutoffError> {
        let Some(first) = self.position(&id) else { return Ok(None) };
        let mut fault = None;
        for (_, place) in self.index[first..].iter().take_while(|(other, _)| *other == id) {
            let found = match *place {
                Place::Loose => loose::read(&self.objects_dir, id, &mut self.reader, buffer),
                Place::Packed(spot) => self.reader.read(&self.packs, spot, buffer).map(Some),
            };
            let found = found.and_then(|kind| kind.map(|kind| compared(id, kind, buffer)).transpose());
            match found {
                Ok(found) => return Ok(found),
                // Another copy may be sound.
                Err(what) => fault = fault.or(Some(what)),
            }
        }
        fault.map_or(Ok(None), |what| Err(CutoffError::object(id, what)))
    }
}
