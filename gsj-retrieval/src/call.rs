//! One tool call, from its arguments to what the model reads.

use crate::arguments;
use crate::decisions::StatsFilter;
use crate::vectors::Vector;
use crate::{Library, RetrievalError, TOOL_NAMES};
use serde::Serialize;
use serde_json::{Map, Value};

/// How much of a tool's name is repeated in an error.
const SHOWN_NAME: usize = 100;

/// What a call gave.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Outcome {
    /// The text blocks.
    pub(crate) texts: Vec<String>,
    /// The hits of the two searches; absent for single objects and faults.
    pub(crate) structured: Option<Value>,
    /// Whether it is a fault.
    pub(crate) is_error: bool,
}

impl Outcome {
    /// A fault, worded as the agent program expects it.
    pub(crate) fn fault(tool: &str, problem: &str) -> Self {
        let name: String = tool.chars().take(SHOWN_NAME).collect();
        Self { texts: vec![format!("Error executing tool {name}: {problem}")], structured: None, is_error: true }
    }

    fn hits<T: Serialize>(hits: &[T]) -> Result<Self, String> {
        let values = hits.iter().map(serde_json::to_value).collect::<Result<Vec<_>, _>>().map_err(|e| e.to_string())?;
        let texts =
            hits.iter().map(serde_json::to_string_pretty).collect::<Result<_, _>>().map_err(|e| e.to_string())?;
        let structured = Value::Object(Map::from_iter([("result".to_owned(), Value::Array(values))]));
        Ok(Self { texts, structured: Some(structured), is_error: false })
    }

    fn single<T: Serialize>(object: &T) -> Result<Self, String> {
        let text = serde_json::to_string_pretty(object).map_err(|error| error.to_string())?;
        Ok(Self { texts: vec![text], structured: None, is_error: false })
    }
}

/// Runs a tool for pages 1..`timestep` of a case. Never fails: what goes wrong is an outcome that says so.
///
/// `near` is the vector of a search's query, where the library ranks by vectors.
pub(crate) fn run(
    library: &Library,
    (case_id, timestep): (&str, u32),
    tool: &str,
    arguments: &Map<String, Value>,
    max_k: u32,
    near: Option<&Vector>,
) -> Outcome {
    let outcome = match tool {
        "search_case" => search_case(library, (case_id, timestep), arguments, max_k, near),
        "search_decisions" => search_decisions(library, timestep, arguments, max_k),
        "case_status" => library
            .case_status(case_id, timestep)
            .map_err(|error| error.for_episode())
            .and_then(|status| Outcome::single(&status)),
        "decision_stats" => decision_stats(library, timestep, arguments),
        _ => Err(format!("unknown tool; there are {}", TOOL_NAMES.join(", "))),
    };
    outcome.unwrap_or_else(|problem| Outcome::fault(tool, &problem))
}

fn search_case(
    library: &Library,
    (case_id, timestep): (&str, u32),
    given: &Map<String, Value>,
    max_k: u32,
    near: Option<&Vector>,
) -> Result<Outcome, String> {
    let (query, k) = (arguments::query(given)?, arguments::k(given, max_k)?);
    let hits = library.search_case_near(case_id, timestep, query, near, k).map_err(|error| {
        if matches!(error, RetrievalError::Embed(_)) {
            tracing::error!(target: "gsj_retrieval", %error, "a search has no vectors");
        }
        error.for_episode()
    })?;
    Outcome::hits(&hits)
}

fn search_decisions(
    library: &Library,
    timestep: u32,
    given: &Map<String, Value>,
    max_k: u32,
) -> Result<Outcome, String> {
    let (query, k) = (arguments::query(given)?, arguments::k(given, max_k)?);
    Outcome::hits(&library.search_decisions(timestep, query, k))
}

fn decision_stats(library: &Library, timestep: u32, given: &Map<String, Value>) -> Result<Outcome, String> {
    let filter = StatsFilter {
        from_year: arguments::optional_integer(given, "from_year")?,
        to_year: arguments::optional_integer(given, "to_year")?,
        court: arguments::optional_string(given, "court")?,
    };
    Outcome::single(&library.decision_stats(timestep, &filter))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn a_fault_of_the_scope_tells_neither_pages_nor_other_cases() {
        let pages = vec!["word".to_owned(); 47];
        let library = Library::from_pages(BTreeMap::from([("alpha".to_owned(), pages)])).expect("valid");
        let arguments = Map::from_iter([("query".to_owned(), Value::from("word"))]);
        for tool in ["search_case", "case_status"] {
            let late = run(&library, ("alpha", 900), tool, &arguments, 20, None);
            assert!(late.is_error && late.texts[0].contains("timestep 900 is outside 1.. "), "{late:?}");
            assert!(!late.texts[0].contains("47"), "{late:?}");
            let other = run(&library, ("gamma", 1), tool, &arguments, 20, None);
            assert!(other.is_error && other.texts[0].ends_with("unknown case gamma"), "{other:?}");
        }
    }
}
