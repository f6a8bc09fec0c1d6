//! What went wrong with one try, as a sentence that names the cure, and whether to try again.

use std::error::Error;
use std::io;

use http::{HeaderMap, StatusCode};
use reqwest::Url;
use toolloop_core::{ErrorDetails, ErrorMessage, LlmError};

use super::redact::Redactor;
use super::{headers, is_loopback};
use crate::codec::{ApiError, DecodeError};

/// A try that failed.
pub(super) struct AttemptError {
    pub(super) error: LlmError,
    pub(super) class: RetryClass,
}

/// How often a failed try is repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RetryClass {
    /// Not at all: the same again will fail.
    Never,
    /// A little: no server answered, or it fell silent.
    Network,
    /// With patience: the server said that it cannot now.
    Server,
}

/// The other side of a request, as errors may name it.
pub(super) struct Peer {
    url: Url,
    redactor: Redactor,
    cure: Cure,
    /// What the answer said of itself.
    details: ErrorDetails,
}

/// See [`Decoder::cure`](crate::codec::Decoder::cure).
type Cure = fn(&ApiError) -> Option<String>;

impl Peer {
    pub(super) fn new(url: &Url, redactor: Redactor, cure: Cure) -> Self {
        Self { url: url.clone(), redactor, cure, details: ErrorDetails::default() }
    }

    /// A try begins.
    pub(super) fn asked(&mut self) {
        self.details = ErrorDetails::default();
    }

    /// An answer has begun.
    pub(super) fn answered(&mut self, headers: &HeaderMap) {
        self.details.request_id = headers::request_id(headers);
    }

    /// The server could not be reached, or hung up before it answered.
    pub(super) fn unreachable(&self, error: &reqwest::Error) -> AttemptError {
        if error.is_builder() {
            let text = format!("the request cannot be made: {}", root_cause(error));
            return never(LlmError::InvalidRequest(self.message(text)));
        }
        let origin = self.url.origin().ascii_serialization();
        let cause = root_cause(error);
        let proxy = proxy_variable(&self.url).filter(|_| error.is_connect() && is_refused(error));
        let (text, class) = if let Some(name) = proxy {
            let text = format!(
                "nothing answers at {origin}, or at the proxy that {name} names (connection refused)"
            );
            (text, RetryClass::Network)
        } else if error.is_connect() && is_refused(error) {
            // Nothing on this machine listens there, and in a second it will not either.
            let class =
                if is_loopback(&self.url) { RetryClass::Never } else { RetryClass::Network };
            (format!("nothing answers at {origin} (connection refused)"), class)
        } else if let Some(tls) = tls_error(error) {
            let cure = match tls {
                rustls::Error::InvalidCertificate(_) => "are the system's root certificates there?",
                _ => "does it speak https?",
            };
            let text = format!("no secure connection to {origin}: {tls} ({cure})");
            (text, RetryClass::Never)
        } else if error.is_timeout() {
            (format!("{origin} did not answer in time ({cause})"), RetryClass::Network)
        } else if error.is_connect() {
            (format!("cannot connect to {origin}: {cause}"), RetryClass::Network)
        } else {
            (format!("{origin} hung up before it answered: {cause}"), RetryClass::Network)
        };
        let message = self.message(text);
        AttemptError { error: LlmError::Http { status: None, message, retryable: true }, class }
    }

    /// The server answered with a failure, or with a page for people.
    pub(super) fn refused(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
        body: &[u8],
    ) -> AttemptError {
        let body = String::from_utf8_lossy(body);
        if status.is_success() {
            return self.unreadable(&self.describe(status, headers, &body), body.as_bytes());
        }
        let api_error = ApiError::parse(&body);
        let wish = api_error.as_ref().and_then(|error| error.retry_after);
        let details = ErrorDetails {
            status: Some(status.as_u16()),
            request_id: headers::request_id(headers),
            retry_after: headers::retry_after(headers).or(wish),
        };
        let text = match &api_error {
            Some(error) => self.sentence(error),
            None => self.describe(status, headers, &body),
        };
        let message = ErrorMessage::with_details(self.line(text), details);
        match api_error {
            Some(error) if error.code.as_deref() == Some("invalid_api_key") => {
                never(LlmError::Auth(message))
            }
            error => {
                let quota = error.is_some_and(|error| error.is_out_of_quota());
                let wish = headers::should_retry(headers);
                by_status(status, message, wish.or(quota.then_some(false)))
            }
        }
    }

    /// The answer could not be decoded.
    pub(super) fn undecodable(&self, error: DecodeError) -> AttemptError {
        match error {
            DecodeError::Api(error) => self.reported(error),
            DecodeError::Malformed { message, raw } => self.unreadable(&message, raw.as_bytes()),
        }
    }

    /// The answer is not what the API promises.
    pub(super) fn unreadable(&self, message: &str, raw: &[u8]) -> AttemptError {
        never(LlmError::ResponseFormat {
            message: message.to_owned(),
            raw: self.clean(String::from_utf8_lossy(raw).into_owned()),
        })
    }

    /// The answer is over, and there was nothing of a reply in it.
    pub(super) fn silent(&self) -> AttemptError {
        let url = self.shown_url();
        self.unreadable(&format!("the answer is empty: is the base URL right? ({url})"), &[])
    }

    /// The connection broke, or fell silent, in the middle of the answer.
    pub(super) fn interrupted(&self, how: String) -> AttemptError {
        let error = LlmError::StreamInterrupted { message: self.message(how) };
        AttemptError { error, class: RetryClass::Network }
    }

