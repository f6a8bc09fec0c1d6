//! [`SseFrames`]: bytes of a body in, data of server-sent events out.
//!
//! The grammar is that of `sse-core`. In front of it stands a shortcut for the shape that nearly
//! every event has: one `data:` line, whole in one piece of the body. It is lent from the piece
//! instead of being copied.
//!
//! Lines that are no field of an event are kept aside, within bounds: servers that fail in the
//! midst of a stream, Google's among them, write the error as it is, without `data:`.

use std::borrow::Cow;
use std::num::NonZeroUsize;
use std::str;

use bytes::Bytes;
use memchr::memchr2;
use sse_core::{SseDecoder, SseEvent};

/// Cuts a body into the data of its events.
///
/// Push a piece of the body, then take events until there is none. Memory stays within a small
/// multiple of the limit of one event.
pub struct SseFrames {
    decoder: SseDecoder,
    limit: NonZeroUsize,
    piece: Bytes,
    /// How much of the piece is used up.
    used: usize,
    /// Whether an event begins here and the decoder holds nothing back.
    at_boundary: bool,
    stray: Stray,
}

/// What stood on lines that are no field.
#[derive(Default)]
struct Stray {
    line: Line,
    text: Vec<u8>,
}

/// What the body is in the midst of.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Line {
    /// A line begins.
    #[default]
    Start,
    Field,
    Stray,
}

impl SseFrames {
    /// Cuts events of up to `limit` bytes.
    pub fn with_limit(limit: NonZeroUsize) -> Self {
        let decoder = SseDecoder::with_limit(limit);
        Self {
            decoder,
            limit,
            piece: Bytes::new(),
            used: 0,
            at_boundary: false,
            stray: Stray::default(),
        }
    }

    /// Takes the next piece of the body; the one before must be used up.
    pub fn push(&mut self, piece: Bytes) {
        debug_assert_eq!(self.used, self.piece.len(), "events are taken before the next piece");
        self.piece = piece;
        self.used = 0;
    }

    /// The data of the next event; `None` asks for more of the body.
    ///
    /// # Errors
    /// When an event is larger than the limit.
    pub fn next_data(&mut self) -> Option<Result<Cow<'_, str>, EventTooLarge>> {
        if self.used == self.piece.len() {
            return None;
        }
        if self.at_boundary
            && let Some((line, length)) = single_line(&self.piece[self.used..], self.limit)
        {
            self.used += length;
            return Some(Ok(Cow::Borrowed(line)));
        }
        self.at_boundary = false;
        while self.used < self.piece.len() {
            // Line by line, to see those that are no field.
            let rest = &self.piece[self.used..];
            let end = memchr2(b'\n', b'\r', rest).map_or(rest.len(), |at| at + 1);
            let mut line = &rest[..end];
            let decoded = self.decoder.next(&mut line);
            let read = end - line.len();
            self.stray.look_at(&rest[..read]);
            self.used += read;
            match decoded {
                None | Some(Ok(SseEvent::Retry(_))) => {}
                Some(Ok(SseEvent::Message(message))) => {
                    // After a carriage return the decoder still waits for the line feed.
                    self.at_boundary = self.piece[..self.used].ends_with(b"\n");
                    return Some(Ok(Cow::Owned(message.data)));
                }
                Some(Err(_)) => return Some(Err(EventTooLarge { limit: self.limit })),
            }
        }
        None
    }

    /// What stood on lines that are no field of an event.
    pub fn stray(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.stray.text)
    }
}

impl Stray {
    /// Takes the next line, or a part of one, and keeps it if it is no field.
    fn look_at(&mut self, part: &[u8]) {
        let (Some(first), Some(last)) = (part.first(), part.last()) else { return };
        if self.line == Line::Start {
            // Of a comment, a field, a byte order mark, or nothing at all.
            let is_field = b":deir\xef\r\n".contains(first);
            self.line = if is_field { Line::Field } else { Line::Stray };
        }
        if self.line == Line::Stray {
            let room = MAX_STRAY.saturating_sub(self.text.len()).min(part.len());
            self.text.extend_from_slice(&part[..room]);
        }
        if matches!(last, b'\n' | b'\r') {
            self.line = Line::Start;
        }
    }
}

/// One event is larger than allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("one event of the stream is larger than {limit} bytes")]
pub struct EventTooLarge {
    /// The limit in bytes.
    pub limit: NonZeroUsize,
}

/// Most bytes of lines that are no field.
const MAX_STRAY: usize = 64 << 10;

