//! The retrieval service of an estate, as the pipeline sees it.

use crate::error::EstateError;
use crate::lock::Lock;
use crate::web::{Answer, Call, Web};
use gsj_cutoff::tokens::{self, Claims, Secret};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Where the service is and how it is asked.
#[derive(Clone)]
#[non_exhaustive]
pub struct Service {
    /// Its URL, without a slash at the end.
    pub url: String,
    /// What signs its tokens.
    pub secret: Secret,
    /// Tells the time, in seconds since 1970, for tokens.
    pub clock: Arc<dyn Fn() -> i64 + Send + Sync>,
    /// How long an ingest may take, whatever the service does (15 minutes).
    pub timeout: Duration,
    /// How long to wait between two looks at its health (2 s).
    pub interval: Duration,
    /// How long it may be out of reach (30 s).
    pub patience: Duration,
    /// A file of certificates to trust instead of the system's.
    pub certificates: Option<PathBuf>,
}

impl Service {
    /// The service at an `http://` or `https://` URL.
    ///
    /// # Errors
    /// Refuses what is no such URL, or holds user information.
    pub fn new(url: &str, secret: Secret, clock: Arc<dyn Fn() -> i64 + Send + Sync>) -> Result<Self, EstateError> {
        if let Some(what) = crate::address::fault(url, &["http", "https"]) {
            let shown = if url.contains('@') { "..." } else { url };
            return Err(EstateError::BaseUrl { url: crate::names::shown(shown), what });
        }
        Ok(Self {
            url: url.trim_end_matches('/').to_owned(),
            secret,
            clock,
            timeout: Duration::from_secs(900),
            interval: Duration::from_secs(2),
            patience: Duration::from_secs(30),
            certificates: None,
        })
    }

    pub(crate) fn open(&self) -> Result<Asked<'_>, EstateError> {
        self.open_until(None)
    }

    /// A connection whose every call ends at the deadline, if there is one.
    pub(crate) fn open_until(&self, deadline: Option<Instant>) -> Result<Asked<'_>, EstateError> {
        let web = Web::new(&self.url, self.certificates.as_deref(), self.patience)?.until(deadline);
        Ok(Asked { service: self, web })
    }
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service").field("url", &self.url).field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

/// What `/health` says to whoever holds an admin token.
#[derive(Debug, Default)]
pub(crate) struct Health {
    pub(crate) state: String,
    pub(crate) error: Option<String>,
    /// `None` where it says nothing of cases.
    pub(crate) cases: Option<BTreeMap<String, Served>>,
}

/// What it says of one case.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Served {
    pub(crate) pages: Option<u64>,
    pub(crate) timesteps: Option<Vec<u64>>,
    pub(crate) commit: Option<String>,
}

/// One hit of a search.
#[derive(Debug)]
pub(crate) struct Hit {
    pub(crate) page: u64,
    pub(crate) text: String,
}

/// The answer to a trigger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Triggered {
    /// A run begins, or will, that sees all that was pushed before.
    Started,
    /// A run was going on, which may have fetched before the push.
    Already,
}

/// A connection to the service.
#[derive(Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) service: &'a Service,
    web: Web,
}

