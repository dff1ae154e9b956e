//! Pins from what accepted traces were made with.

use gsj_trace::canonical::{bytes_sha256, canonical_sha256, text_sha256};
use gsj_trace::json::{Object, Value, ValueRef};
use gsj_trace::tokens::TokenText;

use super::config::parse;
use super::{Derivation, DeriveError};
use crate::artifact::{first_opening, message_sha256};
use crate::{Key, Set};

/// The text that opens every turn, with the vocabulary by which the ids of a trace are read.
#[derive(Debug, Clone, Copy)]
pub struct Tail<'t> {
    /// What the template writes before a reply.
    pub text: &'t str,
    /// The engine's tokenizer.
    pub tokens: &'t dyn TokenText,
}

impl Derivation {
    /// Approves what an accepted session result was made with: tool roster, system prompts, settings, and the skill card
    /// under its skill's name. With `tail`, also the ids that the prompt of the trace ends with, as far as they spell
    /// that text; without it no ids are taken, because a trace does not say how many of them are the template's.
    ///
    /// The digest in the provenance is that of `bytes`. A value that an earlier artifact gave keeps that artifact alone.
    /// Returns the ids of the tail, one list per trace.
    ///
    /// # Errors
    /// The bytes are no session result that completed without findings of its builder, evidence is missing, or a trace
    /// opens with something else than the tail. Then nothing was added.
    pub fn from_trace(
        &mut self,
        artifact: &str,
        bytes: &[u8],
        tail: Option<Tail<'_>>,
    ) -> Result<Vec<Vec<u32>>, DeriveError> {
        let document = parse(artifact, bytes)?;
        let refuse = |reason: String| DeriveError::NotAccepted { artifact: artifact.to_owned(), reason };
        let traces = accepted(&document).map_err(refuse)?;
        let digest = bytes_sha256(bytes);
        let (mut found, mut tails) = (Found::default(), Vec::new());
        for (i, trace) in traces.into_iter().enumerate() {
            let place = format!("/trajectory/traces/{i}");
            found.read(&Evidence::of_trace(trace, &place)).map_err(refuse)?;
            if let Some(tail) = tail {
                let opening = first_opening(trace);
                let ids = spelling(&opening, tail)
                    .ok_or_else(|| DeriveError::Tail { artifact: artifact.to_owned(), text: tail.text.to_owned() })?;
                found.values.push((Key::TailIds.into(), Value::from(ids.to_vec()), place));
                tails.push(ids.to_vec());
            }
        }
        if let Some(tail) = tail.filter(|tail| !self.has(Key::Tail.into(), &Value::from(tail.text))) {
            self.add(Key::Tail, tail.text.to_owned(), artifact, text_sha256(tail.text));
        }
        self.take(artifact, &digest, found);
        Ok(tails)
    }

    /// Approves what one call in a session's log was made with: the first pins of an estate that has no accepted trace
    /// yet. The call is a record of a completion session (`checks.md` section 10.1); roster and system prompts are those
    /// that went to the engine. The digest in the provenance is that of `bytes`.
    ///
    /// # Errors
    /// The bytes are no such record, or evidence is missing. Then nothing was added.
    pub fn from_record(&mut self, artifact: &str, bytes: &[u8]) -> Result<&mut Self, DeriveError> {
        let record = parse(artifact, bytes)?;
        let mut found = Found::default();
        found
            .read(&Evidence::of_record(record.as_ref()))
            .map_err(|reason| DeriveError::Evidence { artifact: artifact.to_owned(), reason })?;
        self.take(artifact, &bytes_sha256(bytes), found);
        Ok(self)
    }

    fn take(&mut self, artifact: &str, digest: &str, found: Found) {
        for (set, value, part) in found.values {
            if !self.has(set, &value) {
                self.add_part(set, value, artifact, Some(&part), digest.to_owned());
            }
        }
        for (skill, hash) in found.cards {
            self.card_of(&skill, &hash);
        }
    }
}

