//! The chat loop: for callers who run the tools themselves, and [`chat_loop_with_tools`] over it.
//!
//! [`ChatLoopHandle`] gives one step after the other and stops where the model wants tools:
//!
//! ```
//! use toolloop::chat_loop::LoopStep;
//! use toolloop::mock::MockProvider;
//! use toolloop::{ChatLoopExt, ChatMessage, ChatResponse, ContentBlock, ToolCall, ToolResult};
//!
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! let model = MockProvider::default();
//! let call = ToolCall { id: "c1".into(), name: "clock".into(), arguments: serde_json::json!({}) };
//! let content = vec![ContentBlock::ToolCall(call)];
//! model.queue_response(ChatResponse { content, ..ChatResponse::default() });
//! model.queue_text("It is noon.");
//!
//! let mut steps = model.chat_loop(vec![ChatMessage::user("How late is it?")], Vec::new());
//! while let Some(step) = steps.next().await {
//!     match step? {
//!         LoopStep::ToolCallsRequested { tool_calls, .. } => {
//!             let answer = |call: ToolCall| ToolResult {
//!                 tool_call_id: call.id,
//!                 content: "12:00".into(),
//!                 is_error: false,
//!             };
//!             steps.submit_tool_results(tool_calls.into_iter().map(answer).collect())?;
//!         }
//!         LoopStep::Done { content, .. } => assert_eq!(content, "It is noon."),
//!         _ => {}
//!     }
//! }
//! # Ok::<(), toolloop::LlmError>(())
//! # }).unwrap();
//! ```
//!
//! Behind both is the run that is behind [`tool_loop`](crate::tool_loop), with the same driver. So
//! the conversation is valid in every state, ids of calls that a provider repeats are renamed
//! before anybody sees them, and a call that cannot be run (unreadable arguments, cut by the
//! limit of output tokens) is answered by the loop and never given to the caller.

mod config;
mod desk;
mod handle;
mod look_up;
mod step;
mod with_tools;

pub use config::ChatLoopConfig;
pub use handle::{ChatLoopExt, ChatLoopHandle};
pub use step::{FinishReason, LoopStep};
pub use toolloop_core::{
    CompactionConfig, CompactionMethod, DetectionAction, LoopDetection, LoopDetectorConfig,
    LoopKind,
};
pub use with_tools::{ChatLoopResponse, chat_loop_with_tools};
