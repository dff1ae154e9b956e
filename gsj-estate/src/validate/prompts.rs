//! The tasks of a timestep (`corpus.md` section 5).

use crate::corpus::{Prompt, PromptSource};
use crate::error::EstateError;
use crate::files;
use crate::names::{is_token, shown};
use crate::report::{Place, Report};
use crate::yaml::{self, Node, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A fault of one entry: the rule, and what to say after the entry's index.
type Fault = (&'static str, String);

pub(super) fn read(
    path: &Path,
    place: &Place,
    skills: &BTreeMap<String, Vec<u8>>,
    report: &mut Report,
) -> Result<Vec<Prompt>, EstateError> {
    let file = format!("{}/cases/{}/{}/prompts.yaml", place.split, place.scope, place.where_);
    let place = &place.clone().of_file(file);
    let Some(content) = files::read_at_most(path, yaml::LONGEST)? else {
        report.fail(place, "prompts.syntax", format!("prompts.yaml holds more than {} bytes", yaml::LONGEST));
        return Ok(Vec::new());
    };
    let Ok(text) = String::from_utf8(content) else {
        report.fail(place, "prompts.utf8", "prompts.yaml is not UTF-8");
        return Ok(Vec::new());
    };
    let node = match yaml::parse(&text) {
        Ok(Some(node)) if node.value != Value::Null => node,
        Ok(_) => return Ok(Vec::new()),
        Err(fault) => {
            report.fail_at(place, fault.line, "prompts.syntax", format!("prompts.yaml {}", fault.what));
            return Ok(Vec::new());
        }
    };
    let (Some([_]), Some(Value::List(entries))) = (node.map(), node.get("prompts").map(|node| &node.value)) else {
        let found = match node.get("prompts") {
            Some(prompts) if node.map().is_some_and(|members| members.len() == 1) => {
                format!("prompts: {}", prompts.described())
            }
            _ => node.described(),
        };
        let detail = format!("prompts.yaml must be a mapping with the one key prompts, a list; found {found}");
        report.fail_at(place, node.line, "prompts.shape", detail);
        return Ok(Vec::new());
    };

    let mut prompts: Vec<Prompt> = Vec::new();
    let mut ids = BTreeSet::new();
    for (index, entry) in entries.iter().enumerate() {
        let checked = check(entry, skills).and_then(|prompt| {
            if ids.insert(prompt.id.clone()) {
                return Ok(prompt);
            }
            Err(("prompts.dup", format!("the id `{}` stands in an earlier entry", shown(&prompt.id))))
        });
        match checked {
            Ok(prompt) => prompts.push(prompt),
            Err((rule, detail)) => report.fail_at(place, entry.line, rule, format!("prompts[{index}]: {detail}")),
        }
    }
    Ok(prompts)
}

fn check(entry: &Node, skills: &BTreeMap<String, Vec<u8>>) -> Result<Prompt, Fault> {
    let Some(members) = entry.map() else {
        return Err(("prompts.item-mapping", format!("must be a mapping, found {}", entry.described())));
    };
    let source = entry.get("source");
    let keys: &[&str] = match source.and_then(Node::text) {
        Some("skill") => &["id", "source", "name"],
        Some("free") => &["id", "source", "text"],
        _ => {
            let found = source.map_or_else(|| "nothing".to_owned(), Node::described);
            return Err(("prompts.source", format!("source must be skill or free, found {found}")));
        }
    };
    let listed = keys.join(", ");
    if let Some((key, _)) = members.iter().find(|(key, _)| !key.text().is_some_and(|name| keys.contains(&name))) {
        return Err(("prompts.keys", format!("has the key {}; it takes {listed}", key.described())));
    }
    if let Some(missing) = keys.iter().find(|key| entry.get(key).is_none()) {
        return Err(("prompts.keys", format!("has no key {missing}; it takes {listed}")));
    }
    let described = |key| entry.get(key).map_or_else(|| "nothing".to_owned(), Node::described);
    let string = |key| entry.get(key).and_then(Node::text).filter(|text| !text.is_empty());
    let Some(id) = string("id") else {
        return Err(("prompts.id-string", format!("id must be a string that is not empty, found {}", described("id"))));
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
        return Err(("prompts.skill-name", format!("name must be a skill's name, found {described}")));
    };
    if id != format!("skill:{name}") {
        return Err(("prompts.skill-id", format!("id must be `skill:{name}`, found `{}`", shown(id))));
    }
    if !skills.contains_key(name) {
        return Err(("prompts.skill-unresolved", format!("skill `{name}` has no card skills/{name}/SKILL.md")));
    }
    Ok(PromptSource::Skill { name: name.to_owned() })
}

fn free(id: &str, text: Option<&str>, described: &str) -> Result<PromptSource, Fault> {
    let Some(text) = text else {
        return Err(("prompts.text", format!("text must be a string that is not empty, found {described}")));
    };
    if !id.strip_prefix("free:").is_some_and(is_token) {
        let form = "letters, digits, dot, underscore and dash, the first a letter or digit";
        return Err(("prompts.free-id", format!("id must be `free:` and a slug ({form}), found `{}`", shown(id))));
    }
    Ok(PromptSource::Free { text: text.to_owned() })
}
