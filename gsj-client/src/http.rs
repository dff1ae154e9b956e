//! One HTTP call: address, deadline, size limit, and the mapping of what went wrong.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use reqwest::{Method, Url};
use serde_json::Value;

use crate::error::{ClientError, ConnectError, field_errors, text};

/// How much of a body that is not JSON is shown in an error.
const EXCERPT: usize = 300;

/// Limits of every call.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// How long making a connection may take.
    pub connect_timeout: Duration,
    /// How long one call may take, its answer included.
    pub call_timeout: Duration,
    /// The largest answer that is accepted, in bytes.
    pub max_answer_bytes: usize,
}

impl Default for ClientOptions {
    /// 5 seconds to connect, 120 seconds for a call, 1 GiB for an answer.
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(5),
            call_timeout: Duration::from_secs(120),
            max_answer_bytes: 1 << 30,
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Http {
    base: Url,
    client: reqwest::Client,
    options: ClientOptions,
}

impl Http {
    pub(crate) fn new(base_url: &str, options: ClientOptions) -> Result<Self, ClientError> {
        let base = parse_base(base_url)?;
        // Another part of the process may have chosen a provider already; then that one is used.
        if rustls::crypto::CryptoProvider::get_default().is_none() {
            let _ = rustls::crypto::ring::default_provider().install_default();
        }
        let mut builder = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(options.connect_timeout)
            .pool_idle_timeout(Duration::from_secs(30));
        if base.scheme() == "http" {
            // No certificate is ever looked at, so a machine without root certificates must do.
            builder = builder.tls_certs_only([]);
        }
        let client =
            builder.build().map_err(|source| ClientError::Setup { url: shown(&base), source: source.without_url() })?;
        Ok(Self { base, client, options })
    }

    pub(crate) fn base(&self) -> String {
        shown(&self.base)
    }

    /// The URL of a path below the base; segments are escaped.
    pub(crate) fn url(&self, segments: &[&str]) -> Url {
        let mut url = self.base.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(segments);
        }
        url
    }

    /// The URL of a path below the base as it is shown to people.
    pub(crate) fn name(&self, segments: &[&str]) -> String {
        shown(&self.url(segments))
    }

    /// Makes one call and gives the body of a 2xx answer.
    pub(crate) async fn call(&self, method: Method, url: Url, body: Option<Vec<u8>>) -> Result<Bytes, ClientError> {
        let after = self.options.call_timeout;
        let name = shown(&url);
        let request = self.client.request(method, url);
        let exchange = Box::pin(exchange(request, name.clone(), body, self.options.max_answer_bytes));
        match tokio::time::timeout(after, exchange).await {
            Ok(answer) => answer,
            Err(_) => Err(ClientError::Slow { url: name, after }),
        }
    }
}

async fn exchange(
    request: reqwest::RequestBuilder,
    name: String,
    body: Option<Vec<u8>>,
    limit: usize,
) -> Result<Bytes, ClientError> {
    let request = match body {
        Some(body) => request.header("content-type", "application/json").body(body),
        None => request,
    };
    let lost = |source: reqwest::Error| {
        let connect = source.is_connect();
        let (url, source) = (name.clone(), source.without_url());
        if connect {
            ClientError::Unreachable { url, source: ConnectError::innermost(&source) }
        } else {
            ClientError::Interrupted { url, source }
        }
    };
    let mut answer = request.send().await.map_err(lost)?;
    let status = answer.status();
    let mut body = BytesMut::new();
    while let Some(chunk) = answer.chunk().await.map_err(lost)? {
        if body.len() + chunk.len() > limit {
            return Err(ClientError::TooLarge { url: name, limit });
        }
        body.extend_from_slice(&chunk);
    }
    if status.is_success() { Ok(body.freeze()) } else { Err(refused(name, status.as_u16(), &body)) }
}

/// The error for an answer that is no success.
fn refused(url: String, status: u16, body: &[u8]) -> ClientError {
    let parsed: Option<Value> = serde_json::from_slice(body).ok();
    let detail = parsed.as_ref().and_then(|v| v.get("detail").or_else(|| v.get("error")));
    if let (422, Some(detail)) = (status, detail) {
        return ClientError::Invalid { url, details: field_errors(detail) };
    }
    let detail = detail.map_or_else(
        || {
            let shown: String = String::from_utf8_lossy(body).trim().chars().take(EXCERPT).collect();
            if shown.is_empty() { "no detail given".to_owned() } else { shown }
        },
        text,
    );
    ClientError::Status { url, status, detail }
}

fn parse_base(base_url: &str) -> Result<Url, ClientError> {
    let wrong = |url: &str, reason: &str| ClientError::BaseUrl { url: url.to_owned(), reason: reason.to_owned() };
    let url = match Url::parse(base_url) {
        Ok(url) => url,
        // What cannot be parsed cannot be cleaned of credentials, so only a text that can hold none is shown.
        Err(e) if base_url.contains('@') => return Err(wrong("...", &e.to_string())),
        Err(e) => return Err(wrong(base_url, &e.to_string())),
    };
    if !matches!(url.scheme(), "http" | "https") {
        return Err(wrong(&shown(&url), "the scheme must be http or https"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(wrong(&shown(&url), "it must hold neither a query nor a fragment"));
    }
    Ok(url)
}

/// A URL without user name, password, query and fragment.
fn shown(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    // Fails only for URLs that cannot hold credentials.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    let text: String = url.into();
    text.strip_suffix('/').map(str::to_owned).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_escaped_below_the_base() {
        let http = Http::new("http://127.0.0.1:1/gsj/", ClientOptions::default()).unwrap();
        assert_eq!(
            http.url(&["rollout", "task", "a/b c?d"]).as_str(),
            "http://127.0.0.1:1/gsj/rollout/task/a%2Fb%20c%3Fd"
        );
    }

    #[test]
    fn an_unusable_base_url_is_refused_without_showing_credentials() {
        for (given, part) in [
            ("127.0.0.1:8080", "no base URL"),
            ("ftp://user:canary@host/", "http or https"),
            ("http://user:canary@host:99999/", "invalid port"),
            ("http://host/?q=canary", "query"),
        ] {
            let error = Http::new(given, ClientOptions::default()).unwrap_err().to_string();
            assert!(error.contains(part) && !error.contains("canary"), "{error}");
        }
    }

    #[test]
    fn a_422_names_the_fields() {
        let body = br#"{"detail":[{"loc":["body","agent","settings","timestep"],"msg":"must be at least 1","type":"value_error"},{"loc":["body"],"msg":"bad","type":"x"}]}"#;
        let error = refused("http://h/x".into(), 422, body);
        assert_eq!(
            error.to_string(),
            "http://h/x refused the request: agent.settings.timestep: must be at least 1; body: bad"
        );
    }

    #[test]
    fn another_refusal_shows_the_servers_words() {
        let of = |status, body: &str| refused("http://h".into(), status, body.as_bytes()).to_string();
        assert_eq!(of(409, "{\"detail\":\"task runs\"}"), "http://h answered 409: task runs");
        assert_eq!(of(500, "{\"error\":\"pins configuration: x\"}"), "http://h answered 500: pins configuration: x");
        assert_eq!(of(502, ""), "http://h answered 502: no detail given");
    }
}
