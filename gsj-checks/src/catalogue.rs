//! Every finding that there is: what it means, why it matters, what to do.

mod admission;
mod chains;
mod cutoff;
mod fidelity;
mod inputs;
mod session;
mod tokens;

/// A kind of finding.
///
/// ```
/// use gsj_checks::FindingKind;
///
/// let kind = FindingKind::of("LP4:nonfinite_logprob:first=3:count=1").expect("in the catalogue");
/// assert_eq!(kind.page(), "LP4.md");
/// println!("{}. {}", kind.meaning, kind.action);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct FindingKind {
    /// `ID:slug`, what downstream tools search for.
    pub prefix: &'static str,
    /// What follows the prefix: names in braces stand for values, brackets for a part that may be missing.
    pub detail: &'static str,
    /// Who makes it.
    pub origin: Origin,
    /// What it says, in one line.
    pub meaning: &'static str,
    /// Why a trace that has it should not be trained on as it is.
    pub why: &'static str,
    /// What to look at and what to change.
    pub action: &'static str,
    /// What the strict profile makes of a rule that both profiles have, where that is more.
    pub strict: Option<&'static str>,
    /// Section of `checks.md`.
    pub section: &'static str,
    /// The defect of the reference that the finding guards against (`checks.md` section 13).
    pub defect: Option<&'static str>,
}

/// Who makes a kind of finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Origin {
    /// The validators of both profiles.
    Both,
    /// The validators of the strict profile.
    Strict,
    /// The builder of the trajectory; the validators repeat it after `ADM2`.
    Builder,
}

/// All kinds: those on the session, on its traces, and those of the builder.
pub const FINDINGS: &[FindingKind] = &ALL;

const PARTS: [&[FindingKind]; 7] =
    [admission::KINDS, chains::KINDS, tokens::KINDS, cutoff::KINDS, inputs::KINDS, fidelity::KINDS, session::KINDS];

static ALL: [FindingKind; total()] = joined();

const fn total() -> usize {
    let (mut total, mut part) = (0, 0);
    while part < PARTS.len() {
        total += PARTS[part].len();
        part += 1;
    }
    total
}

const fn joined() -> [FindingKind; total()] {
    let mut all = [admission::KINDS[0]; total()];
    let (mut at, mut part) = (0, 0);
    while part < PARTS.len() {
        let mut within = 0;
        while within < PARTS[part].len() {
            all[at] = PARTS[part][within];
            at += 1;
            within += 1;
        }
        part += 1;
    }
    all
}

impl FindingKind {
    /// The kind of a finding as validators and builder write it; `None` for what neither writes.
    pub fn of(finding: &str) -> Option<&'static Self> {
        FINDINGS.iter().find(|kind| {
            finding.strip_prefix(kind.prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with([':', '.']))
        })
    }

    /// What stands before the first colon: the rule or its gate.
    pub fn id(&self) -> &'static str {
        self.prefix.split(':').next().unwrap_or(self.prefix)
    }

    /// What stands after it.
    pub fn slug(&self) -> &'static str {
        self.prefix.split_once(':').map_or("", |(_, slug)| slug)
    }

    /// The whole form, details in braces.
    pub fn form(&self) -> String {
        format!("{}{}", self.prefix, self.detail)
    }

    /// The name of its page in `docs/findings/`; the slug is the section's name.
    pub fn page(&self) -> String {
        format!("{}.md", self.id())
    }
}

/// What most kinds have.
const fn kind(prefix: &'static str, detail: &'static str, section: &'static str) -> FindingKind {
    FindingKind {
        prefix,
        detail,
        origin: Origin::Both,
        meaning: "",
        why: "",
        action: "",
        strict: None,
        section,
        defect: None,
    }
}

/// What kinds of the strict profile have.
const fn strict(prefix: &'static str, detail: &'static str, defect: Option<&'static str>) -> FindingKind {
    FindingKind { origin: Origin::Strict, defect, ..kind(prefix, detail, "13.1") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Gate;

    fn count(origin: Origin) -> usize {
        FINDINGS.iter().filter(|kind| kind.origin == origin).count()
    }

    #[test]
    fn the_catalogue_is_complete() {
        assert_eq!(count(Origin::Both), 42, "checks.md section 9");
        assert_eq!(count(Origin::Strict), 14, "the new names of checks.md section 13.1");
        assert_eq!(count(Origin::Builder), 20, "checks.md sections 10.3 and 11.6, and where the reference crashes");
    }

    #[test]
    fn every_kind_is_described_and_found_by_its_name() {
        for kind in FINDINGS {
            let name = kind.prefix;
            assert_eq!(FindingKind::of(name), Some(kind), "{name} is one kind only");
            assert_eq!(FindingKind::of(&kind.form().replace('[', "")), Some(kind), "{name} with its details");
            assert_eq!(Gate::of_finding(name).is_some(), kind.origin != Origin::Builder, "{name} has a gate");
            assert!(!kind.section.is_empty(), "{name} has a section");
            for text in [kind.meaning, kind.why, kind.action] {
                assert!(text.len() > 10, "{name} is described");
                assert!(!text.contains("  "), "{name}: `{text}`");
            }
            assert!(!kind.meaning.ends_with('.') && kind.why.ends_with('.') && kind.action.ends_with('.'), "{name}");
        }
    }

    #[test]
    fn what_nobody_writes_has_no_kind() {
        assert_eq!(FindingKind::of("G5:search_page_gt_timesteps:9>8"), None);
        assert_eq!(FindingKind::of("G5"), None);
        assert_eq!(FindingKind::of(""), None);
        let kind = FindingKind::of("G7:missing_evidence:reconstruction_stats.chains_total").expect("a kind");
        assert_eq!((kind.id(), kind.slug()), ("G7", "missing_evidence:reconstruction_stats"));
    }
}
