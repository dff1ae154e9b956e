//! Finding an id among many sorted ones.

use gix::ObjectId;

/// The first eight bytes of sorted ids, and where each beginning of them starts: most ids differ within those bytes, and
/// eight bytes are compared as one number.
pub(crate) struct Lookup {
    heads: Vec<u64>,
    /// For each value of the first `bits` bits, where the ids with a larger one begin.
    fan: Vec<usize>,
    bits: u32,
}

impl Lookup {
    /// Prepares for ids in their order. Ids that are not sorted may not be found.
    pub(crate) fn of<'a>(ids: impl Iterator<Item = &'a gix::oid>) -> Self {
        let heads: Vec<u64> = ids.map(head).collect();
        let bits = heads.len().checked_ilog2().unwrap_or(0).clamp(4, 16);
        let mut fan = vec![0; 1 << bits];
        for head in &heads {
            fan[(head >> (64 - bits)) as usize] += 1;
        }
        let mut end = 0;
        for count in &mut fan {
            end += *count;
            *count = end;
        }
        Self { heads, fan, bits }
    }

    /// The first position whose id is this one; `at` gives the whole id at a position.
    pub(crate) fn find(&self, id: &gix::oid, at: impl Fn(usize) -> ObjectId) -> Option<usize> {
        let head = head(id);
        let beginning = (head >> (64 - self.bits)) as usize;
        let start = beginning.checked_sub(1).map_or(0, |before| self.fan[before]);
        let mut found = start + self.heads[start..self.fan[beginning]].partition_point(|other| *other < head);
        // Only ids made to that end share their first eight bytes; of those the first that fits is taken.
        let same = self.heads[found..self.fan[beginning]].iter().take_while(|other| **other == head).take(2).count();
        if same > 1 {
            let (mut low, mut high) = (found, self.fan[beginning]);
            while low < high {
                let middle = usize::midpoint(low, high);
                if at(middle).as_slice() < id.as_bytes() { low = middle + 1 } else { high = middle }
            }
            found = low;
        }
        (self.heads.get(found) == Some(&head) && at(found).as_slice() == id.as_bytes()).then_some(found)
    }
}

fn head(id: &gix::oid) -> u64 {
    id.as_bytes().first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_found_is_the_first_that_is_there(
            // Few different bytes, so that ids share beginnings and whole heads.
            ids in proptest::collection::vec(proptest::collection::vec(0_u8..3, 10), 0..200),
            other in proptest::collection::vec(0_u8..3, 10),
        ) {
            let id = |bytes: &Vec<u8>| {
                let mut whole = [0; 20];
                whole[..7].fill(bytes[0] * 100);
                whole[7..17].copy_from_slice(bytes);
                ObjectId::Sha1(whole)
            };
            let mut sorted: Vec<ObjectId> = ids.iter().map(id).collect();
            sorted.sort();
            let lookup = Lookup::of(sorted.iter().map(|id| &**id));
            for wanted in sorted.iter().copied().chain([id(&other)]) {
                let expected = sorted.iter().position(|id| *id == wanted);
                prop_assert_eq!(lookup.find(&wanted, |at| sorted[at]), expected);
            }
        }
    }
}
