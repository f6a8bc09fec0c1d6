//! Tokens of replies that never came to their end: no ending of a run hides what it has cost.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use toolloop::provider::AnthropicProvider;
use toolloop::tool::{CancellationToken, TurnResult};
use toolloop::{
    ChatMessage, ChatParams, DynProvider, LlmError, LoopEvent, StreamEvent, StreamExt, Usage,
    UsageSource,
};
use toolloop_core::ReplyAssembler;
use toolloop_core::effect::Outcome;
use toolloop_fake::{FakeServer, Fault, Reply, Script};

use super::support::every_api::every_api;
use super::support::{Sim, Told, call, reply, says, text};

/// A loop that is asked "Go" without tools.
fn bare(replies: impl IntoIterator<Item = Vec<StreamEvent>>) -> Sim {
    let mut sim = Sim::new(replies);
    sim.tools = sim.tools.only([]);
    sim
}

fn reported(input_tokens: u64, output_tokens: u64) -> Usage {
    Usage { input_tokens, output_tokens, ..Usage::default() }
}

fn estimated(input_tokens: u64, output_tokens: u64) -> Usage {
    Usage { source: UsageSource::Estimated, ..reported(input_tokens, output_tokens) }
}

/// What came of a reply before it hung, and its tokens.
fn hanging() -> Vec<(Vec<StreamEvent>, Usage)> {
    let told = |input, output| StreamEvent::Usage(reported(input, output));
    vec![
        (vec![], estimated(1, 0)),
        (vec![text("one two three")], estimated(1, 4)),
        (vec![told(25, 1), text("one two three")], estimated(25, 4)),
        (vec![text("one two three"), told(25, 3)], reported(25, 3)),
        (vec![text("one "), StreamEvent::AttemptDiscarded { attempt: 1 }], estimated(1 + 1, 1)),
    ]
}

#[tokio::test(start_paused = true)]
async fn cancelled_in_mid_reply() {
    for (events, usage) in hanging() {
        let mut sim = bare([]);
        sim.model.queue_hanging_stream(events);
        let cancel = CancellationToken::new();
        sim.config.cancel = Some(cancel.clone());
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(40)).await;
            cancel.cancel();
        });
        let told = sim.run().await;
        assert_eq!((told.result().total_usage, heard(&told)), (usage, usage));
    }
}

#[tokio::test(start_paused = true)]
async fn out_of_time_in_mid_reply() {
    for (events, usage) in hanging() {
        let mut sim = bare([]);
        sim.model.queue_hanging_stream(events);
        sim.config.timeout = Some(Duration::from_millis(40));
        assert_eq!(sim.run().await.result().total_usage, usage);
    }
}

#[tokio::test(start_paused = true)]
async fn broken_off() {
    for (events, usage) in hanging() {
        let sim = bare([]);
        let error = LlmError::StreamInterrupted { message: "connection reset".into() };
        sim.model.queue_stream_error(events, error);
        let mut handle = sim.handle();
        let TurnResult::Error(failed) = handle.next_turn().await else { panic!("it broke off") };
        assert_eq!(failed.total_usage, usage);
    }
}

