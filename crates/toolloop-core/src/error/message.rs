//! [`ErrorMessage`]: a sentence with the details that came along.

use std::fmt;
use std::ops::Deref;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The sentence of an error, with what came along: request id, status, retry-after.
///
/// It is made from and reads as text; the details are read with the methods of [`LlmError`](super::LlmError).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorMessage {
    text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    details: Option<Box<ErrorDetails>>,
}

/// What a provider says beside the sentence of an error.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ErrorDetails {
    /// The HTTP status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The provider's id of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// How long to wait before the next try.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<Duration>,
}

impl ErrorMessage {
    /// The sentence with what came along.
    pub fn with_details(text: impl Into<String>, details: ErrorDetails) -> Self {
        let details = (details != ErrorDetails::default()).then(|| Box::new(details));
        Self { text: text.into(), details }
    }

    pub(super) fn details(&self) -> Option<&ErrorDetails> {
        self.details.as_deref()
    }
}

impl From<String> for ErrorMessage {
    fn from(text: String) -> Self {
        Self { text, details: None }
    }
}

impl From<&str> for ErrorMessage {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl Deref for ErrorMessage {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for ErrorMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
