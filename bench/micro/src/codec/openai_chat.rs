use std::borrow::Cow;

use bytes::Bytes;
use divan::Bencher;
use divan::counter::ItemsCount;
use serde::Deserialize;
use toolloop_core::ChatParams;
use toolloop_providers::codec::Events;
use toolloop_providers::codec::openai_chat::{ChatDecoder, Quirks, encode};

use super::{Api, EVENTS, Text, decode_each, opened, take};
use crate::chunk;

/// Chat Completions.
pub(crate) struct OpenAiChat;

impl Api for OpenAiChat {
    type Decoder = ChatDecoder;

    fn text_event(_: usize, text: &str) -> String {
        chunk(text)
    }

    fn least_parse(data: &str) -> serde_json::Result<Cow<'_, str>> {
        let Chunk { choices: [choice] } = serde_json::from_str(data)?;
        Ok(choice.delta.content)
    }

    fn encode(params: &ChatParams) -> Bytes {
        encode("gpt-5", params, &Quirks::openai()).expect("messages are JSON")
    }
}

/// The same chunks from a server that puts the time into each: there is nothing to learn from
/// the chunk before, and all of them are parsed.
#[divan::bench(counters = [ItemsCount::new(EVENTS)])]
fn decode_dated_chunks(bencher: Bencher) {
    let (chunks, mut events) = (dated_chunks(), Events::new());
    bencher.with_inputs(opened::<OpenAiChat>).bench_local_refs(|decoder| {
        for chunk in &chunks {
            take(decoder, chunk, &mut events);
        }
    });
}

/// For the guard: decodes so many text deltas that bear the time.
pub(crate) fn decode_some_dated(steps: usize) {
    decode_each::<OpenAiChat>(&dated_chunks(), steps);
}

fn dated_chunks() -> Vec<String> {
    let dated = |number: usize, chunk: String| {
        chunk.replace("\"created\":1760000000", &format!("\"created\":{}", 1760000001 + number))
    };
    let chunks = Text::Plain.events::<OpenAiChat>().into_iter().enumerate();
    chunks.map(|(number, chunk)| dated(number, chunk)).collect()
}

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow)]
    choices: [Choice<'a>; 1],
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    delta: Delta<'a>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow)]
    content: Cow<'a, str>,
}
