//! What can go wrong when a library is read or asked.

use std::path::PathBuf;

/// Why a corpus could not be read, or a question not be answered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RetrievalError {
    /// A file or folder of the corpus could not be read.
    #[error("read `{path}`")]
    Read {
        /// What was being read.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// The folder holds no case.
    #[error("`{path}` holds no case: expected {{train,eval}}/cases/CASE/timestep-T/pages/page_NNNN.md below it")]
    NoCases {
        /// The corpus folder.
        path: PathBuf,
    },
    /// One case id stands twice.
    #[error("case `{case_id}` is given twice; a case id names one document, so remove or rename one")]
    DuplicateCase {
        /// The id.
        case_id: String,
    },
    /// A case has no timestep folder.
    #[error("case folder `{path}` holds no folder named timestep-T")]
    NoTimestep {
        /// The case's folder.
        path: PathBuf,
    },
    /// The pages of a case are not exactly 1..N.
    #[error(
        "case `{case_id}`: {problem} (read from {origin}); pages must be page_0001.md to page_NNNN.md without a gap"
    )]
    Pages {
        /// The case.
        case_id: String,
        /// What is wrong.
        problem: String,
        /// Folder or repository.
        origin: String,
    },
    /// A page is no UTF-8 text.
    #[error("case `{case_id}`: page {page} is not valid UTF-8 (read from {origin}); convert the page to UTF-8")]
    Utf8 {
        /// The case.
        case_id: String,
        /// The page's number.
        page: u32,
        /// Folder or repository.
        origin: String,
    },
    /// A repository could not be read by object.
    #[error("{doing} in repository `{path}` of case `{case_id}`")]
    Git {
        /// The case.
        case_id: String,
        /// The bare repository.
        path: PathBuf,
        /// What was being done.
        doing: String,
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A repository could not be copied from its host.
    #[error("copy the repository of case `{case_id}`; the copy that is there, if one is, was left as it was")]
    Fetch {
        /// The case.
        case_id: String,
        /// What git said, without a credential.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Repositories are on a host, and nothing says where copies of them may be kept.
    #[error("the repositories at `{url}` need a folder for their copies")]
    NoCache {
        /// Where they are.
        url: String,
    },
    /// A case is no longer what it was a moment ago.
    #[error("case `{case_id}` changed while it was read; index it again when the writer is done")]
    Changed {
        /// The case.
        case_id: String,
    },
    /// The build was told to stop.
    #[error("the index was not finished: it was told to stop")]
    Stopped,
    /// An embeddings endpoint gives no vectors.
    #[error(transparent)]
    Embed(#[from] crate::embed::EmbedError),
    /// A file is no index of this version.
    #[error("`{path}` is no index of a case, or one of another version; remove it, and it is built anew")]
    NoIndex {
        /// The file.
        path: PathBuf,
    },
    /// A file of the index could not be written.
    #[error("write `{path}`")]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// Another process builds the index.
    #[error("another process builds the index in `{path}`; wait for it, or give each its own folder")]
    Busy {
        /// The index's folder.
        path: PathBuf,
    },
    /// The index cannot be used as it is, and building it is not allowed.
    #[error("the index in `{path}` cannot be used: {problem}; allow a rebuild with `if-stale`")]
    NotRebuilt {
        /// The index's folder.
        path: PathBuf,
        /// Why not.
        problem: String,
    },
    /// A case has more than the index can hold.
    #[error("the case is too large: it has over 4,294,967,295 places of terms, or a page over 4 GiB; split it")]
    TooLarge,
    /// The decisions file has another form.
    #[error("decisions: {problem}; expected records with decision_id, court, year and text, each id once")]
    Decisions {
        /// What is wrong, with the record's position where there is one.
        problem: String,
    },
    /// The tool declarations have another form.
    #[error("tool declarations: {problem}")]
    Tools {
        /// What is wrong.
        problem: String,
    },
    /// The case is not served. The text is for operators: an episode must not read of other cases.
    #[error("unknown case `{case_id}`; {}", cases_there_are(.known, *.cases))]
    UnknownCase {
        /// The id that was asked for.
        case_id: String,
        /// The first ids that there are, ten at most.
        known: Vec<String>,
        /// How many cases there are.
        cases: usize,
    },
    /// The timestep names no page of the case. The text is for operators: an episode must not read how many pages there
    /// are.
    #[error("timestep {timestep} lies outside 1..{pages}, the pages of case `{case_id}`")]
    TimestepRange {
        /// The case.
        case_id: String,
        /// The timestep that was asked for.
        timestep: u32,
        /// How many pages the case has.
        pages: usize,
    },
    /// A page is asked for that is not in view.
    #[error("page {page} lies outside 1..{timestep}, the pages in view")]
    PageRange {
        /// The page.
        page: u32,
        /// The timestep, which is the last page in view.
        timestep: u32,
    },
}

impl RetrievalError {
    /// What an episode may read: neither a number of pages nor another case's id (retrieval.md section 2).
    pub(crate) fn for_episode(&self) -> String {
        match self {
            Self::TimestepRange { case_id, timestep, .. } => {
                format!("timestep {timestep} is outside 1.. and the last page of {case_id}")
            }
            Self::UnknownCase { case_id, .. } => format!("unknown case {case_id}"),
            Self::Embed(_) => "the search is unavailable for now; try again".to_owned(),
            _ => "the token's scope is not served".to_owned(),
        }
    }
}

fn cases_there_are(known: &[String], cases: usize) -> String {
    match cases.saturating_sub(known.len()) {
        _ if known.is_empty() => "there is none".to_owned(),
        0 => format!("there are {}", known.join(", ")),
        more => format!("there are {} and {more} more", known.join(", ")),
    }
}
