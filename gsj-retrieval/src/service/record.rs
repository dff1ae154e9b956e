//! What is said of one tool call: a line with its outcome, and never a token (retrieval.md section 10).

use crate::TOOL_NAMES;
use gsj_cutoff::tokens::Claims;
use serde_json::{Map, Value, json};

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum CallOutcome {
    /// It was answered.
    Ok,
    /// It was answered by words alone, since its query had no vector.
    WordsOnly,
    /// Its arguments are not those of the tool.
    BadArguments,
    /// There is no such tool.
    UnknownTool,
    /// The query is longer than is searched for.
    TooLong,
    /// The episode, or all together, asked too often.
    Rate,
    /// No search had room for it in time.
    Busy,
    /// It broke off.
    Failed,
}

impl CallOutcome {
    pub(super) const ALL: [Self; 8] = [
        Self::Ok,
        Self::WordsOnly,
        Self::BadArguments,
        Self::UnknownTool,
        Self::TooLong,
        Self::Rate,
        Self::Busy,
        Self::Failed,
    ];

    /// One word, as logs and metrics have it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::WordsOnly => "words_only",
            Self::BadArguments => "bad_arguments",
            Self::UnknownTool => "unknown_tool",
            Self::TooLong => "too_long",
            Self::Rate => "rate",
            Self::Busy => "busy",
            Self::Failed => "failed",
        }
    }
}

/// One member of a call's line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LogField {
    /// `event`, always `tool_call`.
    Event,
    /// `episode_id`, as the token claims it.
    EpisodeId,
    /// `case_id`.
    CaseId,
    /// `timestep`.
    Timestep,
    /// `tool`; `unknown` for one that is not ours, whose name could be anything.
    Tool,
    /// `k` as it was asked for.
    K,
    /// `n_results`.
    NResults,
    /// `latency_ms`, from the call to its answer.
    LatencyMs,
    /// `cache_hit`: whether the query's vector was known already.
    CacheHit,
    /// `outcome`, a [`CallOutcome`].
    Outcome,
}

impl LogField {
    /// All of them, in the usual order.
    pub const ALL: [Self; 10] = [
        Self::Event,
        Self::EpisodeId,
        Self::CaseId,
        Self::Timestep,
        Self::Tool,
        Self::K,
        Self::NResults,
        Self::LatencyMs,
        Self::CacheHit,
        Self::Outcome,
    ];

    /// Its name in the line.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Event => "event",
            Self::EpisodeId => "episode_id",
            Self::CaseId => "case_id",
            Self::Timestep => "timestep",
            Self::Tool => "tool",
            Self::K => "k",
            Self::NResults => "n_results",
            Self::LatencyMs => "latency_ms",
            Self::CacheHit => "cache_hit",
            Self::Outcome => "outcome",
        }
    }

    /// The field of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|field| field.as_str() == name)
    }
}

/// One tool call that has been answered.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct CallRecord {
    /// The episode.
    pub episode_id: String,
    /// The case.
    pub case_id: String,
    /// The timestep T.
    pub timestep: u32,
    /// The tool, or `unknown`.
    pub tool: &'static str,
    /// `k` as the call gave it: a number, `true` or `false`, or `default`, `null` or `other` for what is none.
    pub k: String,
    /// How many hits or objects were given.
    pub results: usize,
    /// From the call to its answer, in milliseconds.
    pub latency_ms: f64,
    /// Whether the query's vector was known already.
    pub cache_hit: bool,
    /// How it ended.
    pub outcome: CallOutcome,
}

impl CallRecord {
    pub(super) fn new(claims: &Claims, tool: &str, k: String) -> Self {
        Self {
            episode_id: claims.episode_id.clone(),
            case_id: claims.case_id.clone(),
            timestep: claims.timestep,
            tool: TOOL_NAMES.into_iter().find(|name| *name == tool).unwrap_or("unknown"),
            k,
            results: 0,
            latency_ms: 0.0,
            cache_hit: false,
            outcome: CallOutcome::Failed,
        }
    }

    /// The line: one JSON object with these members in this order.
    #[must_use]
    pub fn line(&self, fields: &[LogField]) -> String {
        let value = |field: LogField| match field {
            LogField::Event => json!("tool_call"),
            LogField::EpisodeId => json!(self.episode_id),
            LogField::CaseId => json!(self.case_id),
            LogField::Timestep => json!(self.timestep),
            LogField::Tool => json!(self.tool),
            LogField::K => serde_json::from_str(&self.k).unwrap_or_else(|_| json!(self.k)),
            LogField::NResults => json!(self.results),
            LogField::LatencyMs => json!(self.latency_ms),
            LogField::CacheHit => json!(self.cache_hit),
            LogField::Outcome => json!(self.outcome.as_str()),
        };
        let members: Map<String, Value> =
            fields.iter().map(|field| (field.as_str().to_owned(), value(*field))).collect();
        Value::Object(members).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_members_asked_for_in_their_order() {
        let claims = Claims { case_id: "c".into(), timestep: 3, episode_id: "e\n".into(), exp: 0 };
        let mut record = CallRecord::new(&claims, "search_case", "7".into());
        (record.latency_ms, record.outcome, record.results) = (1.25, CallOutcome::Ok, 2);
        assert_eq!(
            record.line(&LogField::ALL),
            r#"{"event":"tool_call","episode_id":"e\n","case_id":"c","timestep":3,"tool":"search_case","k":7,"n_results":2,"latency_ms":1.25,"cache_hit":false,"outcome":"ok"}"#
        );
        let fields: Vec<LogField> = ["k", "tool"].into_iter().filter_map(LogField::named).collect();
        let unknown = CallRecord::new(&claims, "Authorization: Bearer x", "default".into());
        assert_eq!(unknown.line(&fields), r#"{"k":"default","tool":"unknown"}"#);
        assert_eq!(LogField::named("token"), None);
    }
}
