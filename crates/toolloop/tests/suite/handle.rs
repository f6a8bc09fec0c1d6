//! `ToolLoopHandle`: a run that its caller takes forward turn by turn.

use std::sync::Arc;
use std::time::Duration;

use insta::assert_snapshot;
use serde_json::json;
use toolloop::mock::MockProvider;
use toolloop::tool::{
    CancellationToken, Inbox, ObservationMaskingConfig, ToolLoopConfig, ToolLoopHandle, TurnResult,
};
use toolloop::{
    ChatMessage, ChatParams, ChatRole, ContentBlock, LlmError, LoopEvent, StreamEvent,
    TerminationReason,
};
use toolloop_core::transcript::keeps_grammar;

use super::support::{Sim, call, one_event, reply, requests, says, text, transcript};

#[tokio::test(start_paused = true)]
async fn a_turn_shows_all_there_is_to_know() {
    let sim = two_turns();
    let mut handle = sim.handle();
    let TurnResult::Yielded(turn) = handle.next_turn().await else { panic!() };
    assert_eq!(turn.assistant_text().as_deref(), Some("Reading."));
    assert_eq!((turn.iteration, turn.total_usage.total()), (1, 11));
    let calls: Vec<_> = turn.tool_calls.iter().map(|call| call.id.as_str()).collect();
    assert_eq!(calls, ["a", "b"]);
    let results: Vec<_> = turn.results.iter().map(|result| result.content.as_str()).collect();
    assert_eq!(results, ["a ran", "no"]);
    assert_snapshot!(told(&turn.events), @r#"
    iteration 1, messages 1
    text "Reading."
    call 0: a read({})
    call 1: b read({"fail":"no"})
    usage 10 in · 1 out
    start a read({})
    start b read({"fail":"no"})
    end a ok: a ran
    end b failed: no
    "#);
    assert_snapshot!(transcript(&turn.messages()), @r#"
    user: Go
    assistant: Reading. | a read({}) | b read({"fail":"no"})
    tool: a ok: a ran
    tool: b failed: no
    "#);
    turn.continue_loop();

    // A turn that is dropped is continued as well.
    let TurnResult::Yielded(turn) = handle.next_turn().await else { panic!() };
    assert_eq!((turn.assistant_text(), turn.iteration), (None, 2));
    assert_snapshot!(told(&turn.events), @r"
    iteration 2, messages 4
    call 0: c write({})
    usage 10 in · 1 out
    start c write({})
    end c ok: c ran
    ");
    drop(turn);

    let TurnResult::Completed(done) = handle.next_turn().await else { panic!() };
    assert_eq!(done.response.text(), Some("done"));
    assert_eq!(done.termination_reason, TerminationReason::Complete);
    assert_eq!((done.iterations, done.total_usage.total()), (3, 33));
    assert_snapshot!(told(&done.events), @r#"
    iteration 3, messages 6
    text "done"
    usage 10 in · 1 out
    "#);
    assert!(handle.is_finished());

    // Asked again, it says the same, without events.
    let TurnResult::Completed(again) = handle.next_turn().await else { panic!() };
    assert_eq!((again.response, again.events), (done.response, vec![]));
    assert_eq!(transcript(&handle.messages()), transcript(&handle.into_result().unwrap().messages));
}

#[tokio::test(start_paused = true)]
async fn messages_can_be_put_in_before_the_next_call() {
    let sim = two_turns();
    let mut handle = sim.handle();
    let TurnResult::Yielded(turn) = handle.next_turn().await else { panic!() };
    turn.inject_and_continue(vec![
        ChatMessage::user("Hurry up"),
        ChatMessage::user(""),
        ChatMessage::system("He means it."),
    ]);
    let then = transcript(&handle.messages());
    assert!(keeps_grammar(&handle.messages()), "{then}");
    let TurnResult::Yielded(turn) = handle.next_turn().await else { panic!() };
    drop(turn);
    assert_eq!(transcript(&sim.model.recorded_calls()[1].messages), then);
    assert_snapshot!(then, @r#"
    user: Go
    assistant: Reading. | a read({}) | b read({"fail":"no"})
    tool: a ok: a ran
    tool: b failed: no
    user: Hurry up
    system: He means it.
    "#);
}

#[tokio::test(start_paused = true)]
async fn the_conversation_can_be_edited() {
    let sim = two_turns();
    let mut handle = sim.handle();
    let TurnResult::Yielded(mut turn) = handle.next_turn().await else { panic!() };
    turn.messages_mut()[0] = ChatMessage::user("Go, but slowly");
    turn.messages_mut().push(ChatMessage::user("Now?"));
    turn.inject_and_continue(vec![ChatMessage::user("Yes, now")]);
    to_the_end(&mut handle).await.unwrap();
    assert_snapshot!(requests(&sim.model), @r#"
    -- request 1
    user: Go
    -- request 2
    user: Go, but slowly
    assistant: Reading. | a read({}) | b read({"fail":"no"})
    tool: a ok: a ran
    tool: b failed: no
    user: Now?
    user: Yes, now
    -- request 3
    user: Go, but slowly
    assistant: Reading. | a read({}) | b read({"fail":"no"})
    tool: a ok: a ran
    tool: b failed: no
    user: Now?
    user: Yes, now
    assistant: c write({})
    tool: c ok: c ran
    "#);
}

#[tokio::test(start_paused = true)]
async fn an_edit_that_no_provider_would_take_is_repaired() {
    let sim = two_turns();
    let mut handle = sim.handle();
    let TurnResult::Yielded(mut turn) = handle.next_turn().await else { panic!() };
    // One result is gone, another has no call, a message is empty.
    turn.messages_mut().remove(2);
    turn.messages_mut().push(ChatMessage::tool_result("who?", "an answer"));
    turn.messages_mut().push(ChatMessage::user(""));
    turn.continue_loop();
    let then = handle.messages();
    assert!(keeps_grammar(&then), "{}", transcript(&then));
    to_the_end(&mut handle).await.unwrap();
    assert_eq!(sim.model.recorded_calls()[1].messages, then);
    assert_snapshot!(transcript(&then), @r#"
    user: Go
    assistant: Reading. | a read({}) | b read({"fail":"no"})
    tool: a failed: No outcome of this call was recorded. It may have run; check before repeating it.
    tool: b failed: no
    user: Result of an earlier tool call:
    an answer
    "#);
}

#[tokio::test(start_paused = true)]
async fn a_shortened_conversation_goes_on_with_fresh_ids() {
    let mut sim = two_turns();
    sim.model = Arc::new(MockProvider::default());
    for _ in 0..3 {
        sim.model.queue_stream(reply([call("a", "read", json!({}))]));
    }
    sim.model.queue_stream(says("done"));
    let mut handle = sim.handle();
    for _ in 0..2 {
        let TurnResult::Yielded(turn) = handle.next_turn().await else { panic!() };
        drop(turn);
    }
    let TurnResult::Yielded(mut turn) = handle.next_turn().await else { panic!() };
    turn.messages_mut().drain(1..5);
    drop(turn);
    to_the_end(&mut handle).await.unwrap();
    assert_snapshot!(requests(&sim.model), @r"
    -- request 1
    user: Go
    -- request 2
    user: Go
    assistant: a read({})
    tool: a ok: a ran
    -- request 3
    user: Go
    assistant: a read({})
    tool: a ok: a ran
    assistant: a_2 read({})
    tool: a_2 ok: a_2 ran
    -- request 4
    user: Go
    assistant: a_3 read({})
    tool: a_3 ok: a_3 ran
    ");
}

#[tokio::test(start_paused = true)]
async fn an_edit_of_a_masked_result_is_what_the_model_sees() {
    let long = |id: &str| call(id, "read", json!({"say": format!("{id} ").repeat(1_500)}));
    let mut sim = Sim::new([
        reply([long("a"), long("b")]),
        reply([call("c", "read", json!({}))]),
        reply([call("d", "read", json!({}))]),
        says("done"),
    ]);
    sim.config.masking =
        Some(ObservationMaskingConfig { max_iterations_to_keep: 0, ..Default::default() });
    let mut handle = sim.handle();
    let TurnResult::Yielded(turn) = handle.next_turn().await else { panic!() };
    turn.continue_loop();
    let TurnResult::Yielded(mut turn) = handle.next_turn().await else { panic!() };
    // The caller sees the whole results, never the masks.
    let messages = turn.messages_mut();
    assert_eq!(messages[2].tool_results().next().unwrap().content, "a ".repeat(1_500));
    messages[2] = ChatMessage::tool_result("a", "in short: a");
    turn.continue_loop();
    to_the_end(&mut handle).await.unwrap();
    assert_snapshot!(transcript(&sim.model.recorded_calls()[2].messages), @r#"
    user: Go
    assistant: a read({"say… (3016 bytes) | b read({"say… (3016 bytes)
    tool: a ok: in short: a
    tool: b ok: [Masked — read result from iteration 1, 750 tokens. Use result_cache tool if available, or re-invoke tool.]
    assistant: c read({})
    tool: c ok: c ran
    "#);
    assert_snapshot!(transcript(&handle.messages()), @r#"
    user: Go
    assistant: a read({"say… (3016 bytes) | b read({"say… (3016 bytes)
    tool: a ok: in short: a
    tool: b ok: b b b b b … (3000 bytes)
    assistant: c read({})
    tool: c ok: c ran
    assistant: d read({})
    tool: d ok: d ran
    assistant: done
    "#);
}

#[tokio::test(start_paused = true)]
async fn results_grow_old_after_an_edit_as_before() {
    let long = json!({"say": "x".repeat(2004)});
    let mut sim = Sim::new([
        reply([call("a", "read", long)]),
        reply([call("b", "read", json!({}))]),
        says("done"),
    ]);
    let keep_one = ObservationMaskingConfig { max_iterations_to_keep: 1, ..Default::default() };
    sim.config.masking = Some(keep_one);
    let mut handle = sim.handle();
    let TurnResult::Yielded(mut turn) = handle.next_turn().await else { panic!() };
    turn.messages_mut().insert(0, ChatMessage::user("Before"));
    turn.continue_loop();
    to_the_end(&mut handle).await.unwrap();
    let masks = |request: &ChatParams| transcript(&request.messages).matches("[Masked").count();
    let requests = sim.model.recorded_calls();
    assert_eq!(requests.iter().map(masks).collect::<Vec<_>>(), [0, 0, 1]);
    assert_eq!(transcript(&handle.messages()).matches("[Masked").count(), 0);
}

#[tokio::test(start_paused = true)]
async fn the_last_reply_stays_known_though_it_is_edited_away() {
    let cancel = CancellationToken::new();
    let mut sim = Sim::new([reply([text("Let me see."), call("a", "read", json!({}))])]);
    sim.config.cancel = Some(cancel.clone());
    let mut handle = sim.handle();
    let TurnResult::Yielded(mut turn) = handle.next_turn().await else { panic!() };
    turn.messages_mut().truncate(1);
    cancel.cancel();
    let TurnResult::Completed(done) = handle.next_turn().await else { panic!() };
    assert_eq!(done.response.text(), Some("Let me see."));
    assert_eq!(handle.messages(), [ChatMessage::user("Go")]);
}

/// What was sent while the tools ran is in the conversation that is edited, once.
#[tokio::test(start_paused = true)]
async fn an_edit_has_what_was_sent_meanwhile() {
    let inbox = Inbox::new();
    let mut sim = Sim::new([reply([call("a", "read", json!({}))]), says("done")]);
    sim.config.inbox = Some(inbox.clone());
    inbox.send(ChatMessage::user("Sent"));
    let mut handle = sim.handle();
    let TurnResult::Yielded(mut turn) = handle.next_turn().await else { panic!() };
    turn.messages_mut().push(ChatMessage::user("Edited"));
    turn.continue_loop();
    to_the_end(&mut handle).await.unwrap();
    assert_snapshot!(transcript(&handle.messages()), @r"
    user: Go
    assistant: a read({})
    tool: a ok: a ran
    user: Sent
    user: Edited
    assistant: done
    ");
}

#[tokio::test(start_paused = true)]
async fn a_run_can_be_stopped_between_turns() {
    let sim = two_turns();
    let mut handle = sim.handle();
    let TurnResult::Yielded(mut turn) = handle.next_turn().await else { panic!() };
    turn.messages_mut().push(ChatMessage::user("Enough."));
    turn.stop(Some("enough".into()));
    let TurnResult::Completed(done) = handle.next_turn().await else { panic!() };
    let enough = TerminationReason::StopCondition { reason: Some("enough".into()) };
    assert_eq!((done.termination_reason, done.iterations), (enough, 1));
    assert_eq!(done.response.text(), Some("Reading."));
    assert_snapshot!(transcript(&handle.messages()), @r#"
    user: Go
    assistant: Reading. | a read({}) | b read({"fail":"no"})
    tool: a ok: a ran
    tool: b failed: no
    user: Enough.
    "#);
    assert_eq!(sim.model.recorded_calls().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_last_allowed_turn_completes() {
    let mut sim = two_turns();
    sim.config.max_iterations = 2;
    let mut handle = sim.handle();
    let TurnResult::Yielded(turn) = handle.next_turn().await else { panic!() };
    turn.continue_loop();
    let TurnResult::Completed(done) = handle.next_turn().await else { panic!() };
    assert_eq!(done.termination_reason, TerminationReason::MaxIterations { limit: 2 });
    assert_eq!(done.response.tool_calls()[0].id, "c");
}

#[tokio::test(start_paused = true)]
async fn clock_and_cancel_are_seen_after_a_long_pause_between_turns() {
    let cancel = CancellationToken::new();
    let mut sim = two_turns();
    sim.config.cancel = Some(cancel.clone());
    let mut handle = sim.handle();
    assert!(matches!(handle.next_turn().await, TurnResult::Yielded(_)));
    cancel.cancel();
    let TurnResult::Completed(done) = handle.next_turn().await else { panic!() };
    let cancelled = TerminationReason::StopCondition { reason: Some("cancelled".into()) };
    assert_eq!(done.termination_reason, cancelled);
    assert_eq!(sim.model.recorded_calls().len(), 1);

    let limit = Duration::from_secs(1);
    let mut sim = two_turns();
    sim.config.timeout = Some(limit);
    let mut handle = sim.handle();
    assert!(matches!(handle.next_turn().await, TurnResult::Yielded(_)));
    tokio::time::sleep(Duration::from_secs(2)).await;
    let TurnResult::Completed(done) = handle.next_turn().await else { panic!() };
    assert_eq!(done.termination_reason, TerminationReason::Timeout { limit });
    assert_eq!(sim.model.recorded_calls().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_error_leaves_the_conversation_and_stays() {
    let sim = Sim::new([reply([call("a", "read", json!({}))])]);
    sim.model.queue_error(LlmError::Auth("expired".into()));
    let mut handle = sim.handle();
    assert!(matches!(handle.next_turn().await, TurnResult::Yielded(_)));
    for _ in 0..2 {
        let TurnResult::Error(failed) = handle.next_turn().await else { panic!() };
        assert!(matches!(failed.error, LlmError::Auth(_)));
        assert_eq!((failed.iterations, failed.total_usage.total()), (2, 11));
    }
    assert_snapshot!(transcript(&handle.messages()), @r"
    user: Go
    assistant: a read({})
    tool: a ok: a ran
    ");
    assert!(handle.into_result().is_err());
}

#[tokio::test(start_paused = true)]
async fn a_handle_can_be_moved_to_another_task() {
    let sim = two_turns();
    let mut handle = sim.handle();
    let task = tokio::spawn(async move {
        to_the_end(&mut handle).await.unwrap();
        handle.messages().len()
    });
    assert_eq!(task.await.unwrap(), 7);
}

#[tokio::test(start_paused = true)]
async fn a_conversation_handed_in_broken_is_repaired_before_it_is_sent() {
    let mut sim = Sim::new([says("done")]);
    let call = toolloop::ToolCall { id: "x".into(), name: "read".into(), arguments: json!({}) };
    let unanswered =
        ChatMessage { role: ChatRole::Assistant, content: vec![ContentBlock::ToolCall(call)] };
    sim.params.messages = vec![ChatMessage::user("Go"), unanswered, ChatMessage::user("And now?")];
    let mut handle = sim.handle();
    assert!(keeps_grammar(&handle.messages()));
    to_the_end(&mut handle).await.unwrap();
    assert_snapshot!(requests(&sim.model), @r"
    -- request 1
    user: Go
    assistant: x read({})
    tool: x failed: No outcome of this call was recorded. It may have run; check before repeating it.
    user: And now?
    ");
}

#[test]
fn a_handle_is_opened_at_an_allowed_depth() {
    use toolloop::tool::{LoopContext, LoopDepth, ToolRegistry};
    let handle = ToolLoopHandle::new(
        Arc::new(MockProvider::default()),
        Arc::new(ToolRegistry::new()),
        Default::default(),
        ToolLoopConfig::default(),
        Arc::new(LoopContext::empty().with_depth(3)),
    );
    assert!(matches!(handle, Err(LlmError::MaxDepthExceeded { current: 3, limit: 3 })));
}

fn two_turns() -> Sim {
    let first: [StreamEvent; 3] =
        [text("Reading."), call("a", "read", json!({})), call("b", "read", json!({"fail": "no"}))];
    Sim::new([reply(first), reply([call("c", "write", json!({}))]), says("done")])
}

fn told(events: &[LoopEvent]) -> String {
    events.iter().map(one_event).collect::<Vec<_>>().join("\n")
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
