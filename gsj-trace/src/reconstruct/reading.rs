//! What one record says of its completion, read strictly (sections 10.2 and 11.6; D5, D6, D10, D17).
//!
//! A token id is a JSON integer in `0..2^32` and a logprob a finite JSON number. A list with anything else in it is
//! refused as a whole, and a finding names the first element that is at fault.

use std::borrow::Cow;

use crate::json::{Array, Str, ValueRef};

use super::output::finding;

use super::session::{Record, elements, is_array};

/// One completion's ids and logprobs.
#[derive(Default)]
pub(super) struct Reading<'v> {
    /// The context that the engine was given.
    pub(super) prompt: Cow<'v, [u32]>,
    /// What it sampled.
    pub(super) response: Cow<'v, [u32]>,
    /// One per sampled id, or none at all.
    pub(super) logprobs: Option<Vec<f64>>,
    /// What could not be read, as findings.
    pub(super) findings: Vec<Str<'static>>,
}

impl<'v> Reading<'v> {
    pub(super) fn of(record: &Record<'v>) -> Self {
        let mut out = Self::default();
        let prompt = out.prompt(record);
        let response = out.response(record);
        let id = &record.id;
        let (said, usage) = (out.response.len(), record.response.get("usage"));
        if let Some(usage) = usage.and_then(|u| u.get("completion_tokens")).and_then(ValueRef::as_int)
            && usage.as_u64() != u64::try_from(said).ok()
        {
            out.findings.push(finding("S13:usage_mismatch", id, format_args!(":{said}!={usage}")));
        }
        let listed = match &response {
            Ok(sources) => out.logprobs(sources),
            Err(_) => Logprobs::Read,
        };
        if let Logprobs::Incomplete { listed, .. } = listed {
            out.findings.push(finding("S14:logprobs_incomplete", id, format_args!(":{listed}!={said}")));
        }
        for (place, fault) in [("prompt", prompt.err()), ("response", response.err())] {
            if let Some(first) = fault {
                out.findings.push(finding("S15:token_id_not_an_integer", id, format_args!(":{place}:first={first}")));
            }
        }
        if let Logprobs::NotFinite { first } | Logprobs::Incomplete { not_finite: Some(first), .. } = listed {
            out.findings.push(finding("S16:logprob_not_finite", id, format_args!(":first={first}")));
        }
        out
    }

    /// Reads the prompt; an error is the index of the first element that is no id.
    fn prompt(&mut self, record: &Record<'v>) -> Result<(), usize> {
        let choice = record.choice();
        let places =
            [choice.get("input_token_ids"), choice.get("prompt_token_ids"), record.response.get("prompt_token_ids")];
        if let Some(list) = places.into_iter().flatten().find(|v| v.truthy()).and_then(ValueRef::as_array) {
            self.prompt = token_ids(list)?;
        }
        Ok(())
    }

    /// Reads the sampled ids; gives the places where logprobs may stand.
    fn response(&mut self, record: &Record<'v>) -> Result<[Option<Pairs<'v>>; 2], usize> {
        let choice = record.choice();
        let place = |of: &str, key: &str| choice.get(of).and_then(|member| member.get(key));
        let sources = [
            Pairs::of(place("logprobs", "content"), Place::Content),
            Pairs::of(place("meta_info", "output_token_logprobs"), Place::MetaInfo),
        ];
        // A null in the choice hides the list of the response.
        let listed = choice.get("token_ids").or_else(|| record.response.get("token_ids")).filter(|v| is_array(*v));
        if let Some(list) = listed.and_then(ValueRef::as_array) {
            self.response = token_ids(list)?;
            return Ok(sources);
        }
        // The longer list is the whole one.
        let mut fault = None;
        for source in sources.iter().flatten() {
            match source.ids() {
                Ok(ids) if ids.len() > self.response.len() => self.response = Cow::Owned(ids),
                Ok(_) => {}
                Err(first) => fault = fault.or(first),
            }
        }
        match fault {
            Some(first) if self.response.is_empty() => Err(first),
            _ => Ok(sources),
        }
    }

    fn logprobs(&mut self, sources: &[Option<Pairs<'v>>; 2]) -> Logprobs {
        if self.response.is_empty() {
            return Logprobs::Read;
        }
        let mut best = Logprobs::Incomplete { listed: 0, not_finite: None };
        for source in sources.iter().flatten() {
            let (state, logprobs) = source.logprobs(&self.response);
            if state == Logprobs::Read {
                self.logprobs = Some(logprobs);
                return state;
            }
            best = match (best, state) {
                (Logprobs::NotFinite { .. }, _) => best,
                (Logprobs::Incomplete { listed: a, .. }, Logprobs::Incomplete { listed: b, .. }) if b <= a => best,
                _ => state,
            };
        }
        best
    }
}

/// What became of a completion's logprobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Logprobs {
    /// Each id has one, or there is no id.
    Read,
    /// As many as ids, but one is no finite number.
    NotFinite { first: usize },
    /// Not as many as ids.
    Incomplete { listed: usize, not_finite: Option<usize> },
}

