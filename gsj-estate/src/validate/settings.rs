//! The keys of `corpus.yaml` (`corpus.md` section 4).

use crate::corpus::Settings;
use crate::identity::{self, Identity};
use crate::names::{is_owner, is_token, shown};
use crate::report::{Finding, Place, Report};
use crate::yaml::{Node, Value};

const KEYS: [&str; 6] = ["name", "owner", "forgejo", "mcp", "git", "sandbox_image"];

/// The one key that is refused with words of its own.
const RETIRED: &str = "eval_case_ids";

pub(super) fn check(node: &Node, place: &Place, report: &mut Report) -> Option<Settings> {
    for (key, _) in node.map().unwrap_or_default() {
        match key.text() {
            Some(name) if KEYS.contains(&name) => {}
            Some(RETIRED) => report.fail_at(
                place,
                key.line,
                "yaml.retired-split-key",
                "the key eval_case_ids is retired: move the cases that it lists under eval/cases/, the others under \
                 train/cases/, and drop the key",
            ),
            _ => report.fail_at(
                place,
                key.line,
                "yaml.unknown-key",
                format!("the key {} is not known; known are {}", key.described(), KEYS.join(", ")),
            ),
        }
    }
    let name = string(node, "name", place, report);
    let owner = string(node, "owner", place, report);
    let sandbox_image = string(node, "sandbox_image", place, report);
    let name =
        name.filter(|name| form(is_token(name), node.get("name"), "yaml.name-token", "no corpus name", place, report));
    let owner =
        owner.filter(|owner| form(is_owner(owner), node.get("owner"), "yaml.owner", "no owner name", place, report));
    let base_url = forgejo(node.get("forgejo"), place, report);
    let mcp_url = mcp(node, place, report);
    let identity = git(node.get("git"), place, report);
    Some(Settings {
        name: name?,
        owner: owner?,
        base_url: base_url?,
        mcp_url: mcp_url?,
        identity: identity?,
        sandbox_image: sandbox_image?,
    })
}

fn string(node: &Node, key: &str, place: &Place, report: &mut Report) -> Option<String> {
    match node.get(key) {
        Some(Node { value: Value::Text(text), .. }) if !text.is_empty() => return Some(text.clone()),
        Some(found) => report.fail_at(
            place,
            found.line,
            "yaml.string-required",
            format!("{key} must be a string that is not empty, found {}", found.described()),
        ),
        None => report.fail(place, "yaml.string-required", format!("the key {key} is missing")),
    }
    None
}

fn form(fits: bool, found: Option<&Node>, rule: &'static str, what: &str, place: &Place, report: &mut Report) -> bool {
    if !fits && let Some(found) = found {
        let hint = "letters, digits, dot, underscore and dash, the first a letter or digit";
        report.fail_at(place, found.line, rule, format!("{} is {what}: {hint}", found.described()));
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
    report: &mut Report,
) -> Option<[&'a Node; N]> {
    let listed = keys.join(", ");
    let Some(node) = node else {
        report.fail(place, rule, format!("the key {section} is missing: a mapping of {listed}"));
        return None;
    };
    let Some(members) = node.map() else {
        let detail = format!("{section} must be a mapping of {listed}, found {}", node.described());
        report.fail_at(place, node.line, rule, detail);
        return None;
    };
    let mut fits = true;
    let mut fail = |line, detail: String| {
        report.fail_at(place, line, rule, detail);
        fits = false;
    };
    for (key, _) in members {
        if !key.text().is_some_and(|name| keys.contains(&name)) {
            fail(key.line, format!("{section} has the key {}; it takes {listed}", key.described()));
        }
    }
    for key in keys {
        match node.get(key) {
            None => fail(node.line, format!("{section}.{key} is missing")),
            Some(found) if found.text().is_none_or(str::is_empty) => {
                let detail = format!("{section}.{key} must be a string that is not empty, found {}", found.described());
                fail(found.line, detail);
            }
            Some(_) => {}
        }
    }
    if !fits {
        return None;
    }
    let found: Vec<&Node> = keys.iter().filter_map(|key| node.get(key)).collect();
    found.try_into().ok()
}

fn forgejo(node: Option<&Node>, place: &Place, report: &mut Report) -> Option<String> {
    let [found] = exactly(node, "forgejo", ["base_url"], "yaml.forgejo", place, report)?;
    let url = found.text().unwrap_or_default().trim_end_matches('/');
    if let Some(what) = url_fault(url) {
        // The value is not shown where it may hold a secret.
        let shown = if what.contains("user") { "its value".to_owned() } else { found.described() };
        report.fail_at(place, found.line, "yaml.forgejo", format!("forgejo.base_url: {shown} {what}"));
        return None;
    }
    Some(url.to_owned())
}

fn url_fault(url: &str) -> Option<&'static str> {
    let Some((scheme, rest)) = url.split_once("://") else {
        return Some("has no scheme: write http://, https:// or file://");
    };
    if !["http", "https", "file"].contains(&scheme) {
        return Some("has another scheme than http, https or file");
    }
    if url.chars().any(|character| character.is_control() || character.is_whitespace()) {
        return Some("holds a blank or control character");
    }
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.contains('@') {
        return Some("holds user information: credentials have no place in a corpus");
    }
    (scheme != "file" && authority.is_empty()).then_some("names no host")
}

fn mcp(node: &Node, place: &Place, report: &mut Report) -> Option<Option<String>> {
    let Some(section) = node.get("mcp") else { return Some(None) };
    let [found] = exactly(Some(section), "mcp", ["url_base"], "yaml.mcp", place, report)?;
    Some(Some(found.text().unwrap_or_default().trim_end_matches('/').to_owned()))
}

fn git(node: Option<&Node>, place: &Place, report: &mut Report) -> Option<Identity> {
    let found = exactly(node, "git", ["name", "email", "date"], "yaml.git", place, report)?;
    let [name, email, date] = found.map(|node| node.text().unwrap_or_default());
    let mut fits = true;
    for (key, text, line) in [("name", name, found[0].line), ("email", email, found[1].line)] {
        let clean = identity::cleaned(text);
        let empty = key == "name" && clean.is_empty();
        if empty || text.contains('\0') {
            let detail = format!("git.{key}: of `{}` nothing is left that git can use", shown(text));
            report.fail_at(place, line, "yaml.git", detail);
            fits = false;
        } else if clean != text {
            let detail =
                format!("git.{key}: `{}` is committed as `{}`, as git cleans it up", shown(text), shown(&clean));
            report.findings.push(Finding { line: Some(line), ..place.finding("yaml.git", true, detail) });
        }
    }
    let Some((seconds, offset)) = identity::date(date) else {
        let detail = format!(
            "git.date: `{}` is no date with time and offset since 1970, such as 2026-01-01T00:00:00 +0000",
            shown(date)
        );
        report.fail_at(place, found[2].line, "yaml.git", detail);
        return None;
    };
    fits.then(|| Identity { name: identity::cleaned(name), email: identity::cleaned(email), seconds, offset })
}
