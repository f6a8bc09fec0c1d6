//! [`ChatParams`]: everything a model is asked with.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::chat::ChatMessage;
use crate::encoded::EncodedMessages;

pub use crate::schema::JsonSchema;

/// One request to a model, in no provider's words.
///
/// ```
/// use toolloop_core::{ChatMessage, ChatParams};
///
/// let params = ChatParams {
///     messages: vec![ChatMessage::user("Hello")],
///     max_tokens: Some(200),
///     ..ChatParams::default()
/// };
/// assert_eq!(params.messages.len(), 1);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ChatParams {
    /// The conversation so far.
    pub messages: Vec<ChatMessage>,
    /// The tools the model sees; in a loop, `None` means those of the registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<ToolDefinition>>,
    /// Whether the model may, must or must not call a tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
    /// Sampling temperature, in the provider's range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f32>,
    /// Most tokens the model may write in one reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// Instructions in front of the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// Tokens the model may think for, where the provider has such a budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_budget: Option<u32>,
    /// The shape the answer must have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured_output: Option<JsonSchema>,
    /// Wall clock of one model call, from request to end of reply. Never stored.
    #[serde(skip)]
    pub timeout: Option<Duration>,
    /// Headers to send besides the provider's own. Never stored: they may hold keys.
    #[serde(skip)]
    pub extra_headers: Option<http::HeaderMap>,
    /// Values for the provider or for interceptors.
    #[serde(
        default,
        skip_serializing_if = "HashMap::is_empty",
        serialize_with = "crate::journal::in_key_order"
    )]
    pub metadata: HashMap<String, Value>,
    /// What a codec has made of the messages; a run keeps it from one model call to the next.
    #[doc(hidden)]
    #[serde(skip)]
    pub encoded: EncodedMessages,
}

/// Whether the model may call tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolChoice {
    /// As it likes.
    Auto,
    /// Not at all, though it sees them.
    None,
    /// At least one.
    Required,
    /// This one.
    Specific(String),
}

/// A tool as the model sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolDefinition {
    /// Name the model calls it by.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// JSON Schema of its arguments, an object.
    pub parameters: JsonSchema,
    /// Whether and how a failed execution is tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<ToolRetryConfig>,
}

impl ToolDefinition {
    /// A tool that takes the fields of a type as arguments; the docs of its fields become their
    /// descriptions.
    #[cfg(feature = "schemars")]
    pub fn from_type<T: schemars::JsonSchema>(
        name: impl Into<String>,
        description: impl Into<String>,
    ) -> Self {
        // Only a map whose keys are not strings cannot be JSON, and a schema holds none.
        let parameters = JsonSchema::from_type::<T>().expect("a schema is JSON");
        Self { name: name.into(), description: description.into(), parameters, retry: None }
    }
}

/// Decides from a tool's error message whether to try again.
pub type RetryPredicate = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// How a failed tool execution is tried again.
#[derive(Clone, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolRetryConfig {
    /// Tries after the first.
    pub max_retries: u32,
    /// Pause before the second try.
    pub initial_backoff: Duration,
    /// Longest pause.
    pub max_backoff: Duration,
    /// Factor from one pause to the next.
    pub backoff_multiplier: f64,
    /// Share of a pause that is random, from 0 to 1.
    pub jitter: f64,
    /// Which errors are worth another try; all of them without it.
    #[serde(skip)]
    pub retry_if: Option<RetryPredicate>,
}

impl Default for ToolRetryConfig {
    fn default() -> Self {
        Self {
            max_retries: 3,
            initial_backoff: Duration::from_millis(100),
            max_backoff: Duration::from_secs(5),
            backoff_multiplier: 2.0,
            jitter: 0.5,
            retry_if: None,
        }
    }
}

impl fmt::Debug for ToolRetryConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolRetryConfig")
            .field("max_retries", &self.max_retries)
            .field("initial_backoff", &self.initial_backoff)
            .field("max_backoff", &self.max_backoff)
            .field("backoff_multiplier", &self.backoff_multiplier)
            .field("jitter", &self.jitter)
            .field("has_retry_if", &self.retry_if.is_some())
            .finish()
    }
}

/// Equal by value; predicates are equal when they are the same one.
impl PartialEq for ToolRetryConfig {
    fn eq(&self, other: &Self) -> bool {
        let same_predicate = match (&self.retry_if, &other.retry_if) {
            (None, None) => true,
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            _ => false,
        };
        same_predicate
            && self.max_retries == other.max_retries
            && self.initial_backoff == other.initial_backoff
            && self.max_backoff == other.max_backoff
            && self.backoff_multiplier == other.backoff_multiplier
            && self.jitter == other.jitter
    }
}
