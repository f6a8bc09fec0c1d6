//! Pruning: which old tool turns the next request does not show.

use std::ops::Range;

use crate::chat::ChatMessage;
use crate::policy::window::{Piece, pieces};

/// Where the tool turns stand that are too many, oldest first. A turn is an assistant message
/// with calls and all their results. The newest stays in any case: its results are what the model
/// is asked about.
pub(crate) fn surplus(messages: &[ChatMessage], max_tool_turns: u32) -> Vec<Range<usize>> {
    let is_turn = |piece: &Piece| messages[piece.messages.start].tool_calls().next().is_some();
    let mut turns: Vec<_> = pieces(messages).into_iter().filter(is_turn).collect();
    let kept = usize::try_from(max_tool_turns.max(1)).unwrap_or(usize::MAX);
    turns.truncate(turns.len().saturating_sub(kept));
    turns.into_iter().map(|piece| piece.messages).collect()
}
