//! Step 3: the reply's calls: which can run, whether the run goes on, whether it goes in circles.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{State, circles, ending, request, results};
use crate::arguments;
use crate::chat::{CUT_OFF, ChatResponse, ContentBlock, StopReason, ToolCall, ToolResult};
use crate::dialect::unread_call;
use crate::effect::{Action, EffectKind, Reply};
use crate::event::{LoopEvent, TerminationReason};
use crate::policy::detection::{LoopAction, Repetition};
use crate::policy::stop::StopDecision;
use crate::run::Shared;
use crate::tool_content::ToolContent;
use crate::transcript::is_empty_text;

/// A reply and what becomes of its calls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Turn {
    pub(crate) response: ChatResponse,
    /// One for each call of the response, in order.
    pub(crate) calls: Vec<PlannedCall>,
    /// The model is told after the results that it goes in circles.
    pub(crate) warning: Option<String>,
}

/// A call on its way to its result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct PlannedCall {
    /// Where the call stands in the response's content.
    block: usize,
    /// Arguments an approval put in the place of the model's.
    pub(crate) modified: Option<Value>,
    /// What the model is told in front of the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) warning: Option<String>,
    pub(crate) status: CallStatus,
    /// How long its tool ran.
    #[serde(default)]
    pub(crate) took: Duration,
}

/// How far a call has come.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum CallStatus {
    /// Nothing has been decided.
    Waiting,
    /// Its approval is asked for.
    Asked,
    /// It may start.
    Approved,
    /// It runs.
    Running,
    /// It has finished; its result is in the pipeline.
    Processing(ToolContent),
    /// Its result is known.
    Settled(Settled),
}

/// A result that is known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Settled {
    pub(crate) content: ToolContent,
    pub(crate) is_error: bool,
    /// Whether the tool was refused; its event comes with the approvals.
    pub(crate) is_refusal: bool,
}

impl CallStatus {
    pub(crate) fn refused(reason: String) -> Self {
        Self::Settled(Settled { content: reason.into(), is_error: true, is_refusal: true })
    }

    pub(crate) fn failed(reason: String) -> Self {
        Self::Settled(Settled { content: reason.into(), is_error: true, is_refusal: false })
    }

    pub(crate) fn settled(content: ToolContent, is_error: bool) -> Self {
        Self::Settled(Settled { content, is_error, is_refusal: false })
    }
}

impl Turn {
    pub(crate) fn new(shared: &Shared, reply: Reply) -> Self {
        let Reply { mut response, cut_calls, invalid_calls, .. } = reply;
        response.content.retain(|block| !is_empty_text(block));
        let names = shared.tool_names();
        let mut calls = Vec::new();
        for (block, content) in response.content.iter().enumerate() {
            let ContentBlock::ToolCall(call) = content else { continue };
            let position = calls.len();
            let is_known = shared.config.runs_any_tool || names.contains(call.name.as_str());
            let refusal = match cut_calls.contains(&position) {
                true => Some(CUT_BY_LIMIT.to_owned()),
                false if !is_known => Some(unknown(&call.name, &names)),
                false => unfit(call, invalid_calls.get(&position)),
            };
            let status = refusal.map_or(CallStatus::Waiting, CallStatus::refused);
            calls.push(PlannedCall {
                block,
                modified: None,
                warning: None,
                status,
                took: Duration::ZERO,
            });
        }
        Self { response, calls, warning: None }
    }

    /// The call at `index` of the reply, as the model made it.
    pub(crate) fn call(&self, index: usize) -> &ToolCall {
        match &self.response.content[self.calls[index].block] {
            ContentBlock::ToolCall(call) => call,
            // `new` records only blocks that are calls, and the content never changes.
            other => unreachable!("no call: {other:?}"),
        }
    }

    /// The call at `index` with the arguments it runs with.
    pub(crate) fn effective_call(&self, index: u32) -> ToolCall {
        let index = index as usize;
        let mut call = self.call(index).clone();
        if let Some(arguments) = &self.calls[index].modified {
            call.arguments.clone_from(arguments);
        }
        call
    }

    /// The pipeline effect of the call at `index`, if that is where it is.
    pub(crate) fn processing(&self, index: u32) -> Option<Action> {
        let call = self.call(index as usize);
        let CallStatus::Processing(content) = &self.calls[index as usize].status else {
            return None;
        };
        let result =
            ToolResult { tool_call_id: call.id.clone(), content: content.clone(), is_error: false };
        Some(Action::ProcessResult { tool_name: call.name.clone(), result })
    }

    /// Gives every call without result one that says truthfully how far it came.
    pub(crate) fn settle_open(&mut self, why: &str) {
        for call in &mut self.calls {
            let status = std::mem::replace(&mut call.status, CallStatus::Waiting);
            call.status = match status {
                CallStatus::Settled(settled) => CallStatus::Settled(settled),
                CallStatus::Processing(content) => CallStatus::settled(content, false),
                CallStatus::Running => CallStatus::failed(cut_off(why)),
                CallStatus::Waiting | CallStatus::Asked | CallStatus::Approved => {
                    CallStatus::failed(not_run(why))
                }
            };
        }
    }

