//! All cases and decisions that one service answers from.

use crate::RetrievalError;
use crate::decisions::{BUILTIN, DecisionHit, DecisionStats, Decisions, StatsFilter};
use crate::embed::{EmbedError, Embedder, Session};
use crate::index::{CaseIndex, Explanation, PageHit, View};
use crate::progress::Progress;
use crate::source::{self, Head, Read, RepoSource, Sources};
use crate::store::{self, Opened, Rebuild};
use crate::vectors::{Known, Rows, Vector, VectorView, Vectors};
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// How many case ids an error lists.
pub(crate) const LISTED_CASES: usize = 10;

/// What an episode is told about its own scope. Serialises as the tool's result does (retrieval.md section 5).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CaseStatus {
    /// The case.
    pub case_id: String,
    /// The timestep T.
    pub timestep: u32,
    /// How many pages are visible: T.
    pub pages_visible: u32,
    /// The last visible page: T.
    pub max_visible_page: u32,
    /// Who says so.
    pub source: &'static str,
}

/// What an operator may know of a case. Not for episodes: it tells how many pages there are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CaseSummary {
    /// Pages of the whole case.
    pub pages: usize,
    /// The recorded timesteps, ascending.
    pub timesteps: Vec<u32>,
    /// The commit that was read, for a case from a repository.
    pub commit: Option<String>,
}

/// The corpus: whole cases, which are searched through a [`View`] of pages 1..T only, and the decisions.
#[derive(Debug)]
pub struct Library {
    cases: BTreeMap<String, Case>,
    decisions: Decisions,
    /// The digest of the code and of what each case was made from.
    cases_digest: String,
    /// What opening the store did, for a library that has one.
    opened: Option<Opened>,
    /// What embedded the cases' sentences, and embeds queries.
    embedder: Option<Arc<Embedder>>,
}

/// One case and what is known of it.
#[derive(Debug)]
struct Case {
    index: CaseIndex,
    /// There in every case or in none.
    vectors: Option<Vectors>,
    head: Head,
}

impl Library {
    /// Reads a corpus folder: `ROOT/{train,eval}/cases/CASE/timestep-T/pages/page_NNNN.md`, each case at its largest T.
    ///
    /// # Errors
    /// Names the folder, case or page that cannot be used.
    pub fn from_corpus_dir(root: &Path) -> Result<Self, RetrievalError> {
        Self::from_reads(source::corpus_dir(root)?)
    }

    /// Reads every case from the branch of a bare repository, by object: `md/page_NNNN.md`, bytes, strict UTF-8.
    ///
    /// # Errors
    /// Names the repository, branch or page that cannot be used.
    pub fn from_repos(repos: &[RepoSource]) -> Result<Self, RetrievalError> {
        let mut reads = BTreeMap::new();
        for repo in repos {
            if reads.insert(repo.case_id.clone(), source::repository(repo)?).is_some() {
                return Err(RetrievalError::DuplicateCase { case_id: repo.case_id.clone() });
            }
        }
        Self::from_reads(reads)
    }

    /// Opens the index that a folder keeps of these sources; what is missing or stale is built, beside what is there.
    ///
    /// # Errors
    /// Names the source, the index file, or the process that builds in the same folder.
    pub fn stored(folder: &Path, sources: Sources<'_>, rebuild: Rebuild) -> Result<(Self, Opened), RetrievalError> {
        Self::stored_with(folder, sources, rebuild, &Progress::default())
    }

    /// As [`Self::stored`], telling how far it is and ending early where it is told to.
    ///
    /// # Errors
    /// As [`Self::stored`], and [`RetrievalError::Stopped`].
    pub fn stored_with(
        folder: &Path,
        sources: Sources<'_>,
        rebuild: Rebuild,
        progress: &Progress,
    ) -> Result<(Self, Opened), RetrievalError> {
        Self::stored_near(folder, sources, rebuild, progress, None)
    }

    /// As [`Self::stored_with`], with the vectors of an embeddings endpoint beside the index. Waits for the endpoint: not to
    /// be called on a thread that must not wait.
    ///
    /// # Errors
    /// As [`Self::stored_with`], and [`RetrievalError::Embed`]; what was embedded until then is kept and not asked for
    /// again.
    pub fn stored_near(
        folder: &Path,
        sources: Sources<'_>,
        rebuild: Rebuild,
        progress: &Progress,
        embedder: Option<Arc<Embedder>>,
    ) -> Result<(Self, Opened), RetrievalError> {
        let (stored, opened) = store::open(folder, &sources, rebuild, progress, embedder.as_deref())?;
        let cases = stored.into_iter().map(|(id, stored)| {
            let store::Stored { index, vectors, head } = stored;
            (id, Case { index, vectors, head })
        });
        let library = Self {
            cases: cases.collect(),
            decisions: Decisions::parse(BUILTIN)?,
            cases_digest: opened.fingerprint.clone(),
            opened: Some(opened.clone()),
            embedder,
        };
        Ok((library, opened))
    }

