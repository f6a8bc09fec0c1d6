//! What of a conversation fits into a budget of tokens, without parting a call from its result.
//!
//! [`pieces`] tells what belongs together, [`choose`] which of it stays. Both are used by the
//! compaction of a run and by the context window that programs fill themselves. A replayed run
//! must decide as it did before, so the figures here belong to the stored form: a change of them
//! is one of the journal's format.

use std::collections::BTreeSet;
use std::io;
use std::ops::Range;

use serde::Serialize;

use crate::chat::{ChatMessage, ChatRole, ContentBlock};
use crate::params::ChatParams;

/// Messages that stay or go together, and what speaks for them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Where they stand in the conversation.
    pub messages: Range<usize>,
    /// Their estimated tokens.
    pub tokens: u32,
    /// How much they matter; [`Weight::Required`] always stays.
    pub weight: Weight,
}

/// How much a message matters when not all of a conversation fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash)]
pub enum Weight {
    /// Goes first.
    Low,
    /// As most messages do.
    #[default]
    Normal,
    /// Goes after all that is normal.
    High,
    /// Never goes.
    Required,
}

/// The pieces of a conversation, in order: an assistant message with calls and the results behind
/// it are one, every other message is one alone. All have [`Weight::Normal`].
pub fn pieces(messages: &[ChatMessage]) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut takes_results = false;
    for (at, message) in messages.iter().enumerate() {
        let tokens = message_tokens(message);
        match pieces.last_mut() {
            Some(piece) if takes_results && message.role == ChatRole::Tool => {
                piece.messages.end = at + 1;
                piece.tokens = piece.tokens.saturating_add(tokens);
            }
            _ => {
                takes_results = message.tool_calls().next().is_some();
                pieces.push(Piece { messages: at..at + 1, tokens, weight: Weight::Normal });
            }
        }
    }
    pieces
}

/// Which pieces stay within `budget` tokens, by their places in the list.
///
/// Required ones stay in any case, also where they alone are too much. Of the others the heavier
/// come first, and of equal ones the newest, up to the first that does not fit: what stays of one
/// weight has no holes.
pub fn choose(pieces: &[Piece], budget: u32) -> BTreeSet<usize> {
    let of = |weight| pieces.iter().enumerate().rev().filter(move |(_, p)| p.weight == weight);
    let mut chosen: BTreeSet<usize> = of(Weight::Required).map(|(at, _)| at).collect();
    let required = of(Weight::Required).map(|(_, piece)| u64::from(piece.tokens)).sum();
    let mut room = u64::from(budget).saturating_sub(required);
    for weight in [Weight::High, Weight::Normal, Weight::Low] {
        for (at, piece) in of(weight) {
            let Some(left) = room.checked_sub(piece.tokens.into()) else { break };
            room = left;
            chosen.insert(at);
        }
    }
    chosen
}

/// Estimated tokens of a request: instructions, tools and messages.
pub fn request_tokens(params: &ChatParams) -> u32 {
    let messages = params.messages.iter().map(message_tokens);
    messages.fold(frame_tokens(params), u32::saturating_add)
}

/// Estimated tokens of a request besides its messages.
pub(crate) fn frame_tokens(params: &ChatParams) -> u32 {
    let mut size = Size::default();
    size.bytes += params.system.as_ref().map_or(0, String::len);
    for tool in params.tools.iter().flatten() {
        size.bytes += tool.name.len() + tool.description.len();
        size.add_json(tool.parameters.as_value());
    }
    size.tokens()
}

/// Estimated tokens of a message: bytes / 4, rounded up, and a flat figure for each picture.
pub fn message_tokens(message: &ChatMessage) -> u32 {
    let mut size = Size::default();
    for block in &message.content {
        match block {
            ContentBlock::Text(text) => size.bytes += text.len(),
            ContentBlock::Reasoning { content } => size.bytes += content.len(),
            ContentBlock::Image { .. } => size.pictures += 1,
            ContentBlock::ToolCall(call) => {
                size.bytes += call.name.len();
                size.add_json(&call.arguments);
            }
            ContentBlock::ToolResult(result) => {
                size.bytes += result.content.text.len();
                size.pictures += result.content.images.len();
            }
            ContentBlock::ProviderData(data) => size.bytes += data.data.len(),
        }
    }
    size.tokens()
}

