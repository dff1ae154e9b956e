//! An embeddings endpoint: sentences in, directions out (`POST /v1/embeddings`, as OpenAI, TEI, vLLM and others speak it).
//!
//! What an answer at T may depend on are pages 1..T and the query. So a request holds sentences of one page only, or one
//! query; how a page is parted into requests depends on that page alone; by default one request is under way at a time,
//! so that an endpoint has nothing of another request to put beside it.

mod cache;
#[cfg(feature = "embeddings")]
#[path = "client.rs"]
mod client;
#[cfg(not(feature = "embeddings"))]
#[path = "absent.rs"]
mod client;
mod config;
mod error;
mod session;

use crate::vectors::{self, Digest, Vector};
use cache::Cache;
use client::Client;
pub use config::EmbeddingsConfig;
pub use error::EmbedError;
pub(crate) use session::Session;
use sha2::{Digest as _, Sha256};
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;

/// The code that says what is asked of an endpoint, for fingerprints.
const CODE: &str = include_str!("mod.rs");
/// Vectors of queries that are kept, by their exact text.
const KEPT_QUERIES: usize = 256;

/// What a search does when the query cannot be embedded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum OnFailure {
    /// It fails, and says that search is unavailable: one episode is never answered by two rankings.
    #[default]
    Error,
    /// It is answered by words alone, which the log tells. The same query may be answered otherwise a moment later.
    Lexical,
}

/// How an endpoint is reached and asked. `Debug` shows no key.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct EmbedOptions {
    /// `http(s)://host:port[/prefix]`, with or without `/v1` at the end.
    pub base_url: String,
    /// The model's name, sent with every request.
    pub model: String,
    /// Which weights the endpoint serves, in the operator's words. Vectors of another revision are never reused, so this
    /// has to change whenever the weights do.
    pub revision: String,
    /// Sent as `Authorization: Bearer`.
    pub key: Option<EmbedKey>,
    /// How many numbers a vector shall have; asked of the endpoint where it is given. Else what the model gives.
    pub dimensions: Option<NonZeroUsize>,
    /// For one request, and for all that embedding a query takes (30 s).
    pub timeout: Duration,
    /// The most sentences of one request; all of them are of one page (32).
    pub batch: NonZeroUsize,
    /// Requests that are under way at once, for pages and queries (1). More are faster, and let an endpoint put texts of
    /// several requests together, which must not change a vector.
    pub concurrency: NonZeroUsize,
    /// Further tries after no answer, 408, 429 or 5xx (4).
    pub retries: u32,
    /// The first wait between tries; doubles each time (250 ms).
    pub backoff: Duration,
    /// What a search does when the query cannot be embedded.
    pub on_failure: OnFailure,
}

impl EmbedOptions {
    /// The defaults for an endpoint, a model and the label of its weights.
    pub fn new(base_url: impl Into<String>, model: impl Into<String>, revision: impl Into<String>) -> Self {
        let few = |count| NonZeroUsize::new(count).unwrap_or(NonZeroUsize::MIN);
        Self {
            base_url: base_url.into(),
            model: model.into(),
            revision: revision.into(),
            key: None,
            dimensions: None,
            timeout: Duration::from_secs(30),
            batch: few(32),
            concurrency: NonZeroUsize::MIN,
            retries: 4,
            backoff: Duration::from_millis(250),
            on_failure: OnFailure::default(),
        }
    }
}

/// The endpoint's key: goes into the `Authorization` header and nowhere else.
#[derive(Clone)]
pub struct EmbedKey(
    #[cfg_attr(not(feature = "embeddings"), expect(dead_code, reason = "what sends it is absent"))] String,
);

impl EmbedKey {
    /// Takes a key as it stands, surrounding blanks aside.
    ///
    /// # Errors
    /// When it is empty or cannot stand in a header.
    pub fn new(key: &str) -> Result<Self, EmbedError> {
        let key = key.trim();
        if key.is_empty() || !key.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
            return Err(EmbedError::Key);
        }
        Ok(Self(key.to_owned()))
    }
}

