//! `ReplyAssembler`: what a delta costs on its way from the provider to the user.

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use toolloop_core::{ReplyAssembler, StopReason, StreamEvent};

const DELTAS: usize = 1000;

fn events(one: StreamEvent, before: Option<StreamEvent>) -> Vec<StreamEvent> {
    let done = StreamEvent::Done { stop_reason: StopReason::EndTurn };
    before.into_iter().chain(std::iter::repeat_n(one, DELTAS)).chain([done]).collect()
}

fn assemble(events: Vec<StreamEvent>) -> impl Sized {
    let mut assembler = ReplyAssembler::detached();
    for event in events {
        black_box(assembler.push(event)).expect("no contradiction");
    }
    assembler.finish()
}

#[divan::bench(counters = [ItemsCount::new(DELTAS)])]
fn text_deltas(bencher: Bencher) {
    let text = StreamEvent::TextDelta(" quick".into());
    bencher.with_inputs(|| events(text.clone(), None)).bench_values(assemble);
}

#[divan::bench(counters = [ItemsCount::new(DELTAS)])]
fn argument_deltas(bencher: Bencher) {
    let start = StreamEvent::ToolCallStart { index: 0, id: "call_1".into(), name: "add".into() };
    let delta = StreamEvent::ToolCallDelta { index: 0, json_chunk: "1234".into() };
    bencher.with_inputs(|| events(delta.clone(), Some(start.clone()))).bench_values(assemble);
}

/// 64 calls of 8 fragments in one reply, as parallel calls arrive.
#[divan::bench(counters = [ItemsCount::new(64_usize)])]
fn parallel_calls(bencher: Bencher) {
    let call = |index: u32| {
        let start =
            StreamEvent::ToolCallStart { index, id: format!("call_1_{index}"), name: "add".into() };
        let fragments = [r#"{"a""#, ":1,", r#""b":"#, "2,", r#""note"#, r#"":"a"#, "bcd", r#""}"#];
        let deltas =
            fragments.map(|json| StreamEvent::ToolCallDelta { index, json_chunk: json.to_owned() });
        std::iter::once(start).chain(deltas)
    };
    let done = StreamEvent::Done { stop_reason: StopReason::ToolUse };
    let reply: Vec<_> = (0..64).flat_map(call).chain([done]).collect();
    bencher.with_inputs(|| reply.clone()).bench_values(assemble);
}
