//! [`Template`]: reads a chunk that differs from an earlier one only in its text, without a
//! JSON parser.
//!
//! Servers send thousands of chunks that are equal but for a few bytes. When a parsed chunk
//! brought nothing but a piece of text, and that text stood in the chunk as it is, the bytes
//! before and after it are kept. Another chunk with the same bytes around, and between them
//! nothing but the inside of one string, parses to the same but for that text.

use std::borrow::Cow;

/// The bytes around the text of a chunk.
pub(super) struct Template {
    before: Box<[u8]>,
    after: Box<[u8]>,
    pub(super) lane: Lane,
}

/// What the text of a chunk is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Lane {
    Text,
    Reasoning,
    /// Arguments of the call at this position.
    Arguments(u32),
}

impl Template {
    /// Learns from a chunk; `text` must be a slice of it.
    pub(super) fn learn(chunk: &str, text: &str, lane: Lane) -> Option<Self> {
        let start = (text.as_ptr() as usize).checked_sub(chunk.as_ptr() as usize)?;
        let end = start.checked_add(text.len()).filter(|end| *end <= chunk.len())?;
        let (before, after) = (&chunk.as_bytes()[..start], &chunk.as_bytes()[end..]);
        // Between other bytes than quotes the text would not be a string of its own.
        (before.ends_with(b"\"") && after.starts_with(b"\"")).then(|| Self {
            before: before.into(),
            after: after.into(),
            lane,
        })
    }

    /// The text of a chunk that fits.
    pub(super) fn read<'a>(&self, chunk: &'a str) -> Option<Cow<'a, str>> {
        let bytes = chunk.as_bytes();
        let text = bytes.strip_prefix(&*self.before)?.strip_suffix(&*self.after)?;
        // An empty field may give way to another one, which only the parser knows.
        if text.is_empty() {
            return None;
        }
        let (start, end) = (self.before.len(), self.before.len() + text.len());
        if text.iter().any(|byte| matches!(byte, b'"' | b'\\' | ..0x20)) {
            // With its quotes it is one string, or a chunk of another shape.
            let string = chunk.get(start - 1..end + 1)?;
            return serde_json::from_str(string).ok().map(Cow::Owned);
        }
        // Quotes stand on both sides, so the ends lie between characters.
        chunk.get(start..end).map(Cow::Borrowed)
    }
}
