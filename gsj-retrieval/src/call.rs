//! One tool call, from its arguments to what the model reads.

use crate::arguments;
use crate::decisions::StatsFilter;
use crate::vectors::Vector;
use crate::{CallOutcome, Library, RetrievalError, TOOL_NAMES};
use serde::Serialize;
use serde_json::{Map, Value};

/// How much of a tool's name is repeated in an error.
const SHOWN_NAME: usize = 100;

/// What a call is held to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// The most hits.
    pub(crate) max_k: u32,
    /// The hits of a call that names no number.
    pub(crate) default_k: u32,
    /// The longest query, in characters.
    pub(crate) query_chars: usize,
}

/// What a call gave.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Outcome {
    /// The text blocks.
    pub(crate) texts: Vec<String>,
    /// The hits of the two searches; absent for single objects and faults.
    pub(crate) structured: Option<Value>,
    /// How it ended; all but `Ok` are faults.
    pub(crate) kind: CallOutcome,
}

/// Why a call has no answer.
struct Fault(CallOutcome, String);

impl From<String> for Fault {
    /// What is said of arguments.
    fn from(problem: String) -> Self {
        Self(CallOutcome::BadArguments, problem)
    }
}

impl From<RetrievalError> for Fault {
    fn from(error: RetrievalError) -> Self {
        Self(CallOutcome::Failed, error.for_episode())
    }
}

impl From<serde_json::Error> for Fault {
    fn from(error: serde_json::Error) -> Self {
        Self(CallOutcome::Failed, error.to_string())
    }
}

impl Outcome {
    /// A fault, worded as the agent program expects it.
    pub(crate) fn fault(kind: CallOutcome, tool: &str, problem: &str) -> Self {
        let name: String = tool.chars().take(SHOWN_NAME).collect();
        Self { texts: vec![format!("Error executing tool {name}: {problem}")], structured: None, kind }
    }

    pub(crate) fn is_error(&self) -> bool {
        self.kind != CallOutcome::Ok
    }

    fn hits<T: Serialize>(hits: &[T]) -> Result<Self, Fault> {
        let values = hits.iter().map(serde_json::to_value).collect::<Result<Vec<_>, _>>()?;
        let texts = hits.iter().map(serde_json::to_string_pretty).collect::<Result<_, _>>()?;
        let structured = Value::Object(Map::from_iter([("result".to_owned(), Value::Array(values))]));
        Ok(Self { texts, structured: Some(structured), kind: CallOutcome::Ok })
    }

    fn single<T: Serialize>(object: &T) -> Result<Self, Fault> {
        Ok(Self { texts: vec![serde_json::to_string_pretty(object)?], structured: None, kind: CallOutcome::Ok })
    }
}

/// The fault of a search whose query is too long, so that nobody else need be asked about it.
pub(crate) fn too_long(tool: &str, arguments: &Map<String, Value>, bounds: Bounds) -> Option<Outcome> {
    let query = arguments::query(arguments).ok()?;
    fits(query, bounds).err().map(|Fault(kind, problem)| Outcome::fault(kind, tool, &problem))
}

/// Runs a tool for pages 1..`timestep` of a case. Never fails: what goes wrong is an outcome that says so.
///
/// `near` is the vector of a search's query, where the library ranks by vectors.
pub(crate) fn run(
    library: &Library,
    (case_id, timestep): (&str, u32),
    tool: &str,
    arguments: &Map<String, Value>,
    bounds: Bounds,
    near: Option<&Vector>,
) -> Outcome {
    let outcome = match tool {
        "search_case" => search_case(library, (case_id, timestep), arguments, bounds, near),
        "search_decisions" => search_decisions(library, timestep, arguments, bounds),
        "case_status" => {
            library.case_status(case_id, timestep).map_err(Fault::from).and_then(|status| Outcome::single(&status))
        }
        "decision_stats" => decision_stats(library, timestep, arguments),
        _ => Err(Fault(CallOutcome::UnknownTool, format!("unknown tool; there are {}", TOOL_NAMES.join(", ")))),
    };
    outcome.unwrap_or_else(|Fault(kind, problem)| Outcome::fault(kind, tool, &problem))
}