#[tokio::test(start_paused = true)]
async fn stopped_by_the_caller_between_turns_and_in_mid_reply() {
    let sim = bare([reply([text("On it."), call("a", "read", json!({}))])]);
    let mut handle = sim.handle();
    let TurnResult::Yielded(turn) = handle.next_turn().await else { panic!("a turn") };
    turn.stop(None);
    assert_eq!(*handle.total_usage(), reported(10, 1));

    // A turn that is given up goes on where it was; its stream stays open until the end.
    let mut sim = bare([]);
    sim.model.queue_hanging_stream(vec![text("one two three")]);
    let cancel = CancellationToken::new();
    sim.config.cancel = Some(cancel.clone());
    let mut handle = sim.handle();
    assert!(tokio::time::timeout(Duration::from_millis(10), handle.next_turn()).await.is_err());
    cancel.cancel();
    let TurnResult::Completed(completed) = handle.next_turn().await else { panic!("cancelled") };
    assert_eq!(completed.total_usage, estimated(1, 4));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_nobody_was_asked_for_costs_nothing() {
    let mut sim = bare([says("never")]);
    let cancel = CancellationToken::new();
    cancel.cancel();
    sim.config.cancel = Some(cancel);
    assert_eq!(sim.run().await.result().total_usage, Usage::default());
}

/// A server that refuses in the middle of an answer has counted what it read; the next try is
/// counted besides.
#[tokio::test(start_paused = true)]
async fn a_try_of_the_transport_that_had_begun() {
    let error = json!({"type": "overloaded_error", "message": "Overloaded"});
    let refused = Reply::text("yes").usage(25, 1).fault(Fault::ErrorAtEvent { event: 1, error });
    let busy = Reply::error(529, "Overloaded").header("retry-after", "0");
    let server =
        FakeServer::start_here(Script::new([refused, busy, Reply::text("yes").usage(25, 1)]));
    let provider = AnthropicProvider::builder("claude-sonnet-4-5")
        .base_url(format!("http://{}", server.address()))
        .api_key("key")
        .build()
        .unwrap();
    let mut sim = bare([]);
    sim.other_model = Some(Arc::new(provider));
    let told = sim.run().await;
    assert_eq!(told.result().response.text(), Some("yes"));
    assert_eq!(server.log().len(), 3);
    // What the first try wrote is not known; the second was refused at once.
    assert_eq!(figures(told.result().total_usage), estimated(25 + 25, 1 + 1));
}

/// Whatever an API tells of its tokens, and when: a reply cut at any event is never free, and
/// what the provider said it read is what is counted.
#[tokio::test]
async fn cut_at_every_event_of_every_api() {
    const WORDS: &str = "one two three four five six seven eight";
    let reply = || Reply::text(WORDS).usage(25, 9);
    let server = FakeServer::start(Script::from_fn(move |_| reply()));
    for (at, (name, provider)) in every_api(&server).into_iter().enumerate() {
        let whole = ask(&*provider).await;
        assert_eq!((&*whole.0, figures(whole.1)), (WORDS, reported(25, 9)), "{name}");
        server.idle().await;
        let events = server.log().pop().expect("it was asked").events;
        let replies = (0..events).map(|event| reply().fault(Fault::CutAtEvent(event)));
        let cutting = FakeServer::start(Script::new(replies));
        let (_, provider) = every_api(&cutting).swap_remove(at);
        for _ in 0..events {
            let (said, usage) = ask(&*provider).await;
            match usage.source {
                UsageSource::Estimated => {
                    let read = if usage.input_tokens == 25 { 25 } else { 1 };
                    let wrote = usage.output_tokens.min(10).max((said.len() as u64).div_ceil(4));
                    assert_eq!(figures(usage), estimated(read, wrote), "{name} at {said:?}");
                }
                // All was said, and then the connection was lost: before the report or behind.
                UsageSource::Reported => assert_eq!((said, usage), whole, "{name}"),
                UsageSource::Unknown => {
                    assert_eq!((&*said, usage, name), (WORDS, Usage::unknown(), "chat"));
                }
            }
        }
    }
}

/// Without what some APIs tell besides.
fn figures(usage: Usage) -> Usage {
    let Usage { input_tokens, output_tokens, source, .. } = usage;
    Usage { input_tokens, output_tokens, source, ..Usage::default() }
}

/// What came, and its tokens.
async fn ask(provider: &dyn DynProvider) -> (String, Usage) {
    let params = ChatParams { messages: vec![ChatMessage::user("q")], ..ChatParams::default() };
    let mut assembler = ReplyAssembler::of_request(Arc::new(params.clone()));
    let mut stream = provider.stream_boxed(&params).await.expect("the request is fine");
    let ended = loop {
        match stream.next().await {
            Some(Ok(event)) => drop(assembler.push(event).expect("events fit each other")),
            Some(Err(error)) => break assembler.fail(error.into()),
            None => break assembler.finish(),
        }
    };
    let response = match ended {
        Outcome::Reply(reply) => reply.response,
        Outcome::ReplyFailed { partial, .. } => partial,
        other => panic!("a reply ended as {other:?}"),
    };
    (response.text().unwrap_or_default().to_owned(), response.usage)
}

/// The tokens a follower has heard of.
fn heard(told: &Told) -> Usage {
    let usage = told.moments.iter().filter_map(|moment| match &moment.event {
        LoopEvent::Usage(usage) => Some(*usage),
        _ => None,
    });
    usage.sum()
}
