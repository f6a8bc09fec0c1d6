//! The transport: one HTTP client under all providers.
//!
//! [`Transport`] knows where a provider is, with which headers and how patiently it is asked.
//! [`Transport::post`] gives a [`ReplyStream`], which sends, waits, tries again and reads as it
//! is polled: there is no task and no channel behind it, and dropping it closes the request.
//!
//! ```text
//!            ┌──────── Waiting ◄────────┐  a failure before the first delta
//!            ▼                          │
//!         Sending ──► Streaming ──► Draining ──► Over
//!            │            (or Document)           ▲
//!            └──► Refused ────────────────────────┘
//! ```

mod client;
mod collect;
mod deadline;
mod failure;
mod headers;
mod redact;
mod retry;
mod stream;

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue};
use reqwest::{Method, Request, Url};
use serde::de::DeserializeOwned;
use toolloop_core::{ChatParams, ErrorMessage, LlmError};

use crate::codec::{Decoder, Reading};

pub(crate) use client::default_client;
pub(crate) use collect::collect;
pub(crate) use redact::Redactor;
pub(crate) use stream::ReplyStream;

use failure::{AttemptError, Peer};

/// How long a provider may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// To be connected to; a client that you bring keeps its own limit.
    pub connect: Duration,
    /// From the request to the first piece of content.
    pub first_content: Duration,
    /// From one piece of content to the next. Keep-alives are no content.
    pub stall: Duration,
}

impl Default for Timeouts {
    /// 10 s, 120 s, 60 s.
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            first_content: Duration::from_secs(120),
            stall: Duration::from_secs(60),
        }
    }
}

/// Where a provider is and how it is asked.
pub(crate) struct Transport {
    pub(crate) client: reqwest::Client,
    pub(crate) base_url: Url,
    /// Sent with every request; the key's is marked sensitive.
    pub(crate) headers: HeaderMap,
    pub(crate) redactor: Redactor,
    pub(crate) limits: Limits,
}

/// What bounds a call in time, tries and memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) timeouts: Timeouts,
    /// Tries after the first, where a server answered that it cannot now.
    pub(crate) max_retries: u32,
    /// Bytes of one event, or of an answer in one document.
    pub(crate) max_event: NonZeroUsize,
}

impl Limits {
    /// Bytes of a whole stream: far more than any model says, and yet an end.
    pub(crate) fn max_stream(&self) -> usize {
        self.max_event.get().saturating_mul(8)
    }
}

impl Default for Limits {
    fn default() -> Self {
        const MAX_EVENT: NonZeroUsize = NonZeroUsize::new(32 << 20).unwrap();
        Self { timeouts: Timeouts::default(), max_retries: 4, max_event: MAX_EVENT }
    }
}

impl Transport {
    /// Asks for a reply, to be read so. Nothing is sent before the stream is polled.
    pub(crate) fn post<D: Decoder>(
        self: &Arc<Self>,
        path: &[&str],
        body: impl Into<reqwest::Body>,
        params: &ChatParams,
        reading: Reading,
    ) -> ReplyStream<D> {
        self.post_to(self.request(Method::POST, path), body, params, reading)
    }

    /// The same where the address is more than a path.
    pub(crate) fn post_to<D: Decoder>(
        self: &Arc<Self>,
        mut request: Request,
        body: impl Into<reqwest::Body>,
        params: &ChatParams,
        reading: Reading,
    ) -> ReplyStream<D> {
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static(D::FRAMING.media_type()));
        let mut redactor = self.redactor.clone();
        if let Some(extra) = &params.extra_headers {
            redactor.add_headers(extra);
            replace_headers(request.headers_mut(), extra);
        }
        *request.body_mut() = Some(body.into());
        ReplyStream::new(Arc::clone(self), request, redactor, params.timeout, reading)
    }

    /// Asks once for the list of the models, for five seconds at most.
    pub(crate) async fn list_models<T: DeserializeOwned>(
        &self,
        path: &[&str],
        query: Option<&str>,
    ) -> Result<T, LlmError> {
        let mut request = self.request(Method::GET, path);
        request.url_mut().set_query(query);
        let document = self.document(request, LIST_TIME).await?;
        serde_json::from_str(&document).map_err(|error| LlmError::ResponseFormat {
            message: format!("the list of models is not readable: {error}"),
            raw: document.chars().take(200).collect(),
        })
    }

    /// The address without its path, for people.
    pub(crate) fn server(&self) -> String {
        self.base_url.origin().ascii_serialization()
    }

    /// Sends a request once and reads its answer, within a limit of time.
    pub(crate) async fn document(
        &self,
        request: Request,
        limit: Duration,
    ) -> Result<String, LlmError> {
        match tokio::time::timeout(limit, self.read_document(request)).await {
            Ok(result) => result.map_err(|failed| failed.error),
            Err(_) => Err(LlmError::Timeout { elapsed_ms: limit.as_millis() as u64 }),
        }
    }

    async fn read_document(&self, request: Request) -> Result<String, AttemptError> {
        let peer = Peer::new(request.url(), self.redactor.clone(), |_| None);
        let broken = |error| peer.unreachable(&error);
        let mut response = self.client.execute(request).await.map_err(broken)?;
        let mut body = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(broken)? {
            body.extend_from_slice(&piece);
            if body.len() > MAX_DOCUMENT {
                return Err(peer.unreadable("the answer is larger than 8 MiB", &[]));
            }
        }
        if !response.status().is_success() || headers::is_html(response.headers()) {
            return Err(peer.refused(response.status(), response.headers(), &body));
        }
        Ok(String::from_utf8_lossy(&body).into_owned())
    }

    /// A request to a path below the base URL, with the headers that all have.
    pub(crate) fn request(&self, method: Method, path: &[&str]) -> Request {
        let mut url = self.base_url.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        let mut request = Request::new(method, url);
        request.headers_mut().clone_from(&self.headers);
        request
    }
}

/// Reads the address of a server that speaks HTTP.
pub(crate) fn parse_base_url(text: &str) -> Result<Url, LlmError> {
    let invalid = |why: &str| {
        LlmError::InvalidRequest(ErrorMessage::from(format!(
            "the base URL is not usable ({why}); it should look like https://api.openai.com/v1"
        )))
    };
    let url = Url::parse(text.trim()).map_err(|error| invalid(&error.to_string()))?;
    match url.scheme() {
        "http" | "https" if url.has_host() => Ok(url),
        scheme => Err(invalid(&format!("its scheme is {scheme:?}"))),
    }
}

/// Whether the server is on this machine.
pub(crate) fn is_loopback(url: &Url) -> bool {
    match url.host_str() {
        Some("localhost" | "[::1]") => true,
        Some(host) => host.parse().is_ok_and(|ip: std::net::Ipv4Addr| ip.is_loopback()),
        None => false,
    }
}

/// Puts headers in place of those of the same name.
fn replace_headers(headers: &mut HeaderMap, others: &HeaderMap) {
    for name in others.keys() {
        headers.remove(name);
        for value in others.get_all(name) {
            headers.append(name.clone(), value.clone());
        }
    }
}

/// For the list of the models.
const LIST_TIME: Duration = Duration::from_secs(5);

/// Most bytes of a document that is asked for with [`Transport::document`].
const MAX_DOCUMENT: usize = 8 << 20;
