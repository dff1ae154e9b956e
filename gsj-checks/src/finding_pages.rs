//! The pages of `docs/findings/`, written from the catalogue.

use crate::{FINDINGS, FindingKind, Gate, Origin};

/// A page as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FindingPage {
    /// Its file name, `G5.md` for example.
    pub name: String,
    /// Markdown with a line feed at the end.
    pub text: String,
}

const NOTICE: &str = "Written by `cargo xtask docs` from `gsj_checks::FINDINGS`; don't edit it.";

/// The index `README.md` and a page for each id, with a section for each of its findings.
pub fn finding_pages() -> Vec<FindingPage> {
    let mut pages = vec![FindingPage { name: "README.md".to_owned(), text: index() }];
    for kinds in FINDINGS.chunk_by(|a, b| a.id() == b.id()) {
        let name = kinds[0].page();
        let section: String = kinds.iter().map(section).collect();
        match pages.iter_mut().find(|page| page.name == name) {
            Some(page) => page.text.push_str(&section),
            None => pages.push(FindingPage { name, text: format!("{}{section}", opening(&kinds[0])) }),
        }
    }
    pages
}

fn index() -> String {
    let mut text = format!(
        "# Findings\n\n{NOTICE}\n\n\
         A finding is what a validator has against a session result: `ID:slug`, most with a detail after it. No finding, and \
         the result may be trained on. `gsj check FILE` prints them; a file of the quarantine holds them beside the result.\n\n\
         Profiles: `both` stands for findings of the profiles `strict` and `reference`, `strict` for what only that profile \
         makes. `builder` findings are made where a trajectory is built; validators repeat them after \
         [ADM2](ADM2.md#builder_findings_present).\n\n\
         | finding | made by | it says that |\n|---|---|---|\n"
    );
    for kind in FINDINGS {
        let (prefix, page, anchor) = (kind.prefix, kind.page(), anchor(kind.slug()));
        let (origin, meaning) = (origin(kind.origin), kind.meaning);
        text.push_str(&format_row(&[&format!("[`{prefix}`]({page}#{anchor})"), origin, meaning]));
    }
    text
}

fn format_row(cells: &[&str]) -> String {
    format!("| {} |\n", cells.join(" | ").replace('\n', " "))
}

fn opening(kind: &FindingKind) -> String {
    let about = match Gate::of_finding(kind.prefix) {
        Some(gate) => format!("When {} finds nothing, {}.", gate.id, gate.meaning),
        None => "Found by the builder of a trajectory in the record of the session.".to_owned(),
    };
    format!("# {}\n\n{NOTICE} All findings: [README](README.md).\n\n{about}\n", kind.id())
}

fn section(kind: &FindingKind) -> String {
    let mut facts = vec![maker(kind.origin).to_owned(), format!("`checks.md` {}", kind.section)];
    facts.extend(kind.defect.map(|defect| format!("defect {defect} of the reference")));
    let mut text = format!(
        "\n## {}\n\n```\n{}\n```\n\nIt says that {}.\n\n**Why it matters.** {}\n\n**What to do.** {}\n\n",
        kind.slug(),
        kind.form(),
        kind.meaning,
        kind.why,
        kind.action,
    );
    if let Some(strict) = kind.strict {
        text.push_str("**Under `strict`.** ");
        text.push_str(strict);
        text.push_str("\n\n");
    }
    text.push_str(&facts.join(" · "));
    text.push_str(".\n");
    text
}

fn origin(origin: Origin) -> &'static str {
    match origin {
        Origin::Both => "both",
        Origin::Strict => "strict",
        Origin::Builder => "builder",
    }
}

fn maker(origin: Origin) -> &'static str {
    match origin {
        Origin::Both => "Made under both profiles",
        Origin::Strict => "Made under `strict` only",
        Origin::Builder => "Made by the builder",
    }
}

/// What a renderer makes of a heading to link to it.
fn anchor(heading: &str) -> String {
    heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, '_' | '-')).collect::<String>().to_lowercase()
}
