//! Ways to split a stream into events, to read one chunk, and to hand its text over.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use futures::StreamExt;
use futures::channel::mpsc;
use futures::executor::block_on;
use serde::Deserialize;

use crate::chunk;

const TEXT: &str = " quick";
const EVENTS: usize = 32;

fn stream() -> String {
    format!("data: {}\n\n", chunk(TEXT)).repeat(EVENTS)
}

#[divan::bench(counters = [ItemsCount::new(EVENTS)])]
fn split_by_find_copy_and_drain(bencher: Bencher) {
    bencher.with_inputs(stream).bench_values(|mut buf| {
        let mut n = 0;
        while let Some(at) = buf.find("\n\n") {
            let event = buf[..at + 2].to_string();
            buf.drain(..at + 2);
            n += event.len();
        }
        n
    });
}

#[divan::bench(counters = [ItemsCount::new(EVENTS)])]
fn split_in_place(bencher: Bencher) {
    bencher.with_inputs(stream).bench_refs(|buf| {
        let (buf, mut at, mut n) = (buf.as_bytes(), 0, 0);
        while let Some(len) = memchr::memmem::find(&buf[at..], b"\n\n") {
            n += len;
            at += len + 2;
        }
        n
    });
}

#[divan::bench]
fn parse_into_value(bencher: Bencher) {
    let json = chunk(TEXT);
    bencher.bench(|| serde_json::from_str::<serde_json::Value>(black_box(&json)));
}

#[derive(Deserialize)]
struct OwnedChunk {
    choices: Vec<OwnedChoice>,
}

#[derive(Deserialize)]
struct OwnedChoice {
    delta: OwnedDelta,
}

#[derive(Deserialize)]
struct OwnedDelta {
    content: Option<String>,
}

#[divan::bench]
fn parse_needed_fields_owned(bencher: Bencher) {
    let json = chunk(TEXT);
    bencher.bench(|| {
        let mut chunk: OwnedChunk = serde_json::from_str(black_box(&json)).expect("a chunk");
        chunk.choices[0].delta.content.take()
    });
}

#[derive(Deserialize)]
struct BorrowedChunk<'a> {
    #[serde(borrow)]
    choices: [BorrowedChoice<'a>; 1],
}

#[derive(Deserialize)]
struct BorrowedChoice<'a> {
    #[serde(borrow)]
    delta: BorrowedDelta<'a>,
}

#[derive(Deserialize)]
struct BorrowedDelta<'a> {
    #[serde(borrow)]
    content: Cow<'a, str>,
}

#[divan::bench]
fn parse_needed_fields_borrowed(bencher: Bencher) {
    let json = chunk(TEXT);
    bencher.bench(|| {
        let chunk: BorrowedChunk = serde_json::from_str(black_box(&json)).expect("a chunk");
        chunk.choices[0].delta.content.len()
    });
}

/// The bytes around the text are compared with those of the last parsed chunk.
#[divan::bench]
fn read_without_parser(bencher: Bencher) {
    let json = chunk(TEXT);
    let (before, after) = json.split_once(TEXT).expect("the text is in the chunk");
    bencher.bench(|| {
        let text = black_box(&json).strip_prefix(before)?.strip_suffix(after)?;
        let plain = !text.bytes().any(|b| b == b'"' || b == b'\\' || b < 0x20);
        plain.then_some(text)
    });
}

#[divan::bench]
fn hand_over_string() -> String {
    black_box(TEXT).to_owned()
}

#[divan::bench]
fn hand_over_arc_str() -> Arc<str> {
    black_box(TEXT).into()
}

#[divan::bench]
fn hand_over_slice_of_the_buffer(bencher: Bencher) {
    let buffer = Bytes::from(stream());
    bencher.bench(|| black_box(&buffer).slice(8..8 + TEXT.len()));
}

#[divan::bench(counters = [ItemsCount::new(EVENTS)])]
fn hand_over_through_a_channel() -> usize {
    let (tx, rx) = mpsc::unbounded();
    for _ in 0..EVENTS {
        tx.unbounded_send(TEXT.to_owned()).expect("the receiver lives");
    }
    drop(tx);
    block_on(rx.fold(0, |n, text| std::future::ready(n + text.len())))
}

#[divan::bench(counters = [ItemsCount::new(EVENTS)])]
fn hand_over_through_three_boxed_streams() -> usize {
    let texts = futures::stream::iter((0..EVENTS).map(|_| TEXT.to_owned())).boxed();
    let texts = texts.map(Some).boxed().filter_map(std::future::ready).boxed();
    block_on(texts.fold(0, |n, text| std::future::ready(n + text.len())))
}
