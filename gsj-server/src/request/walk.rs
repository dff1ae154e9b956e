//! Walking a request body, noting every field that is missing or of the wrong type.

use std::cell::RefCell;

use serde::Serialize;
use serde_json::{Map, Value};

/// One step of the path to a field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub(crate) enum Step {
    Name(String),
    Index(usize),
}

/// One thing that is wrong with a body, in the shape that existing clients print.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Detail {
    pub(crate) loc: Vec<Step>,
    pub(crate) msg: String,
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
}

/// Collects what is wrong, so that one answer names all of it.
#[derive(Debug, Default)]
pub(crate) struct Problems(RefCell<Vec<Detail>>);

impl Problems {
    pub(crate) fn note(&self, loc: Vec<Step>, msg: impl Into<String>, kind: &'static str) {
        self.0.borrow_mut().push(Detail { loc, msg: msg.into(), kind });
    }

    pub(crate) fn into_details(self) -> Vec<Detail> {
        self.0.into_inner()
    }
}

/// An object of the body, with the path that leads to it.
#[derive(Debug, Clone)]
pub(crate) struct Fields<'a> {
    pub(crate) map: &'a Map<String, Value>,
    loc: Vec<Step>,
    problems: &'a Problems,
}

impl<'a> Fields<'a> {
    /// The whole body; anything but an object is noted.
    pub(crate) fn body(value: &'a Value, problems: &'a Problems) -> Option<Self> {
        let loc = vec![Step::Name("body".to_owned())];
        match value {
            Value::Object(map) => Some(Self { map, loc, problems }),
            _ => {
                problems.note(loc, "Input should be a valid dictionary", "dict_type");
                None
            }
        }
    }

    pub(crate) fn path(&self, name: &str) -> Vec<Step> {
        let mut loc = self.loc.clone();
        loc.push(Step::Name(name.to_owned()));
        loc
    }

    /// Notes that a field's value will not do.
    pub(crate) fn refuse(&self, name: &str, msg: impl Into<String>) {
        self.problems.note(self.path(name), msg, "value_error");
    }

    /// Notes every member that is not among `known`.
    pub(crate) fn only(&self, known: &[&str]) {
        for name in self.map.keys().filter(|name| !known.contains(&name.as_str())) {
            self.problems.note(self.path(name), "Extra inputs are not permitted", "extra_forbidden");
        }
    }

    /// The field's value unless it is absent or null.
    pub(crate) fn given(&self, name: &str) -> Option<&'a Value> {
        self.map.get(name).filter(|value| !value.is_null())
    }

    fn wrong<T>(&self, name: &str, what: &str, kind: &'static str) -> Option<T> {
        self.problems.note(self.path(name), format!("Input should be a valid {what}"), kind);
        None
    }

    /// The field must be there (null counts as given, and as mistyped where it is read).
    pub(crate) fn require(&self, name: &str) -> Option<&'a Value> {
        let found = self.map.get(name);
        if found.is_none() {
            self.problems.note(self.path(name), "Field required", "missing");
        }
        found
    }

    pub(crate) fn as_string(&self, name: &str, value: &'a Value) -> Option<&'a str> {
        value.as_str().or_else(|| self.wrong(name, "string", "string_type"))
    }

    /// A string or absent; null counts as absent.
    pub(crate) fn string(&self, name: &str) -> Option<&'a str> {
        self.given(name).and_then(|value| self.as_string(name, value))
    }

    /// An integer of at least `least` and at most `most`; null and absent give `None`.
    pub(crate) fn integer(&self, name: &str, least: i64, most: i64) -> Option<i64> {
        let value = self.given(name)?;
        self.as_integer(name, value, least, most)
    }

    pub(crate) fn as_integer(&self, name: &str, value: &Value, least: i64, most: i64) -> Option<i64> {
        let Some(number) = whole(value) else { return self.wrong(name, "integer", "int_type") };
        if number < least {
            let msg = format!("Input should be greater than or equal to {least}");
            self.problems.note(self.path(name), msg, "greater_than_equal");
            return None;
        }
        if number > most {
            let msg = format!("Input should be less than or equal to {most}");
            self.problems.note(self.path(name), msg, "less_than_equal");
            return None;
        }
        Some(number)
    }

    /// A number above 0 and at most `most`.
    pub(crate) fn as_positive(&self, name: &str, value: &Value, most: f64) -> Option<f64> {
        let Some(number) = value.as_f64() else { return self.wrong(name, "number", "float_type") };
        // JSON knows no NaN, so this is the whole of what is not above 0.
        if number <= 0.0 {
            self.problems.note(self.path(name), "Input should be greater than 0", "greater_than");
            return None;
        }
        if number > most {
            let msg = format!("Input should be less than or equal to {most}");
            self.problems.note(self.path(name), msg, "less_than_equal");
            return None;
        }
        Some(number)
    }

    pub(crate) fn as_object(&self, name: &str, value: &'a Value) -> Option<Self> {
        match value {
            Value::Object(map) => Some(Self { map, loc: self.path(name), problems: self.problems }),
            _ => self.wrong(name, "dictionary", "dict_type"),
        }
    }

    /// An object or absent; null counts as absent.
    pub(crate) fn object(&self, name: &str) -> Option<Self> {
        self.given(name).and_then(|value| self.as_object(name, value))
    }

    /// A list of strings or absent; null counts as absent.
    pub(crate) fn strings(&self, name: &str) -> Option<Vec<String>> {
        self.list(name, |value| value.as_str().map(str::to_owned), "string", "string_type")
    }

    /// A list of integers or absent; null counts as absent.
    pub(crate) fn integers(&self, name: &str) -> Option<Vec<i64>> {
        self.list(name, whole, "integer", "int_type")
    }

    fn list<T>(
        &self,
        name: &str,
        read: impl Fn(&Value) -> Option<T>,
        what: &str,
        kind: &'static str,
    ) -> Option<Vec<T>> {
        let Some(items) = self.given(name)?.as_array() else { return self.wrong(name, "list", "list_type") };
        let mut good = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            if let Some(value) = read(item) {
                good.push(value);
            } else {
                let mut loc = self.path(name);
                loc.push(Step::Index(index));
                self.problems.note(loc, format!("Input should be a valid {what}"), kind);
            }
        }
        (good.len() == items.len()).then_some(good)
    }

    /// An object whose members are all strings.
    pub(crate) fn string_members(&self) -> Vec<(String, String)> {
        let mut good = Vec::new();
        for (name, value) in self.map {
            if let Some(text) = self.as_string(name, value) {
                good.push((name.clone(), text.to_owned()));
            }
        }
        good
    }
}

/// An integer, also one written with an empty fraction; a boolean is none.
fn whole(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| {
        let number = value.as_f64()?;
        let exact = number.fract() == 0.0 && number.abs() < 9_007_199_254_740_992.0;
        // Below 2^53 every whole double is an i64.
        #[expect(clippy::cast_possible_truncation, reason = "checked on the line above")]
        exact.then_some(number as i64)
    })
}
