//! A search's query, embedded before the search takes its turn.

use super::Episode;
use crate::call::Outcome;
use crate::vectors::Vector;
use crate::{CallOutcome, OnFailure, arguments};
use serde_json::{Map, Value};
use std::sync::Arc;
use tracing::warn;

/// What goes into a search beside its words.
#[derive(Debug, Default)]
pub(super) struct Near {
    pub(super) vector: Option<Arc<Vector>>,
    /// Whether the vector was known already.
    pub(super) cached: bool,
    /// Whether there should be a vector and is none.
    pub(super) missing: bool,
}

impl Near {
    /// Embeds the query of a call, where the library ranks by vectors. What is no search of pages, or has no query, goes
    /// on without: the call itself says what is wrong.
    ///
    /// # Errors
    /// The outcome of a call that fails since there is no vector; it says nothing of the endpoint.
    pub(super) async fn of(episode: &Episode, tool: &str, given: &Map<String, Value>) -> Result<Self, Outcome> {
        let (Some(embedder), "search_case", Ok(query)) = (episode.library.embedder(), tool, arguments::query(given))
        else {
            return Ok(Self::default());
        };
        match embedder.ask(query).await {
            Ok(None) => Ok(Self::default()),
            Ok(Some(asked)) => Ok(Self { vector: Some(asked.vector), cached: asked.cached, missing: false }),
            Err(error) => {
                let on_failure = embedder.options().on_failure;
                warn!(
                    target: "gsj_retrieval",
                    event = "query_not_embedded",
                    episode_id = episode.claims.episode_id,
                    %error,
                    on_failure = ?on_failure,
                    "a query has no vector"
                );
                match on_failure {
                    OnFailure::Lexical => Ok(Self { missing: true, ..Self::default() }),
                    OnFailure::Error => {
                        Err(Outcome::fault(CallOutcome::Failed, tool, "the search is unavailable for now; try again"))
                    }
                }
            }
        }
    }
}
