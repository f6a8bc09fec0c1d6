//! Wherever a run ends, its conversation is one that the next request may carry, and says of each
//! call what really became of it.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use serde_json::json;
use tokio::time::{Instant, timeout};
use toolloop::provider::BoxFuture;
use toolloop::tool::{
    CancellationToken, ExtractedResult, LoopAction, LoopDetectionConfig, ObservationMaskingConfig,
    ToolApproval, ToolLoopConfig, ToolLoopHandle, ToolResultExtractor, TurnResult,
};
use toolloop::{ChatMessage, LlmError, LoopEvent, StopReason, StreamEvent, TerminationReason};
use toolloop_core::transcript::keeps_grammar;

use super::support::{Ledger, Sim, call, reply, reply_ending, says, text, thought, transcript};

#[tokio::test(start_paused = true)]
async fn cancelled_at_any_event() {
    let events = rich().run().await.moments.len();
    for position in 0..events {
        let mut sim = rich();
        let cancel = CancellationToken::new();
        sim.config.cancel = Some(cancel.clone());
        let mut seen = 0;
        let told = sim
            .run_watched(|_| {
                if seen == position {
                    cancel.cancel();
                }
                seen += 1;
            })
            .await;
        check(&told.result().messages, &told.ledger, &format!("cancelled at event {position}"));
        goes_on(&told.result().messages).await;
    }
}

#[tokio::test(start_paused = true)]
async fn cut_by_the_clock_at_any_millisecond() {
    for limit in every_moment().await {
        let mut sim = rich();
        sim.config.timeout = Some(limit);
        let told = sim.run().await;
        let result = told.result();
        assert_eq!(result.termination_reason, TerminationReason::Timeout { limit });
        check(&result.messages, &told.ledger, &format!("{limit:?}"));
        goes_on(&result.messages).await;
    }
}

#[tokio::test(start_paused = true)]
async fn dropped_at_any_millisecond() {
    for moment in every_moment().await {
        let sim = rich();
        let mut handle = sim.handle();
        assert!(timeout(moment, to_the_end(&mut handle)).await.is_err());
        let messages = handle.messages();
        drop(handle);
        check(&messages, &sim.ledger, &format!("dropped after {moment:?}"));
        goes_on(&messages).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_dropped_turn_loses_nothing() {
    let whole = rich().run().await;
    for moment in every_moment().await {
        let sim = rich();
        let mut handle = sim.handle();
        assert!(timeout(moment, to_the_end(&mut handle)).await.is_err());
        to_the_end(&mut handle).await.unwrap();
        assert_eq!(transcript(&handle.messages()), whole.transcript(), "{moment:?}");
        assert_eq!(handle.total_usage(), &whole.result().total_usage);
    }
}

#[tokio::test(start_paused = true)]
async fn stopped_at_any_reply() {
    let iterations = rich().run().await.result().iterations;
    for last in 1..=iterations {
        let mut sim = rich();
        sim.config.stop_when = Some(Arc::new(move |context| match context.iteration == last {
            true => toolloop::tool::StopDecision::Stop,
            false => toolloop::tool::StopDecision::Continue,
        }));
        let told = sim.run().await;
        check(&told.result().messages, &told.ledger, &format!("stopped at reply {last}"));
        goes_on(&told.result().messages).await;
    }
}

#[tokio::test(start_paused = true)]
async fn broken_off_at_any_event_of_any_reply() {
    let script = script();
    for (broken, reply) in script.iter().enumerate() {
        for kept in 0..reply.len() {
            let mut replies = script[..=broken].to_vec();
            replies[broken].truncate(kept);
            let sim = around(replies);
            let mut handle = sim.handle();
            let error = to_the_end(&mut handle).await.unwrap_err();
            let case = format!("reply {broken} broke off after {kept} events");
            assert!(matches!(error, LlmError::StreamInterrupted { .. }), "{case}: {error}");
            let messages = handle.messages();
            check(&messages, &sim.ledger, &case);
            goes_on(&messages).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_dropped_at_any_event_leaves_no_tool_at_work() {
    let events = rich().run().await.moments.len();
    for position in 0..events {
        let sim = rich();
        let mut stream = sim.stream();
        for _ in 0..=position {
            assert!(!matches!(stream.next().await, Some(Ok(LoopEvent::Done(_)) | Err(_)) | None));
        }
        drop(stream);
        let lines = sim.ledger.lines().len();
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(sim.ledger.lines().len(), lines, "a tool went on after event {position}");
    }
}

/// Thought, text, calls that run, fail, are denied, unknown, cut, and repeat themselves.
fn script() -> Vec<Vec<StreamEvent>> {
    let again = |id: &str| reply([call(id, "read", json!({"ms": 3}))]);
    vec![
        reply([
            thought("First a, then the rest."),
            text("Let me "),
            text("look."),
            call("a", "read", json!({"ms": 20, "progress": ["reading"]})),
            call("b", "write", json!({"ms": 40})),
            call("x", "nothing", json!({})),
            call("denied", "write", json!({})),
        ]),
        reply([
            StreamEvent::ToolCallStart { index: 0, id: "c".into(), name: "write".into() },
            StreamEvent::ToolCallDelta { index: 0, json_chunk: "{\"ms\":".into() },
            StreamEvent::ToolCallDelta { index: 0, json_chunk: " 10}".into() },
            text("And more."),
            call("d", "read", json!({"fail": "no such file"})),
        ]),
        reply_ending(
            StopReason::MaxTokens,
            [
                call("e", "write", json!({"say": "x".repeat(4_000)})),
                StreamEvent::ToolCallStart { index: 1, id: "cut".into(), name: "write".into() },
                StreamEvent::ToolCallDelta { index: 1, json_chunk: "{\"say".into() },
            ],
        ),
        again("f"),
        again("g"),
        reply([]),
        says("All done."),
    ]
}

fn rich() -> Sim {
    around(script())
}

fn around(replies: Vec<Vec<StreamEvent>>) -> Sim {
    let mut sim = Sim::new(replies).pace(Duration::from_millis(1)).config(ToolLoopConfig {
        loop_detection: Some(LoopDetectionConfig {
            threshold: 2,
            action: LoopAction::InjectWarning,
        }),
        masking: Some(ObservationMaskingConfig {
            max_iterations_to_keep: 1,
            ..ObservationMaskingConfig::default()
        }),
        result_extractor: Some(Arc::new(Brackets)),
        on_approval: Some(Arc::new(|call| {
            Box::pin(async move {
                tokio::time::sleep(Duration::from_millis(5)).await;
                match call.id.as_str() {
                    "denied" => ToolApproval::Deny("not this".into()),
                    _ => ToolApproval::Approve,
                }
            })
        })),
        ..ToolLoopConfig::default()
    });
    sim.params.messages.insert(0, ChatMessage::system("Be brief."));
    sim
}

/// A pipeline that takes its time.
struct Brackets;

impl ToolResultExtractor for Brackets {
    fn extract<'a>(
        &'a self,
        _: &'a str,
        output: &'a str,
        _: &'a str,
    ) -> BoxFuture<'a, Option<ExtractedResult>> {
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(4)).await;
            let content = format!("[{output}]");
            Some(ExtractedResult { content, original_tokens_est: 0, extracted_tokens_est: 0 })
        })
    }

    fn extraction_threshold(&self) -> u32 {
        0
    }
}

