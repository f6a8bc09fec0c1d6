//! The codecs: bytes of a body in, stream events out; and the body of the next request.
//!
//! Each API has a file here with its text event in the form its documentation shows, and with
//! the least that a client could read of it: a struct of borrowed fields, parsed by serde.

pub(crate) mod anthropic;
pub(crate) mod gemini;
pub(crate) mod ollama;
pub(crate) mod openai_chat;
pub(crate) mod openai_responses;

use std::borrow::Cow;
use std::num::NonZeroUsize;

use bytes::Bytes;
use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use toolloop_core::{ChatParams, StreamEvent};
use toolloop_providers::codec::{Decoder, Events, Frames, outgoing};

use self::anthropic::Anthropic;
use self::gemini::Gemini;
use self::ollama::Ollama;
use self::openai_chat::OpenAiChat;
use self::openai_responses::OpenAiResponses;
use crate::run::params_after;

/// What the benches need of an API.
pub(crate) trait Api {
    type Decoder: Decoder;

    /// The data of the events before the first text.
    fn opening() -> Vec<String> {
        Vec::new()
    }

    /// The data of the text event with this number; `text` is the inside of a JSON string.
    fn text_event(number: usize, text: &str) -> String;

    /// The event as it stands in the body.
    fn framed(data: &str) -> String {
        format!("data: {data}\n\n")
    }

    /// The text of such an event, and no look at anything that the text does not need.
    fn least_parse(data: &str) -> serde_json::Result<Cow<'_, str>>;

    fn encode(params: &ChatParams) -> Bytes;
}

/// What stands in the strings of the text events.
#[derive(Debug, Clone, Copy)]
enum Text {
    /// As it is, as in most events.
    Plain,
    /// With escapes, as in code and at the ends of lines.
    Escaped,
}

impl Text {
    fn events<A: Api>(self) -> Vec<String> {
        let texts = match self {
            Self::Plain => [" quick", " brown"],
            Self::Escaped => ["\\n", " \\\"hi\\\""],
        };
        (0..EVENTS).map(|number| A::text_event(number, texts[number % 2])).collect()
    }
}

const EVENTS: usize = 100;
const LIMIT: NonZeroUsize = NonZeroUsize::new(1 << 20).unwrap();

/// The data of a text event to stream events.
#[divan::bench(
    types = [OpenAiChat, OpenAiResponses, Anthropic, Gemini, Ollama],
    args = [Text::Plain, Text::Escaped],
    counters = [ItemsCount::new(EVENTS)],
)]
fn decode<A: Api>(bencher: Bencher, text: Text) {
    let (data, mut events) = (text.events::<A>(), Events::new());
    bencher.with_inputs(opened::<A>).bench_local_refs(|decoder| {
        for data in &data {
            take(decoder, data, &mut events);
        }
    });
}

/// The same bytes to their text, by the least struct that has it.
#[divan::bench(
    types = [OpenAiChat, OpenAiResponses, Anthropic, Gemini, Ollama],
    args = [Text::Plain, Text::Escaped],
    counters = [ItemsCount::new(EVENTS)],
)]
fn least_parse<A: Api>(bencher: Bencher, text: Text) {
    let data = text.events::<A>();
    bencher.bench(|| {
        for data in &data {
            black_box(A::least_parse(black_box(data))).expect("an event");
        }
    });
}

/// A body with plain text to stream events.
#[divan::bench(
    types = [OpenAiChat, OpenAiResponses, Anthropic, Gemini, Ollama],
    counters = [ItemsCount::new(EVENTS)],
)]
fn split_and_decode<A: Api>(bencher: Bencher) {
    let body: String = Text::Plain.events::<A>().iter().map(|data| A::framed(data)).collect();
    let (body, mut events) = (Bytes::from(body), Events::new());
    bencher.with_inputs(opened::<A>).bench_local_refs(|decoder| {
        let mut frames = Frames::new(A::Decoder::FRAMING, LIMIT);
        frames.push(body.clone());
        while let Some(data) = frames.next_data() {
            take(decoder, &data.expect("no event is too large"), &mut events);
        }
    });
}

/// The body after this many iterations with results of 2 KB.
#[divan::bench(
    types = [OpenAiChat, OpenAiResponses, Anthropic, Gemini, Ollama],
    args = [10, 300],
)]
fn encode_whole<A: Api>(bencher: Bencher, iterations: u32) {
    // A clone does not keep what was encoded.
    let params = ChatParams::clone(&params_after(iterations));
    bencher.bench(|| A::encode(black_box(&params)));
}

