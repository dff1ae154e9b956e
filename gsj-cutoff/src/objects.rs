//! Reading git objects: from a source that we trust, and from a folder that we do not.

use crate::error::CutoffError;
use gix::ObjectId;
use gix::hash::Kind as HashKind;
use gix::objs::Kind;
use gix::odb::pack;
use gix::prelude::{Find as _, HeaderExt as _};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The largest object that is read, in bytes of content.
pub(crate) const LARGEST_OBJECT: u64 = 64 << 20;

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

fn too_large(id: ObjectId, size: u64) -> CutoffError {
    CutoffError::object(id, format!("holds {size} bytes, more than the {LARGEST_OBJECT} that are read"))
}

fn compared(id: ObjectId, kind: Kind, content: &[u8]) -> Result<Kind, CutoffError> {
    let digest = gix::objs::compute_hash(HashKind::Sha1, kind, content)
        .map_err(|error| CutoffError::object(id, format!("cannot be digested: {error}")))?;
    if digest == id { Ok(kind) } else { Err(CutoffError::object(id, format!("holds the content of {digest}"))) }
}

/// The object database of a source repository, alternates included, replacements not applied.
pub(crate) struct Source {
    handle: gix::odb::Handle,
}

impl Source {
    pub(crate) fn at(objects_dir: &Path) -> Result<Self, CutoffError> {
        let handle = gix::odb::at(objects_dir, HashKind::Sha1)
            .map_err(|source| CutoffError::file("open the objects in", objects_dir, source))?;
        Ok(Self { handle })
    }

    pub(crate) fn holds(&self, id: &gix::oid) -> bool {
        gix::objs::Exists::exists(&self.handle, id)
    }
}

impl Objects for Source {
    fn read(&mut self, id: ObjectId, buffer: &mut Vec<u8>) -> Result<Option<Kind>, CutoffError> {
        if !self.holds(&id) {
            return Ok(None);
        }
        let header = self.handle.header(id).map_err(|error| CutoffError::object(id, format!("unreadable: {error}")))?;
        if header.size() > LARGEST_OBJECT {
            return Err(too_large(id, header.size()));
        }
        let found = self
            .handle
            .try_find(&id, buffer)
            .map_err(|error| CutoffError::object(id, format!("unreadable: {error}")))?
            .map(|data| data.kind);
        found.map(|kind| compared(id, kind, buffer)).transpose()
    }
}

/// The loose and packed objects of one folder, and of nothing that it points to.
///
/// Loose objects and packs are listed by the caller from a walk that follows no link; this type opens only those.
pub(crate) struct Folder {
    loose: gix::odb::loose::Store,
    packs: Vec<pack::Bundle>,
    index: BTreeMap<ObjectId, Place>,
    inflate: gix::zlib::Inflate,
}

#[derive(Clone, Copy)]
enum Place {
    Loose,
    Packed { pack: usize, at: u32 },
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
        let mut folder = Self {
            loose: gix::odb::loose::Store::at(objects_dir, HashKind::Sha1),
            packs: Vec::new(),
            index: loose.into_iter().map(|id| (id, Place::Loose)).collect(),
            inflate: gix::zlib::Inflate::default(),
        };
        for path in pack_indices {
            let bundle = match pack::Bundle::at(path, HashKind::Sha1) {
                Ok(bundle) => bundle,
                Err(error) => {
                    faults.push((path.clone(), format!("unreadable pack: {error}")));
                    continue;
                }
            };
            let (indexed, packed) = (bundle.index.num_objects(), bundle.pack.num_objects());
            if indexed != packed {
                faults.push((path.clone(), format!("the pack holds {packed} objects and its index names {indexed}")));
            }
            for at in 0..indexed {
                let id = bundle.index.oid_at_index(at).to_owned();
                folder.index.insert(id, Place::Packed { pack: folder.packs.len(), at });
            }
            folder.packs.push(bundle);
        }
        (folder, faults)
    }

    /// The ids of all objects, sorted.
    pub(crate) fn ids(&self) -> impl Iterator<Item = &ObjectId> {
        self.index.keys()
    }

    pub(crate) fn holds(&self, id: &ObjectId) -> bool {
        self.index.contains_key(id)
    }
}

impl Objects for Folder {
    fn read(&mut self, id: ObjectId, buffer: &mut Vec<u8>) -> Result<Option<Kind>, CutoffError> {
        let unreadable = |error: gix::Error| CutoffError::object(id, format!("unreadable: {error}"));
        let kind = match self.index.get(&id) {
            None => return Ok(None),
            Some(Place::Loose) => {
                let Some((size, _)) = self.loose.try_header(&id).map_err(unreadable)? else { return Ok(None) };
                if size > LARGEST_OBJECT {
                    return Err(too_large(id, size));
                }
                match self.loose.try_find(&id, buffer).map_err(unreadable)? {
                    Some(data) => data.kind,
                    None => return Ok(None),
                }
            }
            Some(Place::Packed { pack, at }) => {
                let bundle = &self.packs[*pack];
                let entry = bundle.pack.entry(bundle.index.pack_offset_at_index(*at)).map_err(unreadable)?;
                let resolve = |base: &gix::oid| {
                    let at = bundle.index.lookup(base)?;
                    let entry = bundle.pack.entry(bundle.index.pack_offset_at_index(at)).ok()?;
                    Some(pack::data::decode::header::ResolvedBase::InPack(entry))
                };
                let header =
                    bundle.pack.decode_header(entry, &mut self.inflate, &|id| Ok(resolve(id))).map_err(unreadable)?;
                if header.object_size > LARGEST_OBJECT {
                    return Err(too_large(id, header.object_size));
                }
                bundle
                    .get_object_by_index(*at, buffer, &mut self.inflate, &mut pack::cache::Never)
                    .map_err(unreadable)?
                    .0
                    .kind
            }
        };
        compared(id, kind, buffer).map(Some)
    }
}
