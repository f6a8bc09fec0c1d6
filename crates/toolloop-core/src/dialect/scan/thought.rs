//! [`Thought`]: what a model thinks between tags. It holds no calls.

/// A thought that has begun.
#[derive(Debug, Clone)]
pub(super) struct Thought {
    closer: &'static str,
    /// Whether nothing of it has come: a line break behind its tag is none of it.
    is_first: bool,
}

/// What of a text is thought.
pub(super) struct Piece {
    pub(super) start: usize,
    pub(super) end: usize,
    /// Where the text goes on, if the thought ends in it.
    pub(super) next: Option<usize>,
}

impl Thought {
    pub(super) fn until(closer: &'static str) -> Self {
        Self { closer, is_first: true }
    }

    /// Reads on in a text that begins where the last piece ended; `is_end` says that it is the
    /// last.
    pub(super) fn read(&mut self, text: &str, is_end: bool) -> Piece {
        let mut start = 0;
        if self.is_first {
            let broken = ["\r\n", "\n"].iter().find(|broken| text.starts_with(**broken));
            if !is_end && broken.is_none() && "\r\n".starts_with(text) {
                return Piece { start, end: 0, next: None };
            }
            start = broken.map_or(0, |broken| broken.len());
            self.is_first = false;
        }
        let thought = &text[start..];
        let closed = thought.find(self.closer);
        let end = match closed {
            Some(end) => without_break(&thought[..end]),
            None if is_end => thought.len(),
            None => {
                // The tag may have come in part, and so may the line break before it.
                let mut parts = (1..self.closer.len()).rev();
                let part = parts.find(|n| thought.ends_with(&self.closer[..*n]));
                let end = without_break(&thought[..thought.len() - part.unwrap_or(0)]);
                thought[..end].strip_suffix('\r').map_or(end, str::len)
            }
        };
        let next = match closed {
            Some(closed) => Some(start + closed + self.closer.len()),
            None => is_end.then_some(text.len()),
        };
        Piece { start, end: start + end, next }
    }
}

/// The length of a text without the line break it ends in.
fn without_break(text: &str) -> usize {
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.strip_suffix('\r').unwrap_or(text).len()
}
