//! What the hot paths take from the heap, counted: unlike time, the count is the same on every
//! machine. A binary of its own, because the counting allocator is the allocator of all of it.

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::json;
use toolloop::provider::codec::Decoder;
use toolloop::provider::codec::openai_chat::{ChatDecoder, Quirks, encode};
use toolloop::{ChatMessage, ChatParams, ChatResponse, ContentBlock, ToolCall};
use toolloop_core::ReplyAssembler;
use toolloop_core::effect::{Action, Outcome, Reply, ToolOutcome};
use toolloop_core::run::{Input, Output, Run, RunConfig, ToolSpec};

#[global_allocator]
static HEAP: dhat::Alloc = dhat::Alloc;

/// How many times, and how many bytes, `work` takes from the heap.
fn taken(work: impl FnOnce()) -> (u64, u64) {
    let before = dhat::HeapStats::get();
    work();
    let after = dhat::HeapStats::get();
    (after.total_blocks - before.total_blocks, after.total_bytes - before.total_bytes)
}

fn chunk(text: &str) -> String {
    let delta = json!({ "content": text });
    let choice = json!({ "index": 0, "delta": delta, "finish_reason": null });
    json!({ "id": "x", "model": "m", "choices": [choice], "usage": null }).to_string()
}

/// Streams so many deltas from the bytes of their chunks to the events of a follower.
fn stream(deltas: usize) -> (u64, u64) {
    let chunks: Vec<String> = (0..deltas).map(|n| chunk(&format!("word{n} "))).collect();
    let mut decoder = ChatDecoder::default();
    let mut assembler = ReplyAssembler::detached();
    let mut events = VecDeque::new();
    taken(|| {
        for chunk in &chunks {
            decoder.handle_data(chunk, &mut events).unwrap();
            while let Some(event) = events.pop_front() {
                drop(assembler.push(event).unwrap());
            }
        }
    })
}

/// Runs so many iterations of one call each, encoding every request; gives what the last took.
fn last_iteration(iterations: u32) -> (u64, u64) {
    let tools = vec![ToolSpec { name: "look".into(), effect_class: Default::default() }];
    let config = RunConfig { max_iterations: iterations, tools, ..RunConfig::default() };
    let params = ChatParams { messages: vec![ChatMessage::user("go")], ..ChatParams::default() };
    let mut run = Run::new(config, params);
    let mut number = 0;
    let mut last = (0, 0);
    while !run.is_finished() {
        number += 1;
        last = taken(|| iterate(&mut run, number));
    }
    last
}

/// One iteration.
fn iterate(run: &mut Run, number: u32) {
    let mut is_asked = false;
    loop {
        let effect = match run.poll_output() {
            Output::Perform(effect) => effect,
            Output::Event(_) => continue,
            Output::Finished => return,
            other => panic!("nothing is waited for: {other:?}"),
        };
        let outcome = match effect.action {
            Action::CallModel => {
                if is_asked {
                    // The next iteration's: it is asked for again there.
                    run.repeat_outstanding();
                    return;
                }
                drop(encode("m", run.params(), &Quirks::openai()).unwrap());
                is_asked = true;
                let id = format!("call_{number}");
                let call = ToolCall { id, name: "look".into(), arguments: json!({ "n": number }) };
                let content = vec![ContentBlock::ToolCall(call)];
                let response = ChatResponse { content, ..ChatResponse::default() };
                Outcome::Reply(Reply { response, ..Reply::default() })
            }
            Action::RunTool(_) => Outcome::Tool(ToolOutcome {
                content: "seen".into(),
                is_error: false,
                duration: Duration::ZERO,
                usage: None,
            }),
            other => panic!("not configured: {other:?}"),
        };
        run.handle_input(Input::Outcome { key: effect.key, outcome }).unwrap();
    }
}

#[test]
fn hot_paths_take_little_from_the_heap() {
    let _profiler = dhat::Profiler::builder().testing().build();

    // One string a delta, which the follower gets; the rest is growth of the whole text.
    let (blocks, _) = stream(10_000);
    assert!((10_000..10_100).contains(&blocks), "{blocks} allocations for 10,000 deltas");

    // The cost of an iteration does not grow with the iterations before it: its request is made in
    // the bytes of the last. Lists grow now and then, so the best of some neighbours counts.
    let best = |around: [u32; 4]| around.map(last_iteration).into_iter().min().unwrap();
    let (early, early_bytes) = best([10, 11, 13, 14]);
    let (late, late_bytes) = best([1000, 1001, 1003, 1004]);
    assert!(late <= early + 2, "{early} allocations in iteration 10, {late} in iteration 1,000");
    assert!(late_bytes <= early_bytes + 1024, "{early_bytes} bytes early, {late_bytes} late");
    assert!(early < 50, "{early} allocations in an iteration with one call");
}
