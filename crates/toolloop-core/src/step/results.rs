//! Step 6: results enter the conversation in call order; then the limit, the caller, or step 1.

use super::calls::Turn;
use super::{State, ending, request};
use crate::chat::ChatMessage;
use crate::policy::masking::estimate_tokens;
use crate::run::Shared;

/// Takes a turn whose calls are all settled, and whose results nobody objects to.
pub(crate) fn collect(shared: &mut Shared, mut turn: Turn) -> State {
    let warning = turn.warning.take();
    append(shared, turn);
    if let Some(warning) = warning {
        shared.conversation.push(ChatMessage::system(warning));
    }
    if shared.iteration >= shared.config.max_iterations {
        return match shared.config.final_answer {
            true => request::ask_final(shared),
            false => ending::at_limit(shared),
        };
    }
    if shared.config.yield_turns { State::Yielded } else { request::begin(shared) }
}

/// Adds a settled turn to the conversation and remembers what later steps ask about.
pub(crate) fn append(shared: &mut Shared, turn: Turn) {
    let (mut response, results) = turn.into_parts();
    let content = std::mem::take(&mut response.content);
    let at = (!content.is_empty()).then(|| shared.conversation.push_assistant(content));
    shared.remember_reply(response, at);
    shared.last_results.clear();
    for (tool_name, result) in results {
        if shared.config.has_stop_when || shared.config.yield_turns {
            shared.last_results.push(result.clone());
        }
        let tokens = estimate_tokens(&result.content);
        let is_maskable = shared
            .config
            .masking
            .is_some_and(|masking| !result.is_error && tokens > masking.min_tokens_to_mask);
        let call_id = result.tool_call_id.clone();
        let message = shared.conversation.push_result(result);
        if is_maskable {
            let iteration = shared.iteration;
            shared.conversation.may_be_masked(message, call_id, tool_name, iteration, tokens);
        }
    }
}
