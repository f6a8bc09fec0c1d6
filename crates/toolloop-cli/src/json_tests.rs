//! Every line is held against the schema, and the lines of UX that others rely on are exact.

use serde_json::json;
use toolloop_core::{RetryNotice, ToolResult, UsageSource};

use super::*;
use crate::exit::Exit;
use crate::model::Target;
use crate::summary::Cost;

fn face(output: JsonOutput) -> JsonFace<Vec<u8>> {
    JsonFace { out: Vec::new(), output, run: "kx4f".to_owned() }
}

fn lines(face: JsonFace<Vec<u8>>) -> Vec<Value> {
    let text = String::from_utf8(face.out).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn schema() -> jsonschema::Validator {
    let schema = include_str!("../schema/run-events.schema.json");
    jsonschema::validator_for(&serde_json::from_str(schema).unwrap()).unwrap()
}

fn ending(report: Option<Report>) -> Ending {
    let exit = report.as_ref().map_or(Exit::Answered, |report| report.exit);
    Ending {
        reason: if report.is_some() { Reason::Error } else { Reason::Complete },
        exit,
        text: "ok".into(),
        iterations: 2,
        tools: 1,
        usage: Usage { input_tokens: 5, output_tokens: 3, ..Usage::default() },
        elapsed: Duration::from_millis(1234),
        cost: Cost::Unknown,
        report,
    }
}

fn header<'a>(target: Option<&'a Target>) -> Header<'a> {
    Header {
        run: RunId::random(),
        target,
        folder: std::path::Path::new("/proj"),
        fell_back_to_demo: false,
        sandbox: None,
    }
}

/// One of each; a new event must be added here, or it goes unchecked.
fn every_event() -> Vec<LoopEvent> {
    let text = || "t".to_owned();
    let call = ToolCall { id: text(), name: text(), arguments: json!({"a": 1}) };
    vec![
        LoopEvent::TextDelta(text()),
        LoopEvent::ReasoningDelta(text()),
        LoopEvent::ToolCallStart { index: 0, id: text(), name: text() },
        LoopEvent::ToolCallDelta { index: 0, json_chunk: text() },
        LoopEvent::ToolCallComplete { index: 0, call },
        LoopEvent::Usage(Usage { source: UsageSource::Estimated, ..Usage::default() }),
        LoopEvent::IterationStart { iteration: 1, message_count: 2 },
        LoopEvent::MessagesInjected { count: 2 },
        LoopEvent::MessagesRepaired { repairs: vec![text()] },
        LoopEvent::SchemasReduced {
            schemas: [Some(text()), None]
                .map(|tool| ReducedSchema { tool, dropped: vec![text()] })
                .to_vec(),
        },
        LoopEvent::Compacted {
            method: CompactionMethod::Truncation,
            hidden_count: 3,
            tokens_before: 2,
            tokens_after: 1,
            fault: Some(text()),
        },
        LoopEvent::ToolExecutionStart { call_id: text(), tool_name: text(), arguments: json!({}) },
        LoopEvent::ToolExecutionEnd {
            call_id: text(),
            tool_name: text(),
            result: ToolResult { tool_call_id: text(), content: "x".into(), is_error: true },
            duration: Duration::from_millis(7),
        },
        LoopEvent::ToolCallRescued { index: 0, text: text() },
        LoopEvent::ToolCallRefused { call_id: text(), tool_name: text(), reason: text() },
        LoopEvent::ToolCallAnswered {
            call_id: text(),
            tool_name: text(),
            result: ToolResult { tool_call_id: text(), content: "x".into(), is_error: false },
        },
        LoopEvent::ToolProgress { call_id: text(), text: text() },
        LoopEvent::ToolResultProcessed {
            tool_name: text(),
            original_tokens: 2,
            processed_tokens: 1,
        },
        LoopEvent::ToolResultExtracted {
            tool_name: text(),
            original_tokens: 2,
            extracted_tokens: 1,
        },
        LoopEvent::ToolResultCached { tool_name: text(), original_tokens: 2, summary_tokens: 1 },
        LoopEvent::ObservationsMasked { masked_count: 1, tokens_saved: 2 },
        LoopEvent::LoopDetected {
            tool_name: text(),
            consecutive_count: 3,
            action: LoopAction::InjectWarning,
        },
        LoopEvent::AttemptDiscarded { attempt: 1 },
        LoopEvent::RetryScheduled(RetryNotice {
            attempt: 1,
            max_attempts: 5,
            delay: Duration::from_secs(2),
            reason: text(),
            may_have_cost: false,
        }),
        LoopEvent::RequestId(text()),
        LoopEvent::RateLimits(RateLimits { remaining_tokens: Some(3), ..RateLimits::default() }),
    ]
}

