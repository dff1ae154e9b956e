//! What a checkout holds, as measured.

use gix::ObjectId;
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;

/// What a checkout holds: the document `gsj_workspace` of a trace, field for field.
///
/// Every field but `clone_url`, `case_id` and `recipe` is measured in the checkout; those three are the caller's
/// statement, the URL without user information.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Evidence {
    /// Where the repository is served, without credentials.
    pub clone_url: Option<String>,
    /// The case.
    pub case_id: Option<String>,
    /// The branch that HEAD names; null when HEAD is detached.
    pub branch: Option<String>,
    /// The commit of HEAD, in hex.
    pub commit: String,
    /// The tree of that commit, in hex.
    pub tree: String,
    /// Whether the history is marked as cut at that commit.
    pub shallow: bool,
    /// How many commits can be reached from HEAD.
    pub commits: u64,
    /// How many remotes are configured.
    pub remotes: u64,
    /// The pages in the working tree, where the agent reads them.
    pub pages: PageCensus,
    /// The recipe by which the repository was made.
    pub recipe: Option<String>,
    /// The objects under `.git`.
    pub objects: ObjectSet,
    /// SHA-256 of each `skills/NAME/SKILL.md` in the working tree, by name.
    pub skill_cards: BTreeMap<String, String>,
}

/// Page numbers found under `md/`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct PageCensus {
    /// How many pages there are.
    pub count: u64,
    /// The smallest number; null without pages.
    pub min: Option<u32>,
    /// The largest number; null without pages.
    pub max: Option<u32>,
}

impl PageCensus {
    pub(crate) fn of(pages: &BTreeSet<u32>) -> Self {
        Self { count: pages.len() as u64, min: pages.first().copied(), max: pages.last().copied() }
    }
}

/// How much of the past is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum History {
    /// Everything that the cut reaches.
    #[default]
    Full,
    /// The commits at most so many steps from the cut, the cut itself being the first; as `git clone --depth` counts.
    Depth(NonZeroU32),
    /// The one commit, marked as shallow.
    None,
}

/// A kept commit that says of itself that it is later than the cut.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LaterDated {
    /// The commit's id in hex.
    pub commit: String,
    /// Its committer date in seconds since 1970.
    pub seconds: i64,
}

/// A set of git objects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ObjectSet {
    /// How many objects there are.
    pub count: u64,
    /// SHA-256 over the ids in hex, sorted, each followed by a line feed.
    pub sha256: String,
}

impl ObjectSet {
    pub(crate) fn of<'a>(sorted: impl Iterator<Item = &'a ObjectId>) -> Self {
        let mut digest = Sha256::new();
        let mut count = 0;
        let mut line = [b'\n'; 41];
        for id in sorted {
            let _ = id.hex_to_buf(&mut line[..40]);
            digest.update(line);
            count += 1;
        }
        Self { count, sha256: hex::encode(digest.finalize()) }
    }
}

/// Takes the user information out of a URL; a text without a scheme is given back as it is.
///
/// ```
/// use gsj_cutoff::without_credentials;
/// assert_eq!(without_credentials("https://u:p@host/x.git"), "https://host/x.git");
/// ```
#[must_use]
pub fn without_credentials(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    match rest[..end].rfind('@') {
        Some(at) => format!("{scheme}://{}", &rest[at + 1..]),
        None => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_information_goes_and_nothing_else() {
        for (url, want) in [
            ("file:///srv/estate/x.git", "file:///srv/estate/x.git"),
            ("http://h:3000/o/x.git", "http://h:3000/o/x.git"),
            ("https://user@h/x.git", "https://h/x.git"),
            ("https://u:p@ss@h/a@b.git", "https://h/a@b.git"),
            ("https://h/a@b.git", "https://h/a@b.git"),
            ("plain/path@1", "plain/path@1"),
        ] {
            assert_eq!(without_credentials(url), want);
        }
    }

    #[test]
    fn an_empty_census_has_no_bounds() {
        assert_eq!(PageCensus::of(&BTreeSet::new()), PageCensus { count: 0, min: None, max: None });
        assert_eq!(PageCensus::of(&[2, 9].into()), PageCensus { count: 2, min: Some(2), max: Some(9) });
    }
}
