//! What models and servers really send: stop reasons that lie, calls that are cut, unreadable
//! arguments, ids used twice, empty replies, streams without end.

use insta::assert_snapshot;
use serde_json::json;
use toolloop::tool::TurnResult;
use toolloop::{LlmError, LoopEvent, StopReason, StreamEvent, TerminationReason, Usage};

use super::support::{Sim, call, reply, reply_ending, requests, says, text, thought, transcript};

#[tokio::test(start_paused = true)]
async fn complete_calls_run_whatever_the_stop_reason() {
    for stop_reason in [
        StopReason::EndTurn,
        StopReason::ToolUse,
        StopReason::MaxTokens,
        StopReason::StopSequence,
        StopReason::Other,
    ] {
        let first = reply_ending(stop_reason, [call("a", "read", json!({}))]);
        let told = Sim::new([first, says("done")]).run().await;
        assert_eq!(told.ledger.lines(), ["0 a started", "0 a finished"], "{stop_reason}");
        assert_eq!(told.result().termination_reason, TerminationReason::Complete);
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_cut_by_the_output_limit_is_not_run_and_the_loop_goes_on() {
    let first = reply_ending(
        StopReason::MaxTokens,
        [
            text("Writing."),
            call("a", "read", json!({})),
            begins(1, "b", "write"),
            goes_on(1, r#"{"say": "a long te"#),
        ],
    );
    let told = Sim::new([first, says("In steps then.")]).run().await;
    assert_snapshot!(told.story(), @r#"
    iteration 1, messages 1
    text "Writing."
    call 0: a read({})
    call 1 begins: b write
    call 1 goes on: {"say": "a long te
    usage 10 in · 1 out
    refused b write: The reply reached its limit of output tokens (max_tokens) inside this call, so the call was not run. Make it again with shorter arguments, or in several steps.
    start a read({})
    end a ok: a ran
    iteration 2, messages 4
    text "In steps then."
    usage 10 in · 1 out
    done: Complete, iterations 2, 20 in · 2 out
    "#);
    assert_snapshot!(told.transcript(), @r#"
    user: Go
    assistant: Writing. | a read({}) | b write("{\"say\": \"a long te")
    tool: a ok: a ran
    tool: b failed: The reply reached its limit of output tokens (max_tokens) inside this call, so the call was not run. Make it again with shorter arguments, or in several steps.
    assistant: In steps then.
    "#);
}

#[tokio::test(start_paused = true)]
async fn a_reply_cut_in_its_text_is_an_answer() {
    let told = Sim::new([reply_ending(StopReason::MaxTokens, [text("So lo")])]).run().await;
    assert_snapshot!(told.story(), @r#"
    iteration 1, messages 1
    text "So lo"
    usage 10 in · 1 out
    done: Complete, iterations 1, 10 in · 1 out
    "#);
    assert_eq!(told.result().response.stop_reason, StopReason::MaxTokens);
}

#[tokio::test(start_paused = true)]
async fn a_stream_without_its_end_is_an_error_that_keeps_the_text() {
    let sim = Sim::new([vec![text("I shall"), call("a", "write", json!({}))]]);
    assert_snapshot!(failed(&sim).await, @r"
    error: the reply broke off: the stream ended without its end marker
    ~116 in · ~3 out
    user: Go
    assistant: I shall
    ");
    assert!(sim.ledger.lines().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_breaks_is_an_error_that_keeps_the_text() {
    let sim = Sim::new([reply([call("a", "read", json!({}))])]);
    let usage = Usage { input_tokens: 7, ..Usage::default() };
    let broken = || LlmError::StreamInterrupted { message: "connection reset".into() };
    sim.model.queue_stream_error(vec![text("Now "), StreamEvent::Usage(usage)], broken());
    assert_snapshot!(failed(&sim).await, @r"
    error: the reply broke off: connection reset
    17 in · 1 out
    user: Go
    assistant: a read({})
    tool: a ok: a ran
    assistant: Now
    ");
}

#[tokio::test(start_paused = true)]
async fn a_refused_request_costs_nothing_and_leaves_the_conversation() {
    let sim = Sim::new([reply([call("a", "read", json!({}))])]);
    sim.model.queue_error(LlmError::InvalidRequest("too long".into()));
    assert_snapshot!(failed(&sim).await, @r"
    error: invalid request: too long
    10 in · 1 out
    user: Go
    assistant: a read({})
    tool: a ok: a ran
    ");
}

#[tokio::test(start_paused = true)]
async fn arguments_of_a_call_that_never_began_are_an_error() {
    let sim = Sim::new([reply([text("Hm."), goes_on(4, "{}")])]);
    assert_snapshot!(failed(&sim).await, @r"
    error: unreadable answer: arguments came for call 4, which never began
    ~116 in · ~1 out
    user: Go
    assistant: Hm.
    ");
}

#[tokio::test(start_paused = true)]
async fn unreadable_arguments_go_back_to_the_model() {
    let told = Sim::new([
        reply_ending(
            StopReason::ToolUse,
            [
                begins(0, "a", "write"),
                goes_on(0, r#"{"say": "half"#),
                begins(1, "b", "write"),
                goes_on(1, r#"{say: 1}"#),
                begins(2, "c", "read"),
                begins(3, "d", "read"),
                goes_on(3, " "),
                begins(4, "e", "read"),
                goes_on(4, "\"text\""),
            ],
        ),
        says("done"),
    ])
    .run()
    .await;
    assert_snapshot!(told.story(), @r#"
    iteration 1, messages 1
    call 0 begins: a write
    call 0 goes on: {"say": "half
    call 1 begins: b write
    call 1 goes on: {say: 1}
    call 2 begins: c read
    call 3 begins: d read
    call 3 goes on:  
    call 4 begins: e read
    call 4 goes on: "text"
    usage 10 in · 1 out
    refused a write: The arguments are not readable as JSON: EOF while parsing a string at line 1 column 13. The call was not run. Call 'write' again with a JSON object that fits its schema.
    refused b write: The arguments are not readable as JSON: key must be a string at line 1 column 2. The call was not run. Call 'write' again with a JSON object that fits its schema.
    refused e read: The arguments are a JSON string, not an object. The call was not run. Call 'read' again with a JSON object that fits its schema.
    start c read({})
    start d read({})
    end c ok: c ran
    end d ok: d ran
    iteration 2, messages 7
    text "done"
    usage 10 in · 1 out
    done: Complete, iterations 2, 20 in · 2 out
    "#);
    assert_snapshot!(told.transcript(), @r#"
    user: Go
    assistant: a write("{\"say\": \"half") | b write("{say: 1}") | c read({}) | d read({}) | e read("\"text\"")
    tool: a failed: The arguments are not readable as JSON: EOF while parsing a string at line 1 column 13. The call was not run. Call 'write' again with a JSON object that fits its schema.
    tool: b failed: The arguments are not readable as JSON: key must be a string at line 1 column 2. The call was not run. Call 'write' again with a JSON object that fits its schema.
    tool: c ok: c ran
    tool: d ok: d ran
    tool: e failed: The arguments are a JSON string, not an object. The call was not run. Call 'read' again with a JSON object that fits its schema.
    assistant: done
    "#);
    let said = &told.result().messages[1].tool_calls().next().unwrap().arguments;
    assert_eq!(*said, json!("{\"say\": \"half"));
}

#[tokio::test(start_paused = true)]
async fn deep_brackets_neither_run_nor_break_anything() {
    let brackets = "[".repeat(200_000);
    let told = Sim::new([
        reply_ending(StopReason::ToolUse, [begins(0, "a", "write"), goes_on(0, &brackets)]),
        says("done"),
    ])
    .run()
    .await;
    assert_snapshot!(told.story(), @r#"
    iteration 1, messages 1
    call 0 begins: a write
    call 0 goes on: [[[[[[[[[[… (200000 bytes)
    usage 10 in · 1 out
    refused a write: The arguments are not readable as JSON: recursion limit exceeded at line 1 column 128. The call was not run. Call 'write' again with a JSON object that fits its schema.
    iteration 2, messages 3
    text "done"
    usage 10 in · 1 out
    done: Complete, iterations 2, 20 in · 2 out
    "#);
    let said = &told.result().messages[1].tool_calls().next().unwrap().arguments;
    assert_eq!(*said, json!(brackets));
}

#[tokio::test(start_paused = true)]
async fn what_is_wrong_with_large_arguments_is_said_in_short() {
    let told = Sim::new([
        reply([call("a", "write", json!({"ms": "x".repeat(200_000), "say": vec![7; 50_000]}))]),
        says("done"),
    ])
    .run()
    .await;
    let result = told.result().messages[2].tool_results().next().unwrap();
    assert!(result.content.len() < 2_000, "{} bytes", result.content.len());
    assert_snapshot!(told.transcript(), @r#"
    user: Go
    assistant: a write({"ms… (300024 bytes)
    tool: a failed: The arguments do not fit the schema of 'write': /ms: the value is not of type "integer"; /say: the value is not of type "string". The call was not run. Call 'write' again with a JSON object that fits its schema.
    assistant: done
    "#);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_tool_does_not_disturb_the_call_beside_it() {
    let told = Sim::new([
        reply([call("a", "delete_all", json!({})), call("b", "read", json!({}))]),
        says("done"),
    ])
    .run()
    .await;
    assert_snapshot!(told.story(), @r#"
    iteration 1, messages 1
    call 0: a delete_all({})
    call 1: b read({})
    usage 10 in · 1 out
    refused a delete_all: Unknown tool 'delete_all'. Available tools: read, write.
    start b read({})
    end b ok: b ran
    iteration 2, messages 4
    text "done"
    usage 10 in · 1 out
    done: Complete, iterations 2, 20 in · 2 out
    "#);
    assert_snapshot!(told.transcript(), @r"
    user: Go
    assistant: a delete_all({}) | b read({})
    tool: a failed: Unknown tool 'delete_all'. Available tools: read, write.
    tool: b ok: b ran
    assistant: done
    ");
}

#[tokio::test(start_paused = true)]
async fn a_model_without_tools_that_calls_one_is_told_so() {
    let mut sim = Sim::new([reply([call("a", "read", json!({}))]), says("done")]);
    sim.tools = sim.tools.only([]);
    let told = sim.run().await;
    assert_snapshot!(told.transcript(), @r"
    user: Go
    assistant: a read({})
    tool: a failed: Unknown tool 'read': no tools are available. Answer without one.
    assistant: done
    ");
    assert_eq!(told.model.recorded_calls()[0].tools, None);
}

#[tokio::test(start_paused = true)]
async fn ids_used_twice_are_renamed_everywhere() {
    let told = Sim::new([
        reply([call("a", "read", json!({"say": "1"})), call("a", "read", json!({"say": "2"}))]),
        reply_ending(
            StopReason::ToolUse,
            [
                begins(0, "a", "read"),
                goes_on(0, r#"{"say": "3"}"#),
                begins(1, "", "read"),
                goes_on(1, r#"{"say": "4"}"#),
            ],
        ),
        says("done"),
    ])
    .run()
    .await;
    assert_snapshot!(told.story(), @r#"
    iteration 1, messages 1
    call 0: a read({"say":"1"})
    call 1: a_2 read({"say":"2"})
    usage 10 in · 1 out
    start a read({"say":"1"})
    start a_2 read({"say":"2"})
    end a ok: 1
    end a_2 ok: 2
    iteration 2, messages 4
    call 0 begins: a_3 read
    call 0 goes on: {"say": "3"}
    call 1 begins: call_2_1 read
    call 1 goes on: {"say": "4"}
    usage 10 in · 1 out
    start a_3 read({"say":"3"})
    start call_2_1 read({"say":"4"})
    end a_3 ok: 3
    end call_2_1 ok: 4
    iteration 3, messages 7
    text "done"
    usage 10 in · 1 out
    done: Complete, iterations 3, 30 in · 3 out
    "#);
    assert_snapshot!(told.transcript(), @r#"
    user: Go
    assistant: a read({"say":"1"}) | a_2 read({"say":"2"})
    tool: a ok: 1
    tool: a_2 ok: 2
    assistant: a_3 read({"say":"3"}) | call_2_1 read({"say":"4"})
    tool: a_3 ok: 3
    tool: call_2_1 ok: 4
    assistant: done
    "#);
    assert_snapshot!(told.ledger.lines().join("\n"), @r"
    0 a started
    0 a finished
    0 a_2 started
    0 a_2 finished
    0 a_3 started
    0 a_3 finished
    0 call_2_1 started
    0 call_2_1 finished
    ");
}

#[tokio::test(start_paused = true)]
async fn an_empty_reply_after_results_is_asked_once_more() {
    let told = Sim::new([
        reply([call("a", "read", json!({}))]),
        reply([thought("Hm."), text(" \n")]),
        says("There."),
    ])
    .run()
    .await;
    assert_snapshot!(told.story(), @r#"
    iteration 1, messages 1
    call 0: a read({})
    usage 10 in · 1 out
    start a read({})
    end a ok: a ran
    iteration 2, messages 3
    thought "Hm."
    text " \n"
    usage 10 in · 1 out
    attempt 1 is void
    text "There."
    usage 10 in · 1 out
    done: Complete, iterations 2, 30 in · 3 out
    "#);
    assert_snapshot!(told.transcript(), @r"
    user: Go
    assistant: a read({})
    tool: a ok: a ran
    assistant: There.
    ");
    assert_snapshot!(requests(&told.model), @r"
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
    ");
}

#[tokio::test(start_paused = true)]
async fn a_second_empty_reply_is_an_error() {
    let sim = Sim::new([reply([call("a", "read", json!({}))]), reply([]), reply([])]);
    assert_snapshot!(failed(&sim).await, @r"
    error: the model gave an empty reply after the tool results, twice
    30 in · 3 out
    user: Go
    assistant: a read({})
    tool: a ok: a ran
    ");
}

#[tokio::test(start_paused = true)]
async fn an_empty_first_reply_is_taken_as_it_is() {
    let told = Sim::new([reply([])]).run().await;
    assert_snapshot!(told.story(), @r"
    iteration 1, messages 1
    usage 10 in · 1 out
    done: Complete, iterations 1, 10 in · 1 out
    ");
    assert_snapshot!(told.transcript(), @"user: Go");
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_no_ordinary_answer() {
    let told = Sim::new([
        reply([call("a", "read", json!({}))]),
        reply_ending(StopReason::Refusal, [text("I cannot help with that.")]),
    ])
    .run()
    .await;
    assert_snapshot!(told.story(), @r#"
    iteration 1, messages 1
    call 0: a read({})
    usage 10 in · 1 out
    start a read({})
    end a ok: a ran
    iteration 2, messages 3
    text "I cannot help with that."
    usage 10 in · 1 out
    done: StopCondition { reason: Some("refusal") }, iterations 2, 20 in · 2 out
    "#);
    assert_snapshot!(told.transcript(), @r"
    user: Go
    assistant: a read({})
    tool: a ok: a ran
    assistant: I cannot help with that.
    ");

    let told = Sim::new([reply_ending(StopReason::Refusal, [])]).run().await;
    assert_snapshot!(told.story(), @r#"
    iteration 1, messages 1
    usage 10 in · 1 out
    done: StopCondition { reason: Some("refusal") }, iterations 1, 10 in · 1 out
    "#);
}

#[tokio::test(start_paused = true)]
async fn what_came_before_a_new_attempt_is_void() {
    let usage = Usage { input_tokens: 3, ..Usage::default() };
    let told = Sim::new([
        reply([
            text("Wrong"),
            begins(0, "a", "write"),
            StreamEvent::Usage(usage),
            StreamEvent::AttemptDiscarded { attempt: 1 },
            text("Right"),
            call("a", "read", json!({})),
        ]),
        says("done"),
    ])
    .run()
    .await;
    assert_snapshot!(told.story(), @r#"
    iteration 1, messages 1
    text "Wrong"
    call 0 begins: a write
    attempt 1 is void
    text "Right"
    call 0: a read({})
    usage 13 in · 1 out
    start a read({})
    end a ok: a ran
    iteration 2, messages 3
    text "done"
    usage 10 in · 1 out
    done: Complete, iterations 2, 23 in · 2 out
    "#);
    assert_snapshot!(told.transcript(), @r"
    user: Go
    assistant: Right | a read({})
    tool: a ok: a ran
    assistant: done
    ");
}

#[tokio::test(start_paused = true)]
async fn text_and_arguments_in_the_smallest_chunks_arrive_exactly() {
    let answer = "Grüße — 漢字 🦀\r\n\tend ";
    let arguments = r#"{"say": "Grüße \u00e4 漢字 \"quoted\""}"#;
    let mut events = vec![begins(0, "a", "read")];
    events.extend(arguments.chars().map(|c| goes_on(0, &c.to_string())));
    let told = Sim::new([
        reply_ending(StopReason::ToolUse, events),
        reply(answer.chars().map(|c| text(&c.to_string()))),
    ])
    .run()
    .await;
    let shown: String = told
        .moments
        .iter()
        .filter_map(|moment| match &moment.event {
            LoopEvent::TextDelta(text) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(shown, answer);
    assert_eq!(told.result().response.text(), Some(answer));
    let result = told.result().messages[2].tool_results().next().unwrap();
    assert_eq!(result.content, "Grüße ä 漢字 \"quoted\"");
}

fn begins(index: u32, id: &str, name: &str) -> StreamEvent {
    StreamEvent::ToolCallStart { index, id: id.into(), name: name.into() }
}

fn goes_on(index: u32, json_chunk: &str) -> StreamEvent {
    StreamEvent::ToolCallDelta { index, json_chunk: json_chunk.into() }
}

/// Runs into an error by way of a handle: the error, and the conversation that is left.
async fn failed(sim: &Sim) -> String {
    let mut handle = sim.handle();
    loop {
        match handle.next_turn().await {
            TurnResult::Yielded(turn) => turn.continue_loop(),
            TurnResult::Completed(completed) => panic!("{completed:?}"),
            TurnResult::Error(failed) => {
                let (error, usage) = (failed.error, failed.total_usage);
                let messages = handle.messages();
                assert!(toolloop_core::transcript::keeps_grammar(&messages));
                return format!("error: {error}\n{usage}\n{}", transcript(&messages));
            }
        }
    }
}
