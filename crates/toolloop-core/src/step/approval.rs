//! Step 4: every call that can run is approved, denied or changed, before the first one starts.

use serde::{Deserialize, Serialize};

use super::State;
use super::calls::{CallStatus, Turn};
use super::execution::AwaitingTools;
use crate::chat::ToolResult;
use crate::effect::{Action, ApprovalOutcome, EffectKey, EffectKind};
use crate::event::LoopEvent;
use crate::run::Shared;
use crate::tool_content::ToolContent;

/// At least one call waits for its approval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct AwaitingApprovals {
    pub(crate) turn: Turn,
}

impl AwaitingApprovals {
    pub(crate) fn begin(shared: &mut Shared, mut turn: Turn) -> State {
        for index in 0..turn.calls.len() {
            match &turn.calls[index].status {
                CallStatus::Settled(settled) if settled.is_refusal => {
                    announce_refusal(shared, &turn, index, settled.content.to_string());
                }
                CallStatus::Waiting if shared.config.has_approval => {
                    turn.calls[index].status = CallStatus::Asked;
                    let action = Action::Approve(turn.call(index).clone());
                    shared.perform(EffectKind::Approval, index, action);
                }
                CallStatus::Waiting => turn.calls[index].status = CallStatus::Approved,
                _ => {}
            }
        }
        Self { turn }.go_on(shared)
    }

    pub(crate) fn on_approval(
        mut self,
        shared: &mut Shared,
        key: EffectKey,
        outcome: ApprovalOutcome,
    ) -> State {
        let index = key.index as usize;
        let refused = |shared: &mut Shared, turn: &Turn, reason: String| {
            announce_refusal(shared, turn, index, reason.clone());
            CallStatus::refused(reason)
        };
        self.turn.calls[index].status = match outcome {
            ApprovalOutcome::Approved => CallStatus::Approved,
            ApprovalOutcome::Modified(arguments) => {
                self.turn.calls[index].modified = Some(arguments);
                CallStatus::Approved
            }
            ApprovalOutcome::Denied(reason) => {
                refused(shared, &self.turn, format!("This call was denied: {reason}"))
            }
            ApprovalOutcome::ModifiedInvalid(fault) => {
                let reason = format!(
                    "This call was approved with changed arguments, which do not fit the tool: \
                     {fault} It was not run."
                );
                refused(shared, &self.turn, reason)
            }
            ApprovalOutcome::Answered(content) => {
                announce_answer(shared, &self.turn, index, content.clone());
                CallStatus::settled(content, false)
            }
        };
        self.go_on(shared)
    }

    fn go_on(self, shared: &mut Shared) -> State {
        let asked = self.turn.calls.iter().any(|call| matches!(call.status, CallStatus::Asked));
        if asked { State::Approvals(self) } else { AwaitingTools::begin(shared, self.turn) }
    }
}

fn announce_answer(shared: &mut Shared, turn: &Turn, index: usize, content: ToolContent) {
    let call = turn.call(index);
    let (call_id, tool_name) = (call.id.clone(), call.name.clone());
    let result = ToolResult { tool_call_id: call_id.clone(), content, is_error: false };
    shared.event(LoopEvent::ToolCallAnswered { call_id, tool_name, result });
}

fn announce_refusal(shared: &mut Shared, turn: &Turn, index: usize, reason: String) {
    let call = turn.call(index);
    let (call_id, tool_name) = (call.id.clone(), call.name.clone());
    shared.event(LoopEvent::ToolCallRefused { call_id, tool_name, reason });
}
