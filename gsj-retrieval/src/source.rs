//! Where pages come from: a corpus folder, or bare repositories read by object.

use crate::RetrievalError;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// One case's bare repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepoSource {
    /// The case's id.
    pub case_id: String,
    /// The bare repository that holds the whole document (under the sealed recipe `CASE.full.git`).
    pub path: PathBuf,
    /// The branch with all pages, usually `main`.
    pub ref_main: String,
}

/// What was read of one case.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) pages: Vec<String>,
    pub(crate) timesteps: Vec<u32>,
    pub(crate) commit: Option<String>,
}

/// Pages as they are collected: number to bytes.
type Collected = BTreeMap<u32, Vec<u8>>;

/// Reads every case below `ROOT/{train,eval}/cases`, each at its largest timestep.
pub(crate) fn corpus_dir(root: &Path) -> Result<BTreeMap<String, Read>, RetrievalError> {
    let mut cases = BTreeMap::new();
    for split in ["train", "eval"] {
        let folder = root.join(split).join("cases");
        if !folder.is_dir() {
            continue;
        }
        for (case_id, path) in children(&folder)? {
            if !path.is_dir() || case_id.starts_with('.') {
                continue;
            }
            let read = case_dir(&case_id, &path)?;
            if cases.insert(case_id.clone(), read).is_some() {
                return Err(RetrievalError::DuplicateCase { case_id });
            }
        }
    }
    if cases.is_empty() {
        return Err(RetrievalError::NoCases { path: root.to_owned() });
    }
    Ok(cases)
}

fn case_dir(case_id: &str, path: &Path) -> Result<Read, RetrievalError> {
    let mut timesteps = BTreeSet::new();
    for (name, child) in children(path)? {
        if let Some(number) = name.strip_prefix("timestep-").and_then(plain_number)
            && child.is_dir()
        {
            timesteps.insert(number);
        }
    }
    let Some(last) = timesteps.last().copied() else {
        return Err(RetrievalError::NoTimestep { path: path.to_owned() });
    };
    let folder = path.join(format!("timestep-{last}")).join("pages");
    let origin = folder.display().to_string();
    let mut collected = Collected::new();
    for (name, file) in children(&folder)? {
        if let Some(number) = page_number(&name) {
            let bytes = fs::read(&file).map_err(|source| RetrievalError::Read { path: file, source })?;
            collected.insert(number, bytes);
        }
    }
    let pages = in_order(case_id, &origin, collected)?;
    if u32::try_from(pages.len()).ok() != Some(last) {
        let problem = format!("timestep-{last} holds {} pages", pages.len());
        return Err(RetrievalError::Pages { case_id: case_id.to_owned(), problem, origin });
    }
    Ok(Read { pages, timesteps: timesteps.into_iter().collect(), commit: None })
}

/// The entries of a folder whose names are UTF-8, by name.
fn children(folder: &Path) -> Result<BTreeMap<String, PathBuf>, RetrievalError> {
    let failed = |source| RetrievalError::Read { path: folder.to_owned(), source };
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if let Ok(name) = entry.file_name().into_string() {
            found.insert(name, entry.path());
        }
    }
    Ok(found)
}

