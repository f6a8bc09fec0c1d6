//! [`TextRun`]: blocks of text in a row, which a reader sees as one.
//!
//! An answer with citations comes in many small blocks. They become one text, so that a program
//! sees a sentence whole; where each ends, and what it cites, is kept for the API.

use serde_json::value::{RawValue, to_raw_value};

use super::opaque::Kept;
use crate::codec::Events;

/// The blocks since the last one that was no text: bytes, and citations where there are any.
#[derive(Default)]
pub(super) struct TextRun(Vec<(usize, Option<Box<RawValue>>)>);

impl TextRun {
    /// A block has ended.
    pub(super) fn push(&mut self, bytes: usize, citations: &[Box<RawValue>]) {
        if bytes > 0 {
            // What was read as JSON can be written as such.
            let citations = (!citations.is_empty()).then(|| to_raw_value(citations).ok()).flatten();
            self.0.push((bytes, citations));
        }
    }

    /// Something else follows.
    pub(super) fn end(&mut self, events: &mut Events) {
        let blocks = std::mem::take(&mut self.0);
        if blocks.iter().any(|(_, citations)| citations.is_some()) {
            let texts = blocks.iter().map(|(bytes, citations)| (*bytes, citations.as_deref()));
            let texts = Some(texts.collect());
            events.push_back(Kept { texts, ..Kept::default() }.event(None));
        }
    }
}
