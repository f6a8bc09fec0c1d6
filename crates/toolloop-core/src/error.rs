//! [`LlmError`]: what can go wrong between a program and a model.

mod failure;
mod message;

use std::error::Error;
use std::fmt;
use std::time::Duration;

use serde_json::Value;

use crate::dialect::StreamingError;
use crate::run::ApiMisuse;

pub use failure::Failure;
pub use message::{ErrorDetails, ErrorMessage};

/// What can go wrong between a program and a model.
///
/// A tool that failed or was denied is no error: the model reads it as a result. Neither is a
/// limit that was reached: that is a `TerminationReason`. `Debug` prints the same readable line
/// as `Display`, because `main` prints errors with it.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum LlmError {
    /// The server could not be reached, or answered with a failure.
    #[error("{}{}", status_prefix(*.status), one_line(.message))]
    Http {
        /// The status, if there was an answer.
        status: Option<http::StatusCode>,
        /// What happened, in the provider's words where it gave some.
        message: ErrorMessage,
        /// Whether the same request may succeed later.
        retryable: bool,
    },
    /// The key was refused or is missing.
    #[error("authentication failed: {}", one_line(.0))]
    Auth(ErrorMessage),
    /// The request itself is wrong; the same again will fail.
    #[error("invalid request: {}", one_line(.0))]
    InvalidRequest(ErrorMessage),
    /// The provider reports a failure of its own.
    #[error("provider error ({}): {}", one_line(.code), one_line(.message))]
    Provider {
        /// The provider's code.
        code: String,
        /// The provider's sentence.
        message: ErrorMessage,
        /// Whether the same request may succeed later.
        retryable: bool,
    },
    /// The answer is not in the form the API promises.
    #[error("unreadable answer: {}", one_line(.message))]
    ResponseFormat {
        /// What is wrong with it.
        message: String,
        /// The beginning of what came.
        raw: String,
    },
    /// A value does not fit its schema.
    #[error("the value does not fit the schema: {}", one_line(.message))]
    SchemaValidation {
        /// What does not fit.
        message: String,
        /// The schema.
        schema: Box<Value>,
        /// The value.
        actual: Box<Value>,
    },
    /// A tool failed outside a loop.
    #[error("tool {} failed: {}", one_line(.tool_name), one_line(.source))]
    ToolExecution {
        /// Name of the tool.
        tool_name: String,
        /// Why.
        source: Box<dyn Error + Send + Sync>,
    },
    /// Every try failed.
    #[error("gave up after {attempts} attempts: {last_error}")]
    RetryExhausted {
        /// How many tries there were.
        attempts: u32,
        /// What the last one ended with.
        #[source]
        last_error: Box<LlmError>,
    },
    /// One model call took longer than it may.
    #[error("timed out after {elapsed_ms} ms")]
    Timeout {
        /// How long it took, in milliseconds.
        elapsed_ms: u64,
    },
    /// A loop was opened inside a loop inside a loop, deeper than allowed.
    #[error("loops are nested too deep: depth {current}, limit {limit} (raise max_depth)")]
    MaxDepthExceeded {
        /// The depth at which the loop was opened.
        current: u32,
        /// The limit.
        limit: u32,
    },
    /// A chat loop had more rounds of tool calls than it may.
    #[error("the model asked for tools in more than {limit} rounds (raise max_rounds)")]
    MaxRoundsExceeded {
        /// The limit.
        limit: usize,
    },
    /// A chat loop went in circles, and its detector or its caller ended it.
    #[error("the model goes in circles: {tool_name} was called {count} times without progress")]
    LoopDetected {
        /// The tools of the circle, joined by `+`.
        tool_name: String,
        /// How often, as `LoopDetection` counts it.
        count: u32,
    },
    /// The reply broke off before its end. What arrived is kept as text; no call of it ran.
    #[error("the reply broke off: {}", one_line(.message))]
    StreamInterrupted {
        /// How it broke off.
        message: ErrorMessage,
    },
    /// The reply was ended on purpose, and is void.
    #[error(transparent)]
    Streaming(#[from] StreamingError),
    /// The model twice said nothing after it was given tool results.
    #[error("the model gave an empty reply after the tool results, twice")]
    EmptyReply,
    /// toolloop, or code that drives its core, broke a rule of the core.
    #[error(transparent)]
    Misuse(#[from] ApiMisuse),
}

impl LlmError {
    /// Whether the same request may succeed later.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Http { retryable, .. } | Self::Provider { retryable, .. } => *retryable,
            Self::Timeout { .. } | Self::StreamInterrupted { .. } | Self::EmptyReply => true,
            Self::RetryExhausted { last_error, .. } => last_error.is_retryable(),
            _ => false,
        }
    }

    /// Whether the provider may charge for a call that failed so before it said anything: it took
    /// the request and did not refuse it.
    pub fn may_have_cost(&self) -> bool {
        match self {
            Self::Timeout { .. } | Self::StreamInterrupted { .. } => true,
            Self::RetryExhausted { last_error, .. } => last_error.may_have_cost(),
            _ => false,
        }
    }

    /// How long the provider asks to wait before the next try.
    pub fn retry_after(&self) -> Option<Duration> {
        self.message().and_then(|m| m.details()?.retry_after)
    }

    /// The provider's id of the request, for its support.
    pub fn request_id(&self) -> Option<&str> {
        self.message().and_then(|m| m.details()?.request_id.as_deref())
    }

    /// The HTTP status, if the error came with one.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Http { status: Some(status), .. } => Some(status.as_u16()),
            Self::RetryExhausted { last_error, .. } => last_error.status(),
            _ => self.message().and_then(|m| m.details()?.status),
        }
    }

    fn message(&self) -> Option<&ErrorMessage> {
        match self {
            Self::Http { message, .. }
            | Self::Provider { message, .. }
            | Self::StreamInterrupted { message }
            | Self::Auth(message)
            | Self::InvalidRequest(message) => Some(message),
            Self::RetryExhausted { last_error, .. } => last_error.message(),
            _ => None,
        }
    }
}

