//! Step 2: the reply arrives: count its tokens, ask again when it is empty.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::State;
use super::calls::{AwaitingStop, Turn};
use super::ending;
use crate::chat::{ChatResponse, ChatRole, ContentBlock, StopReason};
use crate::conversation::Conversation;
use crate::effect::{Action, EffectKey, EffectKind, Outcome, Reply};
use crate::error::Failure;
use crate::event::{LoopEvent, TerminationReason};
use crate::run::Shared;

/// A model call is under way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AwaitingReply {
    /// How often this request was answered with nothing.
    asked_before: u32,
    /// Whether this is the call after the limit of iterations.
    is_final_answer: bool,
}

impl AwaitingReply {
    pub(crate) fn ask(shared: &mut Shared, asked_before: u32, is_final_answer: bool) -> State {
        let awaiting = Self { asked_before, is_final_answer };
        shared.perform(EffectKind::Model, awaiting.index(), Action::CallModel);
        State::Reply(awaiting)
    }

    pub(crate) fn key(&self, shared: &Shared) -> EffectKey {
        shared.key(EffectKind::Model, self.index())
    }

    /// Model calls of one iteration: the first, the one after an empty reply, and the same two
    /// for a final answer.
    fn index(&self) -> usize {
        self.asked_before as usize + if self.is_final_answer { 2 } else { 0 }
    }

    pub(crate) fn on_reply(self, shared: &mut Shared, mut reply: Reply) -> State {
        shared.told_of(std::mem::take(&mut reply.reduced_schemas));
        shared.total_usage += reply.response.usage;
        shared.event(LoopEvent::Usage(reply.response.usage));
        if says_nothing(&reply.response) && follows_results(shared) {
            if self.asked_before == 0 {
                shared.event(LoopEvent::AttemptDiscarded { attempt: 1 });
                return Self::ask(shared, 1, self.is_final_answer);
            }
            return match self.is_final_answer {
                true => ending::at_limit(shared),
                false => State::Finished(Err(Failure::EmptyReply)),
            };
        }
        let turn = Turn::new(shared, reply);
        if self.is_final_answer {
            let limit = shared.config.max_iterations;
            let reason = TerminationReason::MaxIterations { limit };
            return ending::finish(shared, Some(turn), reason);
        }
        AwaitingStop::begin(shared, turn)
    }

    pub(crate) fn on_failure(
        self,
        shared: &mut Shared,
        failure: Failure,
        partial: ChatResponse,
    ) -> State {
        shared.event(LoopEvent::Usage(partial.usage));
        shared.keep_partial(partial);
        if self.is_final_answer {
            // The run had reached its end; what it has is worth more than this error.
            return ending::at_limit(shared);
        }
        State::Finished(Err(failure))
    }
}

/// Whether a reply can have come from an assembler of this run; anything else could break the
/// conversation.
pub(crate) fn is_assembled(outcome: &Outcome, conversation: &Conversation) -> bool {
    let (content, may_call) = match outcome {
        Outcome::Reply(reply) => (&reply.response.content, true),
        Outcome::ReplyFailed { partial, .. } | Outcome::Cut { partial: Some(partial), .. } => {
            (&partial.content, false)
        }
        _ => return true,
    };
    let mut seen = BTreeSet::new();
    content.iter().all(|block| match block {
        ContentBlock::ToolCall(call) => {
            may_call && !conversation.has_call(&call.id) && seen.insert(&call.id)
        }
        ContentBlock::ToolResult(_) => false,
        _ => true,
    })
}

/// No text and no call; thought alone is no answer. A refusal is one.
fn says_nothing(response: &ChatResponse) -> bool {
    response.stop_reason != StopReason::Refusal
        && response.content.iter().all(|block| match block {
            ContentBlock::Text(text) => text.trim().is_empty(),
            ContentBlock::Reasoning { .. } | ContentBlock::ProviderData(_) => true,
            _ => false,
        })
}

fn follows_results(shared: &Shared) -> bool {
    shared.iteration > 1 || shared.conversation.last_role() == Some(ChatRole::Tool)
}
