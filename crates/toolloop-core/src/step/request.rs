//! Step 1: mask old results, shorten the conversation, announce the iteration, ask the model.

use std::collections::BTreeSet;

use super::reply::AwaitingReply;
use super::{State, compaction, masking};
use crate::effect::{Action, EffectKind};
use crate::event::LoopEvent;
use crate::run::Shared;

/// Opens the next iteration.
pub(crate) fn begin(shared: &mut Shared) -> State {
    shared.iteration += 1;
    shared.admit_injected();
    shared.admit_tools();
    if shared.config.masking.is_some() && shared.config.has_force_mask {
        shared.perform(EffectKind::ForceMask, 0, Action::ReadForceMask);
        return State::ForceMask;
    }
    ask(shared, &BTreeSet::new())
}

/// Asks the model, after masking what is old or forced and shortening what is too long.
pub(crate) fn ask(shared: &mut Shared, forced: &BTreeSet<u32>) -> State {
    masking::apply(shared, forced);
    compaction::begin(shared, false)
}

/// Asks the model; the request is ready.
pub(crate) fn send(shared: &mut Shared, is_final_answer: bool) -> State {
    if is_final_answer {
        return AwaitingReply::ask(shared, 0, true);
    }
    let message_count = shared.conversation.len();
    shared.event(LoopEvent::IterationStart { iteration: shared.iteration, message_count });
    AwaitingReply::ask(shared, 0, false)
}

/// Asks once more with tools off, so that a run at its limit has an answer.
pub(crate) fn ask_final(shared: &mut Shared) -> State {
    shared.conversation.turn_tools_off();
    compaction::begin(shared, true)
}
