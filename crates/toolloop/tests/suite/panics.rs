//! A panic in a callback reaches whoever polls, and the conversation stays valid; a panic in a
//! tool is a result.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{FutureExt, StreamExt};
use insta::assert_snapshot;
use serde_json::json;
use toolloop::ToolDefinition;
use toolloop::provider::BoxFuture;
use toolloop::tool::{
    CachedResult, ExtractedResult, ProcessedResult, RetryPredicate, ToolApproval, ToolError,
    ToolResultCacher, ToolResultExtractor, ToolResultProcessor, ToolRetryConfig, TurnResult,
    tool_fn, tool_loop,
};

use super::support::{Sim, act, call, reply, says, transcript};

#[tokio::test(start_paused = true)]
async fn in_on_tool_call() {
    let mut sim = three_calls();
    sim.config.on_tool_call = Some(Arc::new(|call| match call.id.as_str() {
        "b" => panic!("no rule for b"),
        _ => ToolApproval::Approve,
    }));
    assert_snapshot!(left_by_panic("no rule for b", &sim).await, @r#"
    user: Go
    assistant: a write({"say":"a done"}) | b write({"say":"b done"}) | c write({"say":"c done"})
    tool: a failed: This call was not run: the run was interrupted.
    tool: b failed: This call was not run: the run was interrupted.
    tool: c failed: This call was not run: the run was interrupted.
    -- StopCondition { reason: Some("a callback panicked") }
    user: Go
    assistant: a write({"say":"a done"}) | b write({"say":"b done"}) | c write({"say":"c done"})
    tool: a failed: This call was not run: the run was stopped (a callback panicked).
    tool: b failed: This call was not run: the run was stopped (a callback panicked).
    tool: c failed: This call was not run: the run was stopped (a callback panicked).
    "#);
    assert!(sim.ledger.lines().is_empty());
}

#[tokio::test(start_paused = true)]
async fn in_stop_when() {
    let mut sim = three_calls();
    sim.config.stop_when = Some(Arc::new(|_| panic!("no budget known")));
    assert_snapshot!(left_by_panic("no budget known", &sim).await, @r#"
    user: Go
    assistant: a write({"say":"a done"}) | b write({"say":"b done"}) | c write({"say":"c done"})
    tool: a failed: This call was not run: the run was interrupted.
    tool: b failed: This call was not run: the run was interrupted.
    tool: c failed: This call was not run: the run was interrupted.
    -- StopCondition { reason: Some("a callback panicked") }
    user: Go
    assistant: a write({"say":"a done"}) | b write({"say":"b done"}) | c write({"say":"c done"})
    tool: a failed: This call was not run: the run was stopped (a callback panicked).
    tool: b failed: This call was not run: the run was stopped (a callback panicked).
    tool: c failed: This call was not run: the run was stopped (a callback panicked).
    "#);
    assert!(sim.ledger.lines().is_empty());
}

#[tokio::test(start_paused = true)]
async fn in_on_approval() {
    let mut sim = three_calls();
    sim.config.on_approval = Some(Arc::new(|call| {
        Box::pin(async move {
            if call.id == "b" {
                tokio::time::sleep(Duration::from_millis(5)).await;
                panic!("the door closed");
            }
            ToolApproval::Approve
        })
    }));
    assert_snapshot!(left_by_panic("the door closed", &sim).await, @r#"
    user: Go
    assistant: a write({"say":"a done"}) | b write({"say":"b done"}) | c write({"say":"c done"})
    tool: a failed: This call was not run: the run was interrupted.
    tool: b failed: This call was not run: the run was interrupted.
    tool: c failed: This call was not run: the run was interrupted.
    -- StopCondition { reason: Some("a callback panicked") }
    user: Go
    assistant: a write({"say":"a done"}) | b write({"say":"b done"}) | c write({"say":"c done"})
    tool: a failed: This call was not run: the run was stopped (a callback panicked).
    tool: b failed: This call was not run: the run was stopped (a callback panicked).
    tool: c failed: This call was not run: the run was stopped (a callback panicked).
    "#);
    assert!(sim.ledger.lines().is_empty());

    let mut sim = three_calls();
    sim.config.on_approval = Some(Arc::new(|_| panic!("before the future")));
    left_by_panic("before the future", &sim).await;
    assert!(sim.ledger.lines().is_empty());
}

#[tokio::test(start_paused = true)]
async fn in_the_pipeline() {
    struct Stage;
    impl ToolResultProcessor for Stage {
        fn process(&self, _: &str, _: &str) -> ProcessedResult {
            panic!("cannot process")
        }
    }
    impl ToolResultExtractor for Stage {
        fn extract<'a>(
            &'a self,
            _: &'a str,
            _: &'a str,
            _: &'a str,
        ) -> BoxFuture<'a, Option<ExtractedResult>> {
            Box::pin(async {
                tokio::task::yield_now().await;
                panic!("cannot extract")
            })
        }
        fn extraction_threshold(&self) -> u32 {
            0
        }
    }
    impl ToolResultCacher for Stage {
        fn cache(&self, _: &str, _: &str) -> Option<CachedResult> {
            panic!("cannot cache")
        }
        fn inline_threshold(&self) -> u32 {
            0
        }
    }
    let mut sim = three_calls();
    sim.config.parallel_tool_execution = false;
    sim.config.result_processor = Some(Arc::new(Stage));
    assert_snapshot!(left_by_panic("cannot process", &sim).await, @r#"
    user: Go
    assistant: a write({"say":"a done"}) | b write({"say":"b done"}) | c write({"say":"c done"})
    tool: a ok: a done
    tool: b failed: This call was not run: the run was interrupted.
    tool: c failed: This call was not run: the run was interrupted.
    -- StopCondition { reason: Some("a callback panicked") }
    user: Go
    assistant: a write({"say":"a done"}) | b write({"say":"b done"}) | c write({"say":"c done"})
    tool: a ok: a done
    tool: b failed: This call was not run: the run was stopped (a callback panicked).
    tool: c failed: This call was not run: the run was stopped (a callback panicked).
    "#);
    assert_eq!(sim.ledger.lines(), ["0 a started", "0 a finished"]);

    let mut sim = three_calls();
    sim.config.result_extractor = Some(Arc::new(Stage));
    assert_snapshot!(left_by_panic("cannot extract", &sim).await, @r#"
    user: Go
    assistant: a write({"say":"a done"}) | b write({"say":"b done"}) | c write({"say":"c done"})
    tool: a ok: a done
    tool: b ok: b done
    tool: c ok: c done
    -- StopCondition { reason: Some("a callback panicked") }
    user: Go
    assistant: a write({"say":"a done"}) | b write({"say":"b done"}) | c write({"say":"c done"})
    tool: a ok: a done
    tool: b ok: b done
    tool: c ok: c done
    "#);

    let mut sim = three_calls();
    sim.config.result_cacher = Some(Arc::new(Stage));
    left_by_panic("cannot cache", &sim).await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_is_polled_on_ends_without_running_the_calls() {
    let mut sim = three_calls();
    sim.config.stop_when = Some(Arc::new(|_| panic!("once")));
    let mut stream = sim.stream();
    let mut events = Vec::new();
    let mut panics = 0;
    loop {
        match AssertUnwindSafe(stream.next()).catch_unwind().await {
            Ok(Some(event)) => events.push(super::support::one_event(&event.unwrap())),
            Ok(None) => break,
            Err(_) => panics += 1,
        }
    }
    assert_eq!(panics, 1);
    let done = events.pop().unwrap();
    assert!(done.contains(r#"StopCondition { reason: Some("a callback panicked") }"#), "{done}");
    assert!(sim.ledger.lines().is_empty());
}

#[tokio::test(start_paused = true)]
async fn out_of_tool_loop() {
    let mut sim = three_calls();
    sim.config.stop_when = Some(Arc::new(|_| panic!("out")));
    let run = tool_loop(&*sim.model, &sim.tools, sim.params.clone(), sim.config.clone(), &());
    let panic = AssertUnwindSafe(run).catch_unwind().await.unwrap_err();
    assert_eq!(panic.downcast_ref(), Some(&"out"));
    assert!(sim.ledger.lines().is_empty());
}

#[tokio::test(start_paused = true)]
async fn in_a_tool_it_is_a_result() {
    let mut sim = Sim::new([
        reply([
            call("a", "read", json!({"ms": 5, "panic": "deep inside"})),
            call("b", "abrupt", json!({})),
            call("c", "odd", json!({})),
            call("d", "read", json!({})),
            call("e", "unsure", json!({})),
        ]),
        says("done"),
    ]);
    let retry_if: RetryPredicate = Arc::new(|error| panic!("is {error} worth it?"));
    let retry = ToolRetryConfig { retry_if: Some(retry_if), ..ToolRetryConfig::default() };
    let unsure = ToolDefinition { retry: Some(retry), ..act("unsure", &sim.ledger).definition };
    sim.tools.register(tool_fn(unsure, |_| async { Err::<&str, _>(ToolError::new("this")) }));
    let abrupt = |_| -> std::future::Ready<Result<&str, ToolError>> { panic!("before {}", "it") };
    sim.tools.register(tool_fn(act("abrupt", &sim.ledger).definition, abrupt));
    sim.tools.register(tool_fn(act("odd", &sim.ledger).definition, |_| async {
        std::panic::panic_any(7);
        #[allow(unreachable_code)]
        Ok("never")
    }));
    let told = sim.run().await;
    assert_snapshot!(told.transcript(), @r#"
    user: Go
    assistant: a read({"ms":5,"panic":"deep inside"}) | b abrupt({}) | c odd({}) | d read({}) | e unsure({})
    tool: a failed: Tool 'read' panicked: deep inside
    tool: b failed: Tool 'abrupt' panicked: before it
    tool: c failed: Tool 'odd' panicked: no message
    tool: d ok: d ran
    tool: e failed: Tool 'unsure' panicked: is this worth it?
    assistant: done
    "#);
}

fn three_calls() -> Sim {
    Sim::new([
        reply(["a", "b", "c"].map(|id| call(id, "write", json!({"say": format!("{id} done")})))),
        says("done"),
    ])
}

/// Runs into the panic by way of a handle; the conversation the handle has then and at the end.
async fn left_by_panic(words: &str, sim: &Sim) -> String {
    let mut handle = sim.handle();
    let panic = AssertUnwindSafe(handle.next_turn()).catch_unwind().await.unwrap_err();
    assert_eq!(panic.downcast_ref(), Some(&words));
    let messages = handle.messages();
    assert!(toolloop_core::transcript::keeps_grammar(&messages));
    let started = sim.ledger.lines();
    let then = transcript(&messages);
    match handle.next_turn().await {
        TurnResult::Completed(completed) => {
            let end = transcript(&handle.messages());
            assert_eq!(sim.ledger.lines().len(), started.len(), "a tool was started afterwards");
            format!("{then}\n-- {:?}\n{end}", completed.termination_reason)
        }
        other => panic!("{other:?}"),
    }
}