impl Asked<'_> {
    fn bearer(&self) -> Result<String, EstateError> {
        let token = tokens::mint_admin((self.service.clock)() + tokens::ADMIN_TTL_S, &self.service.secret);
        token.map(|token| format!("Bearer {token}")).map_err(|error| self.fault(&error.to_string()))
    }

    pub(crate) fn health(&self) -> Result<Health, EstateError> {
        let url = format!("{}/health", self.service.url);
        let bearer = self.bearer()?;
        let call =
            Call { method: "GET", url: &url, shown: &url, authorization: Some(&bearer), accept: None, body: None };
        let answer = self.web.call(&call)?;
        let body = answer.json().filter(|_| answer.status == 200);
        let state = body.as_ref().and_then(|body| body.get("state")?.as_str());
        match (&body, state) {
            (Some(body), Some(state)) => Ok(Health {
                state: state.to_owned(),
                error: body.get("error").and_then(Value::as_str).map(crate::names::shown),
                cases: body
                    .get("cases")
                    .filter(|cases| !cases.is_null())
                    .map(served)
                    .transpose()
                    .map_err(|what| self.fault(&format!("/health cannot be understood: {what}")))?,
            }),
            // The API of `gsj serve` tells strangers this and nothing else.
            (Some(body), None) if body.get("status").is_some() => {
                Err(self.fault(&format!("/health tells no state: it {}", self.refuses())))
            }
            _ => Err(self.fault(&format!("/health answered {} and no state{}", answer.status, answer.words()))),
        }
    }

    pub(crate) fn reindex(&self) -> Result<Triggered, EstateError> {
        let url = format!("{}/admin/reindex", self.service.url);
        let bearer = self.bearer()?;
        let call =
            Call { method: "POST", url: &url, shown: &url, authorization: Some(&bearer), accept: None, body: None };
        let answer = self.web.call(&call)?;
        let word = answer.json().and_then(|body| Some(body.get("reindex")?.as_str()?.to_owned())).unwrap_or_default();
        match (answer.status, word.as_str()) {
            (200 | 202, "already-indexing") => Ok(Triggered::Already),
            (200 | 202, _) => Ok(Triggered::Started),
            (401, _) => Err(self.fault(&format!("/admin/reindex {}", self.refuses()))),
            (404 | 405, _) => Err(self.fault("it has no /admin/reindex, so it cannot be told to read the corpus anew")),
            (status, _) => Err(self.fault(&format!("/admin/reindex answered {status}{}", answer.words()))),
        }
    }

    /// Searches a case as an episode at a timestep would; `Err` within says what the tool answered instead.
    pub(crate) fn search(
        &self,
        case: &str,
        timestep: u32,
        query: &str,
    ) -> Result<Result<Vec<Hit>, String>, EstateError> {
        let exp = (self.service.clock)() + tokens::ADMIN_TTL_S;
        let claims = Claims { case_id: case.to_owned(), timestep, episode_id: "verify".to_owned(), exp };
        let token = tokens::mint(&claims, &self.service.secret).map_err(|error| self.fault(&error.to_string()))?;
        let url = format!("{}/mcp/{token}", self.service.url);
        let shown = format!("{}/mcp/...", self.service.url);
        let arguments = json!({"query": query, "k": crate::verify::MOST_HITS});
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": "search_case", "arguments": arguments}});
        let call = Call {
            method: "POST",
            url: &url,
            shown: &shown,
            authorization: None,
            accept: Some("application/json, text/event-stream"),
            body: Some(body),
        };
        let answer = self.web.call(&call)?;
        Ok(hits(&answer))
    }

    /// What to look at when our token is not taken.
    fn refuses(&self) -> &'static str {
        if self.service.url.ends_with("/mcp") {
            "does not take our token: the URL is the service's own, without /mcp"
        } else {
            "does not take our token: is the secret the service's?"
        }
    }

    pub(crate) fn fault(&self, what: &str) -> EstateError {
        EstateError::Service { url: self.service.url.clone(), what: what.to_owned() }
    }
}

/// What `/health` says of cases; what is left out or null is not told, anything else must have its form.
fn served(cases: &Value) -> Result<BTreeMap<String, Served>, String> {
    let told = |case: &'_ Value, key: &str| case.get(key).filter(|value| !value.is_null()).cloned();
    let cases = cases.as_object().ok_or("`cases` is no mapping by case id")?;
    let of = |case: &Value| {
        case.as_object()?;
        Some(Served {
            pages: match told(case, "pages") {
                None => None,
                Some(pages) => Some(pages.as_u64()?),
            },
            timesteps: match told(case, "timesteps") {
                None => None,
                Some(numbers) => Some(numbers.as_array()?.iter().map(Value::as_u64).collect::<Option<_>>()?),
            },
            commit: match told(case, "commit") {
                None => None,
                Some(commit) => Some(commit.as_str()?.to_owned()),
            },
        })
    };
    let nonsense = |id: &str| format!("of the case `{}` it says what is no state of a case", crate::names::shown(id));
    cases.iter().map(|(id, case)| of(case).map(|case| (id.clone(), case)).ok_or_else(|| nonsense(id))).collect()
}

