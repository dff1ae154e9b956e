//! What rmcp calls: the server's introduction and the four tools.

use super::limits::Limiter;
use super::mcp::PROTOCOL_VERSIONS;
use super::metrics::Metrics;
use super::near::Near;
use super::{CallLog, CallOutcome, CallRecord, Episode, Options};
use crate::call::{self, Bounds, Outcome};
use axum::http::request::Parts;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest, CustomResult, ErrorData,
    GetPromptRequestParams, GetPromptResponse, Implementation, PromptsCapability, ProtocolVersion,
    ReadResourceRequestParams, ReadResourceResponse, ResourcesCapability, ServerCapabilities, ServerConfig,
    ToolsCapability,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tracing::info;

/// What every call passes: its rate, a place among the searches that run beside the runtime's threads, and its record.
pub(super) struct Gate {
    permits: Arc<Semaphore>,
    wait: Duration,
    waiting: AtomicUsize,
    max_waiting: usize,
    bounds: Bounds,
    limiter: Limiter,
    metrics: Arc<Metrics>,
    log: Option<CallLog>,
}

impl Gate {
    pub(super) fn new(options: &Options, metrics: Arc<Metrics>) -> Self {
        Self {
            permits: Arc::new(Semaphore::new(options.concurrent_searches.get().min(Semaphore::MAX_PERMITS))),
            wait: options.queue_timeout,
            waiting: AtomicUsize::new(0),
            max_waiting: options.max_waiting,
            bounds: Bounds { max_k: options.max_k, default_k: options.default_k, query_chars: options.max_query_chars },
            limiter: Limiter::new(options),
            metrics,
            log: options.call_log.clone(),
        }
    }

    /// The outcome of a call that goes no further: there were too many before, or its query is too long.
    fn refuses(&self, episode: &Episode, tool: &str, arguments: &Map<String, Value>) -> Option<Outcome> {
        match self.limiter.take(&episode.claims, Instant::now()) {
            Ok(()) => call::too_long(tool, arguments, self.bounds),
            Err(wait) => {
                let problem = format!("too many calls; try again in {} ms", wait.as_millis().max(1));
                Some(Outcome::fault(CallOutcome::Rate, tool, &problem))
            }
        }
    }

    async fn run(&self, episode: &Episode, tool: &str, arguments: Map<String, Value>, near: &Near) -> Outcome {
        let busy = || Outcome::fault(CallOutcome::Busy, tool, "the service is busy; try again");
        let Some(permit) = self.enter().await else { return busy() };
        let (library, claims, name) = (Arc::clone(&episode.library), episode.claims.clone(), tool.to_owned());
        let (bounds, near) = (self.bounds, near.vector.clone());
        let done = tokio::task::spawn_blocking(move || {
            // Held until the search itself is over, also when nobody waits for it any more.
            let _permit = permit;
            call::run(&library, (&claims.case_id, claims.timestep), &name, &arguments, bounds, near.as_deref())
        });
        done.await.unwrap_or_else(|_| Outcome::fault(CallOutcome::Failed, tool, "the search stopped; try again"))
    }

    /// Waits for a place, unless too many do already.
    async fn enter(&self) -> Option<OwnedSemaphorePermit> {
        let permits = Arc::clone(&self.permits);
        if let Ok(permit) = Arc::clone(&permits).try_acquire_owned() {
            return Some(permit);
        }
        let _waiting = Waiting::count(&self.waiting, self.max_waiting)?;
        tokio::time::timeout(self.wait, permits.acquire_owned()).await.ok()?.ok()
    }

    /// One line per call, with its outcome and never a token.
    fn record(&self, mut record: CallRecord, outcome: CallOutcome, results: usize, took: Duration) {
        record.latency_ms = (took.as_secs_f64() * 1e6).round() / 1e3;
        record.outcome = outcome;
        record.results = results;
        self.metrics.call(&record);
        info!(
            target: "gsj_retrieval",
            event = "tool_call",
            episode_id = record.episode_id,
            case_id = record.case_id,
            timestep = record.timestep,
            tool = record.tool,
            k = record.k,
            n_results = record.results,
            latency_ms = record.latency_ms,
            cache_hit = record.cache_hit,
            outcome = record.outcome.as_str(),
            "tool call"
        );
        if let Some(log) = &self.log {
            log(&record);
        }
    }
}

