//! [`Refusal`]: a request that the API would not serve.

use serde_json::{Value, json};

/// A request that the API would not serve: the status and body of its answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    /// The HTTP status.
    pub status: u16,
    /// The body, in the form of the API.
    pub body: Value,
}

impl Refusal {
    /// A refusal in the form of OpenAI.
    pub(crate) fn openai(
        status: u16,
        message: impl Into<String>,
        param: Option<&str>,
        code: Option<&str>,
    ) -> Self {
        let body = json!({
            "error": {
                "message": message.into(),
                "type": "invalid_request_error",
                "param": param,
                "code": code,
            },
        });
        Self { status, body }
    }
}
