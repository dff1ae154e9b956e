//! The wire of an embeddings endpoint, with every answer checked.

use super::{EmbedError, EmbedKey, EmbedOptions};
use crate::vectors::Vector;
use reqwest::header::{AUTHORIZATION, HeaderValue, RETRY_AFTER};
use reqwest::{StatusCode, Url, redirect};
use serde::Deserialize;
use std::error::Error as _;
use std::time::Duration;

/// The code that says how a text goes out and a vector comes in, for fingerprints.
pub(super) const CODE: &str = include_str!("client.rs");
/// For making a connection.
const CONNECT: Duration = Duration::from_secs(10);
/// The longest wait between two tries, whatever the endpoint asks for.
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// The longest text of an endpoint that is quoted.
const QUOTED: usize = 300;
/// The longest error body that is read.
const ERROR_BODY: usize = 64 << 10;
/// The longest answer that is read, for each text: 2^16 numbers of 32 characters.
const ANSWER_BODY: usize = 2 << 20;

#[derive(Debug)]
pub(super) struct Client {
    http: reqwest::Client,
    endpoint: Url,
}

#[derive(Deserialize)]
struct Answer {
    data: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    index: Option<u64>,
    embedding: Vec<f32>,
}

/// What one try gave, where it gave no vectors.
struct Failed {
    error: EmbedError,
    /// Whether another try may help, and how long the endpoint wants to be left alone.
    again: Option<Duration>,
}

impl Client {
    pub(super) fn new(options: &EmbedOptions) -> Result<Self, EmbedError> {
        let endpoint = endpoint(&options.base_url)?;
        Self::to(endpoint, options)
    }

    /// Another one to the same endpoint, with connections of its own.
    pub(super) fn again(&self, options: &EmbedOptions) -> Result<Self, EmbedError> {
        Self::to(self.endpoint.clone(), options)
    }

    fn to(endpoint: Url, options: &EmbedOptions) -> Result<Self, EmbedError> {
        // Another part of the process may have chosen a provider already; then that one is used.
        if rustls::crypto::CryptoProvider::get_default().is_none() {
            drop(rustls::crypto::ring::default_provider().install_default());
        }
        let mut builder = reqwest::Client::builder()
            .no_proxy()
            .redirect(redirect::Policy::none())
            .tcp_nodelay(true)
            .connect_timeout(CONNECT)
            .timeout(options.timeout);
        if endpoint.scheme() == "http" {
            // A machine without certificate roots can still speak plain HTTP.
            builder = builder.tls_certs_only([]);
        }
        let http = builder.build().map_err(|error| EmbedError::Client { problem: error.without_url().to_string() })?;
        Ok(Self { http, endpoint })
    }

    pub(super) fn late(&self, after: Duration) -> EmbedError {
        EmbedError::Late { url: self.url(), after }
    }

    /// What it answers cannot be used.
    pub(super) fn unusable(&self, problem: String) -> EmbedError {
        EmbedError::Answer { url: self.url(), problem }
    }

    fn url(&self) -> String {
        self.endpoint.to_string()
    }

    /// The vectors of some texts, in their order. Tries again where that may help.
    pub(super) async fn embed(&self, options: &EmbedOptions, texts: &[String]) -> Result<Vec<Vector>, EmbedError> {
        let mut body = serde_json::json!({"model": options.model, "input": texts, "encoding_format": "float"});
        if let Some(dimensions) = options.dimensions {
            body["dimensions"] = dimensions.get().into();
        }
        let body = body.to_string();
        let mut wait = options.backoff;
        let mut tries = 0;
        loop {
            tries += 1;
            match self.once(options, &body, texts.len(), tries).await {
                Ok(vectors) => return Ok(vectors),
                Err(Failed { error, again: None }) => return Err(error),
                Err(Failed { error, .. }) if tries > options.retries => return Err(error),
                Err(Failed { again: Some(asked), .. }) => {
                    tokio::time::sleep(wait.max(asked).min(LONGEST_WAIT)).await;
                    wait = wait.saturating_mul(2);
                }
            }
        }
    }