/// What a model has to read, before it is tokens.
#[derive(Default)]
struct Size {
    bytes: usize,
    pictures: usize,
}

impl Size {
    /// Counts a value in the form in which it is sent.
    fn add_json(&mut self, value: &impl Serialize) {
        // Counting does not fail, and only a map whose keys are not strings could.
        let _ = serde_json::to_writer(Counting(&mut self.bytes), value);
    }

    fn tokens(&self) -> u32 {
        let tokens = self.bytes.div_ceil(4).saturating_add(self.pictures * PICTURE_TOKENS);
        u32::try_from(tokens).unwrap_or(u32::MAX)
    }
}

struct Counting<'a>(&'a mut usize);

impl io::Write for Counting<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        *self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What a picture of usual size costs at the large providers; its bytes say nothing about that.
const PICTURE_TOKENS: usize = 1_500;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::chat::ToolCall;

    fn calls(ids: &[&str]) -> ChatMessage {
        let call = |id: &&str| {
            let (id, name) = ((*id).to_owned(), "t".to_owned());
            ContentBlock::ToolCall(ToolCall { id, name, arguments: json!({"n": 1}) })
        };
        ChatMessage { role: ChatRole::Assistant, content: ids.iter().map(call).collect() }
    }

    fn weighing(list: &[(u32, Weight)]) -> Vec<Piece> {
        let piece = |(at, (tokens, weight)): (usize, &(u32, Weight))| Piece {
            messages: at..at + 1,
            tokens: *tokens,
            weight: *weight,
        };
        list.iter().enumerate().map(piece).collect()
    }

    #[test]
    fn calls_and_their_results_are_one_piece() {
        let result = |id| ChatMessage::tool_result(id, "12345");
        let messages =
            [ChatMessage::user("q"), calls(&["a", "b"]), result("a"), result("b"), calls(&["c"])];
        let found = pieces(&messages);
        let places: Vec<_> = found.iter().map(|piece| piece.messages.clone()).collect();
        assert_eq!(places, [0..1, 1..4, 4..5]);
        // Two calls of 8 bytes in one message, two results of 5 bytes.
        assert_eq!(found.iter().map(|piece| piece.tokens).collect::<Vec<_>>(), [1, 8, 2]);
    }

    #[test]
    fn the_newest_stay_without_holes() {
        use Weight::Normal;
        let pieces = weighing(&[(1, Normal), (9, Normal), (2, Normal), (3, Normal)]);
        assert_eq!(choose(&pieces, 13), BTreeSet::from([2, 3]));
        assert_eq!(choose(&pieces, 14), BTreeSet::from([1, 2, 3]));
        assert_eq!(choose(&pieces, 0), BTreeSet::new());
    }

    #[test]
    fn what_weighs_more_stays_longer_and_what_is_required_always() {
        use Weight::{High, Low, Normal, Required};
        let pieces = weighing(&[(4, Required), (4, High), (4, Low), (4, Normal), (4, Low)]);
        assert_eq!(choose(&pieces, 1), BTreeSet::from([0]));
        assert_eq!(choose(&pieces, 8), BTreeSet::from([0, 1]));
        assert_eq!(choose(&pieces, 12), BTreeSet::from([0, 1, 3]));
        assert_eq!(choose(&pieces, 16), BTreeSet::from([0, 1, 3, 4]));
    }

    #[test]
    fn a_request_counts_all_that_is_sent() {
        let messages = vec![ChatMessage::user("12345")];
        let system = Some("1234".to_owned());
        let params = ChatParams { messages, system, ..ChatParams::default() };
        assert_eq!(request_tokens(&params), 3);
    }
}