/// The data of an event that is one `data:` line and its blank line, and the length of both.
fn single_line(rest: &[u8], limit: NonZeroUsize) -> Option<(&str, usize)> {
    let value = rest.strip_prefix(b"data:")?;
    let value = value.strip_prefix(b" ").unwrap_or(value);
    let end = memchr2(b'\n', b'\r', value)?;
    let ends: [&[u8]; 2] = [b"\n\n", b"\r\n\r\n"];
    let blank = ends.into_iter().find(|blank| value[end..].starts_with(blank))?;
    if end > limit.get() {
        return None;
    }
    let line = str::from_utf8(&value[..end]).ok()?;
    Some((line, rest.len() - value.len() + end + blank.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIMIT: NonZeroUsize = NonZeroUsize::new(64).unwrap();

    fn frames(pieces: &[&[u8]]) -> Vec<Result<String, EventTooLarge>> {
        let mut frames = SseFrames::with_limit(LIMIT);
        let mut all = Vec::new();
        for piece in pieces {
            frames.push(Bytes::copy_from_slice(piece));
            while let Some(data) = frames.next_data() {
                all.push(data.map(Cow::into_owned));
            }
        }
        all
    }

    /// What `sse-core` alone makes of it.
    fn expected(body: &[u8]) -> Vec<Result<String, EventTooLarge>> {
        let mut decoder = SseDecoder::with_limit(LIMIT);
        let mut rest = body;
        let mut all = Vec::new();
        while let Some(event) = decoder.next(&mut rest) {
            match event {
                Ok(SseEvent::Message(message)) => all.push(Ok(message.data)),
                Ok(SseEvent::Retry(_)) => {}
                Err(_) => all.push(Err(EventTooLarge { limit: LIMIT })),
            }
        }
        all
    }

    #[test]
    fn comments_and_other_fields_are_no_events() {
        let body =
            b": ping\n\nevent: x\nid: 7\ndata: a\ndata: b\n\nretry: 3\ndata:c\r\n\r\ndata: d\n\n";
        let events = ["a\nb", "c", "d"].map(|data| Ok(data.to_owned()));
        assert_eq!(frames(&[body]), events);
    }

    #[test]
    fn what_is_no_field_is_kept_aside_wherever_the_body_is_cut() {
        let error = "{\n  \"error\": {\r\n    \"code\": 503\n  }\n}";
        let body = format!("\u{feff}: hi\r\ndata: a\r\n\r\n{error}\ndata: b\n\n{{");
        let expected = format!("{error}\n{{").replace("\r\n", "\r");
        for cut in 0..=body.len() {
            let mut frames = SseFrames::with_limit(LIMIT);
            let mut all = Vec::new();
            let (first, second) = body.as_bytes().split_at(cut);
            for piece in [first, second] {
                frames.push(Bytes::copy_from_slice(piece));
                while let Some(data) = frames.next_data() {
                    all.push(data.unwrap().into_owned());
                }
            }
            assert_eq!((all, &*frames.stray()), (vec!["a".into(), "b".into()], &*expected));
        }
    }

    #[test]
    fn what_is_kept_aside_is_bounded() {
        let mut frames = SseFrames::with_limit(LIMIT);
        for _ in 0..1000 {
            frames.push(Bytes::from(vec![b'{'; 1000]));
            while frames.next_data().is_some() {}
        }
        assert_eq!(frames.stray().len(), MAX_STRAY);
    }

    #[test]
    fn an_event_above_the_limit_is_an_error() {
        let body = format!("data: ok\n\ndata: {}\n\n", "x".repeat(65));
        assert_eq!(
            frames(&[body.as_bytes()]),
            [Ok("ok".to_owned()), Err(EventTooLarge { limit: LIMIT })]
        );
    }

    proptest! {
        /// The shortcut never shows, wherever the body is cut.
        #[test]
        fn pieces_give_what_the_decoder_gives_of_the_whole(
            lines in prop::collection::vec(
                prop::sample::select(vec![
                    "data: {\"a\":1}", "data:x", "data", "data: ", "data: é", "", "", "\n", ": hi",
                    "event: e", "id: 1", "retry: 9", "datax: 1", "\r", "data: a\r", "\u{feff}",
                    "data: 01234567890123456789012345678901234567890123456789012345678901234567",
                ]),
                0..24,
            ),
            broken_utf8 in any::<bool>(),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        ) {
            let mut body = lines.join("\n").into_bytes();
            if broken_utf8 {
                body.extend_from_slice(b"\n\ndata: \xff!\n\n");
            }
            let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(body.len() + 1)).collect();
            cuts.extend([0, body.len()]);
            cuts.sort_unstable();
            let pieces: Vec<_> = cuts.windows(2).map(|cut| &body[cut[0]..cut[1]]).collect();
            prop_assert_eq!(frames(&pieces), expected(&body));
        }
    }
}
