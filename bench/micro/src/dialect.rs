//! `StreamProcessor`: what a delta costs besides where a reply is read in a dialect.

use std::collections::VecDeque;

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use toolloop_core::dialect::{Dialect, StreamProcessor, ToolLimit};
use toolloop_core::{ReplyAssembler, StopReason, StreamEvent, ToolDefinition};

use crate::codec::{self, openai_chat::OpenAiChat};

const DELTAS: usize = 1000;
const DIALECTS: [Dialect; 3] = [Dialect::Native, Dialect::Xml, Dialect::Caret];

fn tools() -> Vec<ToolDefinition> {
    let tool = |name: &str| ToolDefinition {
        name: name.into(),
        description: "A tool.".into(),
        parameters: serde_json::json!({"type": "object"}).into(),
        retry: None,
    };
    ["bash", "read_file", "write_file", "search"].map(tool).into()
}

/// Text in words, with a new line behind each tenth.
fn answer() -> Vec<StreamEvent> {
    let word = |n: usize| if n % 10 == 9 { "\n\nquick".to_owned() } else { " quick".to_owned() };
    let done = StreamEvent::Done { stop_reason: StopReason::EndTurn };
    (0..DELTAS).map(|n| StreamEvent::TextDelta(word(n))).chain([done]).collect()
}

/// A call in pieces of six bytes whose value is all of it.
fn call() -> Vec<StreamEvent> {
    let text = format!(
        "<tool:bash>\n<param:command>\n{}\n</param:command>\n</tool:bash>",
        " quick".repeat(DELTAS)
    );
    let pieces = text.as_bytes().chunks(6).map(|piece| String::from_utf8_lossy(piece).into_owned());
    let done = StreamEvent::Done { stop_reason: StopReason::EndTurn };
    pieces.map(StreamEvent::TextDelta).chain([done]).collect()
}

fn process(dialect: Dialect, events: Vec<StreamEvent>, mut take: impl FnMut(StreamEvent)) {
    let mut processor = StreamProcessor::new(dialect, &tools(), ToolLimit::One);
    let mut out = VecDeque::new();
    for event in events {
        read(&mut processor, event, &mut out, &mut take);
    }
}

/// What the processor makes of one event.
fn read(
    processor: &mut StreamProcessor,
    event: StreamEvent,
    out: &mut VecDeque<StreamEvent>,
    mut take: impl FnMut(StreamEvent),
) {
    if processor.lets_pass(&event) {
        return take(event);
    }
    processor.handle(event, out).expect("one call at most");
    while let Some(event) = out.pop_front() {
        take(event);
    }
}

fn push(assembler: &mut ReplyAssembler, event: StreamEvent) {
    black_box(assembler.push(event)).expect("no contradiction");
}

#[divan::bench(args = DIALECTS, counters = [ItemsCount::new(DELTAS)])]
fn answer_alone(bencher: Bencher, dialect: Dialect) {
    let take = |event| drop(black_box(event));
    bencher.with_inputs(answer).bench_values(|events| process(dialect, events, take));
}

#[divan::bench(counters = [ItemsCount::new(DELTAS)])]
fn call_alone(bencher: Bencher) {
    let take = |event| drop(black_box(event));
    bencher.with_inputs(call).bench_values(|events| process(Dialect::Xml, events, take));
}

/// With the assembler behind it, as a loop has it.
#[divan::bench(args = DIALECTS, counters = [ItemsCount::new(DELTAS)])]
fn answer_assembled(bencher: Bencher, dialect: Dialect) {
    bencher.with_inputs(answer).bench_values(|events| {
        let mut assembler = ReplyAssembler::detached();
        process(dialect, events, |event| push(&mut assembler, event));
        assembler.finish()
    });
}

/// For the guard: so many text deltas from their bytes to the events of a follower.
pub(crate) fn assemble_some(steps: usize) {
    let mut assembler = ReplyAssembler::detached();
    codec::each_event::<OpenAiChat>(steps, |event| push(&mut assembler, event));
}

/// For the guard: the same, read in a dialect.
pub(crate) fn assemble_some_in_dialect(steps: usize) {
    let mut assembler = ReplyAssembler::detached();
    let mut processor = StreamProcessor::new(Dialect::Xml, &tools(), ToolLimit::One);
    let mut out = VecDeque::new();
    codec::each_event::<OpenAiChat>(steps, |event| {
        read(&mut processor, event, &mut out, |event| push(&mut assembler, event));
    });
}
