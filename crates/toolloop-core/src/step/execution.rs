//! Step 5: the tools run, at once or in turn, and each result goes through the pipeline.

use serde::{Deserialize, Serialize};

use super::calls::{CallStatus, Settled, Turn};
use super::{State, circles};
use crate::chat::ToolResult;
use crate::effect::{Action, EffectKey, EffectKind, PipelineOutcome, StageReport, ToolOutcome};
use crate::event::LoopEvent;
use crate::run::Shared;

/// At least one tool or pipeline is at work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct AwaitingTools {
    pub(crate) turn: Turn,
}

impl AwaitingTools {
    pub(crate) fn begin(shared: &mut Shared, turn: Turn) -> State {
        Self { turn }.go_on(shared)
    }

    pub(crate) fn on_tool(
        mut self,
        shared: &mut Shared,
        key: EffectKey,
        outcome: ToolOutcome,
    ) -> State {
        let index = key.index as usize;
        self.turn.tool_ended(shared, index, outcome);
        let status = &mut self.turn.calls[index].status;
        // Failures keep their words, and there is nothing in an empty text to shorten.
        if let CallStatus::Settled(Settled { content, is_error: false, .. }) = status
            && shared.config.has_pipeline
            && !content.is_empty()
        {
            *status = CallStatus::Processing(std::mem::take(content));
            if let Some(action) = self.turn.processing(key.index) {
                shared.perform(EffectKind::Pipeline, index, action);
            }
        }
        self.go_on(shared)
    }

    pub(crate) fn on_pipeline(
        mut self,
        shared: &mut Shared,
        key: EffectKey,
        outcome: PipelineOutcome,
    ) -> State {
        self.turn.pipeline_ended(shared, key.index as usize, outcome);
        self.go_on(shared)
    }

    /// Starts what may start; goes on to the results when nothing is at work.
    fn go_on(mut self, shared: &mut Shared) -> State {
        for index in 0..self.turn.calls.len() {
            if !shared.config.parallel_tool_execution && self.is_at_work() {
                break;
            }
            if matches!(self.turn.calls[index].status, CallStatus::Approved) {
                self.start(shared, index);
            }
        }
        if self.is_at_work() { State::Tools(self) } else { circles::in_results(shared, self.turn) }
    }

    fn start(&mut self, shared: &mut Shared, index: usize) {
        self.turn.calls[index].status = CallStatus::Running;
        shared.tools_started += 1;
        let call = self.turn.effective_call(u32::try_from(index).unwrap_or(u32::MAX));
        shared.event(LoopEvent::ToolExecutionStart {
            call_id: call.id.clone(),
            tool_name: call.name.clone(),
            arguments: call.arguments.clone(),
        });
        shared.perform(EffectKind::Tool, index, Action::RunTool(call));
    }

    fn is_at_work(&self) -> bool {
        let at_work =
            |status: &CallStatus| matches!(status, CallStatus::Running | CallStatus::Processing(_));
        self.turn.calls.iter().any(|call| at_work(&call.status))
    }
}

impl Turn {
    /// Settles a call with what its tool gave, and tells of it.
    pub(super) fn tool_ended(&mut self, shared: &mut Shared, index: usize, outcome: ToolOutcome) {
        let ToolOutcome { content, is_error, duration, usage } = outcome;
        shared.total_usage += usage.unwrap_or_default();
        let call = self.call(index);
        let (call_id, tool_name) = (call.id.clone(), call.name.clone());
        let result =
            ToolResult { tool_call_id: call_id.clone(), content: content.clone(), is_error };
        shared.event(LoopEvent::ToolExecutionEnd { call_id, tool_name, result, duration });
        self.calls[index].status = CallStatus::settled(content, is_error);
        self.calls[index].took = duration;
    }

    /// Settles a call with what the pipeline made of its result, and tells of it.
    pub(super) fn pipeline_ended(
        &mut self,
        shared: &mut Shared,
        index: usize,
        outcome: PipelineOutcome,
    ) {
        shared.total_usage += outcome.usage.unwrap_or_default();
        for stage in outcome.stages {
            let tool_name = self.call(index).name.clone();
            shared.event(match stage {
                StageReport::Processed { original, now } => LoopEvent::ToolResultProcessed {
                    tool_name,
                    original_tokens: original,
                    processed_tokens: now,
                },
                StageReport::Extracted { original, now } => LoopEvent::ToolResultExtracted {
                    tool_name,
                    original_tokens: original,
                    extracted_tokens: now,
                },
                StageReport::Cached { original, now } => LoopEvent::ToolResultCached {
                    tool_name,
                    original_tokens: original,
                    summary_tokens: now,
                },
            });
        }
        let status = &mut self.calls[index].status;
        if let CallStatus::Processing(content) = status {
            let mut content = std::mem::take(content);
            if let Some(text) = outcome.text {
                content.text = text;
            }
            *status = CallStatus::settled(content, false);
        }
    }
}
