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
    /// The case is not served.
    #[error("unknown case `{case_id}`")]
    UnknownCase {
        /// The id that was asked for.
        case_id: String,
    },
    /// The timestep names no page of the case. How many there are is not said.
    #[error("timestep {timestep} of case `{case_id}` lies outside 1.. and its last page")]
    TimestepRange {
        /// The case.
        case_id: String,
        /// The timestep that was asked for.
        timestep: u32,
    },
}
