//! The chat loop that runs its tools: the order of a round, where a tool is found, the limits.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use insta::assert_snapshot;
use serde_json::{Value, json};
use toolloop::chat_loop::{
    ChatLoopConfig, ChatLoopResponse, LoopDetectorConfig, chat_loop_with_tools,
};
use toolloop::mock::MockProvider;
use toolloop::{
    ChatMessage, LlmError, StopReason, StreamEvent, ToolCall, ToolRegistry, Usage, UsageSource,
};

use super::support::{
    Ledger, act, call, reply, reply_ending, requests, says, text, thought, transcript,
};

#[tokio::test(start_paused = true)]
async fn two_rounds_in_the_order_of_their_steps() {
    let told = Told::new([
        reply([
            thought("Hm."),
            text("I look. "),
            call("a", "read", json!({"ms": 20})),
            call("b", "write", json!({"ms": 10})),
        ]),
        reply([text("And again. "), call("c", "read", json!({}))]),
        says("Done."),
    ]);
    let response = told.run(told.config()).await.unwrap();
    assert_snapshot!(told.ledger.lines().join("\n"), @r"
    0 thinking Hm.
    0 content I look. 
    0 calls a b
    0 a started
    0 b started
    10 b finished
    20 a finished
    20 results a ok: a ran, b ok: b ran
    20 content And again. 
    20 calls c
    20 c started
    20 c finished
    20 results c ok: c ran
    20 content Done.
    ");
    let ids: Vec<_> = response.all_tool_calls.iter().map(|call| call.id.as_str()).collect();
    assert_eq!(ids, ["a", "b", "c"]);
    let usage = Usage { input_tokens: 30, output_tokens: 3, ..Usage::default() };
    assert_eq!(
        response,
        ChatLoopResponse {
            content: "I look. And again. Done.".into(),
            usage,
            all_tool_calls: response.all_tool_calls.clone(),
            rounds: 2,
        }
    );
}

#[tokio::test(start_paused = true)]
async fn a_reply_without_calls_is_no_round() {
    let told = Told::new([says("Hello.")]);
    let response = told.run(told.config()).await.unwrap();
    assert_eq!((response.content.as_str(), response.rounds), ("Hello.", 0));
    assert_eq!(response.all_tool_calls, []);
    assert_eq!(told.ledger.lines(), ["0 content Hello."]);
}

// ---- where a tool is found ---------------------------------------------------------------------

#[tokio::test(start_paused = true)]
async fn the_registry_comes_first_and_executors_only_for_what_it_does_not_know() {
    let told = Told::new([
        reply([
            call("a", "read", json!({"say": "registered"})),
            call("b", "read", json!({"fail": "no disk"})),
            call("c", "read", json!({"ms": "soon"})),
            call("d", "extra", json!({"n": 1})),
            call("e", "broken", json!({})),
            call("f", "panics", json!({})),
            call("g", "nobody", json!({})),
        ]),
        says("Done."),
    ]);
    let ran = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&ran);
    let config = told
        .config()
        .with_tool("read", move |_| {
            count.fetch_add(1, Ordering::Relaxed);
            async { Ok::<_, String>("by the executor") }
        })
        .with_tool("extra", |call: ToolCall| async move {
            Ok::<_, String>(format!("{} {}", call.id, call.arguments))
        })
        .with_tool("broken", |_| async { Err::<String, _>(std::fmt::Error) })
        .with_tool("panics", |_| async {
            if true {
                panic!("oh no");
            }
            Ok::<_, String>("never")
        });
    told.run(config).await.unwrap();
    assert_eq!(ran.load(Ordering::Relaxed), 0, "a registered tool that failed ran once, there");
    let last = told.model.recorded_calls().pop().unwrap();
    assert_snapshot!(transcript(&last.messages[2..]), @r#"
    tool: a ok: registered
    tool: b failed: no disk
    tool: c failed: The arguments do not fit the schema of 'read': /ms: "soon" is not of type "integer". The call was not run. Call 'read' again with a JSON object that fits its schema.
    tool: d ok: d {"n":1}
    tool: e failed: an error occurred when formatting an argument
    tool: f failed: Tool 'panics' panicked: oh no
    tool: g failed: Tool 'nobody' not registered
    "#);
}

#[tokio::test(start_paused = true)]
async fn without_any_tool_each_call_is_told_so() {
    let told = Told::new([reply([call("a", "read", json!({}))]), says("Done.")]);
    let messages = vec![ChatMessage::user("Go")];
    chat_loop_with_tools(&told.model, messages, Vec::new(), ChatLoopConfig::new()).await.unwrap();
    assert_snapshot!(requests(&told.model), @r"
    -- request 1
    user: Go
    -- request 2
    user: Go
    assistant: a read({})
    tool: a failed: Tool 'read' not registered
    ");
}

// ---- limits and failures -----------------------------------------------------------------------

#[tokio::test(start_paused = true)]
async fn one_round_more_than_allowed_is_an_error_and_runs_nothing() {
    let replies = |rounds: u32| {
        (1..=rounds).map(|n| reply([call(&format!("c{n}"), "read", json!({"ms": n}))]))
    };
    for (max_rounds, rounds) in [(0, 1), (1, 2), (3, 4)] {
        let told = Told::new(replies(rounds));
        let error = told.run(told.config().with_max_rounds(max_rounds)).await.unwrap_err();
        assert!(matches!(error, LlmError::MaxRoundsExceeded { limit } if limit == max_rounds));
        assert_eq!(
            error.to_string(),
            format!(
                "the model asked for tools in more than {max_rounds} rounds (raise max_rounds)"
            )
        );
        let lines = told.ledger.lines();
        let rounds_told = lines.iter().filter(|line| line.contains("calls")).count();
        assert_eq!(rounds_told, max_rounds);
        assert_eq!(told.ledger.fate(&format!("c{rounds}")), None, "it never started");
        assert_eq!(told.model.recorded_calls().len(), max_rounds + 1);
        // As many as allowed are none too many.
        let told = Told::new(replies(max_rounds as u32).chain([says("Done.")]));
        let response = told.run(told.config().with_max_rounds(max_rounds)).await.unwrap();
        assert_eq!(response.rounds, max_rounds);
    }
    // Ten without a word.
    let told = Told::new(replies(11));
    let error = told.run(told.config().without_loop_detection()).await.unwrap_err();
    assert!(matches!(error, LlmError::MaxRoundsExceeded { limit: 10 }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_round_of_refused_calls_is_a_round() {
    let unreadable = |n: u32| {
        let call = ToolCall {
            id: format!("c{n}"),
            name: "read".into(),
            arguments: Value::String("{oops".into()),
        };
        reply([StreamEvent::ToolCallComplete { index: 0, call }])
    };
    let told = Told::new((1..=3).map(unreadable));
    let error = told.run(told.config().with_max_rounds(2)).await.unwrap_err();
    assert!(matches!(error, LlmError::MaxRoundsExceeded { limit: 2 }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_model_error_ends_the_loop() {
    let told = Told::new([reply([text("I look."), call("a", "read", json!({}))])]);
    told.model.queue_error(LlmError::Auth("the key was refused".into()));
    let error = told.run(told.config()).await.unwrap_err();
    assert_eq!(error.to_string(), "authentication failed: the key was refused");
}

#[tokio::test(start_paused = true)]
async fn an_unusable_schema_is_found_before_the_model_is_asked() {
    let told = Told::new([]);
    let mut tool = act("odd", &told.ledger);
    tool.definition.parameters = json!({"type": "no such type"}).into();
    let mut registry = ToolRegistry::new();
    registry.register(tool);
    let config = ChatLoopConfig::new().with_registry(Arc::new(registry));
    let error = told.run(config).await.unwrap_err();
    assert!(error.to_string().contains("The JSON Schema of tool 'odd' is not usable"), "{error}");
    assert_eq!(told.model.recorded_calls().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn text_counts_once_though_a_reply_began_anew() {
    let discarded = StreamEvent::AttemptDiscarded { attempt: 1 };
    let told = Told::new([
        reply([text("One. "), call("a", "read", json!({}))]),
        reply([text("Tw"), discarded, text("Two. "), text("Three.")]),
    ]);
    let response = told.run(told.config()).await.unwrap();
    assert_eq!(response.content, "One. Two. Three.");
    assert_eq!(response.usage.source, UsageSource::Estimated);
}

#[tokio::test(start_paused = true)]
async fn a_call_cut_by_the_limit_is_not_run() {
    let told = Told::new([
        reply_ending(
            StopReason::MaxTokens,
            [
                StreamEvent::ToolCallStart { index: 0, id: "a".into(), name: "read".into() },
                StreamEvent::ToolCallDelta { index: 0, json_chunk: r#"{"say": "#.into() },
            ],
        ),
        says("Shorter, then."),
    ]);
    told.run(told.config()).await.unwrap();
    assert_eq!(told.ledger.fate("a"), None);
    assert!(told.ledger.lines()[1].starts_with("0 results a failed: The reply reached its limit"));
}

// ---- circles -----------------------------------------------------------------------------------

#[tokio::test(start_paused = true)]
async fn two_warnings_stand_in_front_of_results_and_the_third_circle_is_an_error() {
    let told = Told::new(again(9));
    let error = told.run(told.config()).await.unwrap_err();
    assert!(
        matches!(&error, LlmError::LoopDetected { tool_name, count: 6 } if tool_name == "read"),
        "{error}"
    );
    assert_eq!(
        error.to_string(),
        "the model goes in circles: read was called 6 times without progress"
    );
    let results: Vec<_> =
        told.ledger.lines().into_iter().filter(|line| line.contains("results")).collect();
    assert_snapshot!(results.join("\n"), @r"
    0 results c1 ok: same
    0 results c2 ok: same
    0 results c3 ok: same
    0 results c4 ok: [Loop warning: read was called 4 times with the same arguments. Going on like this will not change the outcome. Try other arguments or another tool, or answer with what you know.]

    same
    0 results c5 ok: [Loop warning: read was called 5 times with the same arguments. Going on like this will not change the outcome. Try other arguments or another tool, or answer with what you know.]

    same
    ");
    // The sixth round was told of, and nothing of it ran.
    assert_eq!(told.ledger.lines().last().unwrap(), "0 calls c6");
    // The warning is part of the result; no message is sent for it.
    let last = told.model.recorded_calls().pop().unwrap();
    assert_eq!(last.messages.len(), 11);
}

#[tokio::test(start_paused = true)]
async fn the_caller_decides_about_circles() {
    let told = Told::new(again(7));
    let ledger = told.ledger.clone();
    let config = told.config().on_loop_detected(move |found| {
        ledger.note(format_args!("{} {} {:?}: {found}", found.call_id, found.number, found.action));
        true
    });
    told.run(config).await.unwrap();
    let lines = told.ledger.lines();
    let asked: Vec<_> = lines
        .iter()
        .filter(|line| line.contains("with the same arguments") && !line.contains("results"))
        .collect();
    let with = "with the same arguments";
    assert_eq!(
        asked,
        [
            &format!("0 c4 1 Warn: read was called 4 times {with}"),
            &format!("0 c5 2 Warn: read was called 5 times {with}"),
            &format!("0 c6 3 Terminate: read was called 6 times {with}"),
            &format!("0 c7 4 Terminate: read was called 7 times {with}"),
        ]
    );
    // Asked after on_tool_calls and before the tool, whose result is without a warning.
    let at = lines.iter().position(|line| line.contains("c4 1 Warn")).unwrap();
    assert_eq!(lines[at - 1], "0 calls c4");
    assert_eq!(lines[at + 1..at + 4], ["0 c4 started", "0 c4 finished", "0 results c4 ok: same"]);

    let told = Told::new(again(7));
    let error = told.run(told.config().on_loop_detected(|_| false)).await.unwrap_err();
    assert!(matches!(error, LlmError::LoopDetected { count: 4, .. }), "{error}");
    assert_eq!(told.ledger.fate("c4"), None);
}

#[tokio::test(start_paused = true)]
async fn detection_is_set_up_or_left_out() {
    let told = Told::new(again(9));
    let response = told.run(told.config().without_loop_detection()).await.unwrap();
    assert_eq!(response.rounds, 9);
    let told = Told::new(again(9));
    let config = LoopDetectorConfig { max_exact_duplicates: 1, ..LoopDetectorConfig::default() };
    let error = told.run(told.config().with_loop_detection(config)).await.unwrap_err();
    assert!(matches!(error, LlmError::LoopDetected { count: 4, .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_poll_whose_answer_changes_is_no_circle() {
    let polls = |rounds: u32| {
        let poll = |n| reply([call(&format!("c{n}"), "poll", json!({"job": 7}))]);
        (1..=rounds).map(poll).chain([says("Done.")])
    };
    let polling = |told: &Told| {
        let percent = AtomicU32::new(0);
        told.config().with_tool("poll", move |_| {
            let percent = percent.fetch_add(10, Ordering::Relaxed);
            async move { Ok::<_, String>(format!("{percent} %")) }
        })
    };
    let told = Told::new(polls(10));
    assert_eq!(told.run(polling(&told)).await.unwrap().rounds, 10);
    // Where results are not to count, it is one.
    let told = Told::new(polls(10));
    let config = LoopDetectorConfig { result_aware: false, ..LoopDetectorConfig::default() };
    let error = told.run(polling(&told).with_loop_detection(config)).await.unwrap_err();
    assert!(matches!(error, LlmError::LoopDetected { count: 6, .. }), "{error}");
}

// ---- what the tests share ----------------------------------------------------------------------

/// `read` in each of so many rounds, and an answer.
fn again(rounds: u32) -> impl Iterator<Item = Vec<StreamEvent>> {
    let round = |n| reply([call(&format!("c{n}"), "read", json!({"say": "same"}))]);
    (1..=rounds).map(round).chain([says("Done.")])
}

/// A model, and a ledger of all callbacks and tools.
struct Told {
    model: MockProvider,
    ledger: Ledger,
}

impl Told {
    fn new(replies: impl IntoIterator<Item = Vec<StreamEvent>>) -> Self {
        let model = MockProvider::default();
        for reply in replies {
            model.queue_stream(reply);
        }
        Self { model, ledger: Ledger::default() }
    }

    /// The act tools `read` and `write`, and every callback into the ledger.
    fn config(&self) -> ChatLoopConfig {
        let mut registry = ToolRegistry::new();
        registry.register(act("read", &self.ledger)).register(act("write", &self.ledger));
        let [on_content, on_thinking, on_calls, on_results] =
            std::array::from_fn(|_| self.ledger.clone());
        ChatLoopConfig::new()
            .with_registry(Arc::new(registry))
            .on_content(move |text| on_content.note(format_args!("content {text}")))
            .on_thinking(move |text| on_thinking.note(format_args!("thinking {text}")))
            .on_tool_calls(move |calls| {
                let ids: Vec<_> = calls.iter().map(|call| call.id.as_str()).collect();
                on_calls.note(format_args!("calls {}", ids.join(" ")));
            })
            .on_tool_results(move |results| {
                let results: Vec<_> = results
                    .iter()
                    .map(|result| {
                        let word = if result.is_error { "failed" } else { "ok" };
                        format!("{} {word}: {result}", result.tool_call_id)
                    })
                    .collect();
                on_results.note(format_args!("results {}", results.join(", ")));
            })
    }

    async fn run(&self, config: ChatLoopConfig) -> Result<ChatLoopResponse, LlmError> {
        let messages = vec![ChatMessage::user("Go")];
        let work = chat_loop_with_tools(&self.model, messages, Vec::new(), config);
        tokio::time::timeout(Duration::from_secs(5), work).await.expect("it ends")
    }
}
