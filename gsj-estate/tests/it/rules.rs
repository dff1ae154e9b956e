use gsj_estate::{RULES, rule_pages};
use std::collections::BTreeSet;
use std::path::PathBuf;

const CURE: &str = "run `cargo xtask docs`";

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/rules")
}

#[test]
fn the_pages_are_those_of_the_catalogue() {
    let pages = rule_pages();
    for page in &pages {
        let stored = std::fs::read_to_string(folder().join(&page.name)).unwrap_or_default();
        assert!(stored == page.text, "docs/rules/{} is stale: {CURE}", page.name);
    }
    let stored: BTreeSet<String> = std::fs::read_dir(folder())
        .expect("docs/rules")
        .map(|entry| entry.expect("entry").file_name().to_string_lossy().into_owned())
        .collect();
    let wanted: BTreeSet<String> = pages.into_iter().map(|page| page.name).collect();
    assert_eq!(stored, wanted, "docs/rules holds these pages and no others: {CURE}");
}

#[test]
fn the_index_leads_to_every_rule() {
    let pages = rule_pages();
    for rule in RULES {
        let page = pages.iter().find(|page| page.name == rule.page()).expect("a page for each group");
        assert_eq!(page.text.matches(&format!("\n## {}\n", rule.id)).count(), 1, "{}", rule.id);
        assert_eq!(pages[0].text.matches(&format!("[`{}`]({}#", rule.id, page.name)).count(), 1, "{}", rule.id);
    }
}

/// What tools search for: an id that changes here breaks them.
#[test]
fn the_ids_of_rules_stay() {
    let ids: Vec<&str> = RULES.iter().map(|rule| rule.id).collect();
    insta::assert_snapshot!(ids.join("\n"), @"
    yaml.missing
    yaml.utf8
    yaml.syntax
    yaml.not-mapping
    yaml.unknown-key
    yaml.retired-split-key
    yaml.string-required
    yaml.name-token
    yaml.owner
    yaml.forgejo
    yaml.mcp
    yaml.git
    agents.missing
    agents.empty-or-utf8
    skills.missing
    skills.stray
    skills.name-token
    skills.card-missing
    skills.card-empty-or-utf8
    root.pre-split-cases
    root.split-not-dir
    root.generated-is-dir
    root.stray
    io.unreadable
    split.none
    split.stray
    split.cases-missing
    split.cases-stray-file
    split.no-cases
    case.both-splits
    case.id
    case.stray
    case.meta-utf8
    case.meta-syntax
    case.meta-shape
    case.no-timesteps
    ts.stray
    ts.pages-missing
    ts.pass
    page.stray
    page.utf8
    page.census
    page.prefix
    prompts.utf8
    prompts.syntax
    prompts.shape
    prompts.item-mapping
    prompts.source
    prompts.keys
    prompts.id-string
    prompts.skill-name
    prompts.skill-id
    prompts.skill-unresolved
    prompts.text
    prompts.free-id
    prompts.dup
    verify.lock
    verify.lock-corpus
    verify.lock-case
    verify.split
    verify.ids
    verify.clone
    verify.objects
    verify.refs
    verify.other-refs
    verify.head
    verify.branch
    verify.prefix
    verify.mcp
    verify.mcp-cases
    verify.mcp-facts
    verify.mcp-text
    verify.taskbank
    verify.taskbank-rows
    ");
}

/// The rules of the contract's own table, by its ids.
#[test]
fn every_rule_of_the_contract_is_there() {
    let groups = [
        (
            "yaml",
            "missing utf8 syntax not-mapping unknown-key retired-split-key string-required name-token owner forgejo mcp git",
        ),
        ("agents", "missing empty-or-utf8"),
        ("skills", "missing stray name-token card-missing card-empty-or-utf8"),
        ("root", "pre-split-cases split-not-dir generated-is-dir stray"),
        ("split", "none stray cases-missing cases-stray-file no-cases"),
        ("case", "both-splits id stray meta-utf8 meta-syntax meta-shape no-timesteps"),
        ("ts", "stray pages-missing"),
        ("page", "stray utf8 census prefix"),
        (
            "prompts",
            "utf8 syntax shape item-mapping source keys id-string skill-name skill-id skill-unresolved text free-id dup",
        ),
    ];
    let known: BTreeSet<&str> = RULES.iter().map(|rule| rule.id).collect();
    for (group, names) in groups {
        for name in names.split(' ') {
            assert!(known.contains(format!("{group}.{name}").as_str()), "{group}.{name}");
        }
    }
}
