//! `compaction`: what a request shows of a conversation that is too long for it.

use std::sync::Arc;
use std::time::Duration;

use insta::assert_snapshot;
use serde_json::json;
use toolloop::chat_loop::{ChatLoopConfig, LoopStep, chat_loop_with_tools};
use toolloop::context::request_tokens;
use toolloop::mock::MockProvider;
use toolloop::tool::{
    CancellationToken, CompactionConfig, CompactionMethod, ObservationMaskingConfig, ToolError,
    ToolLoopConfig, TurnResult, tool_fn, tool_loop,
};
use toolloop::{
    ChatLoopExt, ChatMessage, LlmError, LoopEvent, StopReason, StreamEvent, ToolCall, ToolResult,
};

use super::support::{Sim, Told, act, call, reply, reply_ending, requests, says, text, transcript};

#[tokio::test(start_paused = true)]
async fn a_request_that_is_too_long_shows_a_summary() {
    let told = summing([turn(1), turn(2), says("c1 was read"), says("done")]).run().await;
    // The summary is asked for as a text, by the loop's own model, between requests 2 and 3.
    assert_snapshot!(requests(&told.model), @r#"
    -- request 1
    user: Go
    -- request 2
    user: Go
    assistant: c1 read({"say… (4216 bytes)
    tool: c1 ok: long 1 lon… (4200 bytes)
    -- request 3
    user: task:
      Go… (8497 bytes)
    -- request 4
    user: Go
    user: Summary of the conversation up to here, in place of its messages:

    c1 was read
    assistant: c2 read({"say… (4216 bytes)
    tool: c2 ok: long 2 lon… (4200 bytes)
    "#);
    assert_eq!(news(&told), "Summary of 2: 4324 to 2240");
    // Nothing of the summary is shown as an answer, and its tokens count: 10 in and 1 out each.
    assert!(!told.story().contains("text \"c1 was read\""));
    assert_eq!(told.result().total_usage.to_string(), "40 in · 4 out");
}

#[tokio::test(start_paused = true)]
async fn the_conversation_keeps_what_was_summed_up() {
    let told = summing([turn(1), turn(2), says("c1 was read"), says("done")]).run().await;
    assert_snapshot!(told.transcript(), @r#"
    user: Go
    assistant: c1 read({"say… (4216 bytes)
    tool: c1 ok: long 1 lon… (4200 bytes)
    assistant: c2 read({"say… (4216 bytes)
    tool: c2 ok: long 2 lon… (4200 bytes)
    assistant: done
    "#);
}

#[tokio::test(start_paused = true)]
async fn a_summary_may_come_from_another_model() {
    let other = Arc::new(MockProvider::default());
    other.queue_text("c1 was read");
    let mut sim = summing([turn(1), turn(2), says("done")]);
    sim.config.compaction_model = Some(Arc::clone(&other) as _);
    let told = sim.run().await;
    assert_eq!(told.model.recorded_calls().len(), 3);
    let asked = other.recorded_calls();
    let [asked] = asked.as_slice() else { panic!("asked {} times", asked.len()) };
    assert!(asked.tools.is_none() && request_tokens(asked) <= THRESHOLD);
    assert!(transcript(&told.model.recorded_calls()[2].messages).contains("c1 was read"));
}

/// The threshold itself is not above the threshold.
#[tokio::test(start_paused = true)]
async fn a_request_at_the_threshold_is_left_alone() {
    let replies = || [turn(1), turn(2), says("a"), says("b")];
    let mut free = summing(replies());
    free.config.compaction = None;
    let told = free.run().await;
    let size = request_tokens(&told.model.recorded_calls()[2]);
    for (threshold, summaries) in [(size, 0), (size - 1, 1)] {
        let mut sim = summing(replies());
        sim.config.compaction = Some(CompactionConfig { threshold, ..config() });
        let told = sim.run().await;
        assert_eq!(compactions(&told).len(), summaries, "{threshold}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_summary_that_fails_is_replaced_by_truncation() {
    let (long, longer) = ("so much ".repeat(1_000), "so much ".repeat(1_100));
    let refusal = reply_ending(StopReason::Refusal, [text("I would rather not")]);
    let mut told = Vec::new();
    for bad in [says(""), says(&long), says(&longer), refusal, vec![text("half a")]] {
        let run = summing([turn(1), turn(2), bad, says("done")]).run().await;
        assert_eq!(run.result().response.text(), Some("done"));
        told.push(news(&run));
    }
    let sim = summing([turn(1), turn(2)]);
    sim.model.queue_error(LlmError::InvalidRequest("no such model".into()));
    sim.model.queue_text("done");
    let run = sim.run().await;
    told.push(news(&run));
    assert_snapshot!(told.join("\n"), @r"
    Truncation of 2: 4324 to 2233 (the summary was empty)
    Truncation of 2: 4324 to 2233 (the summary was too long for the request)
    Truncation of 2: 4324 to 2233 (the summary was no shorter than what it sums up)
    Truncation of 2: 4324 to 2233 (the model declined to sum up)
    Truncation of 2: 4324 to 2233 (the reply broke off: the stream ended without its end marker)
    Truncation of 2: 4324 to 2233 (invalid request: no such model)
    ");
    let sent = run.model.recorded_calls();
    assert_snapshot!(transcript(&sent[3].messages), @r#"
    user: Go
    user: (Messages up to here were left out to save room.)
    assistant: c2 read({"say… (4216 bytes)
    tool: c2 ok: long 2 lon… (4200 bytes)
    "#);
}

/// There is no second summary for one request, and no other while requests stay too long.
#[tokio::test(start_paused = true)]
async fn a_summary_that_leaves_too_much_is_followed_by_truncation() {
    let told = summing([huge(1), huge(2), says("c1 was read"), huge(3), huge(4), says("done")]);
    let told = told.run().await;
    assert_snapshot!(news(&told), @r"
    Summary of 2: 16124 to 8140
    Truncation of 2: 16144 to 8153
    Truncation of 2: 16157 to 8153
    ");
    let sent = told.model.recorded_calls();
    assert_snapshot!(transcript(&sent[5].messages), @r#"
    user: Go
    user: Summary of the conversation up to here, in place of its messages:

    c1 was read

    (Messages up to here were left out to save room.)
    assistant: c4 read({"say… (16016 bytes)
    tool: c4 ok: xxxxxxxxxx… (16000 bytes)
    "#);
}

#[tokio::test(start_paused = true)]
async fn summaries_come_back_once_a_request_is_short_enough() {
    let (one, two) = (says("c1 was read"), says("c3 was read"));
    let told = summing([turn(1), huge(2), one, turn(3), turn(4), two, says("done")]).run().await;
    assert_snapshot!(news(&told), @r"
    Summary of 2: 10224 to 8140
    Truncation of 2: 10244 to 2253
    Summary of 2: 4357 to 2240
    ");
}

#[tokio::test(start_paused = true)]
async fn truncation_leaves_one_line_however_often() {
    let mut sim = summing((1..=4).map(turn).chain([says("done")]));
    sim.config.compaction =
        Some(CompactionConfig { method: CompactionMethod::Truncation, ..config() });
    let told = sim.run().await;
    assert_snapshot!(news(&told), @r"
    Truncation of 2: 4324 to 2233
    Truncation of 2: 4337 to 2233
    Truncation of 2: 4337 to 2233
    ");
    let sent = told.model.recorded_calls();
    assert_snapshot!(transcript(&sent[4].messages), @r#"
    user: Go
    user: (Messages up to here were left out to save room.)
    assistant: c4 read({"say… (4216 bytes)
    tool: c4 ok: long 4 lon… (4200 bytes)
    "#);
}

#[tokio::test(start_paused = true)]
async fn a_second_summary_takes_the_first_in() {
    let replies = [turn(1), turn(2), says("first sum"), turn(3), says("second sum"), says("done")];
    let told = summing(replies).run().await;
    let sent = told.model.recorded_calls();
    let asked = transcript(&sent[4].messages);
    assert_eq!(sent[4].tools, None, "{asked}");
    let whole = format!("{:?}", sent[4].messages);
    assert!(whole.contains("first sum") && whole.contains("read({"), "{whole}");
    assert_snapshot!(transcript(&sent[5].messages), @r#"
    user: Go
    user: Summary of the conversation up to here, in place of its messages:

    second sum
    assistant: c3 read({"say… (4216 bytes)
    tool: c3 ok: long 3 lon… (4200 bytes)
    "#);
}

/// What a provider has in its prompt cache is worth nothing once the beginning changes.
#[tokio::test(start_paused = true)]
async fn between_two_compactions_the_beginning_stays_as_it_is() {
    let small = (3..6).map(|n| reply([call(&format!("c{n}"), "read", json!({}))]));
    let begin = [turn(1), turn(2), says("c1 was read")];
    let told = summing(begin.into_iter().chain(small).chain([says("done")])).run().await;
    assert_eq!(compactions(&told).len(), 1);
    let sent = told.model.recorded_calls();
    for pair in sent[3..].windows(2) {
        assert!(pair[1].messages.starts_with(&pair[0].messages));
    }
    assert_eq!(sent[3..].len(), 4);
}

/// A chat loop sums up as well, whoever runs its tools: by the model it is given, without a step
/// of it, and the conversation keeps everything.
#[tokio::test(start_paused = true)]
async fn chat_loops_sum_up() {
    let asked = || vec![ChatMessage::user("Go")];
    let short = |_: ToolCall| async { Ok::<_, String>("long ".repeat(800)) };
    for by_handle in [true, false] {
        let sim = summing([turn(1), turn(2), says("done")]);
        let sums_up = Arc::new(MockProvider::default());
        sums_up.queue_stream(says("c1 was read"));
        let (content, usage) = match by_handle {
            true => {
                let mut steps = sim
                    .model
                    .chat_loop(asked(), Vec::new())
                    .with_compaction(config())
                    .with_compaction_model(sums_up.clone());
                let mut said = String::new();
                loop {
                    match steps.next().await.unwrap().unwrap() {
                        LoopStep::Content(text) => said.push_str(&text),
                        LoopStep::ToolCallsRequested { tool_calls, .. } => {
                            let result = ToolResult {
                                tool_call_id: tool_calls[0].id.clone(),
                                content: "long ".repeat(800).into(),
                                is_error: false,
                            };
                            steps.submit_tool_results(vec![result]).unwrap();
                        }
                        LoopStep::Done { total_usage, .. } => {
                            assert_eq!(steps.messages().len(), 6);
                            break (said, total_usage);
                        }
                        _ => {}
                    }
                }
            }
            false => {
                let config = ChatLoopConfig::new()
                    .with_tool("read", short)
                    .with_compaction(config())
                    .with_compaction_model(sums_up.clone());
                let told = chat_loop_with_tools(&*sim.model, asked(), Vec::new(), config).await;
                told.map(|told| (told.content, told.usage)).unwrap()
            }
        };
        assert_eq!((content.as_str(), usage.to_string().as_str()), ("done", "40 in · 4 out"));
        assert_eq!(sums_up.recorded_calls().len(), 1);
        let sent = sim.model.recorded_calls();
        let last = transcript(&sent[2].messages);
        assert!(last.contains("c1 was read") && !last.contains("assistant: c1"), "{last}");
    }
}

/// What was hidden comes back when the caller changes something before it, and is then as it was.
#[tokio::test(start_paused = true)]
async fn what_is_masked_stays_masked_when_it_is_shown_again() {
    let replies = (1..=3).map(turn).chain([reply([call("c4", "read", json!({}))]), says("done")]);
    let mut sim = summing(replies);
    sim.config.masking =
        Some(ObservationMaskingConfig { max_iterations_to_keep: 1, min_tokens_to_mask: 10 });
    sim.config.compaction =
        Some(CompactionConfig { method: CompactionMethod::Truncation, ..config() });
    let mut handle = sim.handle();
    while let TurnResult::Yielded(mut turn) = handle.next_turn().await {
        if turn.iteration == 4 {
            let messages = turn.messages_mut();
            messages[0] = ChatMessage::user("Go on");
            drop(messages.drain(5..7));
        }
    }
    let sent = sim.model.recorded_calls();
    assert_snapshot!(transcript(&sent[3].messages), @r#"
    user: Go
    user: (Messages up to here were left out to save room.)
    assistant: c3 read({"say… (4216 bytes)
    tool: c3 ok: long 3 lon… (4200 bytes)
    "#);
    assert_snapshot!(transcript(&sent[4].messages), @r#"
    user: Go on
    assistant: c1 read({"say… (4216 bytes)
    tool: c1 ok: [Masked — read result from iteration 1, 1050 tokens. Use result_cache tool if available, or re-invoke tool.]
    assistant: c2 read({"say… (4216 bytes)
    tool: c2 ok: [Masked — read result from iteration 2, 1050 tokens. Use result_cache tool if available, or re-invoke tool.]
    assistant: c4 read({})
    tool: c4 ok: c4 ran
    "#);
}

/// Messages that came while the summary was made are in the request behind it.
#[tokio::test(start_paused = true)]
async fn what_is_said_meanwhile_goes_into_the_request() {
    let inbox = toolloop::tool::Inbox::new();
    let mut sim = summing([turn(1), turn(2), says("c1 was read"), says("done")]).pace(MS);
    sim.config.inbox = Some(inbox.clone());
    let mut results = 0;
    let told = sim
        .run_watched(|event| {
            results += u32::from(matches!(event, LoopEvent::ToolExecutionEnd { .. }));
            if results == 2 {
                inbox.send(ChatMessage::user("hurry"));
                results += 1;
            }
        })
        .await;
    let sent = told.model.recorded_calls();
    let last = transcript(&sent[3].messages);
    assert_eq!(last.lines().last(), Some("user: hurry"), "{last}");
}

#[tokio::test(start_paused = true)]
async fn cancelled_while_it_sums_up() {
    let cancel = CancellationToken::new();
    let mut sim = summing([turn(1), turn(2)]);
    sim.model.queue_hanging_stream(vec![text("c1 was")]);
    sim.config.cancel = Some(cancel.clone());
    let stop = async {
        tokio::time::sleep(MS).await;
        cancel.cancel();
    };
    let (told, ()) = tokio::join!(sim.run(), stop);
    let result = told.result();
    assert_eq!(
        format!("{:?}", result.termination_reason),
        "StopCondition { reason: Some(\"cancelled\") }"
    );
    // The half summary is nowhere, and its tokens are not passed over in silence.
    assert!(!told.story().contains("c1 was"), "{}", told.story());
    assert_eq!(result.messages.len(), 5);
    assert_ne!(result.total_usage.source, toolloop::UsageSource::Reported);
}

#[tokio::test(start_paused = true)]
async fn a_half_summary_is_no_part_of_the_conversation() {
    let sim = summing([turn(1), turn(2)]);
    sim.model.queue_hanging_stream(vec![text("c1 was")]);
    let mut handle = sim.handle();
    for _ in 0..2 {
        assert!(matches!(handle.next_turn().await, TurnResult::Yielded(_)));
    }
    let hangs = tokio::time::timeout(MS, handle.next_turn()).await;
    assert!(hangs.is_err(), "the summary does not come");
    assert_eq!(handle.messages().len(), 5);
}

/// The last call, with tools off, is shortened as well.
#[tokio::test(start_paused = true)]
async fn a_final_answer_is_asked_for_with_a_summary() {
    let mut sim = summing([turn(1), turn(2), says("c1 was read"), says("all I know")]);
    (sim.config.max_iterations, sim.config.final_answer) = (2, true);
    let told = sim.run().await;
    assert_eq!(told.result().response.text(), Some("all I know"));
    let sent = told.model.recorded_calls();
    assert!(transcript(&sent[3].messages).contains("c1 was read"));
}

/// What a summary costs in a loop inside a tool counts for the outer loop, once.
#[tokio::test(start_paused = true)]
async fn summaries_of_nested_loops_are_counted() {
    let inner = Arc::new(summing([turn(1), turn(2), says("c1 was read"), says("found")]));
    let mut outer = Sim::new([reply([call("n", "nested", json!({}))]), says("done")]);
    let definition = act("nested", &outer.ledger).definition;
    outer.tools.register(tool_fn(definition, move |_| {
        let inner = Arc::clone(&inner);
        async move {
            let (params, config) = (inner.params.clone(), inner.config.clone());
            let result = tool_loop(&*inner.provider(), &inner.tools, params, config, &()).await;
            let found = result.map_err(|error| ToolError::new(error.to_string()))?;
            Ok(found.response.text().unwrap_or_default().to_owned())
        }
    }));
    let told = outer.run().await;
    assert_eq!(told.result().messages[2], ChatMessage::tool_result("n", "found"));
    assert_eq!(told.result().total_usage.to_string(), "60 in · 6 out");
}

/// A turn of some 2,000 tokens, half of them in the call and half in its result.
fn turn(n: u32) -> Vec<StreamEvent> {
    reply([call(&format!("c{n}"), "read", json!({"say": format!("long {n} ").repeat(600)}))])
}

/// A turn that is too long for any request.
fn huge(n: u32) -> Vec<StreamEvent> {
    reply([call(&format!("c{n}"), "read", json!({"say": "x".repeat(16_000)}))])
}

fn config() -> CompactionConfig {
    CompactionConfig {
        threshold: THRESHOLD,
        target: 2_500,
        method: CompactionMethod::Summary,
        max_summary_tokens: 300,
    }
}

fn summing(replies: impl IntoIterator<Item = Vec<StreamEvent>>) -> Sim {
    Sim::new(replies)
        .config(ToolLoopConfig { compaction: Some(config()), ..ToolLoopConfig::default() })
}

fn compactions(told: &Told) -> Vec<String> {
    let is_news = |line: &&str| line.starts_with("Summary of") || line.starts_with("Truncation of");
    told.story().lines().filter(is_news).map(str::to_owned).collect()
}

fn news(told: &Told) -> String {
    compactions(told).join("\n")
}

const THRESHOLD: u32 = 4_000;
const MS: Duration = Duration::from_millis(1);
