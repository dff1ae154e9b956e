//! Objects: members in order, found fast.

use std::hash::{BuildHasher as _, RandomState};
use std::{fmt, mem, slice, vec};

use super::{Str, StrRef, Value, ValueRef};

/// Up to this many members a scan beats a table.
const SCAN_LIMIT: usize = 16;

/// A JSON object: unique keys in the order of their first appearance.
///
/// Lookup scans small objects and uses a table for larger ones, so reading, asking and adding
/// stay linear in the size of the input whatever the input is.
#[derive(Default)]
pub struct Object<'a> {
    members: Vec<(Str<'a>, Value<'a>)>,
    index: Option<Box<Index>>,
}

impl<'a> Object<'a> {
    /// An empty object.
    pub const fn new() -> Self {
        Self { members: Vec::new(), index: None }
    }

    /// The number of members.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether there are no members.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// The value of a member.
    pub fn get(&self, key: &str) -> Option<ValueRef<'_>> {
        self.get_key(StrRef::from(key))
    }

    /// The value of a member whose key may hold lone surrogates.
    pub fn get_key(&self, key: StrRef<'_>) -> Option<ValueRef<'_>> {
        self.position(key).map(|at| self.members[at].1.as_ref())
    }

    /// The value of a member, for changing.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Value<'a>> {
        self.position(StrRef::from(key)).map(|at| &mut self.members[at].1)
    }

    /// Whether there is such a member.
    pub fn contains_key(&self, key: &str) -> bool {
        self.position(StrRef::from(key)).is_some()
    }

    /// Sets a member and returns the value it had; a new key goes to the end, an old one keeps
    /// its place.
    pub fn insert(&mut self, key: impl Into<Str<'a>>, value: impl Into<Value<'a>>) -> Option<Value<'a>> {
        let (key, value) = (key.into(), value.into());
        if let Some(at) = self.position(key.as_ref()) {
            return Some(mem::replace(&mut self.members[at].1, value));
        }
        self.members.push((key, value));
        self.note_last();
        None
    }

    /// The value of a member for changing, made null first when it is not there.
    pub fn entry(&mut self, key: impl Into<Str<'a>>) -> &mut Value<'a> {
        let at = self.place(key.into());
        &mut self.members[at].1
    }

    /// The place of a member, made null first when it is not there.
    pub(super) fn place(&mut self, key: Str<'a>) -> usize {
        if let Some(at) = self.position(key.as_ref()) {
            return at;
        }
        self.members.push((key, Value::Null));
        self.note_last();
        self.members.len() - 1
    }

    /// Sets the value of the member at a place.
    pub(super) fn fill(&mut self, place: usize, value: Value<'a>) {
        self.members[place].1 = value;
    }

    /// Takes a member out; the others keep their order.
    pub fn remove(&mut self, key: &str) -> Option<Value<'a>> {
        let at = self.position(StrRef::from(key))?;
        let (_, value) = self.members.remove(at);
        self.index = None;
        self.reindex();
        Some(value)
    }

    /// The members in order.
    pub fn iter(&self) -> Members<'_> {
        Members(self.members.iter())
    }

    /// The keys in order.
    pub fn keys(&self) -> impl Iterator<Item = StrRef<'_>> {
        self.members.iter().map(|(key, _)| key.as_ref())
    }

    pub(super) fn take_members(&mut self) -> Vec<(Str<'a>, Value<'a>)> {
        self.index = None;
        mem::take(&mut self.members)
    }

    fn position(&self, key: StrRef<'_>) -> Option<usize> {
        match &self.index {
            Some(index) => index.find(key, &self.members),
            None => self.members.iter().position(|(k, _)| k.as_ref() == key),
        }
    }

    /// Brings the index up to date after a push.
    fn note_last(&mut self) {
        match &mut self.index {
            Some(index) if index.has_room(self.members.len()) => {
                index.add(self.members.len() - 1, &self.members);
            }
            _ => self.reindex(),
        }
    }

    fn reindex(&mut self) {
        if self.members.len() > SCAN_LIMIT {
            self.index = Some(Box::new(Index::of(&self.members)));
        }
    }
}

/// An open-addressing table from key to position, at most half full. The hasher is seeded, so a
/// document cannot choose its collisions; nothing ever iterates over the table.
struct Index {
    hasher: RandomState,
    /// Position + 1, or 0 where free. The length is a power of two.
    slots: Box<[usize]>,
}

impl Index {
    fn of(members: &[(Str<'_>, Value<'_>)]) -> Self {
        let size = (members.len() * 4).next_power_of_two();
        let mut index = Self { hasher: RandomState::new(), slots: vec![0; size].into_boxed_slice() };
        for at in 0..members.len() {
            index.add(at, members);
        }
        index
    }

