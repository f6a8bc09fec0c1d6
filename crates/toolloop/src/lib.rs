//! The tool loop of LLM agents: ask a model, run the tools it calls, give the results back, ask
//! again.
//!
//! [`tool_loop`] runs a loop to its end, [`tool_loop_stream`] shows its events as they happen,
//! and [`ToolLoopHandle`](tool::ToolLoopHandle) lets its caller take it forward turn by turn.
//! Behind all of them is one machine without I/O, `toolloop_core::Run`, and one driver.

mod agent;
mod driver;
pub mod mock;
pub mod provider;
pub mod tool;

/// What the code of `#[tool]` needs; no part of the interface.
#[doc(hidden)]
pub use tool::returns as __private;

pub use agent::Agent;
pub use provider::provider;

pub use toolloop_core::{chat, error, stream, usage};

pub use futures_util::StreamExt;
pub use tool::{
    ToolLoopConfig, ToolRegistry, tool_fn, tool_fn_with_ctx, tool_loop, tool_loop_stream,
};
pub use toolloop_core::{
    Capability, ChatMessage, ChatParams, ChatResponse, ChatRole, ChatStream, ContentBlock,
    DynProvider, ImageSource, JsonSchema, LlmError, LoopContext, LoopDepth, LoopEvent, Provider,
    ProviderData, ProviderMetadata, RateLimits, StopReason, StreamEvent, TerminationReason,
    ToolCall, ToolChoice, ToolContent, ToolDefinition, ToolError, ToolHandler, ToolLoopResult,
    ToolOutput, ToolResult, ToolRetryConfig, Usage, UsageSource,
};
pub use toolloop_macros::tool;
#[doc(no_inline)]
pub use {schemars, serde};

/// The README's program is compiled with the other examples.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
