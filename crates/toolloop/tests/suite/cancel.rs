//! `cancel`: a run ends at once and truthfully, and its conversation goes on.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt;
use insta::{allow_duplicates, assert_snapshot};
use serde_json::{Value, json};
use toolloop::tool::{
    CallContext, CancellationToken, StopDecision, ToolApproval, ToolFuture, ToolHandler, tool_fn,
};
use toolloop::{ChatMessage, LoopEvent, StreamEvent, TerminationReason, ToolDefinition};

use super::support::{Sim, act, call, reply, says, text};

#[tokio::test(start_paused = true)]
async fn a_run_cancelled_before_it_begins_asks_nobody() {
    let (sim, cancel) = cancellable([says("never")]);
    cancel.cancel();
    let told = sim.run().await;
    assert_snapshot!(told.story(), @r#"
    iteration 1, messages 1
    done: StopCondition { reason: Some("cancelled") }, iterations 1, 0 in · 0 out
    "#);
    assert_snapshot!(told.transcript(), @"user: Go");
    assert!(told.model.recorded_calls().is_empty());
}

#[tokio::test(start_paused = true)]
async fn text_that_had_arrived_is_kept_and_a_call_that_had_is_not() {
    let (sim, cancel) = cancellable([]);
    sim.model.queue_hanging_stream(vec![text("I will"), call("a", "write", json!({}))]);
    cancel_after(cancel, 40);
    let told = sim.run().await;
    assert_eq!(told.took, Duration::from_millis(40));
    assert_snapshot!(told.story(), @r#"
    iteration 1, messages 1
    text "I will"
    call 0: a write({})
    usage ~116 in · ~2 out
    done: StopCondition { reason: Some("cancelled") }, iterations 1, ~116 in · ~2 out
    "#);
    assert_snapshot!(told.transcript(), @r"
    user: Go
    assistant: I will
    ");
}

#[tokio::test(start_paused = true)]
async fn a_finished_effect_stays_in_the_conversation_and_the_next_run_goes_on() {
    let (sim, cancel) = cancellable([reply([
        call("a", "write", json!({"ms": 10, "say": "paid 5"})),
        call("b", "write", json!({"ms": 1000})),
    ])]);
    cancel_after(cancel, 40);
    let told = sim.run().await;
    assert_snapshot!(told.timed_story(), @r#"
     0 iteration 1, messages 1
     0 call 0: a write({"ms":10,"say":"paid 5"})
     0 call 1: b write({"ms":1000})
     0 usage 10 in · 1 out
     0 start a write({"ms":10,"say":"paid 5"})
     0 start b write({"ms":1000})
    10 end a ok: paid 5 in 10ms
    40 end b failed: This call was cut off while it ran: the run was cancelled. It may have taken effect in part; check before repeating it. in 40ms
       done: StopCondition { reason: Some("cancelled") }, iterations 1, 10 in · 1 out
    "#);
    assert_snapshot!(told.ledger.lines().join("\n"), @r"
    0 a started
    0 b started
    10 a finished
    40 b cut
    ");

    let mut next = Sim::new([says("a was paid; b I will check.")]);
    next.params.messages = told.result().messages.clone();
    next.params.messages.push(ChatMessage::user("Go on"));
    assert_snapshot!(next.run().await.transcript(), @r#"
    user: Go
    assistant: a write({"ms":10,"say":"paid 5"}) | b write({"ms":1000})
    tool: a ok: paid 5
    tool: b failed: This call was cut off while it ran: the run was cancelled. It may have taken effect in part; check before repeating it.
    user: Go on
    assistant: a was paid; b I will check.
    "#);
}

#[tokio::test(start_paused = true)]
async fn what_finishes_in_the_very_moment_counts_as_finished() {
    for ms in 1..200 {
        let (sim, cancel) = cancellable([reply([
            call("a", "write", json!({"ms": ms, "say": "paid"})),
            call("b", "write", json!({"ms": ms, "say": "paid"})),
            call("c", "write", json!({"ms": 500, "say": "paid"})),
        ])]);
        cancel_after(cancel, ms);
        let told = sim.run().await;
        assert_eq!(
            told.transcript(),
            format!(
                "user: Go\n\
                 assistant: a write({{\"ms\":{ms},\"say\":\"paid\"}}) | \
                 b write({{\"ms\":{ms},\"say\":\"paid\"}}) | c write({{\"ms\":500,\"say\":\"paid\"}})\n\
                 tool: a ok: paid\n\
                 tool: b ok: paid\n\
                 tool: c failed: This call was cut off while it ran: the run was cancelled. It may \
                 have taken effect in part; check before repeating it."
            )
        );
    }
}

/// Tools that finish at once do not slip in between a cancel and the end of the run.
#[tokio::test(start_paused = true)]
async fn a_tool_that_has_not_begun_never_does() {
    let two_calls = || reply([call("a", "write", json!({})), call("b", "write", json!({}))]);
    let (mut in_stop_when, cancel) = cancellable([two_calls()]);
    in_stop_when.config.stop_when = Some(Arc::new(move |_| {
        cancel.cancel();
        StopDecision::Continue
    }));
    let (mut in_on_tool_call, cancel) = cancellable([two_calls()]);
    in_on_tool_call.config.on_tool_call = Some(Arc::new(move |_| {
        cancel.cancel();
        ToolApproval::Approve
    }));
    let (by_a_follower, cancel) = cancellable([two_calls()]);
    let by_a_follower = by_a_follower.run_watched(|event| {
        if matches!(event, LoopEvent::ToolExecutionStart { .. }) {
            cancel.cancel();
        }
    });
    let all = [in_stop_when.run().await, in_on_tool_call.run().await, by_a_follower.await];
    allow_duplicates!(for told in all {
        assert_eq!(told.ledger.lines(), [""; 0]);
        assert_snapshot!(told.story(), @r#"
        iteration 1, messages 1
        call 0: a write({})
        call 1: b write({})
        usage 10 in · 1 out
        start a write({})
        start b write({})
        end a failed: This call was not run: the run was cancelled.
        end b failed: This call was not run: the run was cancelled.
        done: StopCondition { reason: Some("cancelled") }, iterations 1, 10 in · 1 out
        "#);
        assert_snapshot!(told.transcript(), @r"
        user: Go
        assistant: a write({}) | b write({})
        tool: a failed: This call was not run: the run was cancelled.
        tool: b failed: This call was not run: the run was cancelled.
        ");
    });
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_cancels_is_the_last_to_run() {
    let mut all = Vec::new();
    for parallel in [true, false] {
        let calls = [call("a", "halt", json!({})), call("b", "write", json!({}))];
        let (mut sim, cancel) = cancellable([reply(calls)]);
        sim.config.parallel_tool_execution = parallel;
        sim.tools.register(tool_fn(act("halt", &sim.ledger).definition, move |_| {
            cancel.cancel();
            async { Ok("halted") }
        }));
        all.push(sim.run().await);
    }
    allow_duplicates!(for told in all {
        assert_eq!(told.ledger.lines(), [""; 0]);
        assert_snapshot!(told.transcript(), @r"
        user: Go
        assistant: a halt({}) | b write({})
        tool: a ok: halted
        tool: b failed: This call was not run: the run was cancelled.
        ");
    });
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_never_pauses_does_not_hide_a_cancel() {
    let (sim, cancel) = cancellable([(0..10_000).map(|_| text("on ")).collect()]);
    let mut seen = 0;
    let told = sim
        .run_watched(|event| {
            seen += 1;
            if matches!(event, LoopEvent::TextDelta(_)) {
                cancel.cancel();
            }
        })
        .await;
    assert_eq!(told.result().termination_reason, cancelled());
    assert!(seen < 100, "{seen} events");
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_progress_does_not_hide_a_cancel() {
    let (mut sim, cancel) = cancellable([reply([call("a", "chatty", json!({}))])]);
    let context = Arc::new(Mutex::new(None));
    sim.tools.register(Watcher { seen: Arc::clone(&context) });
    let mut stream = sim.stream();
    let mut seen = 0;
    while let Some(event) = stream.next().await {
        // Another thread could well be as fast as whoever reads the events.
        if let Some(context) = context.lock().unwrap().as_ref() {
            let context: &CallContext = context;
            context.progress("still at it");
            cancel.cancel();
        }
        seen += 1;
        assert!(seen < 1000, "the cancel was never seen");
        if let LoopEvent::Done(result) = event.unwrap() {
            assert_eq!(result.termination_reason, cancelled());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_whose_work_outlives_it_is_told() {
    let (mut sim, cancel) = cancellable([reply([call("a", "chatty", json!({}))])]);
    let context = Arc::new(Mutex::new(None));
    sim.tools.register(Watcher { seen: Arc::clone(&context) });
    cancel_after(cancel, 40);
    sim.run().await;
    let context = context.lock().unwrap().take().unwrap();
    assert!(context.is_cancelled());
    context.cancelled().await;
}

#[tokio::test(start_paused = true)]
async fn dropping_the_stream_cuts_the_tools_and_tells_them() {
    let mut sim = Sim::new([reply([
        call("a", "read", json!({"hang": true})),
        call("b", "chatty", json!({})),
    ])]);
    let context = Arc::new(Mutex::new(None));
    sim.tools.register(Watcher { seen: Arc::clone(&context) });
    let mut stream = sim.stream();
    let waiting = async { while stream.next().await.is_some() {} };
    assert!(tokio::time::timeout(Duration::from_millis(10), waiting).await.is_err());
    drop(stream);
    assert_eq!(sim.ledger.lines(), ["0 a started", "10 a cut"]);
    assert!(context.lock().unwrap().take().unwrap().is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn a_cancel_after_the_end_changes_nothing() {
    let (sim, cancel) = cancellable([says("done")]);
    let told = sim.run().await;
    cancel.cancel();
    assert_eq!(told.result().termination_reason, TerminationReason::Complete);
}

/// A tool that hands out its context and never ends.
struct Watcher {
    seen: Arc<Mutex<Option<CallContext>>>,
}

impl ToolHandler for Watcher {
    fn definition(&self) -> ToolDefinition {
        act("chatty", &Default::default()).definition
    }

    fn execute<'a>(&'a self, _: Value, (): &'a ()) -> ToolFuture<'a> {
        unreachable!("the loop uses `call`")
    }

    fn call<'a>(&'a self, _: Value, call: &'a CallContext, (): &'a ()) -> ToolFuture<'a> {
        *self.seen.lock().unwrap() = Some(call.clone());
        call.progress("at it");
        Box::pin(std::future::pending())
    }
}

fn cancellable(replies: impl IntoIterator<Item = Vec<StreamEvent>>) -> (Sim, CancellationToken) {
    let cancel = CancellationToken::new();
    let mut sim = Sim::new(replies);
    sim.config.cancel = Some(cancel.clone());
    (sim, cancel)
}

fn cancel_after(cancel: CancellationToken, ms: u64) {
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(ms)).await;
        cancel.cancel();
    });
}

fn cancelled() -> TerminationReason {
    TerminationReason::StopCondition { reason: Some("cancelled".into()) }
}
