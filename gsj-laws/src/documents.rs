//! Small things about JSON documents.

use gsj_trace::json::{Object, Value, ValueRef};

/// Every value in a document, itself first; no document is too deep for it.
pub(crate) fn walk(value: ValueRef<'_>) -> impl Iterator<Item = ValueRef<'_>> {
    let mut open = vec![value];
    std::iter::from_fn(move || {
        let value = open.pop()?;
        match value {
            ValueRef::Array(array) => open.extend(array.iter()),
            ValueRef::Object(object) => open.extend(object.iter().map(|(_, member)| member)),
            _ => {}
        }
        Some(value)
    })
}

pub(crate) fn object<const N: usize>(members: [(&'static str, Value<'static>); N]) -> Value<'static> {
    Value::from(Object::from_iter(members))
}

/// The elements of an array; of anything else none.
pub(crate) fn elements<'v>(value: Option<ValueRef<'v>>) -> impl Iterator<Item = ValueRef<'v>> + use<'v> {
    value.and_then(ValueRef::as_array).into_iter().flat_map(|array| array.iter())
}

/// The numbers of an array of token ids or mask values.
pub(crate) fn ids(value: Option<ValueRef<'_>>) -> Vec<u32> {
    elements(value).filter_map(ValueRef::as_i64).filter_map(|id| u32::try_from(id).ok()).collect()
}

pub(crate) fn text(value: Option<ValueRef<'_>>) -> String {
    value.map(ValueRef::show).unwrap_or_default()
}
