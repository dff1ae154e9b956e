//! Reading git objects: from a source, and from a folder that is distrusted altogether.

use crate::error::CutoffError;
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
    folders: Vec<PathBuf>,
    packs: Vec<Pack>,
    reader: Reader,
    verified: bool,
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
        Ok(Self { folders, packs, reader: Reader::default(), verified: true })
    }

    /// Leaves the comparison of content and id to the audit that follows.
    #[cfg(feature = "git")]
    pub(crate) fn set_verified(&mut self, verified: bool) {
        self.verified = verified;
    }

    /// The first pack that holds an object, in the order of the packs' names.
    pub(crate) fn locate(&self, id: &gix::oid) -> Option<Spot> {
        let packs = self.packs.iter().zip(0_u32..);
        packs.filter_map(|(pack, number)| Some(Spot { pack: number, offset: pack.find(id)? })).next()
    }

    #[cfg(feature = "git")]
    pub(crate) fn pack(&self, spot: Spot) -> Option<&Pack> {
        self.packs.get(spot.pack as usize)
    }

    pub(crate) fn holds(&self, id: &gix::oid) -> bool {
        self.locate(id).is_some() || self.folders.iter().any(|folder| loose::holds(folder, id))
    }
}

impl Objects for Source {
    fn read(&mut self, id: ObjectId, buffer: &mut Vec<u8>) -> Result<Option<Kind>, CutoffError> {
        let fault = |what: String| CutoffError::object(id, what);
        let mut found = None;
        if let Some(spot) = self.locate(&id) {
            found = Some(self.reader.read(&self.packs, spot, buffer).map_err(fault)?);
        } else {
            for folder in &self.folders {
                found = loose::read(folder, id, &mut self.reader.inflater, buffer).map_err(fault)?;
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

/// What the objects of a folder may inflate to in all: in any case, and for each byte of its packs.
const WORK: (u64, u64) = (2 << 30, 64);

/// The loose and packed objects of one folder, and of nothing that it points to.
///
/// Loose objects and packs are listed by the caller from a walk that follows no link; this type opens only those.
pub(crate) struct Folder {
    objects_dir: PathBuf,
    packs: Vec<Pack>,
    index: Vec<(ObjectId, Place)>,
    /// For each first byte of an id, where the ids with a larger one begin.
    fan: [usize; 256],
    /// How many bytes its objects may inflate to.
    most: u64,
    reader: Reader,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Loose,
    Packed(Spot),
}

impl Folder {
    /// Opens the objects in `objects_dir`: the loose ones named, and the packs whose index files are named.
    ///
    /// Gives what cannot be read as pairs of file and reason.
    pub(crate) fn open(
        objects_dir: &Path,
        loose: impl IntoIterator<Item = ObjectId>,
        pack_indices: &[PathBuf],
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
        let most = packs.iter().fold(WORK.0, |most, pack| most.saturating_add(pack.bytes().saturating_mul(WORK.1)));
        let mut fan = [0; 256];
        for (id, _) in &index {
            fan[usize::from(id.as_slice()[0])] += 1;
        }
        let mut end = 0;
        for count in &mut fan {
            end += *count;
            *count = end;
        }
        (Self { objects_dir: objects_dir.to_owned(), packs, index, fan, most, reader: Reader::strict(most) }, faults)
    }

    /// The ids of all objects, sorted.
    pub(crate) fn ids(&self) -> impl Iterator<Item = &ObjectId> {
        self.index.chunk_by(|(a, _), (b, _)| a == b).map(|same| &same[0].0)
    }

    pub(crate) fn holds(&self, id: &ObjectId) -> bool {
        let first = usize::from(id.as_slice()[0]);
        let start = first.checked_sub(1).map_or(0, |before| self.fan[before]);
        let at = start + self.index[start..self.fan[first]].partition_point(|(other, _)| other < id);
        self.index.get(at).is_some_and(|(other, _)| other == id)
    }

    /// Compares content and id of every copy of every object but those to be passed over, and gives what is wrong.
    ///
    /// Objects are taken in the order in which they stand, by as many threads as there is work for: deltas follow their
    /// bases closely, so hardly any chain is followed twice.
    pub(crate) fn verify(&self, pass_over: impl Fn(&ObjectId) -> bool + Sync) -> Vec<(ObjectId, String)> {
        const WORTH_A_THREAD: usize = 4_000;
        const MOST_THREADS: usize = 4;
        // All copies of an object are read: only one of them was seen by whoever passed it over.
        let same = |a: usize, b: usize| self.index.get(a).map(|(id, _)| id) == self.index.get(b).map(|(id, _)| id);
        let copies = |at: usize| same(at, at + 1) || at.checked_sub(1).is_some_and(|before| same(at, before));
        let mut wanted: Vec<(Place, ObjectId)> = (0..self.index.len())
            .filter(|at| copies(*at) || !pass_over(&self.index[*at].0))
            .map(|at| (self.index[at].1, self.index[at].0))
            .collect();
        wanted.sort_unstable();
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let threads = (wanted.len() / WORTH_A_THREAD).clamp(1, cores.min(MOST_THREADS));
        let (objects_dir, packs) = (&self.objects_dir, &self.packs);
        let most = self.most / threads as u64;
        let mut faults: Vec<(ObjectId, String)> = if threads == 1 {
            verify_part(objects_dir, packs, most, &wanted)
        } else {
            std::thread::scope(|scope| {
                let parts = wanted.chunks(wanted.len().div_ceil(threads));
                let running: Vec<_> = parts
                    .map(|part| (part, scope.spawn(move || verify_part(objects_dir, packs, most, part))))
                    .collect();
                let failed = |part: &[(Place, ObjectId)]| {
                    part.iter().map(|(_, id)| (*id, "could not be verified".to_owned())).collect()
                };
                running.into_iter().flat_map(|(part, thread)| thread.join().unwrap_or_else(|_| failed(part))).collect()
            })
        };
        faults.sort();
        faults
    }
}

fn verify_part(objects_dir: &Path, packs: &[Pack], most: u64, part: &[(Place, ObjectId)]) -> Vec<(ObjectId, String)> {
    let mut reader = Reader::strict(most);
    let mut buffer = Vec::new();
    let mut verify = |place, id| {
        let kind = read(objects_dir, packs, &mut reader, (id, place), &mut buffer)?.ok_or("is missing")?;
        compared(id, kind, &buffer)
    };
    part.iter().filter_map(|(place, id)| Some((*id, verify(*place, *id).err()?))).collect()
}

fn read(
    objects_dir: &Path,
    packs: &[Pack],
    reader: &mut Reader,
    (id, place): (ObjectId, Place),
    buffer: &mut Vec<u8>,
) -> Result<Option<Kind>, String> {
    match place {
        Place::Loose => {
            let found = loose::read(objects_dir, id, &mut reader.inflater, buffer)?;
            reader.spend(buffer.len() as u64)?;
            Ok(found)
        }
        Place::Packed(spot) => reader.read(packs, spot, buffer).map(Some),
    }
}

impl Objects for Folder {
    fn read(&mut self, id: ObjectId, buffer: &mut Vec<u8>) -> Result<Option<Kind>, CutoffError> {
        let first = self.index.partition_point(|(other, _)| *other < id);
        let mut fault = None;
        for (_, place) in self.index[first..].iter().take_while(|(other, _)| *other == id) {
            let found = read(&self.objects_dir, &self.packs, &mut self.reader, (id, *place), buffer)
                .and_then(|kind| kind.map(|kind| compared(id, kind, buffer)).transpose());
            match found {
                Ok(found) => return Ok(found),
                // Another copy may be sound.
                Err(what) => fault = fault.or(Some(what)),
            }
        }
        fault.map_or(Ok(None), |what| Err(CutoffError::object(id, what)))
    }
}
