//! The tool loop: [`tool_loop`] and [`tool_loop_stream`], what they run and how they are set up.
//!
//! A [`ToolRegistry`] holds the tools, made with `#[tool]`, [`tool_fn`] or as a [`ToolHandler`];
//! a [`ToolLoopConfig`] says when the loop asks, stops or gives up:
//!
//! ```
//! use toolloop::mock::MockProvider;
//! use toolloop::tool::{StopDecision, ToolApproval, ToolLoopConfig, ToolRegistry, tool_loop};
//! use toolloop::{ChatMessage, ChatParams, TerminationReason, tool};
//! use std::{sync::Arc, time::Duration};
//!
//! /// Deletes a file.
//! #[tool]
//! fn delete(/** Path */ path: String) -> String {
//!     format!("{path} is gone")
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
//! let model = MockProvider::default();
//! model.queue_text("There is nothing to delete.");
//! let mut registry = ToolRegistry::new();
//! registry.register(delete);
//! let config = ToolLoopConfig {
//!     max_iterations: 5,
//!     timeout: Some(Duration::from_secs(60)),
//!     on_tool_call: Some(Arc::new(|call| match call.arguments["path"] == "notes.txt" {
//!         true => ToolApproval::Deny("the notes stay".into()),
//!         false => ToolApproval::Approve,
//!     })),
//!     stop_when: Some(Arc::new(|so_far| match so_far.total_usage.total() > 100_000 {
//!         true => StopDecision::StopWithReason("too many tokens".into()),
//!         false => StopDecision::Continue,
//!     })),
//!     ..ToolLoopConfig::default()
//! };
//! let params = ChatParams { messages: vec![ChatMessage::user("Clean up.")], ..Default::default() };
//!
//! let result = tool_loop(&model, &registry, params, config, &()).await?;
//! assert_eq!(result.termination_reason, TerminationReason::Complete);
//! # Ok::<(), toolloop::LlmError>(())
//! # }).unwrap();
//! ```

#[cfg(feature = "tools")]
mod builtin;
mod config;
#[cfg(feature = "tools")]
mod disk_cacher;
mod extract;
mod function;
mod handle;
mod inbox;
mod loop_fn;
mod pipeline;
mod registry;
#[doc(hidden)]
pub mod returns;
mod task;

pub use config::{
    LoopDetectedFn, StopConditionFn, ToolApproval, ToolApprovalFn, ToolApprovalFuture,
    ToolLoopConfig,
};
#[cfg(feature = "tools")]
pub use disk_cacher::DiskCacher;
pub use extract::ModelExtractor;
pub use function::{FnTool, FnToolWithCtx, tool_fn, tool_fn_with_ctx};
pub use handle::{Completed, ToolLoopHandle, TurnError, TurnResult, Yielded};
pub use inbox::Inbox;
pub use loop_fn::{LoopStream, tool_loop, tool_loop_stream};
pub use pipeline::{
    CachedResult, ExtractedResult, ProcessedResult, ToolResultCacher, ToolResultExtractor,
    ToolResultProcessor,
};
pub use registry::ToolRegistry;
pub use task::TaskTool;
pub use tokio_util::sync::CancellationToken;
pub use toolloop_core::policy::approval::{ApprovalRule, ApprovalRules, InvalidRule, Verdict};
pub use toolloop_core::{
    CallContext, CompactionConfig, CompactionMethod, DetectionAction, EffectClass, LoopAction,
    LoopContext, LoopDepth, LoopDetection, LoopDetectionConfig, LoopDetectorConfig, LoopEvent,
    LoopKind, ObservationMaskingConfig, RetryPredicate, StopContext, StopDecision,
    TerminationReason, ToolContent, ToolError, ToolFuture, ToolHandler, ToolImage, ToolLoopResult,
    ToolOutput, ToolRetryConfig,
};

pub(crate) use pipeline::run_pipeline;
pub(crate) use registry::{faults, panicked, result_of};
