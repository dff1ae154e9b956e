//! One line of a session's log.

use gsj_trace::json::{Object, Value};

use crate::call::Progress;
use crate::clock::rfc3339;
use crate::failure::{FailureKind, SessionFailure};
use crate::prepare::Prepared;
use crate::session::{Arrival, Inner, millis};

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// With a whole answer.
    Completed,
    /// In the middle.
    Aborted,
    /// Without an answer that a trace could use.
    Refused,
}

impl Outcome {
    fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Aborted => "aborted",
            Self::Refused => "refused",
        }
    }
}

/// A record under construction.
#[derive(Debug)]
pub(crate) struct Record<'a> {
    session: &'a Inner,
    arrival: &'a Arrival,
    prepared: Option<&'a Prepared>,
    outcome: Outcome,
    progress: Option<&'a Progress>,
    response: Option<&'a str>,
    error: Option<&'a str>,
}

impl<'a> Record<'a> {
    pub(crate) fn new(
        session: &'a Inner,
        arrival: &'a Arrival,
        prepared: Option<&'a Prepared>,
        outcome: Outcome,
    ) -> Self {
        Self { session, arrival, prepared, outcome, progress: None, response: None, error: None }
    }

    pub(crate) fn progress(mut self, progress: &'a Progress) -> Self {
        self.progress = Some(progress);
        self
    }

    pub(crate) fn response(mut self, response: &'a str) -> Self {
        self.response = Some(response);
        self
    }

    pub(crate) fn error(mut self, error: &'a str) -> Self {
        self.error = Some(error);
        self
    }

    /// Writes the record and gives its line, once that stands; a log that cannot be written ends the session.
    pub(crate) async fn append(self) -> Option<String> {
        let session = self.session;
        let line = self.line();
        match session.log.append(line).await {
            Ok(line) => Some(line),
            Err(error) => {
                let message = format!("write the session log `{}`: {error}", session.log.path().display());
                session.fail(SessionFailure::new(FailureKind::Log, message));
                None
            }
        }
    }

    fn line(&self) -> String {
        let raw = self.progress.map(|progress| String::from_utf8_lossy(&progress.raw)).unwrap_or_default();
        let raw = self.session.engine.redact(&raw);
        let original = self.prepared.map(|prepared| prepared.original.line());
        let mut line = String::with_capacity(
            raw.len()
                + raw.len() / 8
                + self.response.map_or(0, str::len)
                + self.prepared.map_or(0, |p| p.request.len())
                + original.as_ref().map_or(0, |text| text.len())
                + 2048,
        );
        let sequence = self.arrival.sequence;
        line.push_str("{\"completion_id\":");
        push_text(&mut line, &format!("c{sequence:06}"));
        line.push_str(",\"sequence\":");
        line.push_str(&sequence.to_string());
        line.push_str(",\"timestamp\":");
        push_text(&mut line, &rfc3339(self.arrival.at));
        line.push_str(",\"outcome\":");
        push_text(&mut line, self.outcome.as_str());
        line.push_str(",\"original_request\":");
        line.push_str(original.as_deref().unwrap_or("{}"));
        line.push_str(",\"request\":");
        line.push_str(self.prepared.map_or("{}", |prepared| &prepared.request));
        line.push_str(",\"response\":");
        line.push_str(self.response.unwrap_or("{}"));
        line.push_str(",\"metadata\":");
        line.push_str(&self.metadata().to_json());
        line.push_str(",\"error\":");
        match self.error {
            Some(error) => push_text(&mut line, error),
            None => line.push_str("null"),
        }
        line.push_str(",\"raw\":");
        push_text(&mut line, &raw);
        line.push_str("}\n");
        line
    }

    fn metadata(&self) -> Value<'static> {
        let mut out: Object<'static> = self.session.options.metadata.as_object().cloned().unwrap_or_default();
        out.insert("gsj_sampling", self.prepared.map(|prepared| prepared.sampling.clone()));
        let mut timing = Object::new();
        let total = self.arrival.started.elapsed();
        if let Some(progress) = self.progress {
            timing.insert("first_byte_ms", progress.first_byte.map(millis));
            timing.insert("engine_ms", millis(progress.engine));
            timing.insert("gateway_ms", millis(total.saturating_sub(progress.engine + progress.agent)));
        }
        timing.insert("total_ms", millis(total));
        out.insert("gsj_timing", timing);
        Value::from(out)
    }
}

fn push_text(line: &mut String, text: &str) {
    line.push_str(&Value::from(text).to_json());
}