    /// Takes pages that are in memory already: case id to the texts of pages 1..N.
    ///
    /// # Errors
    /// Refuses a case without pages.
    pub fn from_pages(cases: BTreeMap<String, Vec<String>>) -> Result<Self, RetrievalError> {
        let read = |pages: Vec<String>| Read { head: Head::of_pages(&pages, Vec::new()), pages };
        Self::from_reads(cases.into_iter().map(|(id, pages)| (id, read(pages))).collect())
    }

    fn from_reads(reads: BTreeMap<String, Read>) -> Result<Self, RetrievalError> {
        let mut cases = BTreeMap::new();
        let heads = reads.iter().map(|(id, read)| (id.clone(), read.head.clone())).collect();
        let cases_digest = store::fingerprint(&store::code_digest(), &heads, None);
        for (case_id, Read { pages, head }) in reads {
            if pages.is_empty() {
                let problem = "there are no pages".to_owned();
                return Err(RetrievalError::Pages { case_id, problem, origin: "memory".to_owned() });
            }
            cases.insert(case_id, Case { index: CaseIndex::build(&pages)?, vectors: None, head });
        }
        Ok(Self { cases, decisions: Decisions::parse(BUILTIN)?, cases_digest, opened: None, embedder: None })
    }

    /// Has every sentence embedded, in memory. Waits for the endpoint: not to be called on a thread that must not wait.
    ///
    /// # Errors
    /// When the endpoint gives no vectors, or `progress` is told to stop.
    pub fn embedded(mut self, embedder: Arc<Embedder>, progress: &Progress) -> Result<Self, RetrievalError> {
        let session = Session::new(&embedder)?;
        let identity = embedder.identity();
        progress.begin(self.cases.len());
        let work = |case: &CaseIndex| {
            let view = u32::try_from(case.page_count()).ok().and_then(|last| case.view(last));
            let view = view.ok_or(RetrievalError::TooLarge)?;
            let pages = (1..=view.timestep()).map(|page| view.page(page).unwrap_or_default().to_owned());
            let mut rows = Rows::new();
            session.pages(&pages.collect::<Vec<_>>(), &Known::default(), &mut rows, progress)?;
            rows.bytes(identity).and_then(Vectors::in_memory).ok_or(RetrievalError::TooLarge)
        };
        // On a thread of its own, since the caller's may belong to a runtime.
        let made = std::thread::scope(|scope| {
            let made = scope.spawn(|| {
                let vectors = self.cases.values().map(|case| {
                    let made = work(&case.index)?;
                    progress.advance(1);
                    Ok(made)
                });
                vectors.collect::<Result<Vec<_>, RetrievalError>>()
            });
            made.join().unwrap_or(Err(RetrievalError::Stopped))
        })?;
        for (case, vectors) in self.cases.values_mut().zip(made) {
            case.vectors = Some(vectors);
        }
        self.cases_digest = format!("{} {}", self.cases_digest, hex::encode(identity));
        drop(session);
        self.embedder = Some(embedder);
        Ok(self)
    }

    /// What embeds the queries of this library, if anything does.
    #[must_use]
    pub fn embedder(&self) -> Option<&Embedder> {
        self.embedder.as_deref()
    }

    /// Replaces the built-in decisions by those of a file: a JSON list of records with `decision_id`, `court`, `year` and
    /// `text`, an object that holds such a list as `decisions`, or one record a line.
    ///
    /// # Errors
    /// Says which record cannot be used.
    pub fn with_decisions(self, bytes: &[u8]) -> Result<Self, RetrievalError> {
        Ok(Self { decisions: Decisions::parse(bytes)?, ..self })
    }

