//! Taking objects over from a source as they stand there, without inflating them.

use crate::error::CutoffError;
use crate::objects::{Objects as _, Source};
use crate::pack::{Pack, Raw, RawKind};
use crate::pack_write::PackWriter;
use gix::ObjectId;
use gix::hashtable::HashSet;
use gix::zlib::Compression;
use std::path::Path;

/// The longest chain of deltas against what stands later in a pack.
const LONGEST_CHAIN: usize = 4_096;

/// Marks of an object in a pack of the source; any other number is its offset in the new one, which is at least 12.
const UNWANTED: u64 = 0;
const WANTED: u64 = 1;

/// Begins a pack in a folder and copies objects into it: the packed ones in the order of the source, then the others.
///
/// A delta stays one where its base is wanted too, which then comes before it.
pub(crate) fn copy(folder: &Path, source: &mut Source, wanted: &[ObjectId]) -> Result<PackWriter, CutoffError> {
    let mut states: Vec<Vec<u64>> = source.packs().iter().map(|pack| vec![UNWANTED; pack.by_offset().len()]).collect();
    let mut count = 0;
    let mut loose = Vec::new();
    let mut seen = HashSet::default();
    for id in wanted {
        match source.locate(id) {
            Some((pack, position)) => {
                let state = &mut states[pack][position as usize];
                count += usize::from(*state == UNWANTED);
                *state = WANTED;
            }
            None if seen.insert(*id) => loose.push(*id),
            None => {}
        }
    }
    let out = PackWriter::begin(folder, count + loose.len())?;
    let mut copying = Copying { out, states, buffer: Vec::new() };
    for number in 0..copying.states.len() {
        for rank in 0..copying.states[number].len() {
            copying.entry(source, number, rank)?;
        }
    }
    for id in loose {
        copying.whole(source, id)?;
    }
    Ok(copying.out)
}

struct Copying {
    out: PackWriter,
    /// For each pack, by position in its index.
    states: Vec<Vec<u64>>,
    buffer: Vec<u8>,
}

impl Copying {
    /// Copies the object of a rank in a pack, if it is wanted, and before it the base that it stands on.
    fn entry(&mut self, source: &mut Source, number: usize, rank: usize) -> Result<(), CutoffError> {
        let mut stack = vec![rank];
        while let Some(&rank) = stack.last() {
            let pack = &source.packs()[number];
            let (offset, position) = pack.by_offset()[rank];
            if self.states[number][position as usize] != WANTED {
                stack.pop();
                continue;
            }
            let id = pack.id(position);
            let fault = |what: String| CutoffError::object(id, what);
            let at = self.out.offset();
            let Raw { kind, size, compressed } = pack.raw(offset, &mut rank.clone()).map_err(fault)?;
            match kind {
                RawKind::Whole(kind) => self.out.take(id, Some(kind), 0, size, compressed)?,
                RawKind::Delta { base } => match self.base(source, pack, number, base, rank) {
                    Base::Written(base) => self.out.take(id, None, base, size, compressed)?,
                    Base::Later(rank) => {
                        if stack.len() > LONGEST_CHAIN {
                            return Err(fault("is the end of an endless chain of deltas".into()));
                        }
                        stack.push(rank);
                        continue;
                    }
                    Base::Elsewhere => self.whole(source, id)?,
                },
            }
            self.states[number][position as usize] = at;
            stack.pop();
        }
        Ok(())
    }

    fn base(&self, source: &Source, pack: &Pack, number: usize, offset: u64, hint: usize) -> Base {
        let rank = pack.rank(offset, hint);
        let Some((_, position)) = pack.by_offset().get(rank).filter(|(found, _)| *found == offset) else {
            return Base::Elsewhere;
        };
        match self.states[number][*position as usize] {
            UNWANTED => {}
            WANTED => return Base::Later(rank),
            at => return Base::Written(at),
        }
        // A base may stand in another pack too, and then it is that copy which was written: its content is the same,
        // so the delta fits.
        let copy = source.locate(&pack.id(*position)).map(|(pack, position)| self.states[pack][position as usize]);
        match copy {
            Some(UNWANTED | WANTED) | None => Base::Elsewhere,
            Some(at) => Base::Written(at),
        }
    }

    fn whole(&mut self, source: &mut Source, id: ObjectId) -> Result<(), CutoffError> {
        match source.read(id, &mut self.buffer)? {
            Some(kind) => self.out.add(id, kind, &self.buffer, Compression::BEST_SPEED),
            None => Err(CutoffError::object(id, "is missing")),
        }
    }
}

/// Where the base of a delta is.
enum Base {
    /// At this offset of the new pack.
    Written(u64),
    /// Wanted, and at this rank of the same pack.
    Later(usize),
    /// Not wanted, or not written yet.
    Elsewhere,
}
