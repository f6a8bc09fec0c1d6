//! The pure core of toolloop: the vocabulary of chats and tools, and the machine that runs them.
//!
//! The type that matters is [`Run`]: a fold of recorded outcomes. A driver asks it what to do
//! next ([`Run::poll_output`]), does it, and tells it what happened ([`Run::handle_input`]):
//!
//! ```text
//!             Input (what happened)                  Output (what to do next)
//!  driver  ──────────────────────────►  Run  ──────────────────────────────►  driver
//!    ▲   Outcome, Inject, Cancel, Now       Perform(Effect), Event, Wait, ...    │
//!    └───── model reply · approval · stop decision · tool · pipeline · clock ◄───┘
//! ```
//!
//! There is no I/O, no clock, no task and no randomness in this crate, so a run can be stopped
//! at any point, stored, and continued elsewhere from the inputs it was given.
//!
//! Programs depend on the crate `toolloop`, which re-exports the vocabulary and brings drivers.

mod arguments;
mod assembler;
pub mod chat;
mod checked;
mod conversation;
mod counted;
pub mod depth;
pub mod dialect;
pub mod effect;
mod encoded;
pub mod error;
pub mod event;
mod gap;
pub mod handler;
pub mod journal;
pub mod params;
pub mod policy;
pub mod provider;
pub mod run;
mod schema;
mod step;
pub mod stream;
mod tool_content;
pub mod transcript;
pub mod usage;

pub use arguments::parse_arguments;
pub use assembler::ReplyAssembler;
pub use chat::{
    ChatMessage, ChatResponse, ChatRole, ContentBlock, ImageSource, ProviderData, StopReason,
    ToolCall, ToolResult,
};
pub use depth::{LoopContext, LoopDepth};
pub use dialect::{Dialect, StreamingError, ToolLimit};
pub use encoded::{Encoded, EncodedMessages};
pub use error::{ErrorDetails, ErrorMessage, Failure, LlmError};
pub use event::{LoopEvent, TerminationReason, ToolLoopResult};
pub use handler::{
    CallContext, CallHost, EffectClass, ToolError, ToolFuture, ToolHandler, ToolOutput,
    read_arguments,
};
pub use params::{ChatParams, RetryPredicate, ToolChoice, ToolDefinition, ToolRetryConfig};
pub use policy::compaction::{CompactionConfig, CompactionMethod};
pub use policy::detection::{
    DetectionAction, LoopAction, LoopDetection, LoopDetectionConfig, LoopDetectorConfig, LoopKind,
};
pub use policy::masking::{ObservationMaskingConfig, estimate_tokens};
pub use policy::stop::{StopContext, StopDecision};
pub use provider::{BoxFuture, Capability, DynProvider, Provider, ProviderMetadata};
pub use run::Run;
pub use schema::{JsonSchema, ReducedSchema, SchemaForm};
pub use stream::{ChatStream, RateLimits, RetryNotice, StreamEvent};
pub use tool_content::{ToolContent, ToolImage};
pub use usage::{Usage, UsageSource};
