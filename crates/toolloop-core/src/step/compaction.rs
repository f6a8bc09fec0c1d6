//! Step 8: what the next request shows of a conversation that has become too long.
//!
//! Like masking it is a view of the request: the conversation keeps everything. At most one
//! summary is asked for before a model call; what it does not achieve, truncation does, and what
//! that does not achieve is sent as it is.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::{State, request};
use crate::chat::{ChatMessage, ChatResponse, ContentBlock, StopReason};
use crate::effect::{Action, EffectKey, EffectKind};
use crate::error::Failure;
use crate::event::LoopEvent;
use crate::params::ChatParams;
use crate::policy::compaction::{CompactionConfig, CompactionMethod, surplus};
use crate::policy::masking::estimate_tokens;
use crate::policy::window::{frame_tokens, message_tokens};
use crate::policy::{pruning, summary};
use crate::run::Shared;

/// A summary is asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct AwaitingSummary {
    /// What it is to stand for.
    ranges: Vec<Range<usize>>,
    is_final_answer: bool,
}

/// Shortens the request where it is too long, and sends it.
pub(crate) fn begin(shared: &mut Shared, is_final_answer: bool) -> State {
    prune(shared);
    let Some(config) = shared.config.compaction.filter(|config| shared.is_too_long(*config)) else {
        shared.truncates_only = false;
        return request::send(shared, is_final_answer);
    };
    if config.method == CompactionMethod::Summary && !shared.truncates_only {
        let ranges = shared.surplus(config, config.max_summary_tokens);
        let awaiting = AwaitingSummary { ranges, is_final_answer };
        if shared.tokens_in(&awaiting.ranges) > config.max_summary_tokens
            && awaiting.params(shared).is_some()
        {
            shared.perform(EffectKind::Compaction, awaiting.index(), Action::Summarize);
            return State::Summary(awaiting);
        }
    }
    truncate(shared, config, None);
    request::send(shared, is_final_answer)
}

impl AwaitingSummary {
    pub(crate) fn key(&self, shared: &Shared) -> EffectKey {
        shared.key(EffectKind::Compaction, self.index())
    }

    fn index(&self) -> usize {
        usize::from(self.is_final_answer)
    }

    /// The request for the summary.
    pub(crate) fn params(&self, shared: &Shared) -> Option<ChatParams> {
        let config = shared.config.compaction?;
        let run = shared.conversation.params();
        let messages = self.ranges.iter().flat_map(|range| &run.messages[range.clone()]);
        let task = shared.conversation.task();
        summary::request(run, &task, messages, config.max_summary_tokens, config.threshold)
    }

    pub(crate) fn on_summary(
        self,
        shared: &mut Shared,
        response: ChatResponse,
        failure: Option<Failure>,
    ) -> State {
        shared.total_usage += response.usage;
        shared.event(LoopEvent::Usage(response.usage));
        // A configuration is never taken away from a run that waits because of it.
        let config = shared.config.compaction.unwrap_or_default();
        let fault = match failure {
            Some(failure) => Some(crate::error::LlmError::from(failure).to_string()),
            None => self.apply(shared, config, &response).err(),
        };
        truncate(shared, config, fault);
        // What was said meanwhile goes into this request.
        shared.admit_injected();
        request::send(shared, self.is_final_answer)
    }

    /// Has the summary stand for its messages, or says why it cannot.
    fn apply(
        &self,
        shared: &mut Shared,
        config: CompactionConfig,
        response: &ChatResponse,
    ) -> Result<(), String> {
        let texts = response.content.iter().filter_map(|block| match block {
            ContentBlock::Text(text) => Some(text.as_str()),
            _ => None,
        });
        let text = texts.collect::<Vec<_>>().join("\n");
        if response.stop_reason == StopReason::Refusal {
            return Err("the model declined to sum up".to_owned());
        }
        if text.trim().is_empty() {
            return Err("the summary was empty".to_owned());
        }
        let note = summary::note(text.trim());
        let (size, stands_for) = (estimate_tokens(&note), shared.tokens_in(&self.ranges));
        if size >= stands_for {
            return Err("the summary was no shorter than what it sums up".to_owned());
        }
        let tokens_before = shared.conversation.tokens();
        let rest = tokens_before.saturating_sub(stands_for);
        // Where the rest alone is too much, the summary is not to blame.
        if rest <= config.threshold && size > config.threshold - rest {
            return Err("the summary was too long for the request".to_owned());
        }
        let hidden_count = shared.hide(self.ranges.clone(), note);
        let tokens_after = shared.conversation.tokens();
        // Until a request is short enough: what stays too long is not summed up each time.
        shared.truncates_only = true;
        shared.event(LoopEvent::Compacted {
            method: CompactionMethod::Summary,
            hidden_count,
            tokens_before,
            tokens_after,
            fault: None,
        });
        Ok(())
    }
}