impl fmt::Debug for LlmError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<serde_json::Error> for LlmError {
    fn from(error: serde_json::Error) -> Self {
        Self::ResponseFormat { message: error.to_string(), raw: String::new() }
    }
}

/// A text of a provider or a tool, whose lines stand in one.
fn one_line(text: &dyn fmt::Display) -> String {
    let text = text.to_string();
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

fn status_prefix(status: Option<http::StatusCode>) -> String {
    status.map(|s| format!("HTTP {}: ", s.as_u16())).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limited() -> LlmError {
        let details = ErrorDetails {
            status: Some(429),
            request_id: Some("req_1".into()),
            retry_after: Some(Duration::from_secs(2)),
        };
        LlmError::Http {
            status: Some(http::StatusCode::TOO_MANY_REQUESTS),
            message: ErrorMessage::with_details("slow down", details),
            retryable: true,
        }
    }

    #[test]
    fn details_are_found_through_a_retry() {
        let error = LlmError::RetryExhausted { attempts: 5, last_error: Box::new(limited()) };
        assert_eq!(error.retry_after(), Some(Duration::from_secs(2)));
        assert_eq!(error.request_id(), Some("req_1"));
        assert!(error.is_retryable());
        assert_eq!(format!("{error:?}"), "gave up after 5 attempts: HTTP 429: slow down");
    }

    #[test]
    fn what_others_say_in_many_lines_is_told_in_one() {
        let said = "no\r\n  such\n\nmodel\n";
        let schema = || Box::new(Value::Null);
        for (error, line) in [
            (LlmError::Http { status: None, message: said.into(), retryable: false }, ""),
            (LlmError::Auth(said.into()), "authentication failed: "),
            (LlmError::InvalidRequest(said.into()), "invalid request: "),
            (
                LlmError::Provider { code: "a\nb".into(), message: said.into(), retryable: true },
                "provider error (a b): ",
            ),
            (
                LlmError::ResponseFormat { message: said.into(), raw: said.into() },
                "unreadable answer: ",
            ),
            (
                LlmError::SchemaValidation {
                    message: said.into(),
                    schema: schema(),
                    actual: schema(),
                },
                "the value does not fit the schema: ",
            ),
            (
                LlmError::ToolExecution { tool_name: "t".into(), source: said.into() },
                "tool t failed: ",
            ),
            (LlmError::StreamInterrupted { message: said.into() }, "the reply broke off: "),
        ] {
            let line = format!("{line}no such model");
            assert_eq!((error.to_string(), format!("{error:?}")), (line.clone(), line.clone()));
            let tried = LlmError::RetryExhausted { attempts: 2, last_error: Box::new(error) };
            assert_eq!(tried.to_string(), format!("gave up after 2 attempts: {line}"));
        }
    }

    #[test]
    fn a_failure_is_the_same_error_again() {
        for error in [
            limited(),
            LlmError::Auth("no".into()),
            LlmError::EmptyReply,
            LlmError::Timeout { elapsed_ms: 3 },
            LlmError::MaxRoundsExceeded { limit: 10 },
            LlmError::LoopDetected { tool_name: "t".into(), count: 6 },
            LlmError::ToolExecution { tool_name: "t".into(), source: "broken".into() },
        ] {
            let line = error.to_string();
            let stored = serde_json::to_string(&Failure::from(error)).unwrap();
            let back: Failure = serde_json::from_str(&stored).unwrap();
            assert_eq!(LlmError::from(back).to_string(), line);
        }
    }
}