/// The same in a run, which keeps what was encoded for the request before. The messages since
/// then, which are not in this figure, cost as much as they do at the beginning of a run.
#[divan::bench(
    types = [OpenAiChat, OpenAiResponses, Anthropic, Gemini, Ollama],
    args = [10, 300],
)]
fn encode_in_a_run<A: Api>(bencher: Bencher, iterations: u32) {
    let params = params_after(iterations);
    A::encode(&params);
    // As in a run, the request before is over, so its bytes are free.
    bencher.bench(|| drop(black_box(A::encode(black_box(&params)))));
}

/// The look at the conversation that every request begins with.
#[divan::bench(args = [10, 300])]
fn check_conversation(bencher: Bencher, iterations: u32) {
    let params = params_after(iterations);
    bencher.bench(|| {
        black_box(outgoing(black_box(&params)));
    });
}

/// For the guard: decodes so many text deltas.
pub(crate) fn decode_some<A: Api>(steps: usize) {
    decode_each::<A>(&Text::Plain.events::<A>(), steps);
}

fn decode_each<A: Api>(data: &[String], steps: usize) {
    let (mut decoder, mut events) = (opened::<A>(), Events::new());
    for data in data.iter().cycle().take(steps) {
        take(&mut decoder, data, &mut events);
    }
}

/// For the guard: decodes so many text deltas, and hands on what they become.
pub(crate) fn each_event<A: Api>(steps: usize, mut handle: impl FnMut(StreamEvent)) {
    let data = Text::Plain.events::<A>();
    let (mut decoder, mut events) = (opened::<A>(), Events::new());
    for data in data.iter().cycle().take(steps) {
        decoder.handle_data(data, &mut events).expect("an event");
        events.drain(..).for_each(&mut handle);
    }
}

/// For the guard: reads so many text deltas with the least parse.
pub(crate) fn parse_some<A: Api>(steps: usize) {
    let data = Text::Plain.events::<A>();
    for data in data.iter().cycle().take(steps) {
        black_box(A::least_parse(black_box(data))).expect("an event");
    }
}

/// For the guard: encodes the same request so many times, all of it.
pub(crate) fn encode_whole_again<A: Api>(steps: usize) {
    let params = ChatParams::clone(&params_after(300));
    for _ in 0..steps {
        black_box(A::encode(black_box(&params)));
    }
}

/// For the guard: encodes the same request of a run so many times.
pub(crate) fn encode_next<A: Api>(steps: usize) {
    let params = params_after(300);
    for _ in 0..steps {
        black_box(A::encode(black_box(&params)));
    }
}

/// A decoder in the middle of a text, which has seen what it may learn from.
fn opened<A: Api>() -> A::Decoder {
    let (mut decoder, mut events) = (A::Decoder::default(), Events::new());
    let texts = [A::text_event(0, "The"), A::text_event(0, " very")];
    for data in A::opening().iter().chain(&texts) {
        take(&mut decoder, data, &mut events);
    }
    decoder
}

fn take(decoder: &mut impl Decoder, data: &str, events: &mut Events) {
    decoder.handle_data(black_box(data), events).expect("an event");
    while let Some(event) = events.pop_front() {
        black_box(event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decoder and struct read the same text, or their costs could not be compared.
    fn both_read_the_same<A: Api>() {
        for text in [Text::Plain, Text::Escaped] {
            let data = text.events::<A>();
            let least: Vec<_> = data.iter().map(|data| A::least_parse(data).unwrap()).collect();
            let (mut decoder, mut events) = (opened::<A>(), Events::new());
            for data in &data {
                decoder.handle_data(data, &mut events).unwrap();
            }
            let decoded: Vec<_> = events
                .into_iter()
                .filter_map(|event| match event {
                    StreamEvent::TextDelta(text) => Some(text),
                    _ => None,
                })
                .collect();
            assert_eq!(decoded, least, "{text:?}");
        }
    }

    #[test]
    fn decoders_and_structs_read_the_same() {
        both_read_the_same::<OpenAiChat>();
        both_read_the_same::<OpenAiResponses>();
        both_read_the_same::<Anthropic>();
        both_read_the_same::<Gemini>();
        both_read_the_same::<Ollama>();
    }
}
