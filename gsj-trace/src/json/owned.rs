//! Copies that borrow nothing, made without native recursion.

use std::vec;

use super::{Array, Items, Members, Object, Str, Value, ValueRef};

/// A container that is partly copied. `I` yields what is left of an array, `M` of an object.
enum Frame<I, M> {
    Array(I, Vec<Value<'static>>),
    /// With the key whose value is being copied.
    Object(M, Object<'static>, Str<'static>),
}

/// A source value: finished, or a container to go through.
enum Step<I, M> {
    Done(Value<'static>),
    Array(I),
    Object(M),
}

type Key = Str<'static>;

/// Rebuilds a value from its parts; `step` says what a part is.
fn rebuild<V, I, M>(root: V, step: impl Fn(V) -> Step<I, M>) -> Value<'static>
where
    I: Iterator<Item = V>,
    M: Iterator<Item = (Key, V)>,
{
    let mut open: Vec<Frame<I, M>> = Vec::new();
    let mut next = root;
    loop {
        let mut done = match step(next) {
            Step::Done(value) => Some(value),
            Step::Array(items) => {
                open.push(Frame::Array(items, Vec::new()));
                None
            }
            Step::Object(members) => {
                open.push(Frame::Object(members, Object::new(), Str::from("")));
                None
            }
        };
        next = loop {
            match open.pop() {
                None => return done.unwrap_or_default(),
                Some(Frame::Array(mut items, mut copied)) => {
                    copied.extend(done.take());
                    match items.next() {
                        Some(item) => {
                            open.push(Frame::Array(items, copied));
                            break item;
                        }
                        None => done = Some(Value::Array(Array::from(copied))),
                    }
                }
                Some(Frame::Object(mut members, mut copied, key)) => {
                    if let Some(value) = done.take() {
                        copied.insert(key, value);
                    }
                    match members.next() {
                        Some((key, value)) => {
                            open.push(Frame::Object(members, copied, key));
                            break value;
                        }
                        None => done = Some(Value::Object(copied)),
                    }
                }
            }
        };
    }
}

/// An object's members with their keys owned.
struct OwnedKeys<M>(M);

impl<'v> Iterator for OwnedKeys<Members<'v>> {
    type Item = (Key, ValueRef<'v>);

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|(key, value)| (key.to_str().into_owned(), value))
    }
}

impl<'a> Iterator for OwnedKeys<vec::IntoIter<(Str<'a>, Value<'a>)>> {
    type Item = (Key, Value<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|(key, value)| (key.into_owned(), value))
    }
}

impl<'v> ValueRef<'v> {
    /// A copy that borrows nothing.
    pub fn to_owned(self) -> Value<'static> {
        rebuild(self, |value: ValueRef<'v>| -> Step<Items<'v>, OwnedKeys<Members<'v>>> {
            Step::Done(match value {
                ValueRef::Null => Value::Null,
                ValueRef::Bool(b) => Value::Bool(b),
                ValueRef::Int(n) => Value::Int(n.to_int()),
                ValueRef::Float(x) => Value::Float(x),
                ValueRef::Str(s) => Value::Str(s.to_str().into_owned()),
                ValueRef::Array(array) => match array.packed_copy() {
                    Some(packed) => Value::Array(packed),
                    None => return Step::Array(array.iter()),
                },
                ValueRef::Object(object) => return Step::Object(OwnedKeys(object.iter())),
            })
        })
    }
}

impl<'a> Value<'a> {
    /// The same value, borrowing nothing; what is owned already is moved.
    pub fn into_owned(self) -> Value<'static> {
        rebuild(
            self,
            |value: Value<'a>| -> Step<vec::IntoIter<Value<'a>>, OwnedKeys<vec::IntoIter<(Str<'a>, Value<'a>)>>> {
                Step::Done(match value {
                    Value::Null => Value::Null,
                    Value::Bool(b) => Value::Bool(b),
                    Value::Int(n) => Value::Int(n),
                    Value::Float(x) => Value::Float(x),
                    Value::Str(s) => Value::Str(s.into_owned()),
                    Value::Array(array) => match array.into_packed() {
                        Ok(packed) => Value::Array(packed),
                        Err(items) => return Step::Array(items.into_iter()),
                    },
                    Value::Object(object) => return Step::Object(OwnedKeys(object.into_iter())),
                })
            },
        )
    }
}
