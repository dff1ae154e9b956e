//! The pages of `docs/rules/`, written from the catalogue.

use super::{RULES, Rule};

/// A page as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RulePage {
    /// Its file name, `page.md` for example.
    pub name: String,
    /// Markdown with a line feed at the end.
    pub text: String,
}

const NOTICE: &str = "Written by `cargo xtask docs` from `gsj_estate::RULES`; don't edit it.";

/// The index `README.md` and a page for each part of a corpus, with a section for each of its rules.
#[must_use]
pub fn rule_pages() -> Vec<RulePage> {
    let mut pages = vec![RulePage { name: "README.md".to_owned(), text: index() }];
    for rules in RULES.chunk_by(|a, b| a.group() == b.group()) {
        let Some(first) = rules.first() else { continue };
        let title = format!("# {}\n\n{NOTICE} All rules: [README](README.md).\n\n", first.group());
        let about = format!("Rules about {}.\n", about(first.group()));
        let sections: String = rules.iter().map(section).collect();
        pages.push(RulePage { name: first.page(), text: format!("{title}{about}{sections}") });
    }
    pages
}

fn index() -> String {
    let opening = format!(
        "# Rules of a corpus\n\n{NOTICE}\n\n\
         `gsj estate validate --corpus DIR` checks all of a corpus's in one run, and names the rule with each finding. \
         [Making a corpus](../corpus.md) shows the folder as a whole. The rules `verify.*` are of `gsj estate verify`, \
         which looks at what was built from it ([the estate](../estate.md)).\n\n\
         | rule | a failing finding says that |\n|---|---|\n"
    );
    let row = |rule: &Rule| format!("| [`{}`]({}#{}) | {} |\n", rule.id, rule.page(), anchor(rule.id), rule.meaning);
    std::iter::once(opening).chain(RULES.iter().map(row)).collect()
}

fn about(group: &str) -> &'static str {
    match group {
        "yaml" => "`corpus.yaml`",
        "agents" => "`AGENTS.md`",
        "skills" => "the folder `skills/`",
        "root" => "what stands in the corpus folder",
        "split" => "`train/` and `eval/`",
        "case" => "a case's folder and its `case.yaml`",
        "ts" => "a timestep's folder",
        "page" => "page files",
        "prompts" => "`prompts.yaml`",
        "verify" => "what was built from a corpus: repositories, lock, task bank and retrieval service",
        _ => "files that cannot be read",
    }
}

fn section(rule: &Rule) -> String {
    let hint = match rule.hint {
        "" => String::new(),
        hint => format!("\n**What to do.** {}.\n", capital(hint)),
    };
    let example = match rule.example.split_once("\n--\n") {
        Some((broken, kept)) => format!("\nBreaks it:\n\n```\n{broken}\n```\n\nKeeps it:\n\n```\n{kept}\n```\n"),
        None => String::new(),
    };
    let defect = rule.defect.map(|defect| format!(" · fault {defect} of the reference")).unwrap_or_default();
    format!(
        "\n## {}\n\nIt says that {}.\n\n**Why it matters.** {}\n{hint}{example}\n`corpus.md` section {}{defect}.\n",
        rule.id, rule.meaning, rule.why, rule.section
    )
}

fn capital(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}

/// What a renderer makes of a heading to link to it.
fn anchor(heading: &str) -> String {
    heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, '_' | '-')).collect::<String>().to_lowercase()
}