    async fn once(&self, options: &EmbedOptions, body: &str, texts: usize, tries: u32) -> Result<Vec<Vector>, Failed> {
        let unreachable = |error: reqwest::Error| Failed {
            error: EmbedError::Unreachable { url: self.url(), problem: describe(&error), tries },
            again: Some(Duration::ZERO),
        };
        let mut request =
            self.http.post(self.endpoint.clone()).header("content-type", "application/json").body(body.to_owned());
        if let Some(key) = &options.key {
            request = request.header(AUTHORIZATION, bearer(key).map_err(|error| Failed { error, again: None })?);
        }
        let mut response = request.send().await.map_err(unreachable)?;
        let status = response.status();
        if status != StatusCode::OK {
            let passing = status.is_server_error()
                || matches!(status, StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS);
            let asked = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok());
            let again = passing.then(|| Duration::from_secs(asked.unwrap_or(0)));
            // What was read of it is enough to quote.
            let said = read(&mut response, ERROR_BODY).await.map(|(body, _)| body).unwrap_or_default();
            let said = quoted(options.key.as_ref(), &said);
            return Err(Failed {
                error: EmbedError::Refused { url: self.url(), status: status.as_u16(), said },
                again,
            });
        }
        let (answer, whole) = read(&mut response, ANSWER_BODY.saturating_mul(texts)).await.map_err(unreachable)?;
        let problem = match whole {
            false => "it is longer than any answer to this question".to_owned(),
            true => match checked(&answer, texts, options) {
                Ok(vectors) => return Ok(vectors),
                Err(problem) => problem,
            },
        };
        Err(Failed { error: self.unusable(problem), again: None })
    }
}

/// The vectors of an answer in the order of the texts: as many, each once, all of one length.
fn checked(answer: &[u8], texts: usize, options: &EmbedOptions) -> Result<Vec<Vector>, String> {
    let Answer { data } = serde_json::from_slice(answer).map_err(|error| format!("it has another form ({error})"))?;
    if data.len() != texts {
        return Err(format!("it holds {} vectors for {texts} texts", data.len()));
    }
    let mut found: Vec<Option<Vector>> = vec![None; texts];
    let mut dimension = options.dimensions.map(std::num::NonZeroUsize::get);
    for (place, entry) in data.into_iter().enumerate() {
        let index = match entry.index {
            Some(index) => usize::try_from(index).unwrap_or(usize::MAX),
            None => place,
        };
        let slot = found.get_mut(index).ok_or_else(|| format!("index {index} is of no text"))?;
        if slot.is_some() {
            return Err(format!("index {index} stands twice"));
        }
        let vector = Vector::new(&entry.embedding)?;
        let expected = *dimension.get_or_insert(vector.dimension());
        if vector.dimension() != expected {
            return Err(format!("vector {index} has {} numbers, not {expected}", vector.dimension()));
        }
        *slot = Some(vector);
    }
    // As many, and none twice: every one is there.
    Ok(found.into_iter().flatten().collect())
}

fn bearer(key: &EmbedKey) -> Result<HeaderValue, EmbedError> {
    let mut value = HeaderValue::from_str(&format!("Bearer {}", key.0)).map_err(|_| EmbedError::Key)?;
    value.set_sensitive(true);
    Ok(value)
}

fn endpoint(base: &str) -> Result<Url, EmbedError> {
    let failed = |base_url: &str, problem: &str| EmbedError::BaseUrl {
        base_url: base_url.to_owned(),
        problem: problem.to_owned(),
    };
    // What cannot be read is not shown: it may hold a password anywhere.
    let mut url = Url::parse(base).map_err(|error| failed("..", &error.to_string()))?;
    let shown = format!("{}://{}", url.scheme(), url.host_str().unwrap_or(".."));
    if !url.username().is_empty() || url.password().is_some() {
        return Err(failed(&shown, "it holds a user name or password; `api_key_env` names a key"));
    }
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(failed(&shown, "it is neither http nor https"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(failed(&shown, "it has a query or fragment"));
    }
    let path = url.path().trim_end_matches('/');
    let path = format!("{}/v1/embeddings", path.strip_suffix("/v1").unwrap_or(path));
    url.set_path(&path);
    Ok(url)
}

/// A body up to a limit, and whether that was all of it.
async fn read(response: &mut reqwest::Response, limit: usize) -> reqwest::Result<(Vec<u8>, bool)> {
    let mut out = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if out.len() + chunk.len() > limit {
            return Ok((out, false));
        }
        out.extend_from_slice(&chunk);
    }
    Ok((out, true))
}

