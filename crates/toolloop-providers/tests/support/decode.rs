//! Bytes of a body in, stream events out, without a network.

use std::num::NonZeroUsize;

use bytes::Bytes;
use toolloop_core::StreamEvent;
use toolloop_providers::codec::openai_chat::ChatDecoder;
use toolloop_providers::codec::{DecodeError, Decoder, Events, Frames};

/// Decodes a Chat Completions body that comes in these pieces.
pub(crate) fn decode<'a>(
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<StreamEvent>, Option<DecodeError>) {
    decode_as::<ChatDecoder>(pieces)
}

/// Decodes a body of any API that comes in these pieces.
pub(crate) fn decode_as<'a, D: Decoder>(
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<StreamEvent>, Option<DecodeError>) {
    let mut frames = Frames::new(D::FRAMING, NonZeroUsize::new(1 << 20).unwrap());
    let mut decoder = D::default();
    let mut events = Events::new();
    for piece in pieces {
        frames.push(Bytes::copy_from_slice(piece));
        while let Some(data) = frames.next_data() {
            if let Err(error) = decoder.handle_data(&data.unwrap(), &mut events) {
                return (events.into(), Some(error));
            }
        }
    }
    decoder.handle_end(&mut events);
    (events.into(), None)
}

/// Joins neighbouring deltas, which differ with the shape of the chunks only.
pub(crate) fn text_of(events: &[StreamEvent]) -> String {
    events
        .iter()
        .filter_map(|event| match event {
            StreamEvent::TextDelta(text) => Some(text.as_str()),
            _ => None,
        })
        .collect()
}
