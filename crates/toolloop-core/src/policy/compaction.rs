//! Compaction: when a conversation is too long for its request, and what of it goes.

use std::collections::BTreeSet;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::chat::{ChatMessage, ChatRole};
use crate::policy::window::{Weight, choose, pieces};

/// When the conversation of a request is shortened, and how.
///
/// It is a view of the request, as masking is: the result's `messages` and the journal keep the
/// whole conversation. The system messages at its beginning, the first and the last message of
/// the user, and the newest turn always stay, so a request can be larger than `target` and even
/// than `threshold`. No call is ever parted from its results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompactionConfig {
    /// Estimated tokens of a request (instructions, tools, messages); one with more is shortened.
    pub threshold: u32,
    /// Estimated tokens it is brought down to. The room between the two is how long the shortened
    /// beginning, and with it the provider's prompt cache, stays as it is.
    pub target: u32,
    /// What stands for the messages that go.
    pub method: CompactionMethod,
    /// Room for the summary, in estimated tokens. Messages that hold no more than this are not
    /// worth a model call: they are truncated.
    pub max_summary_tokens: u32,
}

impl CompactionConfig {
    /// For a model that takes so many tokens, as its
    /// [`context_window`](crate::ProviderMetadata::context_window) says: shortens a request above
    /// three quarters of them to three eighths. The rest is room for the reply, and for estimates
    /// that are too low. Where the window is not known (0), the default.
    pub fn for_window(tokens: u64) -> Self {
        if tokens == 0 {
            return Self::default();
        }
        let share = |eighths| u32::try_from(tokens / 8 * eighths).unwrap_or(u32::MAX);
        Self { threshold: share(6), target: share(3), ..Self::default() }
    }
}

impl Default for CompactionConfig {
    fn default() -> Self {
        Self {
            threshold: 100_000,
            target: 50_000,
            method: CompactionMethod::Summary,
            max_summary_tokens: 2_000,
        }
    }
}

/// What stands for messages that a request no longer shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CompactionMethod {
    /// A summary by a model. Where that fails, or is no shorter than what it sums up, or still
    /// leaves too much, the run goes on with truncation, until a request is short enough again.
    Summary,
    /// A line that says that something is missing.
    Truncation,
}

/// The messages that a request is not to show, oldest first; none where there is nothing to gain.
///
/// `notes` are those that stand for others already: what they stand for is hidden together with
/// what goes now, so there is never more than one. `room` is what all messages may hold.
pub(crate) fn surplus(
    messages: &[ChatMessage],
    notes: &BTreeSet<usize>,
    room: u32,
) -> Vec<Range<usize>> {
    let mut pieces = pieces(messages);
    let is_note = |range: &Range<usize>| notes.contains(&range.start);
    let last = pieces.len().saturating_sub(1);
    let required = required(messages, notes);
    for (at, piece) in pieces.iter_mut().enumerate() {
        if is_note(&piece.messages) {
            // It goes with the others, and its successor has its room.
            piece.tokens = 0;
        } else if at == last || required.contains(&piece.messages.start) {
            piece.weight = Weight::Required;
        }
    }
    let chosen = choose(&pieces, room);
    let goes = |(at, range): &(usize, Range<usize>)| !chosen.contains(at) || is_note(range);
    let ranges = pieces.into_iter().map(|piece| piece.messages).enumerate();
    let gone: Vec<Range<usize>> = ranges.filter(goes).map(|(_, range)| range).collect();
    if gone.iter().all(is_note) {
        return Vec::new();
    }
    joined(gone)
}

/// The task: system messages in front, what the user said first and last.
fn required(messages: &[ChatMessage], notes: &BTreeSet<usize>) -> BTreeSet<usize> {
    let is_user = |at: &usize| messages[*at].role == ChatRole::User && !notes.contains(at);
    let first = (0..messages.len()).find(is_user);
    let last = (0..messages.len()).rev().find(is_user);
    let front = 0..first.unwrap_or(messages.len());
    let front = front.filter(|at| messages[*at].role == ChatRole::System);
    front.chain(first).chain(last).collect()
}

/// Ranges that touch, as one.
fn joined(ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    let mut joined: Vec<Range<usize>> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(before) if before.end == range.start => before.end = range.end,
            _ => joined.push(range),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Messages of four tokens each, by role.
    fn conversation(roles: &str) -> Vec<ChatMessage> {
        let role = |letter| match letter {
            's' => ChatRole::System,
            'u' => ChatRole::User,
            _ => ChatRole::Assistant,
        };
        roles.chars().map(|letter| ChatMessage::text(role(letter), "x".repeat(16))).collect()
    }

    fn gone(roles: &str, notes: &[usize], room: u32) -> Vec<(usize, usize)> {
        let ranges = surplus(&conversation(roles), &notes.iter().copied().collect(), room);
        ranges.into_iter().map(|range| (range.start, range.end)).collect()
    }

    #[test]
    fn a_window_is_used_up_to_three_quarters() {
        let config = CompactionConfig::for_window(200_000);
        assert_eq!((config.threshold, config.target), (150_000, 75_000));
        assert_eq!(CompactionConfig::for_window(0), CompactionConfig::default());
        assert_eq!(CompactionConfig::for_window(u64::MAX).threshold, u32::MAX);
    }

    #[test]
    fn the_task_and_the_newest_stay() {
        assert_eq!(gone("suaaaa", &[], 16), [(2, 4)]);
        assert_eq!(gone("suaaaa", &[], 0), [(2, 5)]);
        assert_eq!(gone("suaaaa", &[], 24), []);
    }

    #[test]
    fn what_the_user_said_last_stays_between_what_goes() {
        assert_eq!(gone("uauaaa", &[], 0), [(1, 2), (3, 5)]);
    }

    #[test]
    fn a_note_goes_with_what_it_is_next_to_but_never_alone() {
        assert_eq!(gone("uuaaa", &[1], 12), [(1, 3)]);
        assert_eq!(gone("uuaaa", &[1], 16), []);
    }
}
