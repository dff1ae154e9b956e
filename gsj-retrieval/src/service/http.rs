//! Paths and methods. Dispatch is by hand because the token is the rest of the path, whatever it holds.

use super::refusal::Refusal;
use super::{Scope, Shared, admin, mcp};
use crate::Library;
use axum::Router;
use axum::body::{Body, Bytes, HttpBody as _};
use axum::extract::{Request, State};
use axum::http::header::{ALLOW, HOST};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use http_body_util::BodyExt as _;
use percent_encoding::percent_decode_str;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tracing::info;

/// How much of a refused request's body is looked at, for its id.
const REFUSED_BODY: usize = 1024 * 1024;
/// How much of a body that is too large is still taken from the wire. A client that sends first and reads then would
/// otherwise find the connection reset, and no answer.
const DRAINED: usize = 32 * 1024 * 1024;

/// One socket: everybody's, or one session's.
pub(super) struct Front {
    pub(super) shared: Arc<Shared>,
    only: Option<Only>,
}

/// What one session's socket is for.
pub(super) struct Only {
    pub(super) scope: Scope,
    /// The library that the session began with, which it keeps.
    pub(super) library: Option<Arc<Library>>,
}

pub(super) fn router(shared: Arc<Shared>, only: Option<Only>) -> Router {
    Router::new().fallback(serve).with_state(Arc::new(Front { shared, only }))
}

async fn serve(State(front): State<Arc<Front>>, request: Request) -> Response {
    let path = percent_decode_str(request.uri().path()).decode_utf8_lossy().into_owned();
    if path != "/health" && !is_for_us(&front, &request) {
        front.shared.metrics.refused("host");
        return (StatusCode::MISDIRECTED_REQUEST, "this host is not served here").into_response();
    }
    match path.as_str() {
        "/health" => admin::health(&front.shared, request.headers(), front.only.is_some()),
        "/admin/reindex" if front.only.is_none() => admin::reindex(&front.shared, request.method(), request.headers()),
        "/metrics" if front.only.is_none() => admin::metrics(&front.shared, request.method(), request.headers()),
        "/mcp" => episode(&front, "", request).await,
        _ => match path.strip_prefix("/mcp/") {
            Some(token) => episode(&front, token, request).await,
            None => (StatusCode::NOT_FOUND, "not found").into_response(),
        },
    }
}

/// Whether the request names a host that is served, where that is asked for.
fn is_for_us(front: &Front, request: &Request) -> bool {
    let Some(hosts) = front.shared.options.allowed_hosts.as_ref().filter(|_| front.only.is_none()) else { return true };
    let named = request.headers().get(HOST).and_then(|host| host.to_str().ok());
    let Some(named) = named.or_else(|| request.uri().authority().map(|authority| authority.as_str())) else {
        return false;
    };
    // The port follows the last colon, unless that stands within the brackets of an address.
    let name = named.rsplit_once(':').filter(|(_, port)| !port.contains(']')).map_or(named, |(name, _)| name);
    hosts.iter().any(|host| match host.strip_suffix(":*") {
        Some(host) => host.eq_ignore_ascii_case(name),
        None => host.eq_ignore_ascii_case(named) || host.eq_ignore_ascii_case(name),
    })
}

async fn episode(front: &Front, token: &str, request: Request) -> Response {
    let episode = match front.shared.admit(token, front.only.as_ref()) {
        Ok(episode) => episode,
        Err(refusal) => return refuse(front, &refusal, request.into_body()).await,
    };
    if request.method() == Method::POST {
        return mcp::post(front, episode, request).await;
    }
    (StatusCode::METHOD_NOT_ALLOWED, [(ALLOW, "POST")], "method not allowed").into_response()
}

async fn refuse(front: &Front, refusal: &Refusal, body: Body) -> Response {
    front.shared.metrics.refused(refusal.reason());
    info!(target: "gsj_retrieval", event = "refused", reason = refusal.reason(), "episode refused");
    let id = match read_body(body, REFUSED_BODY, front.shared.options.body_timeout).await {
        Ok(bytes) => request_id(&bytes),
        Err(_) => None,
    };
    refusal.respond(id.as_deref())
}

/// The member `id` of a body that is a JSON object, spelled as it was: a number may be one that no type of ours holds.
fn request_id(body: &[u8]) -> Option<Box<RawValue>> {
    let Named(id) = serde_json::from_str(std::str::from_utf8(body).ok()?).ok()?;
    id
}

/// An object's `id`; the last, where it stands twice.
struct Named(Option<Box<RawValue>>);

impl<'de> Deserialize<'de> for Named {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(NamedVisitor)
    }
}

struct NamedVisitor;

impl<'de> Visitor<'de> for NamedVisitor {
    type Value = Named;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Named, A::Error> {
        let mut id = None;
        while let Some(name) = members.next_key::<String>()? {
            if name == "id" {
                id = Some(members.next_value()?);
            } else {
                members.next_value::<IgnoredAny>()?;
            }
        }
        Ok(Named(id))
    }
}

/// Why a body could not be read.
pub(super) enum BodyFault {
    TooLarge,
    TooSlow,
    Broken,
}

pub(super) async fn read_body(mut body: Body, limit: usize, within: Duration) -> Result<Bytes, BodyFault> {
    let most = limit.saturating_add(DRAINED);
    // One that says so much of itself is not even begun with.
    if usize::try_from(body.size_hint().lower()).map_or(true, |size| size > most) {
        return Err(BodyFault::TooLarge);
    }
    let (mut kept, mut seen) = (Vec::new(), 0_usize);
    let arrived = async {
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame.map_err(|_| BodyFault::Broken)?.into_data() else { continue };
            seen = seen.saturating_add(data.len());
            match seen {
                _ if seen <= limit => kept.extend_from_slice(&data),
                _ if seen <= most => kept = Vec::new(),
                _ => break,
            }
        }
        Ok(())
    };
    let ended = tokio::time::timeout(within, arrived).await.unwrap_or(Err(BodyFault::TooSlow));
    if seen > limit {
        return Err(BodyFault::TooLarge);
    }
    ended.map(|()| Bytes::from(kept))
}
