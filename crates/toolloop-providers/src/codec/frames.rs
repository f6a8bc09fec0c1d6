//! [`Framing`]: how an API cuts its stream. [`Frames`] does it.

use std::borrow::Cow;
use std::num::NonZeroUsize;

use bytes::Bytes;

use super::lines::LineFrames;
use super::sse::{EventTooLarge, SseFrames};

/// How an API cuts its stream into events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// Server-sent events.
    Sse,
    /// One JSON document a line.
    Lines,
}

impl Framing {
    /// The media type of such a stream.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Sse => "text/event-stream",
            Self::Lines => "application/x-ndjson",
        }
    }
}

/// Cuts a body into the data of its events, however its bytes were cut on the way.
pub enum Frames {
    /// Server-sent events.
    Sse(SseFrames),
    /// Lines.
    Lines(LineFrames),
}

impl Frames {
    /// Cuts events of up to `limit` bytes.
    pub fn new(framing: Framing, limit: NonZeroUsize) -> Self {
        match framing {
            Framing::Sse => Self::Sse(SseFrames::with_limit(limit)),
            Framing::Lines => Self::Lines(LineFrames::with_limit(limit)),
        }
    }

    /// Takes the next piece of the body; the one before must be used up.
    pub fn push(&mut self, piece: Bytes) {
        match self {
            Self::Sse(frames) => frames.push(piece),
            Self::Lines(frames) => frames.push(piece),
        }
    }

    /// The data of the next event; `None` asks for more of the body.
    ///
    /// # Errors
    /// When an event is larger than the limit.
    pub fn next_data(&mut self) -> Option<Result<Cow<'_, str>, EventTooLarge>> {
        match self {
            Self::Sse(frames) => frames.next_data(),
            Self::Lines(frames) => frames.next_data(),
        }
    }

    /// What has come and is no event: lines between those of a stream of server-sent events, or a
    /// line without its end.
    pub fn stray(&self) -> Cow<'_, str> {
        match self {
            Self::Sse(frames) => frames.stray(),
            Self::Lines(frames) => frames.open(),
        }
    }

    /// The body is over: what is left and may be a whole event. An event of a stream of
    /// server-sent events is only whole with the blank line behind it.
    pub fn finish(&mut self) -> Option<Cow<'static, str>> {
        match self {
            Self::Sse(_) => None,
            Self::Lines(frames) => frames.finish(),
        }
    }
}