#[test]
fn every_line_fits_the_schema() {
    let mut face = face(JsonOutput::Events);
    face.begin(&header(None)).unwrap();
    for event in every_event() {
        let before = face.out.len();
        face.event(&event, Duration::ZERO).unwrap();
        assert!(face.out.len() > before, "no line for {event:?}");
    }
    let call = ToolCall { id: "c".into(), name: "bash".into(), arguments: json!({}) };
    face.approval_needed(&call).unwrap();
    let report = Report::new(Exit::Temporary, "rate_limit", "limited").advice("Wait.");
    face.end(&ending(Some(report)), Duration::ZERO).unwrap();
    let schema = schema();
    for line in lines(face) {
        assert!(schema.is_valid(&line), "{line}: {:?}", schema.validate(&line).err());
    }
}

#[test]
fn lines_are_exactly_as_promised() {
    let mut face = face(JsonOutput::Events);
    face.begin(&header(Some(&Target::demo("http://127.0.0.1:1".into())))).unwrap();
    face.event(&LoopEvent::TextDelta("I'll look".into()), Duration::ZERO).unwrap();
    face.end(&ending(None), Duration::ZERO).unwrap();
    assert_eq!(
        String::from_utf8(face.out).unwrap(),
        "{\"v\":1,\"type\":\"run\",\"run\":\"kx4f\",\"model\":\"demo\",\"cwd\":\"/proj\"}\n\
         {\"v\":1,\"type\":\"text_delta\",\"text\":\"I'll look\"}\n\
         {\"v\":1,\"type\":\"done\",\"reason\":\"complete\",\"text\":\"ok\",\"iterations\":2,\
         \"usage\":{\"input_tokens\":5,\"output_tokens\":3,\"reasoning_tokens\":null,\
         \"cache_read_tokens\":null,\"cache_write_tokens\":null,\"source\":\"reported\"},\
         \"cost_usd\":null,\"run\":\"kx4f\",\"exit_code\":0}\n"
    );
}

#[test]
fn an_error_names_its_cure_and_done_follows() {
    let mut face = face(JsonOutput::Events);
    let report = Report::new(Exit::NoModel, "auth", "OpenAI refused the key (401)")
        .quote("no")
        .advice("The key came from X.")
        .advice("Set another one.");
    face.end(&ending(Some(report)), Duration::ZERO).unwrap();
    let lines = lines(face);
    assert_eq!(
        lines[0],
        json!({
            "v": 1, "type": "error", "kind": "auth", "status": null,
            "message": "OpenAI refused the key (401): no",
            "cure": "The key came from X. Set another one.",
            "retryable": false, "request_id": null,
        })
    );
    assert_eq!((&lines[1]["type"], &lines[1]["exit_code"]), (&json!("done"), &json!(3)));
}

#[test]
fn final_is_the_last_line_alone() {
    let mut face = face(JsonOutput::Final);
    face.begin(&header(None)).unwrap();
    face.event(&LoopEvent::TextDelta("x".into()), Duration::ZERO).unwrap();
    face.end(&ending(None), Duration::ZERO).unwrap();
    let lines = lines(face);
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0]["type"], "done");
}
