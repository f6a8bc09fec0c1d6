//! [`ToolLoopConfig`]: limits, callbacks and policies of a loop.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio_util::sync::CancellationToken;
use toolloop_core::run::{RunConfig, ToolSpec};
use toolloop_core::{
    BoxFuture, CompactionConfig, DynProvider, LoopDetection, LoopDetectionConfig,
    LoopDetectorConfig, ObservationMaskingConfig, StopContext, StopDecision, ToolCall, ToolContent,
};

use super::inbox::Inbox;
use super::pipeline::{ToolResultCacher, ToolResultExtractor, ToolResultProcessor};

/// Decides about a call before it runs.
pub type ToolApprovalFn = Arc<dyn Fn(&ToolCall) -> ToolApproval + Send + Sync>;

/// Decides about a call before it runs, in its own time: somebody must be asked.
pub type ToolApprovalFuture =
    Arc<dyn Fn(ToolCall) -> BoxFuture<'static, ToolApproval> + Send + Sync>;

/// Decides after each reply whether the loop goes on.
pub type StopConditionFn = Arc<dyn Fn(&StopContext<'_>) -> StopDecision + Send + Sync>;

/// Decides whether a loop goes on though its model goes in circles.
pub type LoopDetectedFn = Arc<dyn Fn(&LoopDetection) -> bool + Send + Sync>;

/// Whether a call may run.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolApproval {
    /// It may.
    Approve,
    /// It may not; the model reads the reason.
    Deny(String),
    /// It may, with these arguments. The conversation keeps what the model said.
    Modify(Value),
    /// It does not run: this is its result, as if the tool had given it.
    Answer(ToolContent),
}

/// Limits, callbacks and policies of a loop.
///
/// ```
/// use std::time::Duration;
/// use toolloop::tool::ToolLoopConfig;
///
/// let config = ToolLoopConfig {
///     max_iterations: 20,
///     timeout: Some(Duration::from_secs(90)),
///     ..ToolLoopConfig::default()
/// };
/// assert!(config.parallel_tool_execution);
/// ```
#[derive(Clone)]
pub struct ToolLoopConfig {
    /// Most iterations; one is a model call and the execution of its calls.
    pub max_iterations: u32,
    /// Whether the calls of one reply run at the same time.
    pub parallel_tool_execution: bool,
    /// Asked once for each call that can run, before the first of its reply starts.
    pub on_tool_call: Option<ToolApprovalFn>,
    /// The same for people who must be asked; the clock and cancellation go on meanwhile. With
    /// both set, it is asked about the calls that `on_tool_call` approves.
    pub on_approval: Option<ToolApprovalFuture>,
    /// Asked after each reply, before its tools run.
    pub stop_when: Option<StopConditionFn>,
    /// What is done about a model that repeats itself: equal replies in a row, whatever their
    /// results.
    pub loop_detection: Option<LoopDetectionConfig>,
    /// What is done about a model that goes in circles: equal calls, cycles and errors, with an
    /// eye on what came of them.
    pub loop_detector: Option<LoopDetectorConfig>,
    /// Asked about each circle that `loop_detector` finds, instead of doing what it says: `true`
    /// goes on and the model is not told, `false` ends the loop.
    pub on_loop_detected: Option<LoopDetectedFn>,
    /// Wall clock of the whole loop.
    pub timeout: Option<Duration>,
    /// Stage 1 of the result pipeline.
    pub result_processor: Option<Arc<dyn ToolResultProcessor>>,
    /// Stage 2 of the result pipeline.
    pub result_extractor: Option<Arc<dyn ToolResultExtractor>>,
    /// Stage 3 of the result pipeline.
    pub result_cacher: Option<Arc<dyn ToolResultCacher>>,
    /// When old results are masked in later requests.
    pub masking: Option<ObservationMaskingConfig>,
    /// Iterations whose results are masked whatever their age; needs `masking`. A tool may write
    /// to it while the loop runs.
    pub force_mask_iterations: Option<Arc<Mutex<HashSet<u32>>>>,
    /// Most tool turns that a request shows; a turn is an assistant message with calls and all
    /// their results. Older ones are taken out; the newest always stays. Like masking it is a
    /// view of the request: the conversation keeps everything. Each turn that goes changes the
    /// beginning of the request, and with it what a provider has in its prompt cache.
    pub max_tool_turns: Option<u32>,
    /// When the conversation of a request is shortened.
    pub compaction: Option<CompactionConfig>,
    /// The model that sums up; the loop's own without it.
    pub compaction_model: Option<Arc<dyn DynProvider>>,
    /// Depth of nesting at which a loop may no longer open; `None`: any.
    pub max_depth: Option<u32>,
    /// Cancels the loop.
    pub cancel: Option<CancellationToken>,
    /// Messages for the loop while it runs.
    pub inbox: Option<Inbox>,
    /// Whether, at the limit of iterations, one more call without tools is made for an answer.
    pub final_answer: bool,
}