/// Reads the pages of a case from its branch, object by object; nothing is checked out.
pub(crate) fn repository(source: &RepoSource) -> Result<Read, RetrievalError> {
    let failed = |doing: &str, error: Box<dyn std::error::Error + Send + Sync>| RetrievalError::Git {
        case_id: source.case_id.clone(),
        path: source.path.clone(),
        doing: doing.to_owned(),
        source: error,
    };
    let repo = gix::open_opts(&source.path, gix::open::Options::isolated().open_path_as_is(true))
        .map_err(|error| failed("open", error.into()))?;
    let full = format!("refs/heads/{}", source.ref_main);
    let commit = repo
        .find_reference(full.as_str())
        .map_err(|error| failed(&format!("find branch `{}`", source.ref_main), error.into()))?
        .peel_to_commit()
        .map_err(|error| failed("read the branch's commit", error.into()))?;
    let tree = commit.tree().map_err(|error| failed("read the branch's tree", error.into()))?;
    let origin = format!("branch `{}` of `{}`", source.ref_main, source.path.display());
    let mut collected = Collected::new();
    let folder = tree.lookup_entry_by_path("md").map_err(|error| failed("look up `md`", error.into()))?;
    if let Some(folder) = folder.filter(|entry| entry.mode().is_tree()) {
        let pages = folder.object().map_err(|error| failed("read `md`", error.into()))?.into_tree();
        for entry in pages.iter() {
            let entry = entry.map_err(|error| failed("decode `md`", error.into()))?;
            let number = std::str::from_utf8(entry.filename()).ok().and_then(page_number);
            if let Some(number) = number.filter(|_| entry.mode().is_blob()) {
                let blob = entry.object().map_err(|error| failed("read a page", error.into()))?;
                collected.insert(number, blob.detach().data);
            }
        }
    }
    let mut timesteps = BTreeSet::new();
    let references = repo.references().map_err(|error| failed("list branches", error.into()))?;
    for reference in references.local_branches().map_err(|error| failed("list branches", error.into()))? {
        let reference = reference.map_err(|error| failed("read a branch", error.into()))?;
        let name = reference.name().shorten().to_string();
        timesteps.extend(name.strip_prefix("timestep-").and_then(plain_number));
    }
    Ok(Read {
        pages: in_order(&source.case_id, &origin, collected)?,
        timesteps: timesteps.into_iter().collect(),
        commit: Some(commit.id.to_string()),
    })
}

/// Checks that the numbers are 1..N and the bytes UTF-8, and gives the texts in order.
pub(crate) fn in_order(case_id: &str, origin: &str, collected: Collected) -> Result<Vec<String>, RetrievalError> {
    let gap =
        |problem: String| RetrievalError::Pages { case_id: case_id.to_owned(), problem, origin: origin.to_owned() };
    if collected.is_empty() {
        return Err(gap("there are no pages".into()));
    }
    (1_u32..)
        .zip(collected)
        .map(|(expected, (number, bytes))| {
            if number != expected {
                return Err(gap(format!("page {expected} is missing")));
            }
            String::from_utf8(bytes).map_err(|_| RetrievalError::Utf8 {
                case_id: case_id.to_owned(),
                page: number,
                origin: origin.to_owned(),
            })
        })
        .collect()
}

/// The number in `page_NNNN.md`: four ASCII digits, not all zero.
fn page_number(name: &str) -> Option<u32> {
    let digits = name.strip_prefix("page_")?.strip_suffix(".md")?;
    let plain = digits.len() == 4 && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|number| plain && *number > 0)
}

/// A decimal number from 1 without sign and leading zeros.
fn plain_number(text: &str) -> Option<u32> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
    text.parse().ok().filter(|_| plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_exact_name_form_is_a_page() {
        assert_eq!(page_number("page_0012.md"), Some(12));
        for name in [
            "page_0000.md",
            "page_12.md",
            "page_00012.md",
            "page_+012.md",
            "page_٠٠٠١.md",
            "page_0001.md\n",
            "Page_0001.md",
        ] {
            assert_eq!(page_number(name), None, "{name:?}");
        }
    }

    #[test]
    fn only_plain_numbers_are_timesteps() {
        assert_eq!(plain_number("10"), Some(10));
        for text in ["", "0", "01", "+1", "1 ", "٣", "99999999999"] {
            assert_eq!(plain_number(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_gap_and_bad_bytes_are_named() {
        let pages = |numbers: &[u32]| numbers.iter().map(|number| (*number, b"x".to_vec())).collect::<Collected>();
        let error = in_order("c", "here", pages(&[1, 3])).expect_err("gap");
        assert!(error.to_string().contains("page 2 is missing"), "{error}");
        assert!(in_order("c", "here", pages(&[2])).is_err(), "must begin at 1");
        assert!(in_order("c", "here", Collected::new()).is_err());
        let error = in_order("c", "here", BTreeMap::from([(1, vec![0xff])])).expect_err("not UTF-8");
        assert!(error.to_string().contains("page 1 is not valid UTF-8"), "{error}");
        assert_eq!(in_order("c", "here", BTreeMap::from([(1, b"a\r\nb\r".to_vec())])).expect("text"), ["a\r\nb\r"]);
    }
}
