//! [`LoopEvent`]: what a run tells whoever follows it. [`ToolLoopResult`]: how it ended.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::chat::{ChatMessage, ChatResponse, ToolCall, ToolResult};
use crate::policy::compaction::CompactionMethod;
use crate::policy::detection::LoopAction;
use crate::schema::ReducedSchema;
use crate::stream::{RateLimits, RetryNotice};
use crate::usage::Usage;

/// What happens in a run, in the order in which it happens.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LoopEvent {
    /// More of the answer's text.
    TextDelta(String),
    /// More of the model's thought.
    ReasoningDelta(String),
    /// The model begins a tool call.
    ToolCallStart {
        /// Which call of this reply, from 0.
        index: u32,
        /// Id of the call, unique in the run.
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
        /// The call.
        call: ToolCall,
    },
    /// The call of this index had leaked into the text in place of a native call.
    ToolCallRescued {
        /// Which call of this reply.
        index: u32,
        /// The text it was found in.
        text: String,
    },
    /// The tokens of the model call that just ended.
    Usage(Usage),
    /// A model call is about to be made.
    IterationStart {
        /// From 1.
        iteration: u32,
        /// Messages in the request.
        message_count: usize,
    },
    /// Messages that the caller sent meanwhile have entered the conversation.
    MessagesInjected {
        /// How many.
        count: usize,
    },
    /// Messages of the caller were such as no provider takes, and were repaired.
    MessagesRepaired {
        /// A sentence for each repair.
        repairs: Vec<String>,
    },
    /// Of these schemas the provider was told less than they say; what it was not told is checked
    /// here. Each is told once in a run.
    SchemasReduced {
        /// The schemas.
        schemas: Vec<ReducedSchema>,
    },
    /// A tool starts to run.
    ToolExecutionStart {
        /// Id of the call.
        call_id: String,
        /// Name of the tool.
        tool_name: String,
        /// The arguments it runs with, after an approval's changes.
        arguments: Value,
    },
    /// A tool has ended, or the end of the run cut it off ([`ToolResult::was_cut_off`]) or came
    /// before its first step; once for each that started.
    ToolExecutionEnd {
        /// Id of the call.
        call_id: String,
        /// Name of the tool.
        tool_name: String,
        /// What it gave back, before the result pipeline.
        result: ToolResult,
        /// How long it ran.
        duration: Duration,
    },
    /// The result processor changed a result.
    ToolResultProcessed {
        /// Name of the tool.
        tool_name: String,
        /// Estimate before, in tokens.
        original_tokens: u32,
        /// Estimate after, in tokens.
        processed_tokens: u32,
    },
    /// The extractor took the relevant part of a result.
    ToolResultExtracted {
        /// Name of the tool.
        tool_name: String,
        /// Estimate before, in tokens.
        original_tokens: u32,
        /// Estimate after, in tokens.
        extracted_tokens: u32,
    },
    /// The cacher stored a result and left a summary.
    ToolResultCached {
        /// Name of the tool.
        tool_name: String,
        /// Estimate before, in tokens.
        original_tokens: u32,
        /// Estimate after, in tokens.
        summary_tokens: u32,
    },
    /// Old results are masked in the next request.
    ObservationsMasked {
        /// How many were masked now.
        masked_count: usize,
        /// Estimate of what that saves, in tokens.
        tokens_saved: u32,
    },
    /// Old tool turns are not shown in the next request.
    HistoryPruned {
        /// How many were taken out now.
        turns: usize,
        /// Estimate of what that saves, in tokens.
        tokens_saved: u32,
    },
    /// The conversation was too long for its request, which now shows less of it.
    Compacted {
        /// What stands for the messages that went.
        method: CompactionMethod,
        /// How many messages went now.
        hidden_count: usize,
        /// Estimate of the request before, in tokens.
        tokens_before: u32,
        /// Estimate of the request after, in tokens.
        tokens_after: u32,
        /// Why there is no summary, where there was to be one.
        fault: Option<String>,
    },
    /// The model repeats itself.
    LoopDetected {
        /// The repeated calls' names, joined by `+`.
        tool_name: String,
        /// How many equal replies in a row.
        consecutive_count: u32,
        /// What is done about it.
        action: LoopAction,
    },
    /// A call is not run: denied, unknown, unreadable, invalid or cut.
    ToolCallRefused {
        /// Id of the call.
        call_id: String,
        /// Name the model used.
        tool_name: String,
        /// What the model is told.
        reason: String,
    },
    /// A call is not run: who was asked about it gave its result.
    ToolCallAnswered {
        /// Id of the call.
        call_id: String,
        /// The tool.
        tool_name: String,
        /// What the model is told.
        result: ToolResult,
    },
    /// A line of progress from a running tool.
    ToolProgress {
        /// Id of the call.
        call_id: String,
        /// The line.
        text: String,
    },
    /// A reply starts anew: text and calls since the last iteration start are void.
    AttemptDiscarded {
        /// The attempt that was cut, from 1.
        attempt: u32,
    },
    /// A try of the model call failed; the next one comes after a pause.
    RetryScheduled(RetryNotice),
    /// The provider's id of the current request.
    RequestId(String),
    /// What the provider says of its limits.
    RateLimits(RateLimits),
    /// The model calls stop here for now: the run has ended well. Always last.
    Done(ToolLoopResult),
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolLoopResult {
    /// The last reply.
    pub response: ChatResponse,
    /// Iterations begun, each with its [`LoopEvent::IterationStart`]; one whose model call was cut
    /// counts.
    pub iterations: u32,
    /// Tokens of all model calls, those of nested loops included.
    pub total_usage: Usage,
    /// Why it ended.
    pub termination_reason: TerminationReason,
    /// The whole conversation, valid for the next request.
    pub messages: Vec<ChatMessage>,
}

/// Why a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TerminationReason {
    /// The model answered without a call.
    Complete,
    /// A stop condition, a cancellation or the caller ended it; also a refusal of the model.
    StopCondition {
        /// Why, in words.
        reason: Option<String>,
    },
    /// The last allowed iteration is done.
    MaxIterations {
        /// The limit.
        limit: u32,
    },
    /// The model repeated itself.
    LoopDetected {
        /// The repeated calls' names, joined by `+`.
        tool_name: String,
        /// How many equal replies in a row.
        count: u32,
    },
    /// The wall clock of the loop ran out.
    Timeout {
        /// The limit.
        limit: Duration,
    },
}