/// Each millisecond of the whole run but its last.
async fn every_moment() -> impl Iterator<Item = Duration> {
    let started = Instant::now();
    to_the_end(&mut rich().handle()).await.unwrap();
    let took = u64::try_from(started.elapsed().as_millis()).unwrap();
    assert!(took > 100, "{took} ms");
    (0..took).map(Duration::from_millis)
}

async fn to_the_end(handle: &mut ToolLoopHandle) -> Result<(), LlmError> {
    loop {
        match handle.next_turn().await {
            TurnResult::Yielded(turn) => turn.continue_loop(),
            TurnResult::Completed(_) => return Ok(()),
            TurnResult::Error(failed) => return Err(failed.error),
        }
    }
}

/// The grammar holds, and each result tells what the ledger knows of its call.
fn check(messages: &[ChatMessage], ledger: &Ledger, case: &str) {
    let shown = || format!("{case}\n{}\n{}", transcript(messages), ledger.lines().join("\n"));
    assert!(keeps_grammar(messages), "{}", shown());
    let results: Vec<_> = messages.iter().flat_map(ChatMessage::tool_results).collect();
    for result in &results {
        let id = result.tool_call_id.as_str();
        let said = result.content.as_str();
        let is_true = match ledger.fate(id).as_deref() {
            Some("finished") => {
                let real = if id == "e" { "x".repeat(4_000) } else { format!("{id} ran") };
                !result.is_error && (said == real || said == format!("[{real}]"))
            }
            Some("failed") => result.is_error && said == "no such file",
            Some("cut") => result.is_error && said.starts_with("This call was cut off while it"),
            None => {
                let refusal = match id {
                    "x" => "Unknown tool 'nothing'.",
                    "denied" => "This call was denied: not this",
                    "cut" => "The reply reached its limit of output tokens",
                    _ => "This call was not run",
                };
                let not_run = said.starts_with("This call was not run");
                result.is_error && (not_run || said.starts_with(refusal))
            }
            Some(other) => panic!("{id} {other}\n{}", shown()),
        };
        assert!(is_true, "{id}\n{}", shown());
    }
    for line in ledger.lines() {
        let id = line.split(' ').nth(1).unwrap();
        assert!(results.iter().any(|result| result.tool_call_id == id), "{id}\n{}", shown());
    }
}

/// A new run takes the conversation as it is and answers.
async fn goes_on(messages: &[ChatMessage]) {
    let mut sim = Sim::new([says("Going on.")]);
    sim.params.messages = messages.to_vec();
    sim.params.messages.push(ChatMessage::user("Go on"));
    let sent = sim.params.messages.clone();
    let told = sim.run().await;
    assert_eq!(told.result().termination_reason, TerminationReason::Complete);
    assert_eq!(told.model.recorded_calls()[0].messages, sent);
}
