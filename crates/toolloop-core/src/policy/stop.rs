//! Stopping by the caller's word: [`StopContext`] in, [`StopDecision`] out.

use serde::{Deserialize, Serialize};

use crate::chat::{ChatResponse, ToolResult};
use crate::usage::Usage;

/// What a stop condition sees after each reply, before its tools run.
#[derive(Debug, Clone, Copy)]
pub struct StopContext<'a> {
    /// The iteration of this reply, from 1.
    pub iteration: u32,
    /// The reply.
    pub response: &'a ChatResponse,
    /// Tokens of the run so far, this reply included.
    pub total_usage: &'a Usage,
    /// Tools started so far; refused calls do not count.
    pub tool_calls_executed: usize,
    /// Results of the iteration before, after the pipeline, in call order.
    pub last_tool_results: &'a [ToolResult],
}

/// Whether a run goes on after a reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopDecision {
    /// Go on.
    Continue,
    /// End here; the reply's calls are not run.
    Stop,
    /// End here, and say why.
    StopWithReason(String),
}