/// Takes out tool turns that are too many.
fn prune(shared: &mut Shared) {
    let Some(max) = shared.config.max_tool_turns else { return };
    let turns = pruning::surplus(&shared.conversation.params().messages, max);
    if turns.is_empty() {
        return;
    }
    let tokens_saved = shared.tokens_in(&turns);
    shared.forget_place_of_reply();
    for range in turns.iter().rev() {
        shared.conversation.hide(range.clone(), None);
    }
    shared.event(LoopEvent::HistoryPruned { turns: turns.len(), tokens_saved });
}

/// Leaves out what is still too much. `fault` is why there is no summary.
fn truncate(shared: &mut Shared, config: CompactionConfig, fault: Option<String>) {
    let tokens_before = shared.conversation.tokens();
    let (mut hidden_count, mut tokens_after) = (0, tokens_before);
    if tokens_before > config.threshold {
        let notes = shared.notes();
        let notes: Vec<&str> = notes.iter().map(String::as_str).collect();
        let note = summary::truncated(&notes);
        let ranges = shared.surplus(config, estimate_tokens(&note));
        // What holds no more than the line that would stand for it may as well stay.
        if shared.tokens_in(&ranges) > estimate_tokens(&note) {
            hidden_count = shared.hide(ranges, note);
            tokens_after = shared.conversation.tokens();
        }
    }
    shared.truncates_only &= tokens_after > config.threshold;
    if hidden_count > 0 || fault.is_some() {
        let method = CompactionMethod::Truncation;
        shared.event(LoopEvent::Compacted {
            method,
            hidden_count,
            tokens_before,
            tokens_after,
            fault,
        });
    }
}

impl Shared {
    fn is_too_long(&mut self, config: CompactionConfig) -> bool {
        self.conversation.tokens() > config.threshold
    }

    /// What is to go, so that the rest and a note of so many tokens keep to the target.
    fn surplus(&self, config: CompactionConfig, note: u32) -> Vec<Range<usize>> {
        let params = self.conversation.params();
        let target = config.target.min(config.threshold);
        let room = target.saturating_sub(frame_tokens(params)).saturating_sub(note);
        surplus(&params.messages, &self.conversation.notes(), room)
    }

    fn tokens_in(&self, ranges: &[Range<usize>]) -> u32 {
        let messages = &self.conversation.params().messages;
        let hidden = ranges.iter().flat_map(|range| &messages[range.clone()]);
        hidden.map(message_tokens).fold(0, u32::saturating_add)
    }

    /// The texts that stand for messages now.
    fn notes(&self) -> Vec<String> {
        let message = |at| self.conversation.message(at);
        let blocks = self.conversation.notes().into_iter().filter_map(message);
        let blocks = blocks.flat_map(|message| &message.content);
        let text = |block: &ContentBlock| match block {
            ContentBlock::Text(text) => Some(text.clone()),
            _ => None,
        };
        blocks.filter_map(text).collect()
    }

    /// Hides messages behind one note, which stands at the last of them; says how many went that
    /// were no notes.
    fn hide(&mut self, ranges: Vec<Range<usize>>, note: String) -> usize {
        let notes = self.conversation.notes();
        let gone = ranges.iter().cloned().flatten().filter(|at| !notes.contains(at)).count();
        self.forget_place_of_reply();
        let mut note = Some(ChatMessage::user(note));
        for range in ranges.into_iter().rev() {
            self.conversation.hide(range, note.take());
        }
        gone
    }

    /// The last reply keeps its content by itself, before messages move.
    fn forget_place_of_reply(&mut self) {
        let response = self.last_response();
        self.remember_reply(response, None);
    }
}
