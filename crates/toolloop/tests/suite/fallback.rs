//! One model after the other until one answers.

use std::sync::Arc;
use std::time::Duration;

use toolloop::mock::MockProvider;
use toolloop::provider::Fallback;
use toolloop::{
    Agent, ChatParams, ChatResponse, ContentBlock, LlmError, LoopEvent, Provider, StopReason,
    StreamEvent, StreamExt, Usage, UsageSource,
};
use toolloop_core::{ErrorDetails, ErrorMessage};

fn model(name: &str) -> Arc<MockProvider> {
    let mut metadata = Provider::metadata(&MockProvider::default());
    metadata.model = name.to_owned();
    Arc::new(MockProvider::new(metadata))
}

fn overloaded() -> LlmError {
    let status = Some(http::StatusCode::SERVICE_UNAVAILABLE);
    LlmError::Http { status, message: "busy".into(), retryable: true }
}

fn limited(seconds: u64) -> LlmError {
    let retry_after = Some(Duration::from_secs(seconds));
    let details = ErrorDetails { status: Some(429), retry_after, ..ErrorDetails::default() };
    LlmError::Http {
        status: Some(http::StatusCode::TOO_MANY_REQUESTS),
        message: ErrorMessage::with_details("slow down", details),
        retryable: true,
    }
}

fn estimated(input_tokens: u64, output_tokens: u64) -> Usage {
    let source = UsageSource::Estimated;
    Usage { input_tokens, output_tokens, source, ..Usage::default() }
}

async fn answer(fallback: &Fallback) -> String {
    let reply = fallback.generate(&ChatParams::default()).await.unwrap();
    reply.text().unwrap().to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_broke_off_is_void_and_begun_anew() {
    let (first, second) = (model("a"), model("b"));
    first.queue_stream(vec![StreamEvent::TextDelta("half ".into())]);
    second.queue_text("whole");
    let fallback = Fallback::new(first).or(second);
    let mut events = Agent::from_provider(Arc::new(fallback)).stream("go");
    let mut seen = Vec::new();
    while let Some(event) = events.next().await {
        match event.unwrap() {
            LoopEvent::TextDelta(text) => seen.push(text),
            LoopEvent::RetryScheduled(notice) => seen.push(notice.reason),
            LoopEvent::AttemptDiscarded { attempt } => seen.push(format!("void: {attempt}")),
            LoopEvent::Done(result) => {
                assert_eq!(result.response.content, [ContentBlock::Text("whole".into())]);
                // The first had told nothing of its tokens: `go` and `half `.
                assert_eq!(result.total_usage, estimated(1, 2));
            }
            _ => {}
        }
    }
    let broke = "mock/a: the reply broke off: the stream ended without its end marker";
    assert_eq!(seen, ["half ", broke, "void: 1", "whole"]);
}

#[tokio::test(start_paused = true)]
async fn every_attempt_that_may_have_cost_is_counted() {
    let params = ChatParams { system: Some("eight by".into()), ..ChatParams::default() };
    for (first, cost) in [
        (overloaded(), Usage::default()),
        (LlmError::Auth("no key".into()), Usage::default()),
        (LlmError::Timeout { elapsed_ms: 60_000 }, estimated(2, 0)),
    ] {
        let (one, two) = (model("a"), model("b"));
        one.queue_error(first);
        // It tells what it read, and breaks off.
        let told = StreamEvent::Usage(Usage { input_tokens: 7, ..Usage::default() });
        two.queue_stream_error(vec![told, StreamEvent::TextDelta("half ".into())], overloaded());
        two.queue_response(ChatResponse {
            content: vec![ContentBlock::Text("whole".into())],
            usage: Usage { input_tokens: 7, output_tokens: 1, ..Usage::default() },
            ..ChatResponse::default()
        });
        let fallback = Fallback::new(one).or(two).restarts(1);
        let reply = fallback.generate(&params).await.unwrap();
        assert_eq!(reply.usage, cost + estimated(7 + 7, 2 + 1));
    }
}

#[tokio::test(start_paused = true)]
async fn restarts_ask_the_same_model_and_then_the_next() {
    let (first, second) = (model("a"), model("b"));
    for _ in 0..2 {
        first.queue_stream_error(vec![StreamEvent::TextDelta("x".into())], overloaded());
    }
    second.queue_text("done");
    let fallback = Fallback::new(first.clone()).or(second).restarts(1);
    assert_eq!(answer(&fallback).await, "done");
    assert_eq!(first.recorded_calls().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn when_all_have_failed_the_last_error_is_the_calls() {
    let (first, second) = (model("a"), model("b"));
    first.queue_error(LlmError::Auth("no key".into()));
    second.queue_error(overloaded());
    let error = Fallback::new(first).or(second).generate(&ChatParams::default()).await.unwrap_err();
    assert_eq!(error.to_string(), "gave up after 2 attempts: HTTP 503: busy");
}

#[tokio::test(start_paused = true)]
async fn one_alone_fails_as_it_does_without() {
    let only = model("a");
    only.queue_error(LlmError::Auth("no key".into()));
    let error = Fallback::new(only).generate(&ChatParams::default()).await.unwrap_err();
    assert_eq!(error.to_string(), "authentication failed: no key");
}

#[tokio::test(start_paused = true)]
async fn a_model_that_limits_its_rate_is_passed_over_until_the_time_it_named() {
    let (first, second) = (model("a"), model("b"));
    first.queue_error(limited(60)).queue_text("first again");
    for text in ["second", "still second"] {
        second.queue_text(text);
    }
    let fallback = Fallback::new(first).or(second.clone());
    assert_eq!(answer(&fallback).await, "second");
    assert_eq!(answer(&fallback.clone()).await, "still second");
    tokio::time::advance(Duration::from_secs(61)).await;
    assert_eq!(answer(&fallback).await, "first again");
    assert_eq!(second.recorded_calls().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_limited_model_is_asked_where_no_other_answers() {
    let (first, second) = (model("a"), model("b"));
    first.queue_error(limited(60)).queue_text("after all");
    second.queue_text("second").queue_error(overloaded());
    let fallback = Fallback::new(first).or(second);
    assert_eq!(answer(&fallback).await, "second");
    assert_eq!(answer(&fallback).await, "after all");
}

#[tokio::test(start_paused = true)]
async fn nothing_follows_the_end() {
    let only = model("a");
    let done = StreamEvent::Done { stop_reason: StopReason::EndTurn };
    only.queue_stream(vec![done.clone(), StreamEvent::TextDelta("late".into())]);
    let events: Vec<_> =
        Fallback::new(only).stream(&ChatParams::default()).await.unwrap().collect().await;
    assert_eq!(events.into_iter().map(Result::unwrap).collect::<Vec<_>>(), [done]);
}
