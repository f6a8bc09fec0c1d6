//! [`select`]: which blocks of a reply go back as items.
//!
//! The API refuses a thought whose next item is missing, so what follows is decided first. It
//! also refuses an item that stands there twice, and a call of a tool that the provider did not
//! run itself, without its outcome.

use toolloop_core::ContentBlock;

use super::Quirks;
use super::kept::Kept;
use crate::codec::ids::fnv1a;

/// What becomes of a block.
#[derive(Default)]
pub(super) struct Choice {
    /// Whether it is an item that goes back.
    pub(super) goes_back: bool,
    /// Whether the thought before it goes back, to which its id is tied.
    pub(super) is_tied: bool,
}

/// Chooses among the blocks of one reply; `ids` are those of items that went back before.
pub(super) fn select(
    blocks: &[ContentBlock],
    quirks: &Quirks,
    ids: &mut WrittenIds,
) -> Vec<Choice> {
    let mut choices: Vec<_> = blocks.iter().map(|_| Choice::default()).collect();
    let mut is_new = |id: &str| id.is_empty() || ids.insert(id);
    // From the end: whether the item behind goes back, and where the next thought stands, up to
    // which items are tied to the one before.
    let (mut is_followed, mut next_thought) = (false, blocks.len());
    for (at, block) in blocks.iter().enumerate().rev() {
        let goes_back = match (block, Kept::of_block(block, &quirks.origin)) {
            (ContentBlock::Text(text), _) if !text.is_empty() => true,
            (ContentBlock::ToolCall(_), _) => true,
            (_, None) => continue,
            (_, Some(thought)) if thought.is_thought() => {
                let is_encrypted = thought.is_encrypted();
                let is_taken = is_encrypted || quirks.open_thoughts && thought.is_open();
                let goes_back = is_taken && is_followed && is_new(&thought.id.0);
                for item in &mut choices[at + 1..next_thought] {
                    item.is_tied = goes_back && is_encrypted;
                }
                choices[at].goes_back = goes_back;
                next_thought = at;
                continue;
            }
            (_, Some(item)) => item.is_whole_among(blocks, &quirks.origin) && is_new(&item.id.0),
        };
        choices[at].goes_back = goes_back;
        is_followed = goes_back;
    }
    choices
}

/// Ids of items that have been written, as hashes: an id goes back once.
pub(super) struct WrittenIds {
    hashes: Vec<u64>,
    /// How many of them are those of settled messages.
    settled: usize,
}

impl WrittenIds {
    pub(super) fn behind(settled: &[u64]) -> Self {
        Self { hashes: settled.to_vec(), settled: settled.len() }
    }

    /// Whether it is new.
    pub(super) fn insert(&mut self, id: &str) -> bool {
        let hash = fnv1a(id.as_bytes());
        let is_new = !self.hashes.contains(&hash);
        if is_new {
            self.hashes.push(hash);
        }
        is_new
    }

    pub(super) fn into_new(mut self) -> Vec<u64> {
        self.hashes.split_off(self.settled)
    }
}