impl fmt::Debug for EmbedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EmbedKey(..)")
    }
}

/// An embeddings endpoint, and the vectors of the last queries.
///
/// Needs the feature `embeddings`; without it there is no way to make one.
pub struct Embedder {
    options: EmbedOptions,
    client: Client,
    identity: Digest,
    queries: Mutex<Cache>,
    /// As many permits as there may be requests.
    gate: Arc<Semaphore>,
}

impl fmt::Debug for Embedder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Embedder").field("options", &self.options).finish_non_exhaustive()
    }
}

/// A query's vector, and whether it was known already.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) vector: Arc<Vector>,
    pub(crate) cached: bool,
}

impl Embedder {
    /// Makes a client for an endpoint; nothing is sent yet.
    ///
    /// # Errors
    /// When the base URL, model or revision cannot be used, or this build has no client.
    pub fn new(options: EmbedOptions) -> Result<Self, EmbedError> {
        if options.model.trim().is_empty() || options.revision.trim().is_empty() {
            return Err(EmbedError::Label);
        }
        let client = Client::new(&options)?;
        let identity = identity(&options);
        let gate = Arc::new(Semaphore::new(options.concurrency.get().min(Semaphore::MAX_PERMITS)));
        Ok(Self { options, client, identity, queries: Mutex::new(Cache::new(KEPT_QUERIES)), gate })
    }

    /// What it was made with.
    #[must_use]
    pub fn options(&self) -> &EmbedOptions {
        &self.options
    }

    /// The digest of all that determines a vector, as far as it is known here.
    pub(crate) fn identity(&self) -> Digest {
        self.identity
    }

    /// The vector of a query; nothing for one without a letter or digit, which is not sent.
    ///
    /// # Errors
    /// When the endpoint gives none in time.
    pub async fn query(&self, text: &str) -> Result<Option<Arc<Vector>>, EmbedError> {
        Ok(self.ask(text).await?.map(|asked| asked.vector))
    }

    /// As [`Self::query`], for callers that are not asynchronous.
    ///
    /// # Errors
    /// As [`Self::query`], and where it is called from within an asynchronous runtime.
    pub fn query_blocking(&self, text: &str) -> Result<Option<Arc<Vector>>, EmbedError> {
        // A session's own connections: those of `self` belong to the caller's runtime.
        let session = Session::new(self)?;
        session.query(text)
    }

    pub(crate) async fn ask(&self, text: &str) -> Result<Option<Asked>, EmbedError> {
        let spoken = vectors::spoken(text);
        if !vectors::has_words(&spoken) {
            return Ok(None);
        }
        if let Some(vector) = self.queries.lock().unwrap_or_else(PoisonError::into_inner).find(&spoken) {
            return Ok(Some(Asked { vector, cached: true }));
        }
        let asked = async {
            // The gate is never closed; without a permit the request would go out all the same.
            let _permit = self.gate.acquire().await.ok();
            self.client.embed(&self.options, std::slice::from_ref(&spoken)).await
        };
        let Ok(answer) = tokio::time::timeout(self.options.timeout, asked).await else {
            return Err(self.client.late(self.options.timeout));
        };
        // As many vectors as texts.
        let Some(vector) = answer?.into_iter().next().map(Arc::new) else { return Ok(None) };
        self.queries.lock().unwrap_or_else(PoisonError::into_inner).keep(spoken, Arc::clone(&vector));
        Ok(Some(Asked { vector, cached: false }))
    }
}

fn identity(options: &EmbedOptions) -> Digest {
    let mut hash = Sha256::new();
    let dimensions = options.dimensions.map(NonZeroUsize::get);
    let batch = options.batch.get();
    let label = serde_json::json!([options.model, options.revision, dimensions, batch]).to_string();
    for text in [label.as_str(), CODE, client::CODE].into_iter().chain(vectors::CODE.iter().copied()) {
        hash.update(text.len().to_le_bytes());
        hash.update(text.as_bytes());
    }
    hash.finalize().into()
}
