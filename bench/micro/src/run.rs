//! `Run`: what an iteration and a call cost the machine, with few and with many before them.

use std::sync::Arc;

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use serde_json::json;
use toolloop_core::effect::{Action, Outcome, Reply, ToolOutcome};
use toolloop_core::run::{Input, Output, Run, RunConfig, ToolSpec};
use toolloop_core::{
    ChatMessage, ChatParams, ChatResponse, ContentBlock, EffectClass, StopReason, ToolCall,
};

/// Iterations in one sample, so that the timer's own cost does not show.
const ITERATIONS: u32 = 10;

/// One call and its result, after this many iterations of the same.
#[divan::bench(args = [10, 1000], counters = [ItemsCount::new(ITERATIONS)])]
fn iteration(bencher: Bencher, past: u32) {
    bencher.with_inputs(|| Prepared::new(past, ITERATIONS, 1)).bench_values(Prepared::run);
}

/// The calls of one reply of 64.
#[divan::bench(counters = [ItemsCount::new(64_usize)])]
fn parallel_call(bencher: Bencher) {
    bencher.with_inputs(|| Prepared::new(1, 1, 64)).bench_values(Prepared::run);
}

/// The request of a run after this many iterations with one call each, whose results are of 2 KB.
pub(crate) fn params_after(iterations: u32) -> Arc<ChatParams> {
    Arc::clone(Prepared::new(iterations, 0, 1).run.params())
}

/// For the guard: so many iterations of one call each, after `PAST` of the same.
pub(crate) fn iterate_after<const PAST: u32>(steps: usize) {
    black_box(Prepared::new(PAST, 400, 1).only(steps).run());
}

/// For the guard: so many calls, 64 to a reply.
pub(crate) fn call_among_64(steps: usize) {
    black_box(Prepared::new(1, 40, 64).only(steps / 64).run());
}

/// A run in mid-conversation, and what the model and the tools will say next.
struct Prepared {
    run: Run,
    replies: Vec<Reply>,
    results: Vec<ToolOutcome>,
}

impl Prepared {
    fn new(past: u32, iterations: u32, calls: usize) -> Self {
        let tool = ToolSpec { name: "add".into(), effect_class: EffectClass::ReadOnly };
        let config = RunConfig { max_iterations: 2000, tools: vec![tool], ..RunConfig::default() };
        let messages = vec![ChatMessage::user("Add the numbers.")];
        let mut run = Run::new(config, ChatParams { messages, ..ChatParams::default() });
        let script = |iterations: std::ops::Range<u32>| {
            let replies: Vec<_> = iterations.map(|i| reply(i, calls)).rev().collect();
            let results = vec![result(); replies.len() * calls];
            (replies, results)
        };
        let (replies, results) = script(0..past);
        run = Self { run, replies, results }.run();
        let (replies, results) = script(past..past + iterations);
        Self { run, replies, results }
    }

    /// So few of the iterations to come; what these say was prepared all the same, so that only
    /// the run itself costs more where there are more of them.
    fn only(mut self, iterations: usize) -> Self {
        self.replies.drain(..self.replies.len() - iterations);
        self
    }

    /// Drives the run until the model is asked for a reply that it does not have.
    fn run(mut self) -> Run {
        loop {
            let effect = match self.run.poll_output() {
                Output::Perform(effect) => effect,
                Output::Event(event) => {
                    black_box(event);
                    continue;
                }
                _ if self.replies.is_empty() => return self.run,
                Output::Wait { .. } => {
                    // The model call that was left open.
                    let open = self.run.outstanding();
                    open.into_iter().next().expect("a run that waits has something outstanding")
                }
                other => panic!("the run ended: {other:?}"),
            };
            let outcome = match effect.action {
                Action::CallModel => {
                    black_box((self.run.assembler(), self.run.params().clone()));
                    match self.replies.pop() {
                        Some(reply) => Outcome::Reply(reply),
                        None => continue,
                    }
                }
                Action::RunTool(_) => Outcome::Tool(self.results.pop().expect("one per call")),
                other => panic!("nothing else is configured: {other:?}"),
            };
            let input = Input::Outcome { key: effect.key, outcome };
            self.run.handle_input(input).expect("it was asked for");
        }
    }
}

fn reply(iteration: u32, calls: usize) -> Reply {
    let call = |n| {
        let id = format!("call_{iteration}_{n}");
        let arguments = json!({"a": iteration, "b": n});
        ContentBlock::ToolCall(ToolCall { id, name: "add".into(), arguments })
    };
    let text = ContentBlock::Text("I add them.".into());
    let content = std::iter::once(text).chain((0..calls).map(call)).collect();
    let stop_reason = StopReason::ToolUse;
    let response = ChatResponse { content, stop_reason, ..ChatResponse::default() };
    Reply { response, ..Reply::default() }
}

fn result() -> ToolOutcome {
    let content = "result data, ".repeat(157).into();
    ToolOutcome { content, is_error: false, duration: std::time::Duration::ZERO, usage: None }
}