    /// The provider reports an error in place of an answer.
    fn reported(&self, error: ApiError) -> AttemptError {
        let quota = error.is_out_of_quota();
        let details = ErrorDetails {
            status: error.status,
            retry_after: error.retry_after,
            ..self.details.clone()
        };
        let message = ErrorMessage::with_details(self.line(self.sentence(&error)), details);
        if let Some(status) = error.status.and_then(|code| StatusCode::from_u16(code).ok()) {
            return by_status(status, message, quota.then_some(false));
        }
        let code = error.code.unwrap_or_else(|| "error".to_owned());
        match code.as_str() {
            "authentication_error" | "permission_error" | "invalid_api_key" => {
                never(LlmError::Auth(message))
            }
            "invalid_request_error"
            | "not_found_error"
            | "request_too_large"
            | "context_length_exceeded" => never(LlmError::InvalidRequest(message)),
            _ => {
                let retryable = !quota && is_temporary(&code);
                let class = if retryable { RetryClass::Server } else { RetryClass::Never };
                AttemptError { error: LlmError::Provider { code, message, retryable }, class }
            }
        }
    }

    /// The API's sentence, and its cure.
    fn sentence(&self, error: &ApiError) -> String {
        match (self.cure)(error) {
            Some(cure) => format!("{} ({cure})", error.message),
            None => error.message.clone(),
        }
    }

    /// A failure without a sentence of the API.
    fn describe(&self, status: StatusCode, headers: &HeaderMap, body: &str) -> String {
        let url = self.shown_url();
        let target = headers.get(http::header::LOCATION).and_then(|value| value.to_str().ok());
        if let (true, Some(target)) = (status.is_redirection(), target) {
            return format!("{url} has moved to {target}: give that server as the base URL");
        }
        let start = body.trim_start().as_bytes();
        let is_page = headers::is_html(headers)
            || start.get(..5).is_some_and(|tag| tag.eq_ignore_ascii_case(b"<html"))
            || start.get(..9).is_some_and(|tag| tag.eq_ignore_ascii_case(b"<!doctype"));
        if is_page {
            return format!(
                "the server answered with an HTML page, not JSON: is the base URL right? \
                 ({url}, status {})",
                status.as_u16()
            );
        }
        match body.trim() {
            "" => format!("the server said nothing more ({url}, {status})"),
            text => text.to_owned(),
        }
    }

    /// The address without what may be secret in it.
    fn shown_url(&self) -> String {
        format!("{}{}", self.url.origin().ascii_serialization(), self.url.path())
    }

    fn message(&self, text: String) -> ErrorMessage {
        ErrorMessage::with_details(self.line(text), self.details.clone())
    }

    /// Foreign text as one line.
    fn line(&self, text: String) -> String {
        let text = self.clean(text);
        match text.contains(['\n', '\r']) {
            true => text.split_whitespace().collect::<Vec<_>>().join(" "),
            false => text,
        }
    }

    /// Foreign text without keys, and of bounded length. In this order: half a key is no match.
    fn clean(&self, text: String) -> String {
        let mut text = self.redactor.redact(text);
        if text.len() > LONGEST_TEXT {
            text.truncate(text.floor_char_boundary(LONGEST_TEXT));
            text.push('…');
        }
        text
    }
}

/// The variable that names the proxy to this address, if there is one.
fn proxy_variable(url: &Url) -> Option<&'static str> {
    let names = match url.scheme() {
        _ if is_loopback(url) => return None,
        "https" => ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"],
        _ => ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"],
    };
    names.into_iter().find(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
}

/// An error inside of an error.
type Cause = dyn Error + 'static;

/// What lies at the bottom of an error. reqwest's own sentence hides it.
pub(super) fn root_cause(error: &Cause) -> String {
    let text = causes(error).last().map(ToString::to_string).unwrap_or_default();
    match text.split_once(" (os error") {
        Some((text, _)) => text.to_lowercase(),
        None => text,
    }
}

/// The error and what lies under it, also where an I/O error is only a wrapping.
fn causes(error: &Cause) -> impl Iterator<Item = &Cause> {
    fn under(error: &Cause) -> Option<&Cause> {
        match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(wrapped) => Some(wrapped),
            None => error.source(),
        }
    }
    std::iter::successors(Some(error), |&error| under(error))
}

fn is_refused(error: &Cause) -> bool {
    causes(error)
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| cause.kind() == io::ErrorKind::ConnectionRefused)
}

fn tls_error(error: &Cause) -> Option<&rustls::Error> {
    causes(error).find_map(|cause| cause.downcast_ref())
}

/// `known`: whether another try is worth it, where more than the status says so.
fn by_status(status: StatusCode, message: ErrorMessage, known: Option<bool>) -> AttemptError {
    let usual = match status.as_u16() {
        401 | 403 => return never(LlmError::Auth(message)),
        400 | 404 | 405 | 413 | 415 | 422 => return never(LlmError::InvalidRequest(message)),
        // Says that it never will.
        501 | 505 => false,
        408 | 409 | 425 | 429 => true,
        code => code >= 500,
    };
    let retryable = known.unwrap_or(usual);
    let class = if retryable { RetryClass::Server } else { RetryClass::Never };
    AttemptError { error: LlmError::Http { status: Some(status), message, retryable }, class }
}

fn is_temporary(code: &str) -> bool {
    const WORDS: [&str; 9] = [
        "api_error",
        "rate_limit",
        "overloaded",
        "server_error",
        "internal",
        "unavailable",
        "timeout",
        // What a model wrote wrong it may write right the next time.
        "malformed",
        "unexpected_tool_call",
    ];
    WORDS.iter().any(|word| code.contains(word))
}

fn never(error: LlmError) -> AttemptError {
    AttemptError { error, class: RetryClass::Never }
}

/// Most bytes of foreign text in an error.
const LONGEST_TEXT: usize = 2000;
