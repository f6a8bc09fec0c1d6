//! The codec of OpenAI Chat Completions: bytes of the body in, stream events out; and the next
//! request's body.

use std::num::NonZeroUsize;

use bytes::Bytes;
use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use serde_json::json;
use toolloop_core::{ChatMessage, ChatParams, ContentBlock, ToolCall};
use toolloop_providers::codec::openai_chat::{ChatDecoder, Quirks, encode};
use toolloop_providers::codec::sse::SseFrames;
use toolloop_providers::codec::{Decoder, Events};

use crate::chunk;

const EVENTS: usize = 1000;
const LIMIT: NonZeroUsize = NonZeroUsize::new(1 << 20).unwrap();

/// Deltas that differ only in plain text, as most do.
#[divan::bench(counters = [ItemsCount::new(EVENTS)])]
fn plain_text_delta(bencher: Bencher) {
    decode(bencher, [" quick", " brown"]);
}

/// Deltas that go through the JSON parser, because of an escape in them.
#[divan::bench(counters = [ItemsCount::new(EVENTS)])]
fn escaped_text_delta(bencher: Bencher) {
    decode(bencher, ["\\n", " \\\"hi\\\""]);
}

fn decode(bencher: Bencher, texts: [&str; 2]) {
    let body: String = (0..EVENTS).map(|i| format!("data: {}\n\n", chunk(texts[i % 2]))).collect();
    let body = Bytes::from(format!(": hello\n\n{body}"));
    bencher.bench(|| {
        let mut frames = SseFrames::with_limit(LIMIT);
        let mut decoder = ChatDecoder::default();
        let mut events = Events::new();
        frames.push(body.clone());
        while let Some(data) = frames.next_data() {
            let data = data.expect("no event is too large");
            decoder.handle_data(&data, &mut events).expect("a chunk");
            while let Some(event) = events.pop_front() {
                black_box(event);
            }
        }
    });
}

/// The body after this many iterations with results of 2 KB.
#[divan::bench(args = [10, 300])]
fn encode_request(bencher: Bencher, iterations: usize) {
    let iteration = |i: usize| {
        let (id, arguments) = (format!("call_{i}_0"), json!({"a": i, "b": 1}));
        let call = ToolCall { id: id.clone(), name: "add".into(), arguments };
        let mut reply = ChatMessage::assistant("I add them.");
        reply.content.push(ContentBlock::ToolCall(call));
        [reply, ChatMessage::tool_result(id, "result data, ".repeat(157))]
    };
    let mut messages = vec![ChatMessage::user("Add the numbers.")];
    messages.extend((0..iterations).flat_map(iteration));
    let params = ChatParams { messages, ..ChatParams::default() };
    let quirks = Quirks::openai();
    bencher.bench(|| encode("m", black_box(&params), &quirks));
}
