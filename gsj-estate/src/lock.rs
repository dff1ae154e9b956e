//! `corpus.lock.json`: what was built (`corpus.md` section 9).

use crate::corpus::{Case, Corpus};
use crate::error::EstateError;
use crate::files;
use crate::scaffold::{Recipe, RepoMade};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// The lock's name in the corpus folder.
pub const LOCK_FILE: &str = "corpus.lock.json";

/// The longest lock that is read, in bytes.
const LONGEST: u64 = 256 << 20;

/// The recipe of a corpus for which none is named: its lock's; `reference` beside a lock that names none; else
/// `sealed`.
///
/// # Errors
/// Fails when there is a lock and it cannot be read.
pub fn default_recipe(corpus: &Path) -> Result<Recipe, EstateError> {
    let path = corpus.join(LOCK_FILE);
    let Some(lock) = read(&path)? else { return Ok(Recipe::Sealed) };
    match lock.get("corpus").and_then(|corpus| corpus.get("recipe")) {
        None => Ok(Recipe::Reference),
        Some(recipe) if recipe == Recipe::Sealed.as_str() => Ok(Recipe::Sealed),
        Some(recipe) if recipe == Recipe::Reference.as_str() => Ok(Recipe::Reference),
        Some(recipe) => Err(EstateError::Lock { path, what: format!("names the recipe {recipe}, which is not known") }),
    }
}

/// Writes the lock for what was built, and gives its text. Blocks that other phases write are kept.
pub(crate) fn write(
    corpus: &Corpus,
    owner: &str,
    recipe: Recipe,
    repos: &[RepoMade],
    dry_run: bool,
) -> Result<String, EstateError> {
    let path = corpus.root.join(LOCK_FILE);
    let before = read(&path)?;
    let mut lock = before.clone().unwrap_or_default();
    let settings = &corpus.settings;
    let mut head = json!({
        "base_url": settings.base_url,
        "name": settings.name,
        "owner": owner,
        "sandbox_image": settings.sandbox_image,
    });
    if recipe == Recipe::Sealed
        && let Some(head) = head.as_object_mut()
    {
        head.insert("recipe".into(), recipe.as_str().into());
    }
    let cases: Map<String, Value> = corpus
        .cases
        .values()
        .map(|case| (case.id.clone(), entry(case, &format!("{}/{owner}/{}.git", settings.base_url, case.id), repos)))
        .collect();
    lock.insert("corpus".into(), head);
    lock.insert("cases".into(), cases.into());
    let text = render(&sorted(Value::Object(lock)));
    let unchanged = std::fs::read(&path).is_ok_and(|there| there == text.as_bytes());
    if !dry_run && !unchanged {
        files::write_atomically(&path, text.as_bytes())?;
    }
    Ok(text)
}

fn entry(case: &Case, clone_url: &str, repos: &[RepoMade]) -> Value {
    let timesteps: Map<String, Value> = case
        .timesteps
        .iter()
        .map(|(number, timestep)| {
            let ids: Vec<&str> = timestep.prompts.iter().map(|prompt| prompt.id.as_str()).collect();
            (number.to_string(), json!({"pages": number, "prompt_ids": ids}))
        })
        .collect();
    let mut entry = json!({"clone_url": clone_url, "split": case.split.as_str(), "timesteps": timesteps});
    if let Some(entry) = entry.as_object_mut() {
        for made in repos.iter().filter(|made| made.case_id == case.id) {
            entry.insert(if made.full { "full_refs" } else { "refs" }.into(), json!(made.refs));
        }
    }
    entry
}

fn read(path: &Path) -> Result<Option<Map<String, Value>>, EstateError> {
    if files::kind(path).is_none() {
        return Ok(None);
    }
    let fault = |what: String| EstateError::Lock { path: path.to_owned(), what };
    let content = files::read_at_most(path, LONGEST)?.ok_or_else(|| fault("is too long".into()))?;
    match serde_json::from_slice(&content) {
        Ok(Value::Object(lock)) => Ok(Some(lock)),
        Ok(_) => Err(fault("is no JSON object".into())),
        Err(error) => Err(fault(format!("is no JSON: {error}"))),
    }
}

/// Sorts the members of every object by code point.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let ordered: BTreeMap<String, Value> =
                members.into_iter().map(|(name, value)| (name, sorted(value))).collect();
            Value::Object(ordered.into_iter().collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
        other => other,
    }
}

/// Two spaces a level, everything beyond ASCII escaped, a line feed at the end.
fn render(value: &Value) -> String {
    let mut text = String::new();
    // Beyond ASCII stand only characters within strings.
    for character in format!("{value:#}").chars() {
        if character.is_ascii() {
            text.push(character);
        } else {
            for unit in character.encode_utf16(&mut [0; 2]) {
                // Writing into a string does not fail.
                let _ = write!(text, "\\u{unit:04x}");
            }
        }
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_sorted_indented_and_ascii() {
        let text = render(&sorted(json!({"b": ["é", "😀"], "a": {"12": 1, "5": []}, "_c": {}})));
        assert_eq!(
            text,
            "{\n  \"_c\": {},\n  \"a\": {\n    \"12\": 1,\n    \"5\": []\n  },\n  \"b\": [\n    \"\\u00e9\",\n    \
             \"\\ud83d\\ude00\"\n  ]\n}\n"
        );
    }
}