/// The array's elements as ids; an error is the index of the first that is none.
fn token_ids<'v>(array: &'v Array<'v>) -> Result<Cow<'v, [u32]>, usize> {
    if let Some(packed) = array.as_u32s() {
        return Ok(Cow::Borrowed(packed));
    }
    array.iter().enumerate().map(|(i, element)| token_id(element).ok_or(i)).collect()
}

fn token_id(value: ValueRef<'_>) -> Option<u32> {
    value.as_int().and_then(|id| id.as_u32())
}

/// A logprob that can be trained with and written down.
pub(crate) fn logprob(value: ValueRef<'_>) -> Option<f64> {
    value.as_f64().filter(|x| x.is_finite())
}

/// The ids of a list of `[logprob, id, ..]`, when each element is one.
pub(crate) fn whole_pairs(list: &Array<'_>) -> Option<Vec<u32>> {
    let pairs = Pairs { list, place: Place::MetaInfo }.pairs();
    pairs.map(|(id, value)| value.and_then(logprob).and(id.and_then(token_id))).collect()
}

#[derive(Clone, Copy)]
enum Place {
    /// `choice.logprobs.content`: objects, which have no id unless it was written into them.
    Content,
    /// `choice.meta_info.output_token_logprobs`: `[logprob, id, text]`, or objects.
    MetaInfo,
}

/// A list that gives sampled ids their logprobs.
#[derive(Clone, Copy)]
struct Pairs<'v> {
    list: &'v Array<'v>,
    place: Place,
}

impl<'v> Pairs<'v> {
    /// The list, unless it is none or empty.
    fn of(list: Option<ValueRef<'v>>, place: Place) -> Option<Self> {
        list.and_then(ValueRef::as_array).filter(|list| !list.is_empty()).map(|list| Self { list, place })
    }

    /// Id and logprob of each element.
    fn pairs(self) -> impl Iterator<Item = (Option<ValueRef<'v>>, Option<ValueRef<'v>>)> {
        self.list.iter().map(move |entry| match self.place {
            Place::MetaInfo if is_array(entry) => (entry.index(1), entry.index(0)),
            _ => (entry.get("token_id"), entry.get("logprob").or_else(|| entry.get("token_logprob"))),
        })
    }

    /// The ids; an error is the index of the first element without one, or nothing when the list never has ids.
    fn ids(self) -> Result<Vec<u32>, Option<usize>> {
        let without = matches!(self.place, Place::Content) && self.pairs().all(|(id, _)| id.is_none());
        if without {
            return Err(None);
        }
        self.pairs().enumerate().map(|(i, (id, _))| id.and_then(token_id).ok_or(Some(i))).collect()
    }

    /// The logprobs of these ids, as far as the list holds them.
    fn logprobs(self, ids: &[u32]) -> (Logprobs, Vec<f64>) {
        let mut out = Vec::with_capacity(ids.len());
        let mut not_finite = None;
        for ((id, value), want) in self.pairs().zip(ids) {
            // Without ids of its own the list is one by position, as long as it is as long.
            if id.is_some_and(|id| token_id(id) != Some(*want)) {
                break;
            }
            let value = value.and_then(logprob);
            if value.is_none() {
                not_finite = not_finite.or(Some(out.len()));
            }
            out.push(value.unwrap_or_default());
        }
        // Of a list with more logprobs than ids nothing says which belong together.
        let listed = if out.len() == ids.len() { self.list.len() } else { out.len() };
        let state = match not_finite {
            _ if listed != ids.len() => Logprobs::Incomplete { listed, not_finite },
            Some(first) => Logprobs::NotFinite { first },
            None => Logprobs::Read,
        };
        (state, out)
    }
}