    /// The reply, and the results of its calls by tool name, in call order. Every call must be
    /// settled.
    pub(crate) fn into_parts(self) -> (ChatResponse, Vec<(String, ToolResult)>) {
        let mut results = Vec::with_capacity(self.calls.len());
        for planned in self.calls {
            let ContentBlock::ToolCall(call) = &self.response.content[planned.block] else {
                continue;
            };
            let CallStatus::Settled(Settled { mut content, is_error, .. }) = planned.status else {
                continue;
            };
            if let Some(warning) = planned.warning {
                content.text = match content.is_empty() {
                    true => warning,
                    false => format!("{warning}\n\n{content}"),
                };
            }
            let result = ToolResult { tool_call_id: call.id.clone(), content, is_error };
            results.push((call.name.clone(), result));
        }
        (self.response, results)
    }
}

/// The stop condition is asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct AwaitingStop {
    pub(crate) turn: Turn,
}

impl AwaitingStop {
    pub(crate) fn begin(shared: &mut Shared, turn: Turn) -> State {
        let awaiting = Self { turn };
        if shared.config.has_stop_when {
            shared.perform(EffectKind::Stop, 0, Action::DecideStop);
            return State::Stop(awaiting);
        }
        awaiting.on_decision(shared, StopDecision::Continue)
    }

    pub(crate) fn on_decision(self, shared: &mut Shared, decision: StopDecision) -> State {
        let turn = self.turn;
        let reason = match decision {
            StopDecision::Continue => return go_on(shared, turn),
            StopDecision::Stop => None,
            StopDecision::StopWithReason(reason) => Some(reason),
        };
        ending::finish(shared, Some(turn), TerminationReason::StopCondition { reason })
    }
}

fn go_on(shared: &mut Shared, mut turn: Turn) -> State {
    let repetition = shared.config.loop_detection.and_then(|config| {
        let repetition = shared.repeats.observe(config, turn.response.tool_calls_iter())?;
        Some((repetition, config.action))
    });
    if let Some((Repetition { tool_name, count }, action)) = repetition {
        shared.event(LoopEvent::LoopDetected {
            tool_name: tool_name.clone(),
            consecutive_count: count,
            action,
        });
        match action {
            LoopAction::Warn => {}
            LoopAction::Stop => {
                let reason = TerminationReason::LoopDetected { tool_name, count };
                return ending::finish(shared, Some(turn), reason);
            }
            LoopAction::InjectWarning => turn.warning = Some(warning(&tool_name, count)),
        }
    }
    if turn.calls.is_empty() { answered(shared, turn) } else { circles::in_calls(shared, turn) }
}

/// A reply without calls ends the run, unless the caller has said more meanwhile.
fn answered(shared: &mut Shared, turn: Turn) -> State {
    let refused = turn.response.stop_reason == StopReason::Refusal;
    let at_limit = shared.iteration >= shared.config.max_iterations;
    let reason = match shared.injected.is_empty() {
        _ if refused => TerminationReason::StopCondition { reason: Some("refusal".to_owned()) },
        true => TerminationReason::Complete,
        false if at_limit => {
            TerminationReason::MaxIterations { limit: shared.config.max_iterations }
        }
        false => {
            results::append(shared, turn);
            return request::begin(shared);
        }
    };
    ending::finish(shared, Some(turn), reason)
}

/// That there is no such tool, in words for the model.
fn unknown(name: &str, names: &BTreeSet<&str>) -> String {
    let known: Vec<&str> = names.iter().copied().collect();
    match known.is_empty() {
        true => format!("Unknown tool '{name}': no tools are available. Answer without one."),
        false => format!("Unknown tool '{name}'. Available tools: {}.", known.join(", ")),
    }
}

/// Why the arguments of a call cannot be run with, in words for the model.
fn unfit(call: &ToolCall, invalid: Option<&String>) -> Option<String> {
    let name = &call.name;
    let fault = arguments::fault(&call.arguments).or_else(|| invalid.cloned())?;
    let form = match call.arguments.as_str().and_then(unread_call) {
        Some(_) => "in that form",
        None => "with a JSON object that fits its schema",
    };
    Some(format!("{fault} The call was not run. Call '{name}' again {form}."))
}

/// What the model is told of a tool that never began.
pub(crate) fn not_run(why: &str) -> String {
    format!("This call was not run: {why}.")
}

/// What the model is told of a tool that was cut.
pub(crate) fn cut_off(why: &str) -> String {
    format!("{CUT_OFF}{why}. It may have taken effect in part; check before repeating it.")
}

/// What the model is told under [`LoopAction::InjectWarning`].
fn warning(tool_name: &str, count: u32) -> String {
    format!(
        "You have called {tool_name} {count} times in a row with the same arguments. Repeating it \
         will not change the outcome. Try another approach: other arguments, another tool, or \
         answer with what you know."
    )
}

const CUT_BY_LIMIT: &str = "The reply reached its limit of output tokens (max_tokens) inside this \
                            call, so the call was not run. Make it again with shorter arguments, \
                            or in several steps.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_in_text_is_asked_for_again_in_its_form() {
        let arguments = Value::String("<tool:bash>ls</tool:bash>".into());
        let call = ToolCall { id: "1".into(), name: "bash".into(), arguments };
        let reason = unfit(&call, None);
        let expected = "The call holds text that belongs to no parameter: write each argument as \
                        a parameter, as the instructions show. The call was not run. Call 'bash' \
                        again in that form.";
        assert_eq!(reason.as_deref(), Some(expected));
    }
}