impl Default for ToolLoopConfig {
    fn default() -> Self {
        Self {
            max_iterations: 10,
            parallel_tool_execution: true,
            on_tool_call: None,
            on_approval: None,
            stop_when: None,
            loop_detection: None,
            loop_detector: None,
            on_loop_detected: None,
            timeout: None,
            result_processor: None,
            result_extractor: None,
            result_cacher: None,
            masking: None,
            force_mask_iterations: None,
            max_tool_turns: None,
            compaction: None,
            compaction_model: None,
            max_depth: Some(3),
            cancel: None,
            inbox: None,
            final_answer: false,
        }
    }
}

impl ToolLoopConfig {
    /// The part that decides; the callbacks stay here.
    pub(crate) fn run_config(&self, tools: Vec<ToolSpec>, yield_turns: bool) -> RunConfig {
        RunConfig {
            max_iterations: self.max_iterations,
            parallel_tool_execution: self.parallel_tool_execution,
            has_approval: self.on_tool_call.is_some() || self.on_approval.is_some(),
            has_stop_when: self.stop_when.is_some(),
            has_pipeline: self.result_processor.is_some()
                || self.result_extractor.is_some()
                || self.result_cacher.is_some(),
            has_force_mask: self.force_mask_iterations.is_some(),
            loop_detection: self.loop_detection,
            loop_detector: self.loop_detector,
            has_loop_decision: self.on_loop_detected.is_some(),
            timeout: self.timeout,
            masking: self.masking,
            max_tool_turns: self.max_tool_turns,
            compaction: self.compaction,
            final_answer: self.final_answer,
            yield_turns,
            tools,
            runs_any_tool: false,
        }
    }
}

impl fmt::Debug for ToolLoopConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolLoopConfig")
            .field("max_iterations", &self.max_iterations)
            .field("parallel_tool_execution", &self.parallel_tool_execution)
            .field("has_on_tool_call", &self.on_tool_call.is_some())
            .field("has_on_approval", &self.on_approval.is_some())
            .field("has_stop_when", &self.stop_when.is_some())
            .field("loop_detection", &self.loop_detection)
            .field("loop_detector", &self.loop_detector)
            .field("has_on_loop_detected", &self.on_loop_detected.is_some())
            .field("timeout", &self.timeout)
            .field("has_result_processor", &self.result_processor.is_some())
            .field("has_result_extractor", &self.result_extractor.is_some())
            .field("has_result_cacher", &self.result_cacher.is_some())
            .field("masking", &self.masking)
            .field("has_force_mask_iterations", &self.force_mask_iterations.is_some())
            .field("max_tool_turns", &self.max_tool_turns)
            .field("compaction", &self.compaction)
            .field("has_compaction_model", &self.compaction_model.is_some())
            .field("max_depth", &self.max_depth)
            .field("cancel", &self.cancel)
            .field("has_inbox", &self.inbox.is_some())
            .field("final_answer", &self.final_answer)
            .finish()
    }
}
