//! [`LineFrames`]: bytes of a body in, its lines out, for APIs that send one JSON document a line.

use std::borrow::Cow;
use std::num::NonZeroUsize;

use bytes::Bytes;
use memchr::memchr;

use super::sse::EventTooLarge;

/// Cuts a body into its lines, without their ends and without blank ones.
///
/// Push a piece of the body, then take lines until there is none. A line that is whole in one
/// piece is lent from it.
pub struct LineFrames {
    limit: NonZeroUsize,
    piece: Bytes,
    /// How much of the piece is used up.
    used: usize,
    /// The beginning of a line whose end has not come.
    open: Vec<u8>,
}

impl LineFrames {
    /// Cuts lines of up to `limit` bytes.
    pub fn with_limit(limit: NonZeroUsize) -> Self {
        Self { limit, piece: Bytes::new(), used: 0, open: Vec::new() }
    }

    /// Takes the next piece of the body; the one before must be used up.
    pub fn push(&mut self, piece: Bytes) {
        debug_assert_eq!(self.used, self.piece.len(), "lines are taken before the next piece");
        self.piece = piece;
        self.used = 0;
    }

    /// The next line; `None` asks for more of the body.
    ///
    /// # Errors
    /// When a line is larger than the limit.
    pub fn next_data(&mut self) -> Option<Result<Cow<'_, str>, EventTooLarge>> {
        loop {
            let rest = &self.piece[self.used..];
            let end = memchr(b'\n', rest);
            let part = self.used..self.used + end.unwrap_or(rest.len());
            self.used = part.end + usize::from(end.is_some());
            if self.open.len() + part.len() > self.limit.get() {
                return Some(Err(EventTooLarge { limit: self.limit }));
            }
            if end.is_some() && self.open.is_empty() {
                if self.piece[part.clone()].trim_ascii().is_empty() {
                    continue;
                }
                return Some(Ok(String::from_utf8_lossy(self.piece[part].trim_ascii())));
            }
            self.open.extend_from_slice(&self.piece[part]);
            end?;
            if let Some(line) = self.finish() {
                return Some(Ok(line));
            }
        }
    }

    /// What has come of a line whose end has not.
    pub fn open(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.open)
    }

    /// What came after the last end of a line; the body is over.
    pub fn finish(&mut self) -> Option<Cow<'static, str>> {
        let open = std::mem::take(&mut self.open);
        let line = open.trim_ascii();
        (!line.is_empty()).then(|| Cow::Owned(String::from_utf8_lossy(line).into_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: NonZeroUsize = NonZeroUsize::new(8).unwrap();

    fn lines(pieces: &[&[u8]]) -> Vec<Result<String, EventTooLarge>> {
        let mut frames = LineFrames::with_limit(LIMIT);
        let mut all = Vec::new();
        for piece in pieces {
            frames.push(Bytes::copy_from_slice(piece));
            while let Some(line) = frames.next_data() {
                all.push(line.map(Cow::into_owned));
            }
        }
        all.extend(frames.finish().map(|line| Ok(line.into_owned())));
        all
    }

    #[test]
    fn a_cut_at_any_byte_changes_nothing() {
        let body = "{\"a\":1}\n\r\n é\r\n\n{}\n  \n[1]".as_bytes();
        let expected = ["{\"a\":1}", "é", "{}", "[1]"].map(|line| Ok(line.to_owned()));
        assert_eq!(lines(&[body]), expected);
        for cut in 0..=body.len() {
            let (first, second) = body.split_at(cut);
            assert_eq!(lines(&[first, second]), expected, "cut at {cut}");
        }
        assert_eq!(lines(&body.chunks(1).collect::<Vec<_>>()), expected);
    }

    #[test]
    fn a_line_above_the_limit_is_an_error() {
        let error = Err(EventTooLarge { limit: LIMIT });
        assert_eq!(lines(&[b"ok\n123456789\n"])[..2], [Ok("ok".to_owned()), error.clone()]);
        assert_eq!(lines(&[b"12345", b"6789"])[..1], [error]);
    }
}
