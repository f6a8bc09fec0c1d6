//! [`LoopStep`]: what happens in a chat loop. [`FinishReason`]: how it ended.

use toolloop_core::{StopReason, ToolCall, Usage};

/// What happens in a chat loop, in the order in which it happens.
#[derive(Debug, Clone, PartialEq)]
pub enum LoopStep {
    /// More of the model's thought.
    Thinking(String),
    /// More of the answer's text.
    Content(String),
    /// The model wants these tools; the loop waits for
    /// [`submit_tool_results`](super::ChatLoopHandle::submit_tool_results).
    ToolCallsRequested {
        /// The calls to run, in order.
        tool_calls: Vec<ToolCall>,
        /// The text of this reply. It came as [`LoopStep::Content`] before.
        content: String,
    },
    /// The results were taken; the next step is of the next model call.
    ToolResultsReceived {
        /// How many.
        count: usize,
    },
    /// The loop is over: always the last step, unless it failed or was cancelled.
    Done {
        /// The text of the last reply.
        content: String,
        /// Why the model stopped.
        finish_reason: FinishReason,
        /// Tokens of all model calls.
        total_usage: Usage,
        /// All calls that the model made, in order.
        all_tool_calls: Vec<ToolCall>,
    },
}

/// Why a chat loop's model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FinishReason {
    /// It had said all.
    Stop,
    /// The limit of output tokens was reached.
    Length,
    /// It said it would call tools, and called none.
    ToolCalls,
    /// It, or a filter of the provider, declined to answer.
    Refusal,
    /// It ended in a way that has no name here.
    Error,
}

impl From<StopReason> for FinishReason {
    fn from(reason: StopReason) -> Self {
        match reason {
            StopReason::EndTurn | StopReason::StopSequence => Self::Stop,
            StopReason::MaxTokens => Self::Length,
            StopReason::ToolUse => Self::ToolCalls,
            StopReason::Refusal => Self::Refusal,
            _ => Self::Error,
        }
    }
}
