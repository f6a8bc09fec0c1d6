//! [`Template`]: reads an event that differs from an earlier one only in its text, without a
//! JSON parser.
//!
//! Servers send thousands of events that are equal but for a few bytes. When a parsed event
//! brought nothing but a piece of text, and that text stood in the event as it is, the bytes
//! before and after it are kept. Another event with the same bytes around, and between them
//! nothing but the inside of one string, parses to the same but for that text.
//!
//! Two things may differ besides: the value of one member that nobody reads, such as a time or a
//! number in sequence, and the spaces before the last brace, with which Anthropic hides how long
//! a text is.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memmem;

/// The bytes around the text of an event; the lane says what the text is.
pub(super) struct Template<L> {
    before: Box<str>,
    /// Where in `before` the value stands that nobody reads.
    unread: Option<Range<usize>>,
    after: Box<str>,
    pub(super) lane: L,
}

impl<L> Template<L> {
    /// Learns from an event; `text` must be a slice of it.
    ///
    /// `unread` is the name of a member of events whose value means nothing.
    pub(super) fn learn(event: &str, text: &str, unread: Option<&str>, lane: L) -> Option<Self> {
        let start = (text.as_ptr() as usize).checked_sub(event.as_ptr() as usize)?;
        let end = start.checked_add(text.len()).filter(|end| *end <= event.len())?;
        let (before, after) = (event.get(..start)?, without_brace(event)?.get(end..)?);
        // Between other bytes than quotes the text would not be a string of its own.
        if !before.ends_with('"') || !after.starts_with('"') {
            return None;
        }
        let unread = unread.and_then(|name| value_of(before, name));
        Some(Self { before: before.into(), unread, after: after.into(), lane })
    }

    /// The text of an event that fits.
    pub(super) fn read<'a>(&self, event: &'a str) -> Option<Cow<'a, str>> {
        let inner = without_brace(event)?;
        let behind = match inner.strip_prefix(&*self.before) {
            Some(behind) => behind,
            None => {
                let Range { start, end } = self.unread.clone()?;
                let value = inner.strip_prefix(&self.before[..start])?;
                value[plain_value(value)?..].strip_prefix(&self.before[end..])?
            }
        };
        let text = behind.strip_suffix(&*self.after)?;
        // An empty field may give way to another one, which only the parser knows.
        if text.is_empty() {
            return None;
        }
        if text.bytes().any(|byte| matches!(byte, b'"' | b'\\' | ..0x20)) {
            // With its quotes it is one string, or an event of another shape.
            let end = inner.len() - self.after.len();
            let string = event.get(end - text.len() - 1..end + 1)?;
            return serde_json::from_str(string).ok().map(Cow::Owned);
        }
        Some(Cow::Borrowed(text))
    }
}

/// The event without its last brace and the spaces before it.
fn without_brace(event: &str) -> Option<&str> {
    let inner = event.strip_suffix('}')?;
    let spaces = inner.bytes().rev().take_while(|byte| *byte == b' ').count();
    inner.get(..inner.len() - spaces)
}

/// Where the value of a member of the event itself stands.
fn value_of(before: &str, name: &str) -> Option<Range<usize>> {
    let at = memmem::find(before.as_bytes(), name.as_bytes())?;
    let head = before[..at].strip_suffix('"')?;
    let value = before[at + name.len()..].strip_prefix("\":")?.trim_start_matches(' ');
    // A quote behind a backslash is none; and a member of another object may be read.
    if head.ends_with('\\') || head.get(1..)?.contains(['{', '[']) {
        return None;
    }
    let start = before.len() - value.len();
    Some(start..start + plain_value(value)?)
}

/// The length of the value that a JSON text begins with: a natural number, or a string without
/// escapes.
fn plain_value(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    match bytes.first()? {
        b'"' => {
            let end = bytes[1..].iter().position(|byte| matches!(byte, b'"' | b'\\' | ..0x20))?;
            (bytes[1 + end] == b'"').then_some(end + 2)
        }
        b'1'..=b'9' => {
            Some(bytes.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(bytes.len()))
        }
        _ => None,
    }
}
