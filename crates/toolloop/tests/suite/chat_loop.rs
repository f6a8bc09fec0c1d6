//! The chat loop whose caller runs the tools: its steps, what it takes, and how it ends.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use insta::assert_snapshot;
use serde_json::json;
use toolloop::chat_loop::{ChatLoopHandle, FinishReason, LoopStep};
use toolloop::mock::MockProvider;
use toolloop::provider::OpenAiProvider;
use toolloop::{
    ChatLoopExt, ChatMessage, ChatParams, ChatStream, DynProvider, ImageSource, LlmError,
    StopReason, StreamEvent, StreamExt, ToolContent, ToolDefinition, ToolResult,
};
use toolloop_core::ToolImage;
use toolloop_fake::{Call, End, FakeServer, Fault, Reply, Script};

use super::support::{call, reply, reply_ending, requests, says, text, thought, transcript};

#[tokio::test(start_paused = true)]
async fn one_round() {
    let model = model([
        reply([
            thought("Hm."),
            text("Let me "),
            text("look."),
            call("c1", "read", json!({"path": "a"})),
        ]),
        reply([thought("So."), text("It says "), text("hello.")]),
    ]);
    let mut steps = model.chat_loop(question(), tools(["read"]));
    assert_snapshot!(told(&mut steps).await, @r#"
    thinking "Hm."
    content "Let me "
    content "look."
    requested c1 read({"path":"a"}), after "Let me look."
    received 1
    thinking "So."
    content "It says "
    content "hello."
    done "It says hello.": Stop, 20 in · 2 out, calls: c1
    "#);
    assert_snapshot!(transcript(&steps.messages()), @r#"
    user: Go
    assistant: <Hm.> | Let me look. | c1 read({"path":"a"})
    tool: c1 ok: result of c1
    assistant: <So.> | It says hello.
    "#);
    assert!(!steps.is_active());
    assert!(steps.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn several_rounds_of_several_calls() {
    let model = model([
        reply([call("a", "read", json!({"n": 1})), call("b", "write", json!({"n": 2}))]),
        reply([text("Again."), call("c", "read", json!({"n": 3}))]),
        says("Done."),
    ]);
    let mut steps = model.chat_loop(question(), tools(["read", "write"]));
    assert_snapshot!(told(&mut steps).await, @r#"
    requested a read({"n":1}), b write({"n":2}), after ""
    received 2
    content "Again."
    requested c read({"n":3}), after "Again."
    received 1
    content "Done."
    done "Done.": Stop, 30 in · 3 out, calls: a, b, c
    "#);
    assert_snapshot!(requests(&model), @r#"
    -- request 1
    user: Go
    -- request 2
    user: Go
    assistant: a read({"n":1}) | b write({"n":2})
    tool: a ok: result of a
    tool: b ok: result of b
    -- request 3
    user: Go
    assistant: a read({"n":1}) | b write({"n":2})
    tool: a ok: result of a
    tool: b ok: result of b
    assistant: Again. | c read({"n":3})
    tool: c ok: result of c
    "#);
}

#[tokio::test(start_paused = true)]
async fn results_that_do_not_fit_are_refused_and_the_loop_goes_on() {
    let model = model([
        reply([call("a", "read", json!({})), call("b", "read", json!({}))]),
        says("Thanks."),
    ]);
    let mut steps = model.chat_loop(question(), tools(["read"]));
    let refusal = |steps: &mut ChatLoopHandle<'_>, ids: &[&str]| {
        steps.submit_tool_results(ids.iter().map(|id| result(id)).collect()).unwrap_err()
    };
    let too_early = "invalid request: no tool results are awaited: take steps until calls are \
                     requested";
    assert_eq!(refusal(&mut steps, &["a"]).to_string(), too_early);
    assert!(matches!(next(&mut steps).await, LoopStep::ToolCallsRequested { .. }));
    for (ids, sentence) in [
        (vec!["a", "x"], r#"no call has the id "x"; awaited: "a", "b""#),
        (vec![""], r#"no call has the id ""; awaited: "a", "b""#),
        (vec!["a", "b", "a"], r#"there are two results for the call "a""#),
        (vec!["b"], r#"results are missing for "a": submit those of all calls at once"#),
        (vec![], r#"results are missing for "a", "b": submit those of all calls at once"#),
    ] {
        let refused = refusal(&mut steps, &ids).to_string();
        assert_eq!(refused, format!("invalid request: {sentence}"));
        assert!(steps.is_active());
    }
    steps.submit_tool_results(vec![result("b"), result("a")]).unwrap();
    assert_eq!(refusal(&mut steps, &["a", "b"]).to_string(), too_early);
    assert_eq!(told(&mut steps).await.lines().next(), Some("received 2"));
    let over = "invalid request: the chat loop is over: begin another with its messages";
    assert_eq!(refusal(&mut steps, &["a"]).to_string(), over);
    assert_snapshot!(transcript(&steps.messages()), @r#"
    user: Go
    assistant: a read({}) | b read({})
    tool: a ok: result of a
    tool: b ok: result of b
    assistant: Thanks.
    "#);
}

#[tokio::test(start_paused = true)]
async fn a_loop_that_waits_for_results_is_quiet_and_loses_nothing() {
    let model = model([reply([call("a", "read", json!({}))]), says("Thanks.")]);
    let mut steps = model.chat_loop(question(), tools(["read"]));
    next(&mut steps).await;
    let wakes = Arc::new(Wakes::default());
    let waker = Waker::from(Arc::clone(&wakes));
    for _ in 0..3 {
        let mut waiting = pin!(steps.next());
        assert!(waiting.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    }
    let waited = tokio::time::timeout(Duration::from_millis(5), steps.next()).await;
    assert!(waited.is_err(), "it waits");
    assert_eq!(wakes.0.load(Ordering::Relaxed), 0);
    assert_eq!(model.recorded_calls().len(), 1);

    // The conversation is valid meanwhile.
    assert_snapshot!(transcript(&steps.messages()), @r"
    user: Go
    assistant: a read({})
    tool: a failed: This call was cut off while it ran: the run was interrupted. It may have taken effect in part; check before repeating it.
    ");
    steps.submit_tool_results(vec![result("a")]).unwrap();
    assert_eq!(wakes.0.load(Ordering::Relaxed), 0, "nobody polls with that waker any more");
    assert_snapshot!(told(&mut steps).await, @r#"
    received 1
    content "Thanks."
    done "Thanks.": Stop, 20 in · 2 out, calls: a
    "#);
}

#[tokio::test(start_paused = true)]
async fn repeated_ids_are_renamed_before_the_caller_sees_them() {
    let model = model([
        reply([call("a", "read", json!({"n": 1})), call("a", "read", json!({"n": 2}))]),
        reply([call("a", "read", json!({"n": 3}))]),
        says("Done."),
    ]);
    let mut steps = model.chat_loop(question(), tools(["read"]));
    assert_snapshot!(told(&mut steps).await, @r#"
    requested a read({"n":1}), a_2 read({"n":2}), after ""
    received 2
    requested a_3 read({"n":3}), after ""
    received 1
    content "Done."
    done "Done.": Stop, 30 in · 3 out, calls: a, a_2, a_3
    "#);
}

#[tokio::test(start_paused = true)]
async fn calls_that_cannot_be_run_are_answered_by_the_loop() {
    let start = |index, id: &str, name: &str| {
        let (id, name) = (id.into(), name.into());
        StreamEvent::ToolCallStart { index, id, name }
    };
    let arguments = |index, text: &str| {
        let json_chunk = text.into();
        StreamEvent::ToolCallDelta { index, json_chunk }
    };
    let model = model([
        // A tool that was never offered is the caller's to refuse.
        reply_ending(
            StopReason::ToolUse,
            [
                start(0, "good", "read"),
                start(1, "bad", "read"),
                arguments(1, "{oops"),
                start(2, "odd", "nothing"),
            ],
        ),
        reply_ending(
            StopReason::MaxTokens,
            [text("I write"), start(0, "cut", "read"), arguments(0, r#"{"path": "a"#)],
        ),
        says("Done."),
    ]);
    let mut steps = model.chat_loop(question(), tools(["read"]));
    assert_snapshot!(told(&mut steps).await, @r#"
    requested good read({}), odd nothing({}), after ""
    received 2
    content "I write"
    content "Done."
    done "Done.": Stop, 30 in · 3 out, calls: good, bad, odd, cut
    "#);
    assert_snapshot!(transcript(&steps.messages()), @r#"
    user: Go
    assistant: good read({}) | bad read("{oops") | odd nothing({})
    tool: good ok: result of good
    tool: bad failed: The arguments are not readable as JSON: key must be a string at line 1 column 2. The call was not run. Call 'read' again with a JSON object that fits its schema.
    tool: odd ok: result of odd
    assistant: I write | cut read("{\"path\": \"a")
    tool: cut failed: The reply reached its limit of output tokens (max_tokens) inside this call, so the call was not run. Make it again with shorter arguments, or in several steps.
    assistant: Done.
    "#);
}

#[tokio::test(start_paused = true)]
async fn new_tools_are_offered_with_the_next_model_call() {
    let model = model([
        reply([call("a", "read", json!({}))]),
        reply([call("b", "write", json!({}))]),
        says("Done."),
    ]);
    let mut steps = model.chat_loop(question(), tools(["read"]));
    next(&mut steps).await;
    steps.update_tools(tools(["read", "write"]));
    steps.submit_tool_results(vec![result("a")]).unwrap();
    next(&mut steps).await;
    assert!(matches!(next(&mut steps).await, LoopStep::ToolCallsRequested { .. }));
    steps.update_tools(Vec::new());
    steps.submit_tool_results(vec![result("b")]).unwrap();
    told(&mut steps).await;
    steps.update_tools(tools(["read"]));
    let offered: Vec<Vec<String>> = model
        .recorded_calls()
        .iter()
        .map(|sent| sent.tools.iter().flatten().map(|tool| tool.name.clone()).collect())
        .collect();
    assert_eq!(offered, [vec!["read"], vec!["read", "write"], vec![]]);
}

#[tokio::test(start_paused = true)]
async fn tools_that_change_before_the_first_step_are_the_first_that_are_offered() {
    let model = model([says("Done.")]);
    let mut steps = model.chat_loop(question(), tools(["read"]));
    steps.update_tools(tools(["write"]));
    told(&mut steps).await;
    assert_eq!(model.recorded_calls()[0].tools, Some(tools(["write"])));
}

#[tokio::test(start_paused = true)]
async fn a_loop_that_has_not_begun_has_its_conversation() {
    let model = MockProvider::default();
    let lost = ChatMessage::tool_result("x", "of a call nobody knows");
    let asked = vec![question().remove(0), lost];
    let steps = model.chat_loop(asked, Vec::new()).with_max_tool_turns(2);
    assert!(steps.is_active());
    assert!(transcript(&steps.messages()).starts_with("user: Go"));
    assert!(toolloop_core::transcript::keeps_grammar(&steps.messages()));
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "a chat loop is set up before its first step")]
async fn settings_come_before_the_first_step() {
    let model = model([says("Done.")]);
    let mut steps = model.chat_loop(question(), Vec::new());
    next(&mut steps).await;
    let _ = steps.with_max_tool_turns(2);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_in_mid_reply_ends_the_steps() {
    let model = MockProvider::default();
    model.queue_hanging_stream(vec![text("I was"), text(" about")]);
    let model = Watched::new(model);
    let mut steps = model.chat_loop(question(), Vec::new());
    assert_eq!(next(&mut steps).await, LoopStep::Content("I was".into()));
    assert_eq!(model.open_streams(), 1);
    assert!(steps.is_active());
    steps.cancel();
    assert_eq!((steps.is_active(), model.open_streams()), (false, 0));
    assert!(steps.next().await.is_none());
    steps.cancel();
    assert_eq!(transcript(&steps.messages()), "user: Go\nassistant: I was");
}

#[tokio::test(start_paused = true)]
async fn a_cancel_while_results_are_awaited_leaves_a_valid_conversation() {
    let model = model([reply([text("Look:"), call("a", "read", json!({}))])]);
    let mut steps = model.chat_loop(question(), tools(["read"]));
    next(&mut steps).await;
    next(&mut steps).await;
    steps.cancel();
    assert!(steps.next().await.is_none());
    steps.submit_tool_results(vec![result("a")]).unwrap_err();
    assert_snapshot!(transcript(&steps.messages()), @r"
    user: Go
    assistant: Look: | a read({})
    tool: a failed: This call was cut off while it ran: the run was cancelled. It may have taken effect in part; check before repeating it.
    ");
    // Results that were submitted count, though the loop had no time to take them.
    let model = self::model([reply([call("a", "read", json!({}))])]);
    let mut steps = model.chat_loop(question(), tools(["read"]));
    next(&mut steps).await;
    steps.submit_tool_results(vec![result("a")]).unwrap();
    steps.cancel();
    assert_eq!(steps.messages().len(), 3);
    // Nothing has begun before the first step.
    let mut steps = model.chat_loop(question(), tools(["read"]));
    steps.cancel();
    assert!(steps.next().await.is_none());
    assert_eq!((model.recorded_calls().len(), steps.messages()), (1, question()));
}

#[tokio::test(start_paused = true)]
async fn a_dropped_loop_closes_its_stream() {
    let model = MockProvider::default();
    model.queue_hanging_stream(vec![text("I was")]);
    let model = Watched::new(model);
    let mut steps = model.chat_loop(question(), Vec::new());
    next(&mut steps).await;
    assert_eq!(model.open_streams(), 1);
    drop(steps);
    assert_eq!(model.open_streams(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_model_error_is_the_last_item() {
    let model = MockProvider::default();
    model.queue_stream(reply([call("a", "read", json!({}))]));
    model.queue_stream_error(vec![text("Hal")], LlmError::Timeout { elapsed_ms: 7 });
    let mut steps = model.chat_loop(question(), tools(["read"]));
    assert_snapshot!(told(&mut steps).await, @r#"
    requested a read({}), after ""
    received 1
    content "Hal"
    error: timed out after 7 ms
    "#);
    assert!(!steps.is_active());
    assert!(steps.next().await.is_none());
    assert_snapshot!(transcript(&steps.messages()), @r"
    user: Go
    assistant: a read({})
    tool: a ok: result of a
    assistant: Hal
    ");
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_began_anew_counts_once() {
    let discarded = || StreamEvent::AttemptDiscarded { attempt: 1 };
    let model = model([
        reply([text("Let"), discarded(), text("Let me look."), call("a", "read", json!({}))]),
        reply([text("It "), discarded(), text("It is.")]),
    ]);
    let mut steps = model.chat_loop(question(), tools(["read"]));
    assert_snapshot!(told(&mut steps).await, @r#"
    content "Let"
    content "Let me look."
    requested a read({}), after "Let me look."
    received 1
    content "It "
    content "It is."
    done "It is.": Stop, ~46 in · ~4 out, calls: a
    "#);
}

#[tokio::test(start_paused = true)]
async fn how_a_model_stopped() {
    for (stop_reason, finish_reason) in [
        (StopReason::EndTurn, FinishReason::Stop),
        (StopReason::StopSequence, FinishReason::Stop),
        (StopReason::MaxTokens, FinishReason::Length),
        (StopReason::ToolUse, FinishReason::ToolCalls),
        (StopReason::Refusal, FinishReason::Refusal),
        (StopReason::Other, FinishReason::Error),
    ] {
        let model = model([reply_ending(stop_reason, [text("So"), thought("so"), text(" far.")])]);
        let mut steps = model.chat_loop(question(), Vec::new());
        let lines = told(&mut steps).await;
        let last = lines.lines().last().unwrap();
        assert_eq!(last, format!("done \"So far.\": {finish_reason:?}, 10 in · 1 out, calls: "));
    }
}

#[tokio::test(start_paused = true)]
async fn results_keep_their_pictures_data_and_failures() {
    let model =
        model([reply([call("a", "read", json!({})), call("b", "read", json!({}))]), says("Nice.")]);
    let image =
        ToolImage { media_type: "image/png".into(), data: ImageSource::Base64("AA==".into()) };
    let content = |text: &str| ToolContent {
        text: text.into(),
        images: vec![image.clone()],
        structured: Some(json!({"n": 1})),
    };
    let given =
        |id: &str, is_error| ToolResult { tool_call_id: id.into(), content: content(id), is_error };
    let mut steps = model.chat_loop(question(), tools(["read"]));
    next(&mut steps).await;
    steps.submit_tool_results(vec![given("a", false), given("b", true)]).unwrap();
    told(&mut steps).await;
    let sent = &model.recorded_calls()[1].messages;
    assert_eq!(sent[2..], [given("a", false).into(), given("b", true).into()]);
}

#[tokio::test(start_paused = true)]
async fn a_shared_model_makes_a_loop_that_travels() {
    let model = Arc::new(model([reply([call("a", "read", json!({}))]), says("Done.")]));
    let shared: Arc<dyn DynProvider> = Arc::clone(&model) as Arc<dyn DynProvider>;
    let params =
        ChatParams { messages: question(), temperature: Some(0.5), ..ChatParams::default() };
    let mut steps = ChatLoopHandle::new(shared.clone(), params);
    let lines = tokio::spawn(async move { told(&mut steps).await }).await.unwrap();
    assert_eq!(lines.lines().last(), Some("done \"Done.\": Stop, 20 in · 2 out, calls: a"));
    assert_eq!(model.recorded_calls()[1].temperature, Some(0.5));
    // The trait is there for models behind a pointer as well.
    assert!(shared.chat_loop(question(), Vec::new()).is_active());
}

// ---- over HTTP, against a server as strict as the real one ------------------------------------

#[tokio::test]
async fn over_http_a_loop_is_never_refused() {
    let server = FakeServer::start(Script::new([
        Reply::text("Both.")
            .call(Call::new("read", json!({"n": 1})).id("a"))
            .call(Call::new("read", json!({"n": 2})).id("a")),
        Reply::calls([Call::with_text("read", "{oops").id("c"), Call::new("nap", json!({}))]),
        Reply::text("All read."),
    ]));
    let model = openai(&server);
    let mut steps = model.chat_loop(question(), tools(["read"]));
    let lines = told(&mut steps).await;
    let kinds: Vec<_> = lines.lines().filter(|line| !line.starts_with("content")).collect();
    assert_eq!(kinds[0], r#"requested a read({"n":1}), a_2 read({"n":2}), after "Both.""#);
    assert!(kinds[2].ends_with("nap({}), after \"\""), "{lines}");
    assert!(kinds[4].starts_with("done \"All read.\": Stop"), "{lines}");
    assert_eq!(server.requests().len(), 3);
    // What came of it is a conversation that another loop goes on from.
    let server = FakeServer::start(Script::new([Reply::text("Yes.")]));
    let mut messages = steps.messages();
    messages.push(ChatMessage::user("Sure?"));
    let model = openai(&server);
    let mut steps = model.chat_loop(messages, tools(["read"]));
    assert!(told(&mut steps).await.contains("done \"Yes.\""));
}

#[tokio::test]
async fn over_http_cancel_and_drop_close_the_connection() {
    for is_cancelled in [true, false] {
        let stall = Fault::StallAtEvent { event: 3, ping_every: None };
        let script = Script::new([Reply::text("one two three four five").fault(stall)]);
        let server = FakeServer::start(script);
        let model = openai(&server);
        let mut steps = model.chat_loop(question(), Vec::new());
        assert!(matches!(next(&mut steps).await, LoopStep::Content(_)));
        let kept = if is_cancelled {
            steps.cancel();
            Some(steps)
        } else {
            drop(steps);
            None
        };
        server.idle().await;
        assert_eq!(server.log()[0].end, End::ClientClosed);
        drop(kept);
    }
}

fn openai(server: &FakeServer) -> OpenAiProvider {
    OpenAiProvider::builder("gpt-5")
        .base_url(server.base_url())
        .api_key("sk-test")
        .max_retries(0)
        .build()
        .unwrap()
}

// ---- what the tests share ----------------------------------------------------------------------

fn model(replies: impl IntoIterator<Item = Vec<StreamEvent>>) -> MockProvider {
    let model = MockProvider::default();
    for reply in replies {
        model.queue_stream(reply);
    }
    model
}

fn question() -> Vec<ChatMessage> {
    vec![ChatMessage::user("Go")]
}

fn tools<const N: usize>(names: [&str; N]) -> Vec<ToolDefinition> {
    let definition = |name: &str| ToolDefinition {
        name: name.into(),
        description: format!("Does {name}."),
        parameters: json!({"type": "object"}).into(),
        retry: None,
    };
    names.into_iter().map(definition).collect()
}

fn result(id: &str) -> ToolResult {
    let content = format!("result of {id}").into();
    ToolResult { tool_call_id: id.into(), content, is_error: false }
}

async fn next(steps: &mut ChatLoopHandle<'_>) -> LoopStep {
    steps.next().await.expect("there are more steps").unwrap()
}

/// Takes a loop to its end, answering each call; all steps, a line each.
async fn told(steps: &mut ChatLoopHandle<'_>) -> String {
    let mut lines = Vec::new();
    while let Some(step) = steps.next().await {
        match step {
            Ok(step) => {
                lines.push(line(&step));
                if let LoopStep::ToolCallsRequested { tool_calls, .. } = step {
                    let results = tool_calls.iter().map(|call| result(&call.id)).collect();
                    steps.submit_tool_results(results).unwrap();
                }
            }
            Err(error) => lines.push(format!("error: {error}")),
        }
    }
    lines.join("\n")
}

fn line(step: &LoopStep) -> String {
    match step {
        LoopStep::Thinking(text) => format!("thinking {text:?}"),
        LoopStep::Content(text) => format!("content {text:?}"),
        LoopStep::ToolCallsRequested { tool_calls, content } => {
            let calls: Vec<_> =
                tool_calls.iter().map(|call| format!("{} {call}", call.id)).collect();
            format!("requested {}, after {content:?}", calls.join(", "))
        }
        LoopStep::ToolResultsReceived { count } => format!("received {count}"),
        LoopStep::Done { content, finish_reason, total_usage, all_tool_calls } => {
            let ids: Vec<_> = all_tool_calls.iter().map(|call| call.id.as_str()).collect();
            let ids = ids.join(", ");
            format!("done {content:?}: {finish_reason:?}, {total_usage}, calls: {ids}")
        }
    }
}

/// Counts how often it is woken.
#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A model that knows how many of its streams are open.
struct Watched {
    model: MockProvider,
    open: Arc<AtomicUsize>,
}

impl Watched {
    fn new(model: MockProvider) -> Self {
        Self { model, open: Arc::default() }
    }

    fn open_streams(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }
}

impl toolloop::Provider for Watched {
    async fn generate(&self, params: &ChatParams) -> Result<toolloop::ChatResponse, LlmError> {
        self.model.generate(params).await
    }

    async fn stream(&self, params: &ChatParams) -> Result<ChatStream, LlmError> {
        let mut events = self.model.stream(params).await?;
        let open = OpenStream::new(&self.open);
        Ok(Box::pin(futures_util::stream::poll_fn(move |cx| -> Poll<_> {
            let _ = &open;
            events.poll_next_unpin(cx)
        })))
    }

    fn metadata(&self) -> toolloop::ProviderMetadata {
        toolloop::Provider::metadata(&self.model)
    }
}

struct OpenStream(Arc<AtomicUsize>);

impl OpenStream {
    fn new(open: &Arc<AtomicUsize>) -> Self {
        open.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(open))
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
