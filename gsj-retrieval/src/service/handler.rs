//! What rmcp calls: the server's introduction and the four tools.

use super::mcp::PROTOCOL_VERSIONS;
use super::near::Near;
use super::{Episode, Options};
use crate::TOOL_NAMES;
use crate::call::{self, Outcome};
use axum::http::request::Parts;
use gsj_cutoff::tokens::Claims;
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
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tracing::info;

/// Lets a bounded number of searches run beside the runtime's threads.
#[derive(Clone)]
pub(super) struct SearchGate {
    permits: Arc<Semaphore>,
    wait: Duration,
    max_k: u32,
}

impl SearchGate {
    pub(super) fn new(options: &Options) -> Self {
        Self {
            permits: Arc::new(Semaphore::new(options.concurrent_searches.get().min(Semaphore::MAX_PERMITS))),
            wait: options.queue_timeout,
            max_k: options.max_k,
        }
    }

    async fn run(&self, episode: &Episode, tool: &str, arguments: Map<String, Value>, near: &Near) -> Outcome {
        let Ok(Ok(permit)) = tokio::time::timeout(self.wait, Arc::clone(&self.permits).acquire_owned()).await else {
            return Outcome::fault(tool, "the service is busy; try again");
        };
        let (library, claims, name) = (Arc::clone(&episode.library), episode.claims.clone(), tool.to_owned());
        let (max_k, near) = (self.max_k, near.vector.clone());
        let done = tokio::task::spawn_blocking(move || {
            // Held until the search itself is over, also when nobody waits for it any more.
            let _permit = permit;
            call::run(&library, (&claims.case_id, claims.timestep), &name, &arguments, max_k, near.as_deref())
        });
        done.await.unwrap_or_else(|_| Outcome::fault(tool, "the search stopped; try again"))
    }
}

/// One per request: rmcp makes it, asks it once and drops it.
pub(super) struct Handler {
    gate: SearchGate,
}

impl Handler {
    pub(super) fn new(gate: SearchGate) -> Self {
        Self { gate }
    }
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
        let episode = context.extensions.get::<Parts>().and_then(|parts| parts.extensions.get::<Episode>()).cloned();
        let Some(episode) = episode else {
            return Err(ErrorData::internal_error("the request carries no scope", None));
        };
        let arguments = request.arguments.unwrap_or_default();
        let asked = asked_k(&arguments);
        let (outcome, near) = match Near::of(&episode, &request.name, &arguments).await {
            Ok(near) => (self.gate.run(&episode, &request.name, arguments, &near).await, near),
            Err(fault) => (fault, Near { missing: true, ..Near::default() }),
        };
        log(&episode.claims, &request.name, &asked, &outcome, &near, started.elapsed());
        let texts = outcome.texts.into_iter().map(ContentBlock::text).collect();
        let mut result = if outcome.is_error { CallToolResult::error(texts) } else { CallToolResult::success(texts) };
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
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
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

/// One line per call, with its outcome and never a token.
fn log(claims: &Claims, tool: &str, k: &str, outcome: &Outcome, near: &Near, took: Duration) {
    let tool = TOOL_NAMES.into_iter().find(|name| *name == tool).unwrap_or("unknown");
    let latency_ms = (took.as_secs_f64() * 1e6).round() / 1e3;
    info!(
        target: "gsj_retrieval",
        event = "tool_call",
        episode_id = claims.episode_id,
        case_id = claims.case_id,
        timestep = claims.timestep,
        tool,
        k,
        n_results = if outcome.is_error { 0 } else { outcome.texts.len() },
        latency_ms,
        cache_hit = near.cached,
        outcome = match (outcome.is_error, near.missing) {
            (true, _) => "error",
            (false, true) => "words_only",
            (false, false) => "ok",
        },
        "tool call"
    );
}
