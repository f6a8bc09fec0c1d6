//! The tool loop: [`tool_loop`] and [`tool_loop_stream`], what they run and how they are set up.

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