/// Where a document says what a run was made with; places are JSON pointers.
struct Evidence<'d> {
    tools: (Option<ValueRef<'d>>, String),
    messages: Vec<(Option<ValueRef<'d>>, String)>,
    metadata: (ValueRef<'d>, String),
}

impl<'d> Evidence<'d> {
    fn of_trace(trace: ValueRef<'d>, place: &str) -> Self {
        let lists = ["prompt_messages", "response_messages"];
        Self {
            tools: (trace.get("tools"), format!("{place}/tools")),
            messages: lists.map(|list| (trace.get(list), format!("{place}/{list}"))).to_vec(),
            metadata: (trace.get("metadata").unwrap_or(ValueRef::Null), format!("{place}/metadata")),
        }
    }

    fn of_record(record: ValueRef<'d>) -> Self {
        Self {
            tools: (record.pointer("/request/tools"), "/request/tools".to_owned()),
            messages: vec![(record.pointer("/request/messages"), "/request/messages".to_owned())],
            metadata: (record.get("metadata").unwrap_or(ValueRef::Null), "/metadata".to_owned()),
        }
    }
}

/// The traces of a session result that its own producer calls complete.
fn accepted<'d>(document: &'d Value<'_>) -> Result<Vec<ValueRef<'d>>, String> {
    if document.get("session_result").is_some() {
        return Err("it is a file of the quarantine".to_owned());
    }
    for place in ["/status", "/trajectory/status"] {
        match document.pointer(place) {
            Some(status) if status.as_str() == Some("COMPLETED") => {}
            Some(status) => return Err(format!("`{}` is {}", path(place), status.show())),
            None => return Err(format!("`{}` is missing", path(place))),
        }
    }
    let findings = document.pointer("/trajectory/metadata/gsj_validation/findings");
    if let Some(finding) = findings.filter(|f| f.truthy()) {
        return Err(format!("its builder found {}", finding.index(0).unwrap_or(finding).show()));
    }
    let traces = document.pointer("/trajectory/traces").and_then(ValueRef::as_array);
    let traces: Vec<ValueRef<'_>> = traces.into_iter().flat_map(|list| list.iter()).collect();
    if traces.is_empty() { Err("it has no traces".to_owned()) } else { Ok(traces) }
}

/// What the traces of one result give.
#[derive(Default)]
struct Found {
    /// Set, value, and the JSON pointer to what gives it.
    values: Vec<(Set, Value<'static>, String)>,
    /// Skill and hash.
    cards: Vec<(String, String)>,
}

impl Found {
    fn read(&mut self, evidence: &Evidence<'_>) -> Result<(), String> {
        let (tools, place) = &evidence.tools;
        let roster = tools.filter(|tools| tools.as_array().is_some_and(|list| !list.is_empty()));
        let roster = roster.ok_or("it does not say which tools were offered")?;
        self.hash(Key::ToolRoster, canonical_sha256(roster), place.clone())?;

        let (metadata, place) = &evidence.metadata;
        let settings = metadata.get("gsj_settings").filter(|s| s.as_object().is_some_and(|o| !Object::is_empty(o)));
        let settings = settings.ok_or("it does not say which settings the agent had")?;
        self.hash(Key::Settings, canonical_sha256(settings), format!("{place}/gsj_settings"))?;

        let before = self.values.len();
        for (list, place) in &evidence.messages {
            let messages = list.and_then(ValueRef::as_array);
            for (i, message) in messages.into_iter().flat_map(|list| list.iter()).enumerate() {
                // The strict profile asks for both roles, wherever they stand.
                if matches!(message.get("role").and_then(ValueRef::as_str), Some("system" | "developer")) {
                    self.hash(Key::SystemPrompt, message_sha256(message), format!("{place}/{i}"))?;
                }
            }
        }
        if self.values.len() == before {
            return Err("it has no system prompt".to_owned());
        }
        self.skill(*metadata, place)
    }

    fn skill(&mut self, metadata: ValueRef<'_>, place: &str) -> Result<(), String> {
        let source = metadata.get("prompt_source").and_then(ValueRef::as_str);
        let source = source.ok_or("it does not say where its prompt came from")?;
        let Some(skill) = source.strip_prefix("skill:") else { return Ok(()) };
        let hash = metadata.get("skill_card_hash").and_then(ValueRef::as_str).filter(|hash| !hash.is_empty());
        let hash = hash.ok_or_else(|| format!("its skill `{skill}` has no hash of its card"))?;
        self.cards.push((skill.to_owned(), hash.to_owned()));
        self.hash(Key::SkillCard, Some(hash.to_owned()), format!("{place}/skill_card_hash"))
    }

    fn hash(&mut self, key: Key, hash: Option<String>, part: String) -> Result<(), String> {
        let hash = hash.ok_or_else(|| format!("`{}` cannot be hashed", path(&part)))?;
        self.values.push((key.into(), Value::from(hash), part));
        Ok(())
    }
}

/// The last ids of an opening that spell the tail, and nothing but it.
fn spelling<'o>(opening: &'o [u32], tail: Tail<'_>) -> Option<&'o [u32]> {
    let mut rest = tail.text.as_bytes();
    for (at, id) in opening.iter().enumerate().rev() {
        rest = rest.strip_suffix(tail.tokens.bytes(*id)?)?;
        if rest.is_empty() {
            return opening.get(at..);
        }
    }
    None
}

/// A JSON pointer as people write paths.
fn path(pointer: &str) -> String {
    let mut out = String::new();
    for step in pointer.split('/').skip(1) {
        if step.parse::<usize>().is_ok() {
            out.extend(["[", step, "]"]);
        } else {
            if !out.is_empty() {
                out.push('.');
            }
            out.push_str(step);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Words;

    impl TokenText for Words {
        fn bytes(&self, id: u32) -> Option<&[u8]> {
            [&b"<s>"[..], b"hi", b"\n", b"<s>hi"].get(id as usize).copied()
        }

        fn is_control(&self, id: u32) -> bool {
            id == 0
        }

        fn identity(&self) -> &str {
            "words"
        }
    }

    #[test]
    fn a_tail_is_spelled_by_whole_ids_from_the_end() {
        let of = |opening: &[u32]| spelling(opening, Tail { text: "<s>hi\n", tokens: &Words }).map(<[u32]>::to_vec);
        assert_eq!(of(&[1, 0, 1, 2]), Some(vec![0, 1, 2]));
        assert_eq!(of(&[1, 3, 2]), Some(vec![3, 2]), "the ids of the trace, not those of an encoder");
        assert_eq!(of(&[1, 1, 2]), None, "another text");
        assert_eq!(of(&[1, 2]), None, "too short");
        assert_eq!(of(&[0, 1, 9]), None, "no such id");
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn paths_read_as_people_write_them() {
        assert_eq!(path("/trajectory/traces/0/metadata/gsj_settings"), "trajectory.traces[0].metadata.gsj_settings");
    }
}
