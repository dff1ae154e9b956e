//! One approved set, ready to be asked.

use gsj_trace::json::{Array, ValueRef};

/// The non-empty array of approved values under one key, elements of any type.
#[derive(Debug, Clone, Copy)]
pub struct Approved<'p>(&'p Array<'p>);

impl<'p> Approved<'p> {
    pub(crate) fn new(array: &'p Array<'p>) -> Self {
        Self(array)
    }

    /// Plain membership by the reference's equality.
    pub fn contains(self, value: ValueRef<'_>) -> bool {
        self.0.iter().any(|entry| entry.python_eq(value))
    }

    /// Membership of a digest. What has no digest equals a `null` entry, as in the reference;
    /// [`crate::Pins::check_whole`] refuses such entries.
    pub fn contains_digest(self, digest: Option<&str>) -> bool {
        self.contains(digest.map_or(ValueRef::Null, |digest| ValueRef::Str(digest.into())))
    }

    /// The entries in order.
    pub fn iter(self) -> impl Iterator<Item = ValueRef<'p>> {
        self.0.iter()
    }

    /// The entries that are non-empty arrays: the usable tails.
    pub fn tails(self) -> impl Iterator<Item = &'p Array<'p>> {
        self.0.iter().filter_map(ValueRef::as_array).filter(|tail| !tail.is_empty())
    }
}