    /// Gives pages 1..`timestep` of a case, and no way to any other page.
    ///
    /// # Errors
    /// When the case is not there or has no page of that number.
    pub fn view(&self, case_id: &str, timestep: u32) -> Result<View<'_>, RetrievalError> {
        let unknown = || RetrievalError::UnknownCase {
            case_id: case_id.to_owned(),
            known: self.cases.keys().take(LISTED_CASES).cloned().collect(),
            cases: self.cases.len(),
        };
        let case = self.cases.get(case_id).ok_or_else(unknown)?;
        let outside =
            || RetrievalError::TimestepRange { case_id: case_id.to_owned(), timestep, pages: case.index.page_count() };
        case.index.view(timestep).ok_or_else(outside)
    }

    /// Finds at most `k` pages among 1..`timestep`, best first, equal scores by page.
    ///
    /// # Errors
    /// As [`Self::view`].
    pub fn search_case(
        &self,
        case_id: &str,
        timestep: u32,
        query: &str,
        k: usize,
    ) -> Result<Vec<PageHit>, RetrievalError> {
        Ok(self.view(case_id, timestep)?.search(query, k))
    }

    /// As [`Self::search_case`], also by the vectors of the same pages, for a library that has them: with `near`, the
    /// query's vector from [`Embedder::query`], pages are found that say it in other words.
    ///
    /// # Errors
    /// As [`Self::view`], and when the vector is not of the model that the pages' vectors are of.
    pub fn search_case_near(
        &self,
        case_id: &str,
        timestep: u32,
        query: &str,
        near: Option<&Vector>,
        k: usize,
    ) -> Result<Vec<PageHit>, RetrievalError> {
        let view = self.view(case_id, timestep)?;
        Ok(match self.vectors(case_id, timestep, near)? {
            Some((vectors, vector)) => view.search_near(vectors, query, vector, k),
            None => view.search(query, k),
        })
    }

    /// As [`Self::explain`], for [`Self::search_case_near`].
    ///
    /// # Errors
    /// As [`Self::explain`] and [`Self::search_case_near`].
    pub fn explain_near(
        &self,
        case_id: &str,
        timestep: u32,
        query: &str,
        near: Option<&Vector>,
        page: u32,
    ) -> Result<Option<Explanation>, RetrievalError> {
        let lexical = self.explain(case_id, timestep, query, page)?;
        Ok(match self.vectors(case_id, timestep, near)? {
            Some((vectors, vector)) => self.view(case_id, timestep)?.explain_near(vectors, query, vector, page),
            None => lexical,
        })
    }

    /// The vectors of pages 1..`timestep` and the query's, when there are both.
    fn vectors<'a>(
        &'a self,
        case_id: &str,
        timestep: u32,
        near: Option<&'a Vector>,
    ) -> Result<Option<(VectorView<'a>, &'a Vector)>, RetrievalError> {
        let vectors = self.cases.get(case_id).and_then(|case| case.vectors.as_ref()?.view(timestep));
        match vectors.zip(near) {
            // Of a view without a sentence.
            Some((vectors, _)) if vectors.dimension() == 0 => Ok(None),
            Some((vectors, vector)) if vectors.dimension() != vector.dimension() => {
                Err(EmbedError::Dimension { expected: vectors.dimension(), found: vector.dimension() }.into())
            }
            both => Ok(both),
        }
    }

    /// Why a page ranks where it does; nothing when it holds no term of the query.
    ///
    /// # Errors
    /// As [`Self::view`], also when the page lies outside 1..`timestep`.
    pub fn explain(
        &self,
        case_id: &str,
        timestep: u32,
        query: &str,
        page: u32,
    ) -> Result<Option<Explanation>, RetrievalError> {
        let view = self.view(case_id, timestep)?;
        if view.page(page).is_none() {
            return Err(RetrievalError::PageRange { page, timestep });
        }
        Ok(view.explain(query, page))
    }

    /// Finds at most `k` decisions, best first, equal scores by id. The timestep matters only for decisions whose file
    /// gives them a `visible_from_page`.
    #[must_use]
    pub fn search_decisions(&self, timestep: u32, query: &str, k: usize) -> Vec<DecisionHit> {
        self.decisions.search(timestep, query, k)
    }

    /// Counts decisions; the timestep as in [`Self::search_decisions`].
    #[must_use]
    pub fn decision_stats(&self, timestep: u32, filter: &StatsFilter) -> DecisionStats {
        self.decisions.stats(timestep, filter)
    }

    /// Tells an episode its own scope.
    ///
    /// # Errors
    /// As [`Self::view`].
    pub fn case_status(&self, case_id: &str, timestep: u32) -> Result<CaseStatus, RetrievalError> {
        let visible = self.view(case_id, timestep)?.timestep();
        Ok(CaseStatus {
            case_id: case_id.to_owned(),
            timestep,
            pages_visible: visible,
            max_visible_page: visible,
            source: "service",
        })
    }

    /// Describes every case, for an operator.
    #[must_use]
    pub fn summary(&self) -> BTreeMap<String, CaseSummary> {
        let of = |case: &Case| CaseSummary {
            pages: case.index.page_count(),
            timesteps: case.head.timesteps.clone(),
            commit: case.head.commit.clone(),
        };
        self.cases.iter().map(|(id, case)| (id.clone(), of(case))).collect()
    }

    /// The digest of all that determines an answer: code, what each case was made from, and the decisions.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        hex::encode(Sha256::digest(format!("{}\n{}", self.cases_digest, self.decisions.digest())))
    }

    /// What opening the store did; nothing for a library that was read into memory.
    #[must_use]
    pub fn opened(&self) -> Option<&Opened> {
        self.opened.as_ref()
    }

    /// How many cases there are.
    #[must_use]
    pub fn case_count(&self) -> usize {
        self.cases.len()
    }

    /// How many pages all cases have.
    #[must_use]
    pub fn page_count(&self) -> usize {
        self.cases.values().map(|case| case.index.page_count()).sum()
    }

    /// How many decisions there are.
    #[must_use]
    pub fn decision_count(&self) -> usize {
        self.decisions.len()
    }
}