/// One that waits; counted until it is dropped.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn count(count: &'a AtomicUsize, most: usize) -> Option<Self> {
        let more = |waiting| (waiting < most).then_some(waiting + 1);
        count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        Some(Self(count))
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// One per request: rmcp makes it, asks it once and drops it.
pub(super) struct Handler {
    gate: Arc<Gate>,
}

impl Handler {
    pub(super) fn new(gate: Arc<Gate>) -> Self {
        Self { gate }
    }
}

fn episode(context: &RequestContext<RoleServer>) -> Option<Episode> {
    context.extensions.get::<Parts>().and_then(|parts| parts.extensions.get::<Episode>()).cloned()
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let mut tools = ToolsCapability::default();
        tools.list_changed = Some(false);
        let mut prompts = PromptsCapability::default();
        prompts.list_changed = Some(false);
        let mut resources = ResourcesCapability::default();
        resources.list_changed = Some(false);
        resources.subscribe = Some(false);
        let mut capabilities = ServerCapabilities::default();
        capabilities.experimental = Some(std::collections::BTreeMap::default());
        capabilities.tools = Some(tools);
        capabilities.prompts = Some(prompts);
        capabilities.resources = Some(resources);
        ServerConfig::new(capabilities)
            .with_protocol_version(ProtocolVersion::V_2025_11_25)
            .with_server_info(Implementation::new("gsj", ""))
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        let known = ProtocolVersion::KNOWN_VERSIONS.iter();
        known.filter(|version| PROTOCOL_VERSIONS.contains(&version.as_str())).cloned().collect::<Vec<_>>().into()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let started = Instant::now();
        let Some(episode) = episode(&context) else {
            return Err(ErrorData::internal_error("the request carries no scope", None));
        };
        let arguments = request.arguments.unwrap_or_default();
        let mut record = CallRecord::new(&episode.claims, &request.name, asked_k(&arguments));
        let (outcome, near) = match self.gate.refuses(&episode, &request.name, &arguments) {
            Some(fault) => (fault, Near::default()),
            None => match Near::of(&episode, &request.name, &arguments).await {
                Ok(near) => (self.gate.run(&episode, &request.name, arguments, &near).await, near),
                Err(fault) => (fault, Near::default()),
            },
        };
        record.cache_hit = near.cached;
        let (is_error, results) = (outcome.is_error(), if outcome.is_error() { 0 } else { outcome.texts.len() });
        let kind = if near.missing && !is_error { CallOutcome::WordsOnly } else { outcome.kind };
        self.gate.record(record, kind, results, started.elapsed());
        let texts = outcome.texts.into_iter().map(ContentBlock::text).collect();
        let mut result = if is_error { CallToolResult::error(texts) } else { CallToolResult::success(texts) };
        result.structured_content = outcome.structured;
        Ok(result.into())
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        Err(ErrorData::invalid_params(format!("Unknown prompt: {}", request.name), None))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        Err(ErrorData::resource_not_found(format!("Unknown resource: {}", request.uri), None))
    }

    /// Only methods that rmcp knows get this far, so what it could not read are the parameters.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        if request.method == "tools/call"
            && let Some(episode) = episode(&context)
        {
            let record = CallRecord::new(&episode.claims, "", "default".to_owned());
            self.gate.record(record, CallOutcome::BadArguments, 0, Duration::ZERO);
        }
        Err(ErrorData::invalid_params(format!("params of {} have another form", request.method), None))
    }
}

/// `k` as the call gave it; text is not repeated, since it could be anything, a token too.
fn asked_k(arguments: &Map<String, Value>) -> String {
    match arguments.get("k") {
        None => "default".to_owned(),
        Some(Value::Number(number)) => number.to_string(),
        Some(Value::Bool(flag)) => flag.to_string(),
        Some(Value::Null) => "null".to_owned(),
        Some(_) => "other".to_owned(),
    }
}
