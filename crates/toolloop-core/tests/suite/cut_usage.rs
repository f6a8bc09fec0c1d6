//! What a reply that was cut has cost: as reported, where that is the last word, else estimated.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use toolloop_core::effect::Outcome;
use toolloop_core::{
    ChatMessage, ChatParams, Failure, LoopEvent, ReplyAssembler, RetryNotice, StopReason,
    StreamEvent, ToolCall, Usage, UsageSource,
};

/// A request of 12 bytes.
fn request() -> Arc<ChatParams> {
    let messages = vec![ChatMessage::user("twelve bytes")];
    Arc::new(ChatParams { messages, ..ChatParams::default() })
}

/// The tokens of a reply of which these events came.
fn cut(events: impl IntoIterator<Item = StreamEvent>) -> Usage {
    let mut assembler = ReplyAssembler::of_request(request());
    for event in events {
        assembler.push(event).unwrap();
    }
    assembler.into_partial().usage
}

/// The same, ended by a failure.
fn failed(events: impl IntoIterator<Item = StreamEvent>, failure: Failure) -> Usage {
    let mut assembler = ReplyAssembler::of_request(request());
    for event in events {
        assembler.push(event).unwrap();
    }
    let Outcome::ReplyFailed { partial, .. } = assembler.fail(failure) else {
        panic!("a failure has no other outcome")
    };
    partial.usage
}

fn text(text: &str) -> StreamEvent {
    StreamEvent::TextDelta(text.into())
}

fn told(input_tokens: u64, output_tokens: u64) -> StreamEvent {
    StreamEvent::Usage(reported(input_tokens, output_tokens))
}

fn reported(input_tokens: u64, output_tokens: u64) -> Usage {
    Usage { input_tokens, output_tokens, ..Usage::default() }
}

fn estimated(input_tokens: u64, output_tokens: u64) -> Usage {
    Usage { source: UsageSource::Estimated, ..reported(input_tokens, output_tokens) }
}

fn retry(may_have_cost: bool) -> StreamEvent {
    StreamEvent::RetryScheduled(RetryNotice {
        attempt: 1,
        max_attempts: 3,
        delay: Duration::ZERO,
        reason: "busy".into(),
        may_have_cost,
    })
}

fn interrupted() -> Failure {
    Failure::StreamInterrupted { message: "reset".into() }
}

#[test]
fn where_nothing_was_reported_request_and_reply_are_estimated() {
    assert_eq!(cut([]), estimated(3, 0));
    assert_eq!(cut([text("five!")]), estimated(3, 2));
    let call = |index, id: &str, name: &str| StreamEvent::ToolCallStart {
        index,
        id: id.into(),
        name: name.into(),
    };
    let whole = ToolCall { id: "b".into(), name: "t".into(), arguments: json!({"n": 12}) };
    let everything = [
        StreamEvent::ReasoningDelta("hmm ".into()),
        text("text"),
        call(0, "a", "t"),
        StreamEvent::ToolCallDelta { index: 0, json_chunk: r#"{"n": 1"#.into() },
        // It comes in one piece: `{"n":12}`.
        StreamEvent::ToolCallComplete { index: 1, call: whole },
    ];
    assert_eq!(cut(everything), estimated(3, (4 + 4 + 7 + 8_u64).div_ceil(4)));
}

#[test]
fn what_was_reported_before_the_reply_began_stands_for_the_request() {
    assert_eq!(cut([told(25, 1)]), estimated(25, 1));
    assert_eq!(cut([told(25, 1), text("one two three")]), estimated(25, 4));
    // The provider may count more than can be seen.
    assert_eq!(cut([told(25, 9), text("one two three")]), estimated(25, 9));
}

#[test]
fn a_report_behind_all_that_was_said_is_the_last_word() {
    assert_eq!(cut([text("one two three"), told(25, 3)]), reported(25, 3));
    assert_eq!(cut([text("one"), told(25, 1), text(" two three")]), estimated(25, 4));
    let call = ToolCall { id: "a".into(), name: "t".into(), arguments: json!({}) };
    let call = StreamEvent::ToolCallComplete { index: 0, call };
    assert_eq!(cut([text("one"), told(25, 1), call]), estimated(25, 2));
}

#[test]
fn what_is_not_known_of_a_report_stays_so() {
    let half = StreamEvent::Usage(Usage { output_tokens: 3, ..Usage::unknown() });
    let usage = Usage { output_tokens: 4, ..Usage::unknown() };
    assert_eq!(cut([half, text("one two three")]), usage);
}

#[test]
fn a_refused_request_costs_nothing_and_one_without_answer_may() {
    let refused = Failure::Http { status: Some(503), message: "busy".into(), retryable: true };
    assert_eq!(failed([], refused.clone()), Usage::default());
    assert_eq!(failed([], interrupted()), estimated(3, 0));
    assert_eq!(failed([], Failure::Timeout { elapsed_ms: 60_000 }), estimated(3, 0));
    let gave_up = |last| Failure::RetryExhausted { attempts: 3, last: Box::new(last) };
    assert_eq!(failed([], gave_up(refused.clone())), Usage::default());
    assert_eq!(failed([], gave_up(interrupted())), estimated(3, 0));
    // It was told what the request cost before it was refused.
    assert_eq!(failed([told(25, 1)], refused), estimated(25, 1));
}

#[test]
fn every_try_counts_that_may_have_cost() {
    let whole = |before: StreamEvent| {
        let done = StreamEvent::Done { stop_reason: StopReason::EndTurn };
        let mut assembler = ReplyAssembler::of_request(request());
        for event in [before, text("yes"), told(10, 2), done] {
            assembler.push(event).unwrap();
        }
        assembler.into_response().unwrap().usage
    };
    assert_eq!(whole(retry(false)), reported(10, 2));
    assert_eq!(whole(retry(true)), estimated(3 + 10, 2));
    assert_eq!(whole(StreamEvent::AttemptDiscarded { attempt: 1 }), estimated(3 + 10, 2));

    let attempts = [told(25, 0), retry(true), told(25, 0), retry(true), text("half")];
    assert_eq!(cut(attempts), estimated(25 + 25 + 3, 1));
    let discarded = [text("half"), told(25, 1), StreamEvent::AttemptDiscarded { attempt: 1 }];
    assert_eq!(failed(discarded, Failure::Auth { message: "no".into() }), reported(25, 1));
}

#[test]
fn a_whole_reply_without_a_word_of_its_tokens_is_unknown() {
    let mut assembler = ReplyAssembler::of_request(request());
    assembler.push(text("one two three")).unwrap();
    assembler.push(StreamEvent::Done { stop_reason: StopReason::EndTurn }).unwrap();
    assert_eq!(assembler.into_response().unwrap().usage, Usage::unknown());
}

#[test]
fn followers_hear_of_each_try() {
    let StreamEvent::RetryScheduled(notice) = retry(true) else { panic!("a try") };
    let seen = ReplyAssembler::detached().push(StreamEvent::RetryScheduled(notice.clone()));
    assert_eq!(seen, Ok(Some(LoopEvent::RetryScheduled(notice))));
}