/// The hits in an answer of MCP: one JSON document, or one event that holds it.
fn hits(answer: &Answer) -> Result<Vec<Hit>, String> {
    let text = String::from_utf8_lossy(&answer.body);
    let document: String = if text.trim_start().starts_with('{') {
        text.into_owned()
    } else {
        text.lines().filter_map(|line| line.strip_prefix("data:")).collect()
    };
    let nonsense = || format!("search_case answered {} and no result{}", answer.status, answer.words());
    let document: Value = serde_json::from_str(document.trim()).map_err(|_| nonsense())?;
    let result = document.get("result").ok_or_else(nonsense)?;
    if result.get("isError").and_then(Value::as_bool) == Some(true) {
        let text = result.pointer("/content/0/text").and_then(Value::as_str).unwrap_or_default();
        return Err(crate::names::shown(text));
    }
    let list = result.pointer("/structuredContent/result").and_then(Value::as_array).ok_or_else(nonsense)?;
    list.iter()
        .map(|hit| {
            let page = hit.get("page").and_then(Value::as_u64).ok_or_else(nonsense)?;
            Ok(Hit { page, text: hit.get("text").and_then(Value::as_str).ok_or_else(nonsense)?.to_owned() })
        })
        .collect()
}

/// The commit of each case's full document, as the lock has it.
pub(crate) fn main_commits(lock: &Lock) -> BTreeMap<String, String> {
    lock.cases()
        .into_iter()
        .flatten()
        .filter_map(|(id, case)| {
            let main = ["full_refs", "refs"].iter().find_map(|key| case.get(key)?.get("main")?.as_str())?;
            Some((id.clone(), main.to_owned()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(body: &str) -> Answer {
        Answer { status: 200, body: body.as_bytes().to_vec() }
    }

    #[test]
    fn hits_are_read_from_a_document_and_from_an_event() {
        let document = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[],"structuredContent":{"result":[{"page":2,"text":"a"}]}}}"#;
        for body in [document.to_owned(), format!("event: message\r\ndata: {document}\r\n\r\n")] {
            let hits = hits(&answer(&body)).expect("hits");
            assert_eq!((hits.len(), hits[0].page, hits[0].text.as_str()), (1, 2, "a"));
        }
        let fault = r#"{"result":{"isError":true,"content":[{"type":"text","text":"Error executing tool"}]}}"#;
        assert_eq!(hits(&answer(fault)).expect_err("a fault"), "Error executing tool");
        for nonsense in ["", "{", "[]", "{\"result\":{}}", "data: 7"] {
            assert!(hits(&answer(nonsense)).is_err(), "{nonsense}");
        }
    }

    #[test]
    fn what_health_says_of_cases_has_its_form_or_is_a_fault() {
        let read = served(&json!({"a": {"pages": 2, "timesteps": [1, 2], "commit": "c"}, "b": {"commit": null}}));
        let read = read.expect("well formed");
        assert_eq!(read["a"], Served { pages: Some(2), timesteps: Some(vec![1, 2]), commit: Some("c".into()) });
        assert_eq!(read["b"], Served::default());
        for nonsense in [
            json!("x"),
            json!([]),
            json!({"a": 1}),
            json!({"a": {"pages": -1}}),
            json!({"a": {"timesteps": {"1": 2}}}),
            json!({"a": {"timesteps": [1, "2"]}}),
            json!({"a": {"commit": 7}}),
        ] {
            assert!(served(&nonsense).is_err(), "{nonsense}");
        }
    }

    #[test]
    fn addresses_with_a_credential_are_refused_without_showing_it() {
        let secret = Secret::new(vec![7; 32]).expect("long enough");
        let error = Service::new("http://u:hunter2@h", secret, Arc::new(|| 0)).expect_err("refused");
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }
}
