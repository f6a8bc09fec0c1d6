//! [`StreamEvent`]: a reply while it arrives.

use std::pin::Pin;
use std::time::Duration;

use futures_core::Stream;
use serde::{Deserialize, Serialize};

use crate::chat::{ProviderData, StopReason, ToolCall};
use crate::error::LlmError;
use crate::schema::ReducedSchema;
use crate::usage::Usage;

/// A reply while it arrives; it ends after [`StreamEvent::Done`] or an error.
pub type ChatStream = Pin<Box<dyn Stream<Item = Result<StreamEvent, LlmError>> + Send>>;

/// A step of a reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StreamEvent {
    /// Of these schemas the provider was told less than they say.
    SchemasReduced(Vec<ReducedSchema>),
    /// More of the answer's text.
    TextDelta(String),
    /// More of the model's thought.
    ReasoningDelta(String),
    /// A tool call begins.
    ToolCallStart {
        /// Which call of this reply, from 0.
        index: u32,
        /// The provider's id; may be empty where it gives none.
        id: String,
        /// Name of the tool.
        name: String,
    },
    /// More of a call's argument text.
    ToolCallDelta {
        /// Which call of this reply.
        index: u32,
        /// The next piece of the JSON text.
        json_chunk: String,
    },
    /// A call has arrived whole.
    ToolCallComplete {
        /// Which call of this reply.
        index: u32,
        /// The call, its arguments parsed.
        call: ToolCall,
    },
    /// The call of this index, complete by now, had leaked into the text in place of a native call.
    ToolCallRescued {
        /// Which call of this reply.
        index: u32,
        /// The text it was found in.
        text: String,
    },
    /// Tokens of this model call so far; a later event replaces an earlier one. When the reply is
    /// cut, only a report behind all that was said is taken as it is.
    Usage(Usage),
    /// The model that answers.
    Model(String),
    /// The provider's id of this request.
    RequestId(String),
    /// What the provider's headers say of its limits.
    RateLimits(RateLimits),
    /// Opaque data for the provider; belongs to what came before it.
    ProviderData {
        /// The call it belongs to; `None`: the text or thought before it.
        index: Option<u32>,
        /// The data.
        data: ProviderData,
    },
    /// The transport starts the reply anew: all that came of this attempt is void.
    AttemptDiscarded {
        /// The attempt that was cut, from 1.
        attempt: u32,
    },
    /// A try failed; the transport waits before the next.
    RetryScheduled(RetryNotice),
    /// The proper end of the reply; nothing follows.
    Done {
        /// Why the model stopped.
        stop_reason: StopReason,
    },
}

/// A failed try of a model call, and when the next one comes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetryNotice {
    /// The try that failed, from 1.
    pub attempt: u32,
    /// Most tries there will be.
    pub max_attempts: u32,
    /// Pause before the next try.
    pub delay: Duration,
    /// Why the try failed, in one line.
    pub reason: String,
    /// Whether the provider may charge for the failed try: it took the request and did not refuse
    /// it.
    #[serde(default)]
    pub may_have_cost: bool,
}

/// The limits a provider reports with a reply; `None` is what it did not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RateLimits {
    /// Requests left in the window.
    pub remaining_requests: Option<u64>,
    /// Tokens left in the window.
    pub remaining_tokens: Option<u64>,
    /// Time until the request window is full again.
    pub reset_requests: Option<Duration>,
    /// Time until the token window is full again.
    pub reset_tokens: Option<Duration>,
}
