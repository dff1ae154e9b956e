//! One model call, from the agent's request to its record.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::http::{StatusCode, header};
use bytes::Bytes;

use crate::answer::{Complete, Evidence, Reading};
use crate::downstream::ToAgent;
use crate::engine::{AttemptError, describe};
use crate::failure::SessionFailure;
use crate::prepare::{Prepared, prepare};
use crate::record::{Outcome, Record};
use crate::session::{Arrival, Inner, error_body, gone_body};

/// The longest answer of an engine, in bytes.
const ANSWER_LIMIT: usize = 256 << 20;
/// How long the rest of a finished stream is waited for, so that its connection can serve again.
const DRAIN: Duration = Duration::from_secs(1);

/// What came of one attempt so far; outlives the attempt when that is broken off.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// The engine's answer as received.
    pub(crate) raw: Vec<u8>,
    pub(crate) first_byte: Option<Duration>,
    /// Time spent waiting for the engine.
    pub(crate) engine: Duration,
    /// Time spent waiting for the agent to take what it asked for.
    pub(crate) agent: Duration,
}

impl Progress {
    /// Waits for the engine, on the engine's account.
    async fn engine<T>(&mut self, wait: impl Future<Output = T>) -> T {
        let begun = Instant::now();
        let out = wait.await;
        self.engine += begun.elapsed();
        out
    }

    fn take(&mut self, bytes: &[u8]) -> Result<(), Step> {
        self.first_byte.get_or_insert(self.engine);
        if self.raw.len() + bytes.len() > ANSWER_LIMIT {
            return Err(Step::Incomplete { reason: "its answer is larger than 256 MB".to_owned() });
        }
        self.raw.extend_from_slice(bytes);
        Ok(())
    }
}

/// How an attempt ended.
#[derive(Debug)]
enum Step {
    Complete(Box<Complete>),
    /// An answer began and did not end as one.
    Incomplete {
        reason: String,
    },
    /// No answer.
    Refused(AttemptError),
    /// The agent left.
    AgentGone,
    /// The session is over.
    Stopped,
}

/// Runs a call to its end. Everything that happens to it is recorded.
pub(crate) async fn run(session: Arc<Inner>, arrival: Arrival, mut to_agent: ToAgent) {
    let prepared = match prepare(session.engine.options(), session.sampling(), &arrival.body) {
        Ok(prepared) => prepared,
        Err(malformed) => {
            let reason = malformed.to_string();
            session.give_turn_back();
            let record = Record::new(&session, &arrival, None, Outcome::Refused).error(&reason);
            // A log that cannot be written has ended the session: nothing is left to do here.
            let _logged = record.append().await;
            let _sent = to_agent.whole(StatusCode::BAD_REQUEST, error_body("invalid_request", &reason)).await;
            return;
        }
    };
    let mut call = Call { session, arrival, prepared };
    call.run(&mut to_agent).await;
}

struct Call {
    session: Arc<Inner>,
    arrival: Arrival,
    prepared: Prepared,
}

impl Call {
    async fn run(&mut self, to_agent: &mut ToAgent) {
        let retries = self.session.engine.options().retries;
        let mut tried = 0;
        loop {
            tried += 1;
            let mut progress = Progress::default();
            let step = self.attempt(to_agent, &mut progress).await;
            self.session.spent(progress.engine);
            let may_retry = tried <= retries && !to_agent.has_begun();
            let failure = match step {
                Step::Complete(complete) => return self.conclude(*complete, &progress, to_agent).await,
                Step::AgentGone => return self.abort(&progress, "the agent closed the connection").await,
                Step::Stopped => return self.abort(&progress, "the session ended").await,
                Step::Incomplete { reason } => {
                    let reason = self.session.engine.redact(&reason).into_owned();
                    self.record_aborted(&progress, &reason).await;
                    if to_agent.has_begun() {
                        // The agent sees its connection break, which it may answer with a retry.
                        self.session.give_turn_back();
                        return;
                    }
                    if may_retry {
                        self.arrival.sequence = self.session.next_sequence();
                        self.arrival.at = self.session.options.clock.now();
                    }
                    SessionFailure::incomplete(&self.session.engine, &reason, tried)
                }
                Step::Refused(error) => {
                    let lasting = !error.is_passing();
                    let failure = SessionFailure::refused(&self.session.engine, &error, tried).await;
                    if lasting {
                        return self.refuse(failure, &progress, None, to_agent).await;
                    }
                    failure
                }
            };
            if !may_retry {
                return self.refuse(failure, &progress, None, to_agent).await;
            }
            tracing::info!(session = %self.session.options.session_id, attempt = tried, "{failure}; trying again");
            if let Some(reason) = self.pause(to_agent, tried).await {
                return self.abort(&Progress::default(), reason).await;
            }
        }
    }

    /// One attempt, broken off when the agent leaves or the session ends.
    async fn attempt(&self, to_agent: &mut ToAgent, progress: &mut Progress) -> Step {
        let gone = to_agent.gone();
        tokio::select! {
            biased;
            () = self.session.stop.cancelled() => Step::Stopped,
            () = gone => Step::AgentGone,
            step = self.ask(to_agent, progress) => step.unwrap_or_else(|step| step),
        }
    }

    async fn ask(&self, to_agent: &mut ToAgent, progress: &mut Progress) -> Result<Step, Step> {
        let asked = self.session.engine.chat(self.prepared.upstream.clone());
        let response = progress.engine(asked).await.map_err(Step::Refused)?;
        let kind = response.headers().get(header::CONTENT_TYPE);
        let streamed = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
        if streamed {
            self.read_stream(response, to_agent, progress).await
        } else {
            self.read_whole(response, progress).await
        }
    }

