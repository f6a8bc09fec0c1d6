//! Streams recorded from real providers, against what the provider's own SDK made of them.

use serde_json::{Value, json};
use toolloop_core::{StopReason, StreamEvent, Usage};

use crate::support::corpus::assert_as_the_sdk;
use crate::support::decode::{decode, text_of};

#[test]
fn recorded_streams_give_what_their_sdk_saw() {
    assert_as_the_sdk("openai-chat", 148, |stream, body, oracle| {
        let (events, error) = decode([body]);
        let seen = match error {
            Some(error) => json!({"error": error.to_string()}),
            None => summary(&events),
        };
        (seen, expectation(stream, oracle, &events))
    });
}

/// What we saw, in the oracle's words.
fn summary(events: &[StreamEvent]) -> Value {
    let reasoning: String = events
        .iter()
        .filter_map(|event| match event {
            StreamEvent::ReasoningDelta(text) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    let calls: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            StreamEvent::ToolCallComplete { call, .. } => {
                Some(json!({"id": call.id, "name": call.name, "args": call.arguments}))
            }
            _ => None,
        })
        .collect();
    let stop = match events.last() {
        Some(StreamEvent::Done { stop_reason }) => stop_reason.to_string(),
        _ => "none".to_owned(),
    };
    json!({
        "text": text_of(events), "reasoning": reasoning, "tool_calls": calls, "stop": stop,
        "usage": usage(events).map(|usage| (usage.input_tokens, usage.output_tokens)),
    })
}

fn usage(events: &[StreamEvent]) -> Option<Usage> {
    events.iter().rev().find_map(|event| match event {
        StreamEvent::Usage(usage) => Some(*usage),
        _ => None,
    })
}

/// What the SDK saw, in our words. Where we see more than the SDK shows, it is said here.
fn expectation(stream: &Value, oracle: &Value, events: &[StreamEvent]) -> Value {
    if oracle["ok"] == false {
        let error = oracle["error"].as_str().unwrap();
        return json!({"error": error.trim_start_matches("APIError: ")});
    }
    let refused = stream["features"].as_array().unwrap().contains(&json!("refusal"));
    let stop = match oracle["stop"].as_str() {
        Some("stop") if refused => StopReason::Refusal,
        // One stream ends with its end marker alone.
        Some("stop") | None => StopReason::EndTurn,
        Some("length") => StopReason::MaxTokens,
        Some("tool_calls") => StopReason::ToolUse,
        Some(other) => panic!("a stop reason nobody recorded before: {other}"),
    };
    let calls = oracle["tool_calls"].as_array().unwrap().iter().filter_map(|call| {
        let arguments = match &call["args_unparsable"] {
            // Nothing of the arguments came before the limit; the SDK reads that as none.
            Value::Null if stop == StopReason::MaxTokens && call["args"] == json!({}) => {
                return None;
            }
            Value::Null => &call["args"],
            // Cut by the limit, a call is not complete.
            _ if stop == StopReason::MaxTokens => return None,
            text => text,
        };
        Some(json!({"id": call["id"], "name": call["name"], "args": arguments}))
    });
    let figures = oracle["usage"].as_object().map(|figures| {
        let apart = match stream["provider"].as_str() {
            // Counts reasoning beside the output; we count it in.
            Some("xai") => usage(events).unwrap().reasoning_tokens.unwrap(),
            _ => 0,
        };
        (figures["input"].as_u64().unwrap(), figures["output"].as_u64().unwrap() + apart)
    });
    json!({
        // The SDK keeps the words of a refusal apart from the text.
        "text": if refused { json!(text_of(events)) } else { oracle["text"].clone() },
        "reasoning": oracle["reasoning"], "tool_calls": calls.collect::<Vec<_>>(),
        "stop": stop.to_string(), "usage": figures,
    })
}
