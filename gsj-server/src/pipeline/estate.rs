//! The case repositories that a server may check out and search.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
};

use gsj_retrieval::{Mirrors, Progress, RepoSource, RetrievalError, Wanted};

use crate::config::EstateConfig;

/// The placeholder for a case's name.
const CASE: &str = "{case_id}";
/// The branch that holds every page.
pub(super) const MAIN: &str = "main";

/// Why the estate of the configuration cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EstateError {
    /// The repositories are nowhere that they can be read from.
    #[error(
        "`{key}: {pattern}` is not supported: name repositories as file:///PATH/{{case_id}}.git or https://HOST/PATH/{{case_id}}.git"
    )]
    Scheme {
        /// The key of the configuration.
        key: &'static str,
        /// Its value.
        pattern: String,
    },
    /// A host does not say which cases there are.
    #[error("`estate.clone_url_for: {pattern}` is on a host: list the cases in `estate.cases`")]
    Unlisted {
        /// The pattern.
        pattern: String,
    },
    /// A name is none that a case can have.
    #[error("`estate.cases` holds `{case}`, which is no name of a case")]
    Name {
        /// The name.
        case: String,
    },
    /// Where the full documents are cannot be derived.
    #[error(
        "`estate.clone_url_for: {pattern}` does not end with .git: name the full documents' in `estate.full_url_for`"
    )]
    Full {
        /// The pattern.
        pattern: String,
    },
    /// A repository cannot be copied from its host.
    #[error("copy the case repositories from `{pattern}`: check the host, `estate.cases` and `estate.credential_env`")]
    Copy {
        /// The pattern.
        pattern: String,
        /// What is wrong.
        #[source]
        source: RetrievalError,
    },
    /// Cases cannot be listed from a pattern like this.
    #[error(
        "`estate.clone_url_for: {pattern}` has {{case_id}} in the name of a folder: list the cases in `estate.cases`"
    )]
    Pattern {
        /// The pattern.
        pattern: String,
    },
    /// The folder of the repositories cannot be listed.
    #[error("list the case repositories in `{path}`: run `gsj estate scaffold`, or correct `estate.clone_url_for`")]
    List {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A case that is to be served has no repository.
    #[error("case `{case}` has no repository `{path}`: run `gsj estate scaffold`, or correct `estate`")]
    Missing {
        /// The case.
        case: String,
        /// Where it should be.
        path: PathBuf,
    },
    /// There is no case at all.
    #[error("no case repository matches `estate.clone_url_for: {pattern}`: run `gsj estate scaffold`")]
    Empty {
        /// The pattern.
        pattern: String,
    },
}

/// One case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Case {
    /// The bare repository that checkouts are made from.
    pub(crate) repository: PathBuf,
    /// Its URL, for the evidence.
    pub(crate) clone_url: String,
    /// The bare repository that retrieval reads.
    pub(crate) full: PathBuf,
}

/// The cases that are served, by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Estate {
    pub(crate) cases: BTreeMap<String, Case>,
    pub(crate) recipe: String,
}

impl Estate {
    /// Finds the repositories that the configuration names; those of a host are copied first.
    pub(crate) fn open(config: &EstateConfig, mirrors: &Mirrors, progress: &Progress) -> Result<Self, EstateError> {
        let estate = if is_hosted(&config.clone_url_for) { Self::copied } else { Self::local };
        let cases = estate(config, mirrors, progress)?;
        if cases.is_empty() {
            return Err(EstateError::Empty { pattern: config.clone_url_for.clone() });
        }
        Ok(Self { cases, recipe: config.recipe.clone() })
    }

    /// Copies repositories from their host.
    fn copied(
        config: &EstateConfig,
        mirrors: &Mirrors,
        progress: &Progress,
    ) -> Result<BTreeMap<String, Case>, EstateError> {
        let pattern = &config.clone_url_for;
        let names = config.cases.as_ref().ok_or_else(|| EstateError::Unlisted { pattern: pattern.clone() })?;
        // They become names of folders in the cache.
        if let Some(case) = names.iter().find(|case| !crate::request::is_case_name(case)) {
            return Err(EstateError::Name { case: case.escape_debug().to_string() });
        }
        let full = match &config.full_url_for {
            Some(full) if is_hosted(full) => Some(full.clone()),
            Some(full) => return Err(EstateError::Scheme { key: "estate.full_url_for", pattern: full.clone() }),
            None if config.recipe == "sealed" => {
                let before = pattern.strip_suffix(".git");
                Some(format!("{}.full.git", before.ok_or_else(|| EstateError::Full { pattern: pattern.clone() })?))
            }
            None => None,
        };
        let wanted = |case: &String, pattern: &str, suffix: &str| Wanted {
            case_id: case.clone(),
            url: pattern.replace(CASE, case),
            name: format!("{case}{suffix}"),
        };
        let mut all: Vec<Wanted> = names.iter().map(|case| wanted(case, pattern, ".git")).collect();
        if let Some(full) = &full {
            all.extend(names.iter().map(|case| wanted(case, full, ".full.git")));
        }
        mirrors.bring(&all, progress).map_err(|source| EstateError::Copy { pattern: pattern.clone(), source })?;
        let case = |name: &String| {
            let repository = mirrors.cache.join(format!("{name}.git"));
            let document = full.as_ref().map(|_| mirrors.cache.join(format!("{name}.full.git")));
            let full = document.unwrap_or_else(|| repository.clone());
            (name.clone(), Case { repository, clone_url: pattern.replace(CASE, name), full })
        };
        Ok(names.iter().map(case).collect())
    }