    fn has_room(&self, len: usize) -> bool {
        len * 2 <= self.slots.len()
    }

    fn start(&self, key: StrRef<'_>) -> usize {
        #[expect(clippy::cast_possible_truncation, reason = "any bits of the hash will do")]
        let hash = self.hasher.hash_one(key) as usize;
        hash & (self.slots.len() - 1)
    }

    fn add(&mut self, at: usize, members: &[(Str<'_>, Value<'_>)]) {
        let mut slot = self.start(members[at].0.as_ref());
        while self.slots[slot] != 0 {
            slot = (slot + 1) & (self.slots.len() - 1);
        }
        self.slots[slot] = at + 1;
    }

    fn find(&self, key: StrRef<'_>, members: &[(Str<'_>, Value<'_>)]) -> Option<usize> {
        let mut slot = self.start(key);
        loop {
            let at = self.slots[slot].checked_sub(1)?;
            if members[at].0.as_ref() == key {
                return Some(at);
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
    }
}

/// Drops values whose children were put aside, level by level, without native recursion.
pub(super) fn unnest(mut nested: Vec<Value<'_>>) {
    while let Some(value) = nested.pop() {
        match value {
            Value::Array(mut array) => {
                for mut item in array.take_values() {
                    item.take_if_nested(&mut nested);
                }
            }
            Value::Object(mut object) => {
                for (_, mut item) in object.take_members() {
                    item.take_if_nested(&mut nested);
                }
            }
            _ => {}
        }
    }
}

impl Drop for Object<'_> {
    fn drop(&mut self) {
        let mut nested = Vec::new();
        for (_, value) in &mut self.members {
            value.take_if_nested(&mut nested);
        }
        unnest(nested);
    }
}

impl Clone for Object<'_> {
    fn clone(&self) -> Self {
        match ValueRef::Object(self).to_owned() {
            Value::Object(object) => object,
            _ => Self::new(),
        }
    }
}

impl<'a, K: Into<Str<'a>>, V: Into<Value<'a>>> FromIterator<(K, V)> for Object<'a> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(members: I) -> Self {
        let mut object = Self::new();
        for (key, value) in members {
            object.insert(key, value);
        }
        object
    }
}

impl<'a> IntoIterator for Object<'a> {
    type Item = (Str<'a>, Value<'a>);
    type IntoIter = vec::IntoIter<(Str<'a>, Value<'a>)>;

    fn into_iter(mut self) -> Self::IntoIter {
        self.take_members().into_iter()
    }
}

impl<'v> IntoIterator for &'v Object<'_> {
    type Item = (StrRef<'v>, ValueRef<'v>);
    type IntoIter = Members<'v>;

    fn into_iter(self) -> Members<'v> {
        self.iter()
    }
}

/// The members of an [`Object`] in order.
#[derive(Clone)]
pub struct Members<'v>(slice::Iter<'v, (Str<'v>, Value<'v>)>);

impl<'v> Iterator for Members<'v> {
    type Item = (StrRef<'v>, ValueRef<'v>);

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|(key, value)| (key.as_ref(), value.as_ref()))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl ExactSizeIterator for Members<'_> {}

impl fmt::Debug for Object<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        ValueRef::Object(self).fmt(f)
    }
}

impl fmt::Debug for Members<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.clone()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_objects_keep_order_and_find_every_key() {
        let mut object = Object::new();
        for i in 0..1000_i64 {
            object.insert(format!("k{i}"), i);
        }
        assert_eq!(object.insert("k500".to_owned(), -1_i64).and_then(|v| v.as_i64()), Some(500));
        assert_eq!(object.remove("k3").and_then(|v| v.as_i64()), Some(3));
        assert_eq!(object.len(), 999);
        assert!(object.get("k3").is_none());
        for i in (0..1000).filter(|i| ![3, 500].contains(i)) {
            assert_eq!(object.get(&format!("k{i}")).and_then(ValueRef::as_i64), Some(i));
        }
        let keys: Vec<_> = object.keys().take(5).map(|k| k.as_str().expect("text").to_owned()).collect();
        assert_eq!(keys, ["k0", "k1", "k2", "k4", "k5"]);
        assert_eq!(
            object.iter().nth(499).map(|(k, v)| (k.escaped().into_owned(), v.as_i64())),
            Some(("k500".into(), Some(-1)))
        );
    }

    #[test]
    fn dropping_a_value_deeper_than_any_stack_is_fine() {
        let mut value = Value::Null;
        for i in 0..100_000 {
            value = if i % 2 == 0 {
                Value::from(vec![value, Value::from("x")])
            } else {
                Value::from(Object::from_iter([("k", value)]))
            };
        }
        let copy = value.clone();
        assert!(copy == value, "comparing does not recurse either");
        assert_eq!(copy.to_json().len(), value.into_owned().to_json().len());
    }
}
