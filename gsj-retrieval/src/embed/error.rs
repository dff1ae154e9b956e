//! Why a text could not be embedded.

use std::time::Duration;

/// What went wrong with an embeddings endpoint. No message holds a key.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum EmbedError {
    /// The base URL is none.
    #[error(
        "embeddings: `{base_url}` is no base URL: {problem}; write http(s)://HOST[:PORT], without user name and query"
    )]
    BaseUrl {
        /// The URL as it was given, without user information.
        base_url: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The key is empty or holds a character that no header may.
    #[error("embeddings: the API key is empty, or cannot stand in a header; set the variable that holds it anew")]
    Key,
    /// Model or revision are empty.
    #[error(
        "embeddings: `model` and `revision` must be given; the revision names the weights that the endpoint serves"
    )]
    Label,
    /// This build has no client.
    #[error("embeddings: this build has no client for an endpoint; build it with the feature `embeddings`")]
    Absent,
    /// No client or runtime can be made here.
    #[error("embeddings: no client can be made: {problem}")]
    Client {
        /// What is wrong.
        problem: String,
    },
    /// The endpoint gives no answer.
    #[error(
        "embeddings: {url} gives no answer ({problem}, {tries} tries); see that it runs, and that this is its address"
    )]
    Unreachable {
        /// The endpoint.
        url: String,
        /// What happened, last.
        problem: String,
        /// How often it was tried.
        tries: u32,
    },
    /// It gave none in time.
    #[error("embeddings: {url} gave no vector within {} s; see whether it is overloaded, or raise `timeout_s`", .after.as_secs_f32())]
    Late {
        /// The endpoint.
        url: String,
        /// The time that it had.
        after: Duration,
    },
    /// The endpoint refuses.
    #[error("embeddings: {url} answers {status}: {said}; {}", cure(*.status))]
    Refused {
        /// The endpoint.
        url: String,
        /// The HTTP status.
        status: u16,
        /// What it says, cut.
        said: String,
    },
    /// The answer is none that can be used.
    #[error(
        "embeddings: the answer of {url} cannot be used: {problem}; see that it speaks /v1/embeddings with this model"
    )]
    Answer {
        /// The endpoint.
        url: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A query's vector is not of the model that the pages' vectors are of.
    #[error(
        "embeddings: the query's vector has {found} numbers, the index's have {expected}: the endpoint serves another model \
         than it was built with; give it another `revision`, and it is built anew"
    )]
    Dimension {
        /// How many numbers the vectors of the index have.
        expected: usize,
        /// How many the query's has.
        found: usize,
    },
    /// The build was told to stop.
    #[error("embeddings: told to stop")]
    Stopped,
}

impl EmbedError {
    /// Whether the endpoint refused, failed or could not be reached, rather than what was asked for being unusable.
    #[must_use]
    pub fn is_remote(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::Late { .. } | Self::Refused { .. } | Self::Answer { .. })
    }
}

fn cure(status: u16) -> &'static str {
    match status {
        401 | 403 => "see that `api_key_env` names the variable with its key",
        404 => "see that `base_url` and `model` are those that it serves",
        413 | 422 => "lower `batch`, or let the endpoint cut long texts (TEI: --auto-truncate)",
        429 => "it is asked too often: let it do more, or lower `concurrency`",
        500.. => "see its log",
        _ => "see that `model` is one that it serves and that it takes texts as `input`",
    }
}