/// The elements of `choices` that are objects: what the engine answered (D18).
pub(super) fn answers(record: &Record<'_>) -> usize {
    elements(record.response.get("choices")).filter(|choice| super::session::is_object(*choice)).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Value;

    fn read(response: &str) -> (String, String, Option<Vec<f64>>, Vec<Str<'static>>) {
        let text = format!(r#"{{"completion_id":"c","response":{response}}}"#);
        let value = Value::parse(text.as_bytes()).unwrap();
        let record = Record::read(value.as_ref(), 0, &mut Vec::new()).unwrap();
        let reading = Reading::of(&record);
        (format!("{:?}", reading.prompt), format!("{:?}", reading.response), reading.logprobs, reading.findings)
    }

    fn choice(members: &str) -> (String, Option<Vec<f64>>, Vec<Str<'static>>) {
        let (_, response, logprobs, findings) = read(&format!(r#"{{"choices":[{{{members}}}]}}"#));
        (response, logprobs, findings)
    }

    #[test]
    fn ids_are_integers_and_a_list_with_anything_else_is_none() {
        let (prompt, response, _, findings) =
            read(r#"{"prompt_token_ids":[1,true],"choices":[{"token_ids":[2,3.7]}],"usage":{"completion_tokens":2}}"#);
        assert_eq!((prompt.as_str(), response.as_str()), ("[]", "[]"));
        assert_eq!(
            findings,
            [
                "S13:usage_mismatch:c:0!=2",
                "S15:token_id_not_an_integer:c:prompt:first=1",
                "S15:token_id_not_an_integer:c:response:first=1",
            ]
        );
        for bad in ["\"5\"", "null", "-1", "4294967296", "1e999", "[1]"] {
            let (response, _, findings) = choice(&format!(r#""token_ids":[{bad}]"#));
            assert_eq!(response, "[]");
            assert_eq!(findings, ["S15:token_id_not_an_integer:c:response:first=0"], "{bad}");
        }
        assert_eq!(
            choice(r#""token_ids":[4294967295,0],"logprobs":{"content":[{"logprob":-1},{"logprob":0.0}]}"#).0,
            "[4294967295, 0]"
        );
    }

    #[test]
    fn logprobs_are_those_of_the_listed_ids() {
        let content = |entries: &str| choice(&format!(r#""token_ids":[7,8],"logprobs":{{"content":[{entries}]}}"#));
        let whole = r#"{"token_id":7,"logprob":-1},{"token_id":8,"logprob":-0.5}"#;
        assert_eq!(content(whole), ("[7, 8]".to_owned(), Some(vec![-1.0, -0.5]), vec![]));
        for (entries, finding) in [
            ("", "S14:logprobs_incomplete:c:0!=2"),
            (r#"{"logprob":-1}"#, "S14:logprobs_incomplete:c:1!=2"),
            (r#"{"token_id":7,"logprob":-1},{"token_id":9,"logprob":-1}"#, "S14:logprobs_incomplete:c:1!=2"),
            (r#"{"token_id":7,"logprob":-1},{"token_id":8,"logprob":NaN}"#, "S16:logprob_not_finite:c:first=1"),
            (r#"{"token_id":7,"logprob":null},{"token_id":8,"logprob":"-1"}"#, "S16:logprob_not_finite:c:first=0"),
            (r#"{"token_id":7,"logprob":-1e999},{"token_id":8,"logprob":-1}"#, "S16:logprob_not_finite:c:first=0"),
            (r#"{"logprob":-1},{"logprob":-1},{"logprob":-1}"#, "S14:logprobs_incomplete:c:3!=2"),
        ] {
            assert_eq!(content(entries), ("[7, 8]".to_owned(), None, vec![Str::from(finding)]), "{entries}");
        }
        let huge = format!(r#"{{"token_id":7,"logprob":-{}}},{{"token_id":8,"logprob":-1}}"#, "9".repeat(400));
        assert_eq!(content(&huge).2, ["S16:logprob_not_finite:c:first=0"]);
        let second = choice(
            r#""token_ids":[7,8],"logprobs":{"content":[{"logprob":-1}]},"meta_info":{"output_token_logprobs":[[-2.0,7,null],[-3,8]]}"#,
        );
        assert_eq!(second, ("[7, 8]".to_owned(), Some(vec![-2.0, -3.0]), vec![]), "the whole list counts");
    }

    #[test]
    fn pairs_give_the_ids_where_none_are_listed() {
        let meta = |entries: &str| choice(&format!(r#""meta_info":{{"output_token_logprobs":[{entries}]}}"#));
        assert_eq!(
            meta("[-1.0,5],{\"token_id\":6,\"token_logprob\":-2.0}"),
            ("[5, 6]".to_owned(), Some(vec![-1.0, -2.0]), vec![])
        );
        assert_eq!(meta("[-1.0,5],[-1.0,null],[-1.0,7]").2, ["S15:token_id_not_an_integer:c:response:first=1"]);
        assert_eq!(
            meta("[-1.0,5],[null,6]"),
            ("[5, 6]".to_owned(), None, vec![Str::from("S16:logprob_not_finite:c:first=1")])
        );
        assert_eq!(meta("7").2, ["S15:token_id_not_an_integer:c:response:first=0"]);
        assert_eq!(choice(r#""logprobs":{"content":[{"logprob":-1.0}]}"#), ("[]".to_owned(), None, vec![]));
        let both = choice(
            r#""logprobs":{"content":[{"token_id":5,"logprob":-1.0}]},"meta_info":{"output_token_logprobs":[[-2.0,5],[-3.0,6]]}"#,
        );
        assert_eq!(both, ("[5, 6]".to_owned(), Some(vec![-2.0, -3.0]), vec![]));
    }
}
