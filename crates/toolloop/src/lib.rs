//! The tool loop of LLM agents: ask a model, run the tools it calls, give the results back, ask
//! again.
//!
//! The shortest way in is [`Agent`]; what it collects are the arguments of [`tool_loop`]:
//!
//! ```
//! use toolloop::mock::MockProvider;
//! use toolloop::{Agent, tool};
//!
//! /// Adds two numbers.
//! #[tool]
//! fn add(/** First */ a: i64, /** Second */ b: i64) -> i64 {
//!     a + b
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! let model = MockProvider::default(); // or Agent::new("openai/gpt-5")
//! model.queue_text("4, of course.");
//!
//! let agent = Agent::from_provider(std::sync::Arc::new(model)).tool(add);
//! let result = agent.run("What is 2 + 2?").await?;
//! assert_eq!(result.response.text(), Some("4, of course."));
//! # Ok::<(), toolloop::LlmError>(())
//! # }).unwrap();
//! ```
//!
//! Its events, as they happen:
//!
//! ```no_run
//! use toolloop::{Agent, LoopEvent::*, StreamExt};
//!
//! # async fn stream() -> Result<(), toolloop::LlmError> {
//! let mut events = Agent::new("openai/gpt-5")?.stream("What is 2 + 2?");
//! while let Some(event) = events.next().await {
//!     match event? {
//!         TextDelta(text) => print!("{text}"),
//!         ToolExecutionStart { tool_name, arguments, .. } => println!("-> {tool_name} {arguments}"),
//!         Done(result) => println!("\n{}", result.total_usage),
//!         _ => {}
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! [`provider()`] lists the names a model can have and the variables its key comes from.
//!
//! # Five doors, one loop
//!
//! | door | for |
//! |---|---|
//! | [`tool_loop`] | who waits for the end |
//! | [`tool_loop_stream`] | who shows what happens: a stream of [`LoopEvent`]s |
//! | [`ToolLoopHandle`](tool::ToolLoopHandle) | who takes the loop forward turn by turn, edits and injects |
//! | [`Agent`] | who wants a line less |
//! | [`chat_loop`] | who runs the tools, or is told by callbacks |
//!
//! Behind all of them is one machine without I/O, `toolloop_core::Run`, and one driver that
//! carries out what it asks for. [`ToolLoopConfig`] has the limits, callbacks and policies.
//!
//! # Around the loop
//!
//! Long conversations are shortened in their requests: [`ToolLoopConfig`] masks old results, takes
//! out old turns and compacts above a threshold. [`context`] does the same for conversations of
//! one's own. [`intercept`] wraps the calls of models and tools, [`structured`] gives an answer as
//! a value of a type.
//!
//! # What holds
//!
//! - The conversation is valid at every moment: whatever ended a run, each call has a result that
//!   says whether it ran, and the next request is one a provider accepts.
//! - A tool that failed, was denied or is unknown is a result that the model reads; a limit is a
//!   [`TerminationReason`]. Neither is an error. An [`LlmError`] is trouble with the model.
//! - Tokens are reported, estimated or unknown ([`UsageSource`]), never a silent zero; those of
//!   loops inside tools count for the outer loop.
//! - Futures are polled on the caller's task: no task is spawned, and dropping a loop closes its
//!   connection and cuts off its tools.
//!
//! # What a program needs
//!
//! Besides this crate a tokio with the features `macros` and `rt-multi-thread`. A type of one's own
//! that a tool takes derives what is in here, too:
//!
//! ```
//! use toolloop::{schemars, serde, tool};
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! #[serde(crate = "toolloop::serde")]
//! #[schemars(crate = "toolloop::schemars")]
//! struct Area {
//!     /// Degrees
//!     north: f64,
//!     /// Degrees
//!     south: f64,
//! }
//!
//! /// Height of an area.
//! #[tool]
//! fn height(/** The area */ area: Area) -> f64 {
//!     area.north - area.south
//! }
//! ```
//!
//! | feature | gives |
//! |---|---|
//! | `tools` | `toolloop::tools`: files, search, bash in a sandbox; `ToolRegistry::register_all_builtin` |
//! | `mcp` | `toolloop::mcp`: the tools of MCP servers |
//!
//! Tests need no model: a [`MockProvider`](mock::MockProvider) says what it is told to, and the
//! crate `toolloop-fake` is a server that refuses what the real APIs refuse.
//!
//! # What it does not do
//!
//! It does not choose prompts, and holds no memory besides the conversation you give it. It needs
//! a tokio runtime with timers. A tool that blocks its thread blocks the loop: such work belongs
//! in `spawn_blocking`.

mod agent;
pub mod chat_loop;
pub mod context;
mod driver;
pub mod intercept;
pub mod mock;
pub mod provider;
mod reply_stream;
pub mod structured;
pub mod tool;

/// What the code of `#[tool]` needs; no part of the interface.
#[doc(hidden)]
pub use tool::returns as __private;

pub use agent::Agent;
pub use chat_loop::ChatLoopExt;
pub use provider::{WithDialect, provider};

pub use toolloop_core::{chat, dialect, error, stream, usage};

pub use futures_util::StreamExt;
pub use structured::generate_object;
pub use tool::{
    ToolLoopConfig, ToolRegistry, tool_fn, tool_fn_with_ctx, tool_loop, tool_loop_stream,
};
pub use toolloop_core::{
    Capability, ChatMessage, ChatParams, ChatResponse, ChatRole, ChatStream, ContentBlock, Dialect,
    DynProvider, ImageSource, JsonSchema, LlmError, LoopContext, LoopDepth, LoopEvent, Provider,
    ProviderData, ProviderMetadata, RateLimits, StopReason, StreamEvent, StreamingError,
    TerminationReason, ToolCall, ToolChoice, ToolContent, ToolDefinition, ToolError, ToolFuture,
    ToolHandler, ToolLimit, ToolLoopResult, ToolOutput, ToolResult, ToolRetryConfig, Usage,
    UsageSource,
};
pub use toolloop_macros::tool;
/// MCP servers as tools; with the feature `mcp`.
#[cfg(feature = "mcp")]
pub use toolloop_mcp as mcp;
/// Built-in tools: files, search, bash; with the feature `tools`.
#[cfg(feature = "tools")]
pub use toolloop_tools as tools;
#[doc(no_inline)]
pub use {schemars, serde};

/// The README's program is compiled with the other examples.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