    async fn read_whole(&self, mut response: reqwest::Response, progress: &mut Progress) -> Result<Step, Step> {
        while let Some(bytes) = next(&mut response, progress).await? {
            progress.take(&bytes)?;
        }
        let dialect = self.session.engine.options().kind.dialect();
        let complete = Complete::from_whole(dialect, &progress.raw, self.prepared.wants)
            .map_err(|reason| Step::Incomplete { reason })?;
        Ok(Step::Complete(Box::new(complete)))
    }

    async fn read_stream(
        &self,
        mut response: reqwest::Response,
        to_agent: &mut ToAgent,
        progress: &mut Progress,
    ) -> Result<Step, Step> {
        let broken = |reason| Step::Incomplete { reason };
        let mut reading = Reading::new(self.prepared.wants);
        while let Some(bytes) = next(&mut response, progress).await? {
            progress.take(&bytes)?;
            let events = reading.take(&bytes).map_err(broken)?;
            if !events.is_empty() {
                let begun = Instant::now();
                let sent = to_agent.events(events).await;
                progress.agent += begun.elapsed();
                sent.map_err(|_| Step::AgentGone)?;
            }
            if reading.is_done() {
                // What was said is complete; the rest is read only for the connection's sake.
                self.session.spawn(async move {
                    let rest = async { while let Ok(Some(_)) = response.chunk().await {} };
                    let _drained = tokio::time::timeout(DRAIN, rest).await;
                });
                break;
            }
        }
        let complete = reading.finish(self.session.engine.options().kind.dialect()).map_err(broken)?;
        Ok(Step::Complete(Box::new(complete)))
    }

    /// Records a whole answer, then lets it end.
    async fn conclude(&self, complete: Complete, progress: &Progress, to_agent: &mut ToAgent) {
        let missing = match complete.evidence {
            Evidence::Full => None,
            Evidence::NoTokenIds => Some(SessionFailure::no_token_ids(&self.session.engine)),
            Evidence::NoLogprobs => Some(SessionFailure::no_logprobs(&self.session.engine)),
        };
        if let Some(failure) = missing {
            return self.refuse(failure, progress, Some(&complete.response), to_agent).await;
        }
        let record = Record::new(&self.session, &self.arrival, Some(&self.prepared), Outcome::Completed)
            .progress(progress)
            .response(&complete.response);
        let Some(line) = record.append().await else {
            // Evidence that is not kept must not look like an answer.
            if !to_agent.has_begun() {
                self.say_gone(to_agent).await;
            }
            return;
        };
        let used = complete.model_used.as_deref();
        self.session.count_completed(complete.tokens, self.prepared.model_requested.as_deref(), used);
        let reply = Bytes::from(complete.reply);
        // An agent that is gone by now has its call on record all the same.
        let _sent = if self.prepared.wants.stream {
            match to_agent.events(reply).await {
                Ok(()) => to_agent.end().await,
                gone => gone,
            }
        } else {
            to_agent.whole(StatusCode::OK, reply).await
        };
        self.merge(line).await;
    }

    /// Adds the call to the session's trajectory, when the agent has its answer already.
    async fn merge(&self, line: String) {
        if !self.session.merged.is_wanted() {
            return;
        }
        let (session, sequence) = (Arc::clone(&self.session), self.arrival.sequence);
        let merging = tokio::task::spawn_blocking(move || session.merged.take(sequence, &line));
        if let Err(error) = merging.await {
            tracing::error!(session = %self.session.options.session_id, %error, "merging a call");
        }
    }

    /// Ends the session over this call.
    async fn refuse(
        &self,
        failure: SessionFailure,
        progress: &Progress,
        response: Option<&str>,
        to_agent: &mut ToAgent,
    ) {
        let record = Record::new(&self.session, &self.arrival, Some(&self.prepared), Outcome::Refused)
            .progress(progress)
            .error(&failure.message);
        let record = match response {
            Some(response) => record.response(response),
            None => record,
        };
        let _logged = record.append().await;
        self.session.give_turn_back();
        self.session.fail(failure);
        if !to_agent.has_begun() {
            self.say_gone(to_agent).await;
        }
    }

    async fn say_gone(&self, to_agent: &mut ToAgent) {
        let _sent = to_agent.whole(StatusCode::GONE, gone_body()).await;
    }

    async fn abort(&self, progress: &Progress, reason: &str) {
        // Stays a turn: what an agent has read, or may have, it must not get for nothing by hanging up.
        self.record_aborted(progress, reason).await;
    }

    async fn record_aborted(&self, progress: &Progress, reason: &str) {
        self.session.count_aborted();
        let record = Record::new(&self.session, &self.arrival, Some(&self.prepared), Outcome::Aborted);
        let _logged = record.progress(progress).error(reason).append().await;
    }

    /// Waits before the next attempt; gives the reason when there is to be none.
    async fn pause(&self, to_agent: &ToAgent, tried: u32) -> Option<&'static str> {
        let factor = 1 << (tried - 1).min(4);
        tokio::select! {
            () = self.session.stop.cancelled() => Some("the session ended"),
            () = to_agent.gone() => Some("the agent closed the connection"),
            () = tokio::time::sleep(self.session.engine.options().backoff * factor) => None,
        }
    }
}

/// The next piece of an answer. A connection that breaks is the end of half an answer.
async fn next(response: &mut reqwest::Response, progress: &mut Progress) -> Result<Option<Bytes>, Step> {
    progress
        .engine(response.chunk())
        .await
        .map_err(|error| Step::Incomplete { reason: format!("its answer broke off: {}", describe(&error)) })
}
