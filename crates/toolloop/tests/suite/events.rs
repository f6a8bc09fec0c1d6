//! What a follower of a run sees, and when.

use std::sync::Arc;
use std::time::Duration;

use insta::assert_snapshot;
use serde_json::{Value, json};
use toolloop::provider::BoxFuture;
use toolloop::tool::{
    CachedResult, CallContext, CompactionMethod, ExtractedResult, LoopAction, ProcessedResult,
    StopDecision, ToolApproval, ToolFuture, ToolHandler, ToolLoopConfig, ToolLoopResult,
    ToolResultCacher, ToolResultExtractor, ToolResultProcessor, tool_loop,
};
use toolloop::{
    ChatMessage, ChatResponse, ContentBlock, LoopEvent, ProviderData, RateLimits, StreamEvent,
    TerminationReason, ToolCall, ToolDefinition, ToolResult, Usage,
};

use super::support::{Sim, act, call, reply, says, text, thought};

#[tokio::test(start_paused = true)]
async fn a_quick_tool_is_heard_of_while_a_slow_one_runs() {
    let told = Sim::new([
        reply([
            call("slow", "read", json!({"ms": 1000, "progress": ["opened", "half"]})),
            call("quick", "write", json!({"ms": 10})),
            call("wrong", "write", json!({"ms": 20, "fail": "disk full"})),
        ]),
        says("done"),
    ])
    .run()
    .await;
    assert_snapshot!(told.timed_story(), @r#"
       0 iteration 1, messages 1
       0 call 0: slow read({"ms":1000,"progress":["opened","half"]})
       0 call 1: quick write({"ms":10})
       0 call 2: wrong write({"ms":20,"fail":"disk full"})
       0 usage 10 in · 1 out
       0 start slow read({"ms":1000,"progress":["opened","half"]})
       0 start quick write({"ms":10})
       0 start wrong write({"ms":20,"fail":"disk full"})
       0 progress slow: opened
       0 progress slow: half
      10 end quick ok: quick ran in 10ms
      20 end wrong failed: disk full in 20ms
    1000 end slow ok: slow ran in 1s
    1000 iteration 2, messages 5
    1000 text "done"
    1000 usage 10 in · 1 out
         done: Complete, iterations 2, 20 in · 2 out
    "#);
    assert_snapshot!(told.transcript(), @r#"
    user: Go
    assistant: slow read({"ms":1000,"progress":["opened","half"]}) | quick write({"ms":10}) | wrong write({"ms":20,"fail":"disk full"})
    tool: slow ok: slow ran
    tool: quick ok: quick ran
    tool: wrong failed: disk full
    assistant: done
    "#);
}

#[tokio::test(start_paused = true)]
async fn progress_is_heard_as_it_is_told_also_from_another_task() {
    struct Reports;
    impl ToolHandler for Reports {
        fn definition(&self) -> ToolDefinition {
            act("report", &Default::default()).definition
        }
        fn execute<'a>(&'a self, _: Value, (): &'a ()) -> ToolFuture<'a> {
            unreachable!("the loop uses `call`")
        }
        fn call<'a>(&'a self, _: Value, call: &'a CallContext, (): &'a ()) -> ToolFuture<'a> {
            Box::pin(async move {
                let elsewhere = call.clone();
                let task = tokio::spawn(async move {
                    for n in 1..=3 {
                        tokio::time::sleep(Duration::from_millis(10)).await;
                        elsewhere.progress(format!("step {n}"));
                    }
                });
                tokio::time::sleep(Duration::from_millis(100)).await;
                task.await.unwrap();
                call.progress("last words");
                Ok("reported".into())
            })
        }
    }
    let mut sim = Sim::new([reply([call("a", "report", json!({}))]), says("done")]);
    sim.tools.register(Reports);
    assert_snapshot!(sim.run().await.timed_story(), @r#"
      0 iteration 1, messages 1
      0 call 0: a report({})
      0 usage 10 in · 1 out
      0 start a report({})
     10 progress a: step 1
     20 progress a: step 2
     30 progress a: step 3
    100 progress a: last words
    100 end a ok: reported in 100ms
    100 iteration 2, messages 3
    100 text "done"
    100 usage 10 in · 1 out
        done: Complete, iterations 2, 20 in · 2 out
    "#);
}

#[tokio::test(start_paused = true)]
async fn of_more_progress_than_anyone_reads_the_oldest_goes_first() {
    let lines: Vec<_> = (0..3_000).map(|n| n.to_string()).collect();
    let told = Sim::new([reply([call("a", "read", json!({"progress": lines}))]), says("done")])
        .run()
        .await;
    let heard: Vec<_> = told
        .moments
        .iter()
        .filter_map(|moment| match &moment.event {
            LoopEvent::ToolProgress { text, .. } => Some(text.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(heard, lines[3_000 - heard.len()..]);
    assert!(heard.len() >= 1_000, "{}", heard.len());
}

#[tokio::test(start_paused = true)]
async fn all_that_a_provider_says_is_passed_on_or_kept() {
    let data = |data: &str| ProviderData { api: "test".into(), data: data.into() };
    let told = Sim::new([
        reply([
            StreamEvent::Model("model-1".into()),
            StreamEvent::RequestId("req_1".into()),
            StreamEvent::RateLimits(RateLimits {
                remaining_requests: Some(9),
                ..RateLimits::default()
            }),
            thought("Hm, "),
            thought("read it."),
            StreamEvent::ProviderData { index: None, data: data("signature") },
            text("Reading."),
            StreamEvent::ToolCallStart { index: 0, id: "a".into(), name: "read".into() },
            StreamEvent::ToolCallStart { index: 1, id: "b".into(), name: "read".into() },
            StreamEvent::ProviderData { index: Some(0), data: data("of a") },
        ]),
        says("done"),
    ])
    .run()
    .await;
    assert_snapshot!(told.story(), @r#"
    iteration 1, messages 1
    RequestId("req_1")
    RateLimits(RateLimits { remaining_requests: Some(9), remaining_tokens: None, reset_requests: None, reset_tokens: None })
    thought "Hm, "
    thought "read it."
    text "Reading."
    call 0 begins: a read
    call 1 begins: b read
    usage 10 in · 1 out
    start a read({})
    start b read({})
    end a ok: a ran
    end b ok: b ran
    iteration 2, messages 4
    text "done"
    usage 10 in · 1 out
    done: Complete, iterations 2, 20 in · 2 out
    "#);
    assert_snapshot!(told.transcript(), @r#"
    user: Go
    assistant: <Hm, read it.> | ProviderData(ProviderData { api: "test", data: "signature" }) | Reading. | a read({}) | ProviderData(ProviderData { api: "test", data: "of a" }) | b read({})
    tool: a ok: a ran
    tool: b ok: b ran
    assistant: done
    "#);
    let first = &told.model.recorded_calls()[1].messages[1].content;
    let behind: Vec<_> = first
        .windows(2)
        .filter_map(|pair| match pair {
            [ContentBlock::Reasoning { .. }, ContentBlock::ProviderData(data)] => {
                Some(("thought", data.data.as_str()))
            }
            [ContentBlock::ToolCall(call), ContentBlock::ProviderData(data)] => {
                Some((call.id.as_str(), data.data.as_str()))
            }
            _ => None,
        })
        .collect();
    assert_eq!(behind, [("thought", "signature"), ("a", "of a")]);
}

#[tokio::test(start_paused = true)]
async fn tool_loop_gives_what_the_stream_ends_with() {
    let script = || Sim::new([reply([text("Hm."), call("a", "read", json!({}))]), says("done")]);
    let streamed = script().run().await;
    let sim = script();
    let waited = tool_loop(&*sim.model, &sim.tools, sim.params, sim.config, &()).await.unwrap();
    assert_eq!(&waited, streamed.result());
}

#[test]
fn events_are_serialised_by_their_names() {
    let call = ToolCall { id: "a".into(), name: "read".into(), arguments: json!({"path": "x"}) };
    let result = ToolResult { tool_call_id: "a".into(), content: "text".into(), is_error: false };
    let usage = Usage { input_tokens: 10, output_tokens: 1, ..Usage::default() };
    let (id, tool) = (|| "a".to_owned(), || "read".to_owned());
    let events = [
        LoopEvent::TextDelta("Hi".into()),
        LoopEvent::ReasoningDelta("Hm".into()),
        LoopEvent::ToolCallStart { index: 0, id: id(), name: tool() },
        LoopEvent::ToolCallDelta { index: 0, json_chunk: "{".into() },
        LoopEvent::ToolCallComplete { index: 0, call },
        LoopEvent::Usage(usage),
        LoopEvent::IterationStart { iteration: 1, message_count: 2 },
        LoopEvent::ToolExecutionStart { call_id: id(), tool_name: tool(), arguments: json!({}) },
        LoopEvent::ToolExecutionEnd {
            call_id: id(),
            tool_name: tool(),
            result,
            duration: Duration::from_millis(1500),
        },
        LoopEvent::ToolResultProcessed {
            tool_name: tool(),
            original_tokens: 2,
            processed_tokens: 1,
        },
        LoopEvent::ToolResultExtracted {
            tool_name: tool(),
            original_tokens: 2,
            extracted_tokens: 1,
        },
        LoopEvent::ToolResultCached { tool_name: tool(), original_tokens: 2, summary_tokens: 1 },
        LoopEvent::ObservationsMasked { masked_count: 1, tokens_saved: 2 },
        LoopEvent::HistoryPruned { turns: 1, tokens_saved: 2 },
        LoopEvent::Compacted {
            method: CompactionMethod::Summary,
            hidden_count: 4,
            tokens_before: 9,
            tokens_after: 5,
            fault: None,
        },
        LoopEvent::LoopDetected {
            tool_name: tool(),
            consecutive_count: 3,
            action: LoopAction::InjectWarning,
        },
        LoopEvent::ToolCallRefused { call_id: id(), tool_name: tool(), reason: "no".into() },
        LoopEvent::ToolCallAnswered {
            call_id: id(),
            tool_name: tool(),
            result: ToolResult { tool_call_id: id(), content: "yes".into(), is_error: false },
        },
        LoopEvent::ToolProgress { call_id: id(), text: "half".into() },
        LoopEvent::AttemptDiscarded { attempt: 1 },
        LoopEvent::Done(ToolLoopResult {
            response: ChatResponse::default(),
            iterations: 1,
            total_usage: usage,
            termination_reason: TerminationReason::Timeout { limit: Duration::from_secs(1) },
            messages: vec![ChatMessage::user("Hi")],
        }),
    ];
    let lines = events.map(|event| serde_json::to_string(&event).unwrap());
    assert_snapshot!(lines.join("\n"), @r#"
    {"text_delta":"Hi"}
    {"reasoning_delta":"Hm"}
    {"tool_call_start":{"index":0,"id":"a","name":"read"}}
    {"tool_call_delta":{"index":0,"json_chunk":"{"}}
    {"tool_call_complete":{"index":0,"call":{"id":"a","name":"read","arguments":{"path":"x"}}}}
    {"usage":{"input_tokens":10,"output_tokens":1,"reasoning_tokens":null,"cache_read_tokens":null,"cache_write_tokens":null,"source":"reported"}}
    {"iteration_start":{"iteration":1,"message_count":2}}
    {"tool_execution_start":{"call_id":"a","tool_name":"read","arguments":{}}}
    {"tool_execution_end":{"call_id":"a","tool_name":"read","result":{"tool_call_id":"a","content":"text","is_error":false},"duration":{"secs":1,"nanos":500000000}}}
    {"tool_result_processed":{"tool_name":"read","original_tokens":2,"processed_tokens":1}}
    {"tool_result_extracted":{"tool_name":"read","original_tokens":2,"extracted_tokens":1}}
    {"tool_result_cached":{"tool_name":"read","original_tokens":2,"summary_tokens":1}}
    {"observations_masked":{"masked_count":1,"tokens_saved":2}}
    {"history_pruned":{"turns":1,"tokens_saved":2}}
    {"compacted":{"method":"summary","hidden_count":4,"tokens_before":9,"tokens_after":5,"fault":null}}
    {"loop_detected":{"tool_name":"read","consecutive_count":3,"action":"inject_warning"}}
    {"tool_call_refused":{"call_id":"a","tool_name":"read","reason":"no"}}
    {"tool_call_answered":{"call_id":"a","tool_name":"read","result":{"tool_call_id":"a","content":"yes","is_error":false}}}
    {"tool_progress":{"call_id":"a","text":"half"}}
    {"attempt_discarded":{"attempt":1}}
    {"done":{"response":{"content":[],"usage":{"input_tokens":0,"output_tokens":0,"reasoning_tokens":null,"cache_read_tokens":null,"cache_write_tokens":null,"source":"reported"},"stop_reason":"end_turn","model":""},"iterations":1,"total_usage":{"input_tokens":10,"output_tokens":1,"reasoning_tokens":null,"cache_read_tokens":null,"cache_write_tokens":null,"source":"reported"},"termination_reason":{"timeout":{"limit":{"secs":1,"nanos":0}}},"messages":[{"role":"user","content":[{"text":"Hi"}]}]}}
    "#);
}

#[test]
fn a_configuration_shows_which_callbacks_it_has() {
    let without = ToolLoopConfig::default();
    let with = ToolLoopConfig {
        on_tool_call: Some(Arc::new(|_| ToolApproval::Approve)),
        stop_when: Some(Arc::new(|_| StopDecision::Continue)),
        result_processor: Some(Arc::new(NoStage)),
        result_extractor: Some(Arc::new(NoStage)),
        result_cacher: Some(Arc::new(NoStage)),
        force_mask_iterations: Some(Arc::default()),
        ..ToolLoopConfig::default()
    };
    let (without, with) = (format!("{without:?}"), format!("{with:?}"));
    for name in [
        "on_tool_call",
        "stop_when",
        "result_processor",
        "result_extractor",
        "result_cacher",
        "force_mask_iterations",
    ] {
        assert!(without.contains(&format!("has_{name}: false")), "{without}");
        assert!(with.contains(&format!("has_{name}: true")), "{with}");
    }
}

struct NoStage;

impl ToolResultProcessor for NoStage {
    fn process(&self, _: &str, _: &str) -> ProcessedResult {
        ProcessedResult::unchanged()
    }
}

impl ToolResultExtractor for NoStage {
    fn extract<'a>(
        &'a self,
        _: &'a str,
        _: &'a str,
        _: &'a str,
    ) -> BoxFuture<'a, Option<ExtractedResult>> {
        Box::pin(async { None })
    }
}

impl ToolResultCacher for NoStage {
    fn cache(&self, _: &str, _: &str) -> Option<CachedResult> {
        None
    }
}
