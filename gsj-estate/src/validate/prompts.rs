//! The tasks of a timestep (`corpus.md` section 5).

use super::read_yaml;
use crate::corpus::{Prompt, PromptSource};
use crate::names::{TOKEN, is_token, shown};
use crate::report::{At, Collector, Place};
use crate::yaml::{Node, Value};
use std::collections::BTreeMap;
use std::path::Path;

/// A fault of one entry: the rule, what of the entry is at fault, and what to say after the entry's index.
type Fault = (&'static str, Part, String);

/// What of an entry is at fault.
enum Part {
    Whole,
    /// The value of a key, or the entry where it has none.
    Value(&'static str),
    /// A key.
    Key(At),
}

pub(super) fn read(
    path: &Path,
    place: &Place,
    skills: &BTreeMap<String, Vec<u8>>,
    found: &mut Collector,
) -> Vec<Prompt> {
    let node = read_yaml(path, place, ["prompts.utf8", "prompts.syntax"], found).flatten();
    let Some(node) = node.filter(|node| !node.is_null()) else { return Vec::new() };
    let entries = match entries(&node) {
        Ok(entries) => entries,
        Err((at, what)) => {
            let detail = format!("prompts.yaml must be a mapping with the one key prompts, a list; found {what}");
            found.fail_at(place, at.at, "prompts.shape", detail);
            return Vec::new();
        }
    };
    let mut prompts: Vec<Prompt> = Vec::new();
    let mut ids = BTreeMap::new();
    for (index, entry) in entries.iter().enumerate() {
        let checked = check(entry, skills).and_then(|prompt| match ids.insert(prompt.id.clone(), index) {
            None => Ok(prompt),
            Some(first) => {
                let detail = format!("the id `{}` stands in prompts[{first}] already", shown(&prompt.id));
                Err(("prompts.dup", Part::Value("id"), detail))
            }
        });
        match checked {
            Ok(prompt) => prompts.push(prompt),
            Err((rule, part, detail)) => {
                let at = match part {
                    Part::Whole => entry.at,
                    Part::Value(key) => entry.get(key).unwrap_or(entry).at,
                    Part::Key(at) => at,
                };
                found.fail_at(place, at, rule, format!("prompts[{index}]: {detail}"));
            }
        }
    }
    prompts
}

/// The entries, or what stands in their place.
fn entries(node: &Node) -> Result<&[Node], (&Node, String)> {
    let members = node.map().ok_or_else(|| (node, node.described()))?;
    if let Some((key, _)) = members.iter().find(|(key, _)| key.text() != Some("prompts")) {
        return Err((key, format!("the key {}", key.as_words())));
    }
    let prompts = node.get("prompts").ok_or_else(|| (node, node.described()))?;
    match &*prompts.value {
        Value::List(entries) => Ok(entries),
        _ => Err((prompts, format!("prompts: {}", prompts.described()))),
    }
}

fn check(entry: &Node, skills: &BTreeMap<String, Vec<u8>>) -> Result<Prompt, Fault> {
    let Some(members) = entry.map() else {
        return Err(("prompts.item-mapping", Part::Whole, format!("must be a mapping, found {}", entry.described())));
    };
    let source = entry.get("source");
    let keys: &[&str] = match source.and_then(Node::text) {
        Some("skill") => &["id", "source", "name"],
        Some("free") => &["id", "source", "text"],
        _ => {
            let found = source.map_or_else(|| "nothing".to_owned(), Node::described);
            return Err((
                "prompts.source",
                Part::Value("source"),
                format!("source must be skill or free, found {found}"),
            ));
        }
    };
    let listed = keys.join(", ");
    if let Some((key, _)) = members.iter().find(|(key, _)| !key.text().is_some_and(|name| keys.contains(&name))) {
        return Err(("prompts.keys", Part::Key(key.at), format!("has the key {}; it takes {listed}", key.as_words())));
    }
    if let Some(missing) = keys.iter().find(|key| entry.get(key).is_none()) {
        return Err(("prompts.keys", Part::Whole, format!("has no key {missing}; it takes {listed}")));
    }
    let described = |key| entry.get(key).map_or_else(|| "nothing".to_owned(), Node::described);
    let string = |key| entry.get(key).and_then(Node::text).filter(|text| !text.is_empty());
    let Some(id) = string("id") else {
        return Err((
            "prompts.id-string",
            Part::Value("id"),
            format!("id must be a string that is not empty, found {}", described("id")),
        ));
    };
    let source = if keys.contains(&"name") {
        skill(id, string("name"), &described("name"), skills)?
    } else {
        free(id, string("text"), &described("text"))?
    };
    Ok(Prompt { id: id.to_owned(), source })
}

fn skill(
    id: &str,
    name: Option<&str>,
    described: &str,
    skills: &BTreeMap<String, Vec<u8>>,
) -> Result<PromptSource, Fault> {
    let Some(name) = name.filter(|name| is_token(name)) else {
        return Err((
            "prompts.skill-name",
            Part::Value("name"),
            format!("name must be a skill's name, found {described}"),
        ));
    };
    if id != format!("skill:{name}") {
        return Err((
            "prompts.skill-id",
            Part::Value("id"),
            format!("id must be `skill:{name}`, found `{}`", shown(id)),
        ));
    }
    if !skills.contains_key(name) {
        return Err((
            "prompts.skill-unresolved",
            Part::Value("name"),
            format!("skill `{name}` has no card skills/{name}/SKILL.md"),
        ));
    }
    Ok(PromptSource::Skill { name: name.to_owned() })
}

fn free(id: &str, text: Option<&str>, described: &str) -> Result<PromptSource, Fault> {
    let Some(text) = text else {
        return Err((
            "prompts.text",
            Part::Value("text"),
            format!("text must be a string that is not empty, found {described}"),
        ));
    };
    if text.contains('\0') {
        return Err(("prompts.text", Part::Value("text"), "text holds a NUL character, which is no text".to_owned()));
    }
    if !id.strip_prefix("free:").is_some_and(is_token) {
        return Err((
            "prompts.free-id",
            Part::Value("id"),
            format!("id must be `free:` and a slug ({TOKEN}), found `{}`", shown(id)),
        ));
    }
    Ok(PromptSource::Free { text: text.to_owned() })
}