/// What an error body says: its message, else its text, cut, and without the key.
fn quoted(key: Option<&EmbedKey>, body: &[u8]) -> String {
    let parsed: Option<serde_json::Value> = serde_json::from_slice(body).ok();
    let told = parsed.as_ref().and_then(|body| {
        ["/error/message", "/message", "/detail", "/error"].iter().find_map(|at| body.pointer(at)?.as_str())
    });
    let text = told.map_or_else(|| String::from_utf8_lossy(body).into_owned(), str::to_owned);
    let text = key.map_or_else(|| text.clone(), |key| text.replace(&key.0, "[api key]"));
    let text: String = text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(QUOTED).collect();
    if text.is_empty() { "it says nothing".to_owned() } else { text }
}

/// What happened, from the innermost cause.
fn describe(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "no answer in time".to_owned();
    }
    let mut cause = error.source();
    let mut told = None;
    while let Some(inner) = cause {
        told = Some(inner.to_string());
        cause = inner.source();
    }
    told.unwrap_or_else(|| "the exchange broke".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_base_url_is_taken_with_or_without_v1_and_a_password_is_never_shown() {
        for base in ["http://h:1", "http://h:1/", "http://h:1/v1", "http://h:1/v1/"] {
            assert_eq!(endpoint(base).expect(base).as_str(), "http://h:1/v1/embeddings");
        }
        assert_eq!(endpoint("https://h/tei/v1").expect("a prefix").as_str(), "https://h/tei/v1/embeddings");
        for bad in ["h:1", "ftp://h", "http://h?x=1", "http://bob:canary@h", "http://bob:canary@h:x", "not a url", ""] {
            let error = endpoint(bad).expect_err(bad).to_string();
            assert!(!error.contains("canary"), "{error}");
        }
    }

    #[test]
    fn only_a_whole_answer_is_taken() {
        let options = EmbedOptions::new("http://h", "m", "r");
        let of =
            |data: serde_json::Value, texts| checked(json!({"data": data}).to_string().as_bytes(), texts, &options);
        let one = |index: u64, first: f32| json!({"index": index, "embedding": [first, 1.0]});
        let vector = |first: f32| Vector::new(&[first, 1.0]).expect("finite");
        assert_eq!(of(json!([one(1, 0.2), one(0, 0.1)]), 2), Ok(vec![vector(0.1), vector(0.2)]), "by index");
        assert_eq!(of(json!([{"embedding": [0.1, 1.0]}]), 1), Ok(vec![vector(0.1)]), "in order where none is given");
        for (data, texts, problem) in [
            (json!([one(0, 0.1)]), 2, "1 vectors for 2 texts"),
            (json!([one(0, 0.1), one(0, 0.1)]), 2, "stands twice"),
            (json!([one(0, 0.1), one(2, 0.1)]), 2, "of no text"),
            (json!([one(0, 0.1), {"index": 1, "embedding": [1.0]}]), 2, "has 1 numbers, not 2"),
            (json!([{"index": 0, "embedding": [null]}]), 1, "another form"),
            (json!([{"index": 0, "embedding": [1e39]}]), 1, "out of range"),
            (json!([{"index": 0, "embedding": [0.0]}]), 1, "zeros"),
            (json!([{"index": 0, "embedding": []}]), 1, "0 numbers"),
            (json!([{"index": 0, "embedding": "AAAA"}]), 1, "another form"),
        ] {
            let found = of(data, texts).expect_err(problem);
            assert!(found.contains(problem), "{found} / {problem}");
        }
        let wanted = EmbedOptions { dimensions: std::num::NonZeroUsize::new(3), ..options.clone() };
        let answer = json!({"data": [one(0, 0.1)]}).to_string();
        assert!(checked(answer.as_bytes(), 1, &wanted).is_err(), "another dimension than was asked for");
    }

    #[test]
    fn an_echoed_key_is_not_quoted() {
        let key = EmbedKey::new(" sk-canary \n").expect("a key");
        assert_eq!(quoted(Some(&key), br#"{"error":{"message":"bad key sk-canary"}}"#), "bad key [api key]");
        assert_eq!(quoted(None, b""), "it says nothing");
        assert_eq!(format!("{key:?}"), "EmbedKey(..)");
        assert!(format!("{:?}", bearer(&key).expect("a header")).contains("Sensitive"));
        assert!(EmbedKey::new("a\nb").is_err() && EmbedKey::new(" ").is_err());
    }
}
