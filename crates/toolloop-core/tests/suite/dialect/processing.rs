//! Native events on their way through the processor.

use std::collections::VecDeque;

use serde_json::{Value, json};
use toolloop_core::dialect::{Dialect, StreamProcessor, StreamingError, ToolLimit};
use toolloop_core::{
    ProviderData, RateLimits, StopReason, StreamEvent, ToolCall, ToolDefinition, Usage,
};

use super::reading::tools;

fn text(text: &str) -> StreamEvent {
    StreamEvent::TextDelta(text.into())
}

fn start(index: u32, name: &str) -> StreamEvent {
    StreamEvent::ToolCallStart { index, id: format!("id{index}"), name: name.into() }
}

fn delta(index: u32, json: &str) -> StreamEvent {
    StreamEvent::ToolCallDelta { index, json_chunk: json.into() }
}

fn complete(index: u32, name: &str, arguments: Value) -> StreamEvent {
    let call = ToolCall { id: format!("id{index}"), name: name.into(), arguments };
    StreamEvent::ToolCallComplete { index, call }
}

fn data(index: Option<u32>) -> StreamEvent {
    let data = ProviderData { api: "any".into(), data: "x".into() };
    StreamEvent::ProviderData { index, data }
}

fn done(stop_reason: StopReason) -> StreamEvent {
    StreamEvent::Done { stop_reason }
}

fn process(
    tools: &[ToolDefinition],
    limit: ToolLimit,
    events: Vec<StreamEvent>,
) -> (Vec<StreamEvent>, Result<(), StreamingError>) {
    let mut processor = StreamProcessor::new(Dialect::Native, tools, limit);
    let mut out = VecDeque::new();
    let handled = events.into_iter().try_for_each(|event| processor.handle(event, &mut out));
    if handled.is_err() {
        processor.end_early(&mut out);
    }
    (out.into(), handled)
}

#[test]
fn native_events_pass_as_they_are() {
    let events = vec![
        StreamEvent::RequestId("r".into()),
        StreamEvent::RateLimits(RateLimits::default()),
        StreamEvent::ReasoningDelta("Hm.\n".into()),
        data(None),
        text("\n\nLook"),
        text(" < here:\n"),
        data(None),
        start(0, "bash"),
        delta(0, "{\"command\":"),
        start(2, "now"),
        delta(0, "\"ls\"}"),
        data(Some(2)),
        complete(2, "now", json!({})),
        complete(0, "bash", json!({"command": "ls"})),
        StreamEvent::Usage(Usage::default()),
        done(StopReason::ToolUse),
    ];
    for limit in [ToolLimit::Unlimited, ToolLimit::N(2)] {
        let (out, handled) = process(&tools(), limit, events.clone());
        assert_eq!(handled, Ok(()));
        let mut joined: Vec<StreamEvent> = Vec::new();
        for event in out {
            match (event, joined.last_mut()) {
                (StreamEvent::TextDelta(more), Some(StreamEvent::TextDelta(all))) => *all += &more,
                (event, _) => joined.push(event),
            }
        }
        let mut expected = events.clone();
        expected.splice(4..6, [text("\n\nLook < here:\n")]);
        assert_eq!(joined, expected);
    }
}

#[test]
fn a_call_too_many_ends_the_reply_with_those_before_it() {
    let events =
        vec![start(0, "bash"), delta(0, "{\"command\": \"ls\"}"), start(1, "now"), delta(1, "{}")];
    let (out, handled) = process(&tools(), ToolLimit::One, events);
    assert_eq!(handled, Err(StreamingError::ToolLimitReached));
    let expected = [
        start(0, "bash"),
        delta(0, "{\"command\": \"ls\"}"),
        complete(0, "bash", json!({"command": "ls"})),
    ];
    assert_eq!(out, expected);

    // Some servers send calls whole.
    let whole = vec![complete(0, "now", json!({})), complete(1, "now", json!({}))];
    let (out, handled) = process(&tools(), ToolLimit::One, whole);
    assert_eq!(handled, Err(StreamingError::ToolLimitReached));
    assert_eq!(out, [complete(0, "now", json!({}))]);
}

#[test]
fn an_attempt_that_is_void_counts_for_nothing() {
    let leaked = "<function=now></function>";
    let discarded = StreamEvent::AttemptDiscarded { attempt: 1 };
    let events = vec![
        text(leaked),
        start(0, "bash"),
        text("held <func"),
        discarded.clone(),
        start(0, "bash"),
        done(StopReason::ToolUse),
    ];
    let (out, handled) = process(&tools(), ToolLimit::N(2), events);
    assert_eq!(handled, Ok(()));
    let at = out.iter().position(|event| *event == discarded).unwrap();
    assert_eq!(out[at + 1..], [start(0, "bash"), done(StopReason::ToolUse)]);
}

#[test]
fn without_tools_no_text_is_held() {
    let (out, _) = process(&[], ToolLimit::One, vec![text("a\n<func")]);
    assert_eq!(out, [text("a\n<func")]);
}

#[test]
fn a_model_that_called_in_its_text_did_not_just_end() {
    for (said, is) in [
        (StopReason::EndTurn, StopReason::ToolUse),
        (StopReason::StopSequence, StopReason::ToolUse),
        (StopReason::MaxTokens, StopReason::MaxTokens),
        (StopReason::Refusal, StopReason::Refusal),
    ] {
        let events = vec![text("<function=now></function>"), done(said)];
        let (out, _) = process(&tools(), ToolLimit::One, events);
        assert_eq!(out.last(), Some(&done(is)));
    }
}

/// Whoever offers no tools gets no calls, in a text dialect either; thoughts are still told apart.
#[test]
fn without_tools_there_are_no_calls() {
    for (dialect, said) in [
        (Dialect::Xml, "<tool:bash>\n<param:command>ls</param:command>\n</tool:bash>"),
        (Dialect::Caret, "^^^bash\ncommand: ls\n^^^"),
    ] {
        let mut processor = StreamProcessor::new(dialect, &[], ToolLimit::One);
        let mut events = VecDeque::new();
        let all = format!("<think>Hm.</think>{said}\n\n{said}");
        processor.handle(text(&all), &mut events).unwrap();
        processor.handle(done(StopReason::EndTurn), &mut events).unwrap();
        let thought = StreamEvent::ReasoningDelta("Hm.".into());
        let said = text(&format!("{said}\n\n{said}"));
        let mut joined = vec![];
        for event in events {
            match (event, joined.last_mut()) {
                (StreamEvent::TextDelta(more), Some(StreamEvent::TextDelta(all))) => *all += &more,
                (event, _) => joined.push(event),
            }
        }
        assert_eq!(joined, [thought, said, done(StopReason::EndTurn)], "{dialect:?}");
    }
}