/// Query and number of hits of a search.
fn asked(given: &Map<String, Value>, bounds: Bounds) -> Result<(&str, usize), Fault> {
    let (query, k) = (arguments::query(given)?, arguments::k(given, bounds.default_k, bounds.max_k)?);
    fits(query, bounds)?;
    Ok((query, k))
}

fn fits(query: &str, bounds: Bounds) -> Result<(), Fault> {
    // Bytes are an upper bound of characters, so most queries need not be counted.
    if query.len() > bounds.query_chars {
        let length = query.chars().count();
        if length > bounds.query_chars {
            let problem =
                format!("query has {length} characters, the longest is {}; use fewer words", bounds.query_chars);
            return Err(Fault(CallOutcome::TooLong, problem));
        }
    }
    Ok(())
}

fn search_case(
    library: &Library,
    (case_id, timestep): (&str, u32),
    given: &Map<String, Value>,
    bounds: Bounds,
    near: Option<&Vector>,
) -> Result<Outcome, Fault> {
    let (query, k) = asked(given, bounds)?;
    let hits = library.search_case_near(case_id, timestep, query, near, k).inspect_err(|error| {
        if matches!(error, RetrievalError::Embed(_)) {
            tracing::error!(target: "gsj_retrieval", %error, "a search has no vectors");
        }
    })?;
    Outcome::hits(&hits)
}

fn search_decisions(
    library: &Library,
    timestep: u32,
    given: &Map<String, Value>,
    bounds: Bounds,
) -> Result<Outcome, Fault> {
    let (query, k) = asked(given, bounds)?;
    Outcome::hits(&library.search_decisions(timestep, query, k))
}

fn decision_stats(library: &Library, timestep: u32, given: &Map<String, Value>) -> Result<Outcome, Fault> {
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

    const BOUNDS: Bounds = Bounds { max_k: 20, default_k: 5, query_chars: 10 };

    #[test]
    fn a_query_that_is_too_long_is_told_so_by_its_characters() {
        let library = Library::from_pages(BTreeMap::from([("alpha".to_owned(), vec!["word".to_owned()])]));
        let library = library.expect("valid");
        let of = |tool: &str, query: &str| {
            let arguments = Map::from_iter([("query".to_owned(), Value::from(query))]);
            run(&library, ("alpha", 1), tool, &arguments, BOUNDS, None)
        };
        for tool in ["search_case", "search_decisions"] {
            assert_eq!(of(tool, "äöüäöüäöüß").kind, CallOutcome::Ok, "ten characters, whatever their bytes");
            let long = of(tool, "word word word");
            assert_eq!(long.kind, CallOutcome::TooLong);
            assert!(long.texts[0].contains("14 characters, the longest is 10"), "{long:?}");
        }
    }

    #[test]
    fn a_fault_of_the_scope_tells_neither_pages_nor_other_cases() {
        let pages = vec!["word".to_owned(); 47];
        let library = Library::from_pages(BTreeMap::from([("alpha".to_owned(), pages)])).expect("valid");
        let arguments = Map::from_iter([("query".to_owned(), Value::from("word"))]);
        for tool in ["search_case", "case_status"] {
            let late = run(&library, ("alpha", 900), tool, &arguments, BOUNDS, None);
            assert!(late.is_error() && late.texts[0].contains("timestep 900 is outside 1.. "), "{late:?}");
            assert!(!late.texts[0].contains("47"), "{late:?}");
            let other = run(&library, ("gamma", 1), tool, &arguments, BOUNDS, None);
            assert!(other.is_error() && other.texts[0].ends_with("unknown case gamma"), "{other:?}");
        }
    }
}
