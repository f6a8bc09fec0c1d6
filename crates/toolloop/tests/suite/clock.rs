//! `timeout`: the wall clock of a loop cuts whatever hangs, within 50 ms of the limit.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use futures_util::stream;
use insta::assert_snapshot;
use serde_json::json;
use toolloop::mock::MockProvider;
use toolloop::tool::{
    ExtractedResult, ToolApproval, ToolLoopConfig, ToolRegistry, ToolResultExtractor, tool_loop,
};
use toolloop::{
    ChatParams, ChatResponse, ChatStream, LlmError, Provider, ProviderMetadata, StreamEvent,
    TerminationReason,
};

use super::support::{Mute, Sim, Told, call, reply, says, text};

const LIMIT: Duration = Duration::from_millis(300);

#[tokio::test(start_paused = true)]
async fn a_hung_stream_is_cut_and_its_text_is_kept() {
    let sim = limited([]);
    sim.model.queue_hanging_stream(vec![
        text("Let me "),
        text("see"),
        call("a", "read", json!({})),
    ]);
    let told = in_time(sim).await;
    assert_snapshot!(told.timed_story(), @r#"
      0 iteration 1, messages 1
      0 text "Let me "
      0 text "see"
      0 call 0: a read({})
    300 usage ~116 in · ~3 out
        done: Timeout { limit: 300ms }, iterations 1, ~116 in · ~3 out
    "#);
    assert_snapshot!(told.transcript(), @r"
    user: Go
    assistant: Let me see
    ");
    assert_eq!(told.result().response.text(), Some("Let me see"));
    assert!(told.ledger.lines().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_answers_is_given_up() {
    let mut sim = limited([]);
    sim.other_model = Some(Arc::new(Mute));
    let told = in_time(sim).await;
    assert_snapshot!(told.timed_story(), @r"
      0 iteration 1, messages 1
    300 usage ~116 in · ~0 out
        done: Timeout { limit: 300ms }, iterations 1, ~116 in · ~0 out
    ");
    assert_snapshot!(told.transcript(), @"user: Go");
}

#[tokio::test(start_paused = true)]
async fn a_person_who_does_not_answer_is_not_waited_for() {
    let mut sim = limited([reply([call("a", "read", json!({}))])]);
    sim.config.on_approval = Some(Arc::new(|_| Box::pin(std::future::pending())));
    let told = in_time(sim).await;
    assert_snapshot!(told.transcript(), @r"
    user: Go
    assistant: a read({})
    tool: a failed: This call was not run: the run reached its time limit of 300ms.
    ");
    assert!(told.ledger.lines().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_hung_tool_is_cut_and_what_finished_is_kept() {
    let told = in_time(limited([reply([
        call("a", "read", json!({"ms": 299})),
        call("b", "write", json!({"hang": true})),
    ])]))
    .await;
    assert_snapshot!(told.timed_story(), @r#"
      0 iteration 1, messages 1
      0 call 0: a read({"ms":299})
      0 call 1: b write({"hang":true})
      0 usage 10 in · 1 out
      0 start a read({"ms":299})
      0 start b write({"hang":true})
    299 end a ok: a ran in 299ms
    300 end b failed: This call was cut off while it ran: the run reached its time limit of 300ms. It may have taken effect in part; check before repeating it. in 300ms
        done: Timeout { limit: 300ms }, iterations 1, 10 in · 1 out
    "#);
    assert_snapshot!(told.transcript(), @r#"
    user: Go
    assistant: a read({"ms":299}) | b write({"hang":true})
    tool: a ok: a ran
    tool: b failed: This call was cut off while it ran: the run reached its time limit of 300ms. It may have taken effect in part; check before repeating it.
    "#);
    assert_snapshot!(told.ledger.lines().join("\n"), @r"
    0 a started
    0 b started
    299 a finished
    300 b cut
    ");
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_waits_for_its_turn_is_said_not_to_have_run() {
    let mut sim =
        limited([reply([call("a", "read", json!({"hang": true})), call("b", "write", json!({}))])]);
    sim.config.parallel_tool_execution = false;
    assert_snapshot!(in_time(sim).await.transcript(), @r#"
    user: Go
    assistant: a read({"hang":true}) | b write({})
    tool: a failed: This call was cut off while it ran: the run reached its time limit of 300ms. It may have taken effect in part; check before repeating it.
    tool: b failed: This call was not run: the run reached its time limit of 300ms.
    "#);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_could_begin_as_time_is_up_does_not() {
    let mut asked = limited([reply([call("a", "write", json!({}))])]);
    asked.config.on_approval = Some(Arc::new(|_| {
        Box::pin(async {
            tokio::time::sleep(LIMIT).await;
            ToolApproval::Approve
        })
    }));
    let told = in_time(asked).await;
    assert_eq!(told.ledger.lines(), [""; 0]);
    assert_snapshot!(told.transcript(), @r"
    user: Go
    assistant: a write({})
    tool: a failed: This call was not run: the run reached its time limit of 300ms.
    ");

    let ms = u64::try_from(LIMIT.as_millis()).unwrap();
    let calls = [call("a", "write", json!({ "ms": ms })), call("b", "write", json!({}))];
    let mut in_turn = limited([reply(calls)]);
    in_turn.config.parallel_tool_execution = false;
    let told = in_time(in_turn).await;
    assert_eq!(told.ledger.fate("b"), None);
    assert_snapshot!(told.transcript(), @r#"
    user: Go
    assistant: a write({"ms":300}) | b write({})
    tool: a ok: a ran
    tool: b failed: This call was not run: the run reached its time limit of 300ms.
    "#);
}

#[tokio::test(start_paused = true)]
async fn a_hung_pipeline_leaves_the_tools_own_result() {
    struct Hung;
    impl ToolResultExtractor for Hung {
        fn extract<'a>(
            &'a self,
            _: &'a str,
            _: &'a str,
            _: &'a str,
        ) -> toolloop::provider::BoxFuture<'a, Option<ExtractedResult>> {
            Box::pin(std::future::pending())
        }
        fn extraction_threshold(&self) -> u32 {
            0
        }
    }
    let mut sim = limited([reply([call("a", "read", json!({"say": "whole"}))])]);
    sim.config.result_extractor = Some(Arc::new(Hung));
    assert_snapshot!(in_time(sim).await.transcript(), @r#"
    user: Go
    assistant: a read({"say":"whole"})
    tool: a ok: whole
    "#);
}

#[tokio::test(start_paused = true)]
async fn the_clock_is_that_of_the_whole_loop() {
    let told = in_time(limited([
        reply([call("a", "read", json!({"ms": 200}))]),
        reply([call("b", "read", json!({"ms": 200}))]),
    ]))
    .await;
    assert_snapshot!(told.timed_story(), @r#"
      0 iteration 1, messages 1
      0 call 0: a read({"ms":200})
      0 usage 10 in · 1 out
      0 start a read({"ms":200})
    200 end a ok: a ran in 200ms
    200 iteration 2, messages 3
    200 call 0: b read({"ms":200})
    200 usage 10 in · 1 out
    200 start b read({"ms":200})
    300 end b failed: This call was cut off while it ran: the run reached its time limit of 300ms. It may have taken effect in part; check before repeating it. in 100ms
        done: Timeout { limit: 300ms }, iterations 2, 20 in · 2 out
    "#);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_never_pauses_does_not_hide_the_clock() {
    let mut sim = limited([]);
    sim.other_model = Some(Arc::new(Torrent));
    let told = sim.run().await;
    assert_eq!(told.result().termination_reason, TerminationReason::Timeout { limit: LIMIT });
}

#[tokio::test(start_paused = true)]
async fn a_final_answer_is_under_the_same_clock() {
    let mut sim = limited([reply([call("a", "read", json!({"ms": 100}))])]);
    sim.config.max_iterations = 1;
    sim.config.final_answer = true;
    sim.model.queue_hanging_stream(vec![text("In short")]);
    let told = in_time(sim).await;
    assert_snapshot!(told.transcript(), @r#"
    user: Go
    assistant: a read({"ms":100})
    tool: a ok: a ran
    assistant: In short
    "#);
}

#[tokio::test(start_paused = true)]
async fn a_run_in_time_is_not_disturbed() {
    let told = limited([reply([call("a", "read", json!({"ms": 299}))]), says("done")]).run().await;
    assert_eq!(told.result().termination_reason, TerminationReason::Complete);
}

#[tokio::test(start_paused = true)]
async fn the_longest_duration_is_no_limit() {
    let mut sim = Sim::new([reply([call("a", "read", json!({"ms": 10}))]), says("done")]);
    sim.config.timeout = Some(Duration::MAX);
    assert_eq!(sim.run().await.result().termination_reason, TerminationReason::Complete);
}

#[tokio::test(start_paused = true)]
async fn tool_loop_keeps_the_same_clock() {
    let config = ToolLoopConfig { timeout: Some(LIMIT), ..ToolLoopConfig::default() };
    let started = tokio::time::Instant::now();
    let registry: ToolRegistry = ToolRegistry::new();
    let result = tool_loop(&Mute, &registry, ChatParams::default(), config, &()).await.unwrap();
    assert_eq!(result.termination_reason, TerminationReason::Timeout { limit: LIMIT });
    assert!(started.elapsed() < LIMIT + Duration::from_millis(50));
}

fn limited(replies: impl IntoIterator<Item = Vec<StreamEvent>>) -> Sim {
    let mut sim = Sim::new(replies);
    sim.config.timeout = Some(LIMIT);
    sim
}

/// Runs into the limit and not far beyond it.
async fn in_time(sim: Sim) -> Told {
    let told = sim.run().await;
    assert_eq!(told.result().termination_reason, TerminationReason::Timeout { limit: LIMIT });
    assert!(told.took >= LIMIT && told.took < LIMIT + Duration::from_millis(50), "{:?}", told.took);
    told
}

/// A model that talks on and on while hours pass, and never lets go of its thread.
struct Torrent;

impl Provider for Torrent {
    async fn generate(&self, _: &ChatParams) -> Result<ChatResponse, LlmError> {
        unreachable!("the loop streams")
    }

    async fn stream(&self, _: &ChatParams) -> Result<ChatStream, LlmError> {
        let words = (0..100_000).map(|_| {
            // Advances the clock at once; the yield it asks for is what this model never does.
            let mut passing = pin!(tokio::time::advance(Duration::from_secs(1)));
            let _ = passing.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            Ok(text("on and "))
        });
        Ok(Box::pin(stream::iter(words)))
    }

    fn metadata(&self) -> ProviderMetadata {
        Provider::metadata(&MockProvider::default())
    }
}
