//! Step 7: what the next request shows of old results.
//!
//! Masking is a view of the request: the conversation keeps the results. What is masked once
//! stays masked, so that a provider's prompt cache loses its prefix only once for each result.

use std::collections::BTreeSet;

use crate::event::LoopEvent;
use crate::policy::masking::{estimate_tokens, mask};
use crate::run::Shared;

/// Masks the results that are old before the current model call, and those of forced iterations.
pub(crate) fn apply(shared: &mut Shared, forced: &BTreeSet<u32>) {
    let Some(config) = shared.config.masking else { return };
    let next = shared.iteration;
    let mut masked_count = 0;
    let mut tokens_saved = 0u32;
    shared.conversation.mask(|result| {
        let made = result.iteration;
        if !config.is_old(made, next) && !forced.contains(&made) {
            return None;
        }
        let text = mask(&result.tool_name, made, result.tokens);
        masked_count += 1;
        tokens_saved += result.tokens.saturating_sub(estimate_tokens(&text));
        Some(text)
    });
    if masked_count > 0 {
        shared.event(LoopEvent::ObservationsMasked { masked_count, tokens_saved });
    }
}
