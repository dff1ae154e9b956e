//! The keys of `corpus.yaml` (`corpus.md` section 4).

use crate::address;
use crate::corpus::Settings;
use crate::identity::{self, Identity};
use crate::names::{TOKEN, is_owner, is_token, shown};
use crate::report::{Collector, Place};
use crate::yaml::Node;

const KEYS: [&str; 6] = ["name", "owner", "forgejo", "mcp", "git", "sandbox_image"];

/// The one key that is refused with words of its own.
const RETIRED: &str = "eval_case_ids";

pub(super) fn check(node: &Node, place: &Place, found: &mut Collector) -> Option<Settings> {
    for (key, _) in node.map().unwrap_or_default() {
        match key.text() {
            Some(name) if KEYS.contains(&name) => {}
            Some(RETIRED) => found.fail_at(
                place,
                key.at,
                "yaml.retired-split-key",
                "the key eval_case_ids is retired: move the cases that it lists under eval/cases/, the others under \
                 train/cases/, and drop the key",
            ),
            _ => found.fail_at(
                place,
                key.at,
                "yaml.unknown-key",
                format!("there is no key {}; known are {}", key.as_words(), KEYS.join(", ")),
            ),
        }
    }
    let name = string(node, "name", place, found);
    let owner = string(node, "owner", place, found);
    let sandbox_image = string(node, "sandbox_image", place, found);
    let name =
        name.filter(|name| form(is_token(name), node.get("name"), "yaml.name-token", "no corpus name", place, found));
    let owner =
        owner.filter(|owner| form(is_owner(owner), node.get("owner"), "yaml.owner", "no owner name", place, found));
    let base_url = forgejo(node.get("forgejo"), place, found);
    let mcp_url = mcp(node, place, found);
    let identity = git(node.get("git"), place, found);
    Some(Settings {
        name: name?,
        owner: owner?,
        base_url: base_url?,
        mcp_url: mcp_url?,
        identity: identity?,
        sandbox_image: sandbox_image?,
    })
}

/// A string of the top level that is not empty.
fn string(node: &Node, key: &str, place: &Place, found: &mut Collector) -> Option<String> {
    let rule = "yaml.string-required";
    let Some(value) = node.get(key) else {
        found.fail(place, rule, format!("the key {key} is missing; it must be a string that is not empty"));
        return None;
    };
    let text = value.text().filter(|text| !text.is_empty());
    if text.is_none() {
        let detail = format!("{key} must be a string that is not empty, found {}", value.described());
        found.fail_at(place, value.at, rule, detail);
    }
    text.map(str::to_owned)
}

fn form(
    fits: bool,
    value: Option<&Node>,
    rule: &'static str,
    what: &str,
    place: &Place,
    found: &mut Collector,
) -> bool {
    if !fits && let Some(value) = value {
        found.fail_at(place, value.at, rule, format!("{} is {what}: {TOKEN}", value.described()));
    }
    fits
}

/// Checks that a node is a mapping of exactly these keys, each a string that is not empty.
fn exactly<'a, const N: usize>(
    node: Option<&'a Node>,
    section: &str,
    keys: [&str; N],
    rule: &'static str,
    place: &Place,
    found: &mut Collector,
) -> Option<[&'a Node; N]> {
    let listed = keys.join(", ");
    let Some(node) = node else {
        found.fail(place, rule, format!("the key {section} is missing; it must be a mapping of {listed}"));
        return None;
    };
    let Some(members) = node.map() else {
        let detail = format!("{section} must be a mapping of {listed}, found {}", node.described());
        found.fail_at(place, node.at, rule, detail);
        return None;
    };
    let before = found.failed();
    for (key, _) in members {
        if !key.text().is_some_and(|name| keys.contains(&name)) {
            let detail = format!("{section} has the key {}; it takes {listed}", key.as_words());
            found.fail_at(place, key.at, rule, detail);
        }
    }
    for key in keys {
        match node.get(key) {
            None => found.fail_at(place, node.at, rule, format!("{section}.{key} is missing")),
            Some(value) if value.text().is_none_or(str::is_empty) => {
                let detail = format!("{section}.{key} must be a string that is not empty, found {}", value.described());
                found.fail_at(place, value.at, rule, detail);
            }
            Some(_) => {}
        }
    }
    if found.failed() > before {
        return None;
    }
    let values: Vec<&Node> = keys.iter().filter_map(|key| node.get(key)).collect();
    values.try_into().ok()
}

fn forgejo(node: Option<&Node>, place: &Place, found: &mut Collector) -> Option<String> {
    let [value] = exactly(node, "forgejo", ["base_url"], "yaml.forgejo", place, found)?;
    let url = address(value, "forgejo.base_url", &["http", "https", "file"], "yaml.forgejo", place, found)?;
    Some(url.to_owned())
}

fn mcp(node: &Node, place: &Place, found: &mut Collector) -> Option<Option<String>> {
    let Some(section) = node.get("mcp") else { return Some(None) };
    let [value] = exactly(Some(section), "mcp", ["url_base"], "yaml.mcp", place, found)?;
    let url = address(value, "mcp.url_base", &["http", "https"], "yaml.mcp", place, found)?;
    Some(Some(url.to_owned()))
}

/// An address without slashes at its end.
fn address<'a>(
    value: &'a Node,
    key: &str,
    schemes: &[&str],
    rule: &'static str,
    place: &Place,
    found: &mut Collector,
) -> Option<&'a str> {
    let url = value.text().unwrap_or_default();
    if let Some(what) = address::fault(url, schemes) {
        // It is not shown at all where it may hold a secret.
        let shown = if url.contains('@') { "its value".to_owned() } else { format!("`{}`", shown(url)) };
        found.fail_at(place, value.at, rule, format!("{key}: {shown} {what}"));
        return None;
    }
    Some(url.trim_end_matches('/'))
}

fn git(node: Option<&Node>, place: &Place, found: &mut Collector) -> Option<Identity> {
    let [name, email, date] = exactly(node, "git", ["name", "email", "date"], "yaml.git", place, found)?;
    let before = found.failed();
    for (key, value) in [("name", name), ("email", email)] {
        let text = value.text().unwrap_or_default();
        let clean = identity::cleaned(text);
        if text.contains('\0') {
            let detail = format!("git.{key}: `{}` holds a NUL character, which git cannot commit", shown(text));
            found.fail_at(place, value.at, "yaml.git", detail);
        } else if key == "name" && clean.is_empty() {
            let detail = format!("git.{key}: of `{}` git's clean-up leaves nothing", shown(text));
            found.fail_at(place, value.at, "yaml.git", detail);
        } else if clean != text {
            let detail =
                format!("git.{key}: `{}` is committed as `{}`, as git cleans it up", shown(text), shown(&clean));
            found.pass(place, Some(value.at), "yaml.git", detail);
        }
    }
    let text = date.text().unwrap_or_default();
    let parsed = identity::date(text);
    if parsed.is_none() {
        let detail = format!(
            "git.date: `{}` is no date with time and offset that git reads, from 1970 to 2099, such as 2026-01-01T00:00:00 +0000",
            shown(text)
        );
        found.fail_at(place, date.at, "yaml.git", detail);
    }
    let (seconds, offset) = parsed.filter(|_| found.failed() == before)?;
    let [name, email] = [name, email].map(|value| identity::cleaned(value.text().unwrap_or_default()));
    Some(Identity { name, email, seconds, offset })
}