    /// Finds repositories of this machine.
    fn local(
        config: &EstateConfig,
        _mirrors: &Mirrors,
        _progress: &Progress,
    ) -> Result<BTreeMap<String, Case>, EstateError> {
        let pattern = local("estate.clone_url_for", &config.clone_url_for)?;
        let full = config.full_url_for.as_deref().map(|url| local("estate.full_url_for", url)).transpose()?;
        let names = match &config.cases {
            Some(names) => names.clone(),
            None => list(&config.clone_url_for, pattern)?,
        };
        let mut cases = BTreeMap::new();
        for name in names {
            let repository = repository(&name, &pattern.replace(CASE, &name))?;
            let full = match full {
                Some(pattern) => self::repository(&name, &pattern.replace(CASE, &name))?,
                None => beside(&repository).unwrap_or_else(|| repository.clone()),
            };
            let clone_url = config.clone_url_for.replace(CASE, &name);
            cases.insert(name, Case { repository, clone_url, full });
        }
        Ok(cases)
    }

    /// Returns what retrieval reads.
    pub(crate) fn sources(&self) -> Vec<RepoSource> {
        let source = |(name, case): (&String, &Case)| {
            let mut source = RepoSource::new(name, &case.full);
            source.timesteps_from = Some(case.repository.clone());
            source
        };
        self.cases.iter().map(source).collect()
    }
}

fn is_hosted(url: &str) -> bool {
    url.starts_with("https://") || url.starts_with("http://")
}

/// The path of a `file://` URL.
fn local<'a>(key: &'static str, url: &'a str) -> Result<&'a str, EstateError> {
    let path = url.strip_prefix("file://").filter(|path| path.starts_with('/'));
    path.ok_or_else(|| EstateError::Scheme { key, pattern: url.to_owned() })
}

fn list(url: &str, pattern: &str) -> Result<Vec<String>, EstateError> {
    let (folder, name) = pattern.rsplit_once('/').unwrap_or(("", pattern));
    let Some((before, after)) = name.split_once(CASE).filter(|_| !folder.contains(CASE)) else {
        return Err(EstateError::Pattern { pattern: url.to_owned() });
    };
    let failed = |source| EstateError::List { path: PathBuf::from(folder), source };
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let file = entry.map_err(failed)?.file_name();
        let case = file.to_str().and_then(|file| file.strip_prefix(before)?.strip_suffix(after));
        names.extend(case.filter(|case| crate::request::is_case_name(case)).map(str::to_owned));
    }
    names.sort();
    // `CASE.full.git` is the retrieval side of `CASE.git`, no case of its own.
    let all = names.clone();
    names.retain(|name| name.strip_suffix(".full").is_none_or(|case| all.binary_search(&case.to_owned()).is_err()));
    Ok(names)
}

fn repository(case: &str, path: &str) -> Result<PathBuf, EstateError> {
    let path = PathBuf::from(path);
    if path.join("HEAD").is_file() { Ok(path) } else { Err(EstateError::Missing { case: case.to_owned(), path }) }
}

/// `CASE.full.git` beside `CASE.git`, when it is there.
fn beside(repository: &Path) -> Option<PathBuf> {
    let name = repository.file_name()?.to_str()?;
    let full = repository.with_file_name(format!("{}.full.git", name.strip_suffix(".git")?));
    full.join("HEAD").is_file().then_some(full)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bare(root: &Path, name: &str) {
        let path = root.join(name);
        std::fs::create_dir_all(&path).expect("a folder");
        std::fs::write(path.join("HEAD"), "ref: refs/heads/main\n").expect("a file");
    }

    fn config(root: &Path) -> EstateConfig {
        EstateConfig { clone_url_for: format!("file://{}/{{case_id}}.git", root.display()), ..EstateConfig::default() }
    }

    fn open(config: &EstateConfig) -> Result<Estate, EstateError> {
        Estate::open(config, &Mirrors::new("/nonexistent"), &Progress::default())
    }

    #[test]
    fn repositories_are_found_and_the_full_ones_are_no_cases() {
        let root = tempfile::tempdir().expect("a folder");
        for name in ["a.git", "a.full.git", "b.git", "other"] {
            bare(root.path(), name);
        }
        let estate = open(&config(root.path())).expect("two cases");
        let full: Vec<_> = estate.cases.iter().map(|(name, case)| (name.as_str(), case.full.clone())).collect();
        assert_eq!(full, [("a", root.path().join("a.full.git")), ("b", root.path().join("b.git"))]);
    }

    #[test]
    fn what_cannot_be_served_is_said_with_its_key() {
        let root = tempfile::tempdir().expect("a folder");
        assert!(matches!(open(&config(root.path())), Err(EstateError::Empty { .. })));
        let missing = EstateConfig { cases: Some(vec!["x".to_owned()]), ..config(root.path()) };
        assert!(matches!(open(&missing), Err(EstateError::Missing { case, .. }) if case == "x"));
        let of = |url: &str| EstateConfig { clone_url_for: url.to_owned(), ..EstateConfig::default() };
        let error = open(&of("ssh://git/{case_id}.git")).expect_err("not readable").to_string();
        assert!(
            error.contains("file:///") && error.contains("https://"),
            "the message names what is supported: {error}"
        );
        let error = open(&of("http://git/{case_id}.git")).expect_err("a host does not list").to_string();
        assert!(error.contains("estate.cases"), "{error}");
        let odd = EstateConfig { cases: Some(vec!["../x".to_owned()]), ..of("http://git/{case_id}.git") };
        assert!(open(&odd).expect_err("it leads elsewhere").to_string().contains("../x"));
        let listed = EstateConfig { cases: Some(vec!["x".to_owned()]), ..of("http://git/{case_id}") };
        assert!(open(&listed).expect_err("no name to derive").to_string().contains("estate.full_url_for"));
    }
}
