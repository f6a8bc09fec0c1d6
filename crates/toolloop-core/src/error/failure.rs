//! [`Failure`]: an [`LlmError`] as a journal keeps it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ErrorMessage, LlmError};
use crate::dialect::StreamingError;
use crate::run::ApiMisuse;

/// A failed model call as plain data, the form in which a journal keeps it.
///
/// [`LlmError`] is built from it at the surface, as often as it is asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
#[non_exhaustive]
pub enum Failure {
    /// [`LlmError::Http`]
    Http {
        /// The status, if there was an answer.
        status: Option<u16>,
        /// The sentence.
        message: ErrorMessage,
        /// Whether the same request may succeed later.
        retryable: bool,
    },
    /// [`LlmError::Auth`]
    Auth {
        /// The sentence.
        message: ErrorMessage,
    },
    /// [`LlmError::InvalidRequest`]
    InvalidRequest {
        /// The sentence.
        message: ErrorMessage,
    },
    /// [`LlmError::Provider`]
    Provider {
        /// The provider's code.
        code: String,
        /// The sentence.
        message: ErrorMessage,
        /// Whether the same request may succeed later.
        retryable: bool,
    },
    /// [`LlmError::ResponseFormat`]
    ResponseFormat {
        /// What is wrong.
        message: String,
        /// The beginning of what came.
        raw: String,
    },
    /// [`LlmError::SchemaValidation`]
    SchemaValidation {
        /// What does not fit.
        message: String,
        /// The schema.
        schema: Box<Value>,
        /// The value.
        actual: Box<Value>,
    },
    /// [`LlmError::ToolExecution`]
    ToolExecution {
        /// Name of the tool.
        tool_name: String,
        /// Why it failed.
        message: String,
    },
    /// [`LlmError::RetryExhausted`]
    RetryExhausted {
        /// How many tries there were.
        attempts: u32,
        /// The last failure.
        last: Box<Failure>,
    },
    /// [`LlmError::Timeout`]
    Timeout {
        /// How long it took, in milliseconds.
        elapsed_ms: u64,
    },
    /// [`LlmError::MaxDepthExceeded`]
    MaxDepthExceeded {
        /// The depth.
        current: u32,
        /// The limit.
        limit: u32,
    },
    /// [`LlmError::MaxRoundsExceeded`]
    MaxRoundsExceeded {
        /// The limit.
        limit: usize,
    },
    /// [`LlmError::LoopDetected`]
    LoopDetected {
        /// The tools of the circle.
        tool_name: String,
        /// How often.
        count: u32,
    },
    /// [`LlmError::StreamInterrupted`]
    StreamInterrupted {
        /// How it broke off.
        message: ErrorMessage,
    },
    /// [`LlmError::Streaming`]
    Streaming {
        /// Why it was ended.
        error: StreamingError,
    },
    /// [`LlmError::EmptyReply`]
    EmptyReply,
    /// [`LlmError::Misuse`]
    Misuse {
        /// Which rule was broken.
        misuse: ApiMisuse,
    },
}

impl From<LlmError> for Failure {
    fn from(error: LlmError) -> Self {
        match error {
            LlmError::Http { status, message, retryable } => {
                Self::Http { status: status.map(|s| s.as_u16()), message, retryable }
            }
            LlmError::Auth(message) => Self::Auth { message },
            LlmError::InvalidRequest(message) => Self::InvalidRequest { message },
            LlmError::Provider { code, message, retryable } => {
                Self::Provider { code, message, retryable }
            }
            LlmError::ResponseFormat { message, raw } => Self::ResponseFormat { message, raw },
            LlmError::SchemaValidation { message, schema, actual } => {
                Self::SchemaValidation { message, schema, actual }
            }
            LlmError::ToolExecution { tool_name, source } => {
                Self::ToolExecution { tool_name, message: source.to_string() }
            }
            LlmError::RetryExhausted { attempts, last_error } => {
                Self::RetryExhausted { attempts, last: Box::new((*last_error).into()) }
            }
            LlmError::Timeout { elapsed_ms } => Self::Timeout { elapsed_ms },
            LlmError::MaxDepthExceeded { current, limit } => {
                Self::MaxDepthExceeded { current, limit }
            }
            LlmError::MaxRoundsExceeded { limit } => Self::MaxRoundsExceeded { limit },
            LlmError::LoopDetected { tool_name, count } => Self::LoopDetected { tool_name, count },
            LlmError::StreamInterrupted { message } => Self::StreamInterrupted { message },
            LlmError::Streaming(error) => Self::Streaming { error },
            LlmError::EmptyReply => Self::EmptyReply,
            LlmError::Misuse(misuse) => Self::Misuse { misuse },
        }
    }
}

impl From<Failure> for LlmError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Http { status, message, retryable } => Self::Http {
                status: status.and_then(|s| http::StatusCode::from_u16(s).ok()),
                message,
                retryable,
            },
            Failure::Auth { message } => Self::Auth(message),
            Failure::InvalidRequest { message } => Self::InvalidRequest(message),
            Failure::Provider { code, message, retryable } => {
                Self::Provider { code, message, retryable }
            }
            Failure::ResponseFormat { message, raw } => Self::ResponseFormat { message, raw },
            Failure::SchemaValidation { message, schema, actual } => {
                Self::SchemaValidation { message, schema, actual }
            }
            Failure::ToolExecution { tool_name, message } => {
                Self::ToolExecution { tool_name, source: message.into() }
            }
            Failure::RetryExhausted { attempts, last } => {
                Self::RetryExhausted { attempts, last_error: Box::new((*last).into()) }
            }
            Failure::Timeout { elapsed_ms } => Self::Timeout { elapsed_ms },
            Failure::MaxDepthExceeded { current, limit } => {
                Self::MaxDepthExceeded { current, limit }
            }
            Failure::MaxRoundsExceeded { limit } => Self::MaxRoundsExceeded { limit },
            Failure::LoopDetected { tool_name, count } => Self::LoopDetected { tool_name, count },
            Failure::StreamInterrupted { message } => Self::StreamInterrupted { message },
            Failure::Streaming { error } => Self::Streaming(error),
            Failure::EmptyReply => Self::EmptyReply,
            Failure::Misuse { misuse } => Self::Misuse(misuse),
        }
    }
}
