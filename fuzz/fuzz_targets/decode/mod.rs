//! What holds for each codec: any bytes, cut anywhere, give the same events, and these a reply whose
//! ids are unique, or a failure.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;

use bytes::Bytes;
use toolloop_core::effect::Outcome;
use toolloop_core::{ReplyAssembler, StreamEvent};
use toolloop_providers::codec::{Decoder, Events, Frames};

/// The last byte says where the body is cut.
pub fn check<D: Decoder>(body: &[u8]) {
    let width = usize::from(body.last().copied().unwrap_or_default() % 16) + 1;
    let whole = decode::<D>([body]);
    assert_eq!(decode::<D>(body.chunks(width)), whole);
    let (events, is_whole) = whole;
    let mut assembler = ReplyAssembler::detached();
    for event in events {
        if let Err(failure) = assembler.push(event) {
            assembler.fail(failure);
            return;
        }
    }
    let outcome = assembler.finish();
    if let (Outcome::Reply(reply), true) = (outcome, is_whole) {
        let mut ids = BTreeSet::new();
        for call in reply.response.tool_calls_iter() {
            assert!(!call.id.is_empty() && ids.insert(&call.id), "{}", call.id);
        }
    }
}

/// The events, and whether the body could be read to its end.
fn decode<'a, D: Decoder>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<StreamEvent>, bool) {
    const LIMIT: NonZeroUsize = NonZeroUsize::new(1 << 16).unwrap();
    let mut frames = Frames::new(D::FRAMING, LIMIT);
    let mut decoder = D::default();
    let mut events = Events::new();
    for piece in pieces {
        frames.push(Bytes::copy_from_slice(piece));
        while let Some(data) = frames.next_data() {
            let Ok(data) = data else { return (events.into(), false) };
            if decoder.handle_data(&data, &mut events).is_err() {
                return (events.into(), false);
            }
        }
    }
    let is_read =
        frames.finish().is_none_or(|data| decoder.handle_data(&data, &mut events).is_ok());
    if is_read {
        decoder.handle_end(&mut events);
    }
    (events.into(), is_read)
}
