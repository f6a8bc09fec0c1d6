//! Recorded streams of the Responses API, against what OpenAI's own SDK made of them.

use serde_json::{Value, json};
use toolloop_core::{StopReason, StreamEvent};
use toolloop_providers::codec::DecodeError;
use toolloop_providers::codec::openai_responses::ResponsesDecoder;

use crate::support::corpus::{assert_as_the_sdk, folder, read};
use crate::support::decode::{decode_as, text_of};

type Decoded = (Vec<StreamEvent>, Option<DecodeError>);

#[test]
fn recorded_streams_give_what_their_sdk_saw() {
    assert_as_the_sdk("openai-responses", 72, |stream, body, oracle| {
        let seen = summary(&decode_as::<ResponsesDecoder>([body]));
        let mut expected = expectation(oracle);
        if stream["provider"] == "deepseek" {
            // Thoughts in the open, which the SDK does not show.
            expected["reasoning"] = seen["reasoning"].clone();
        }
        if HOLDS_TWO_ANSWERS.iter().any(|file| stream["file"] == *file) {
            // The SDK saw the second one.
            for member in ["text", "usage"] {
                assert_ne!(seen[member], expected[member]);
                expected[member] = seen[member].clone();
            }
        }
        (seen, expected)
    });
}

/// The answer as a whole, without a stream, says the same.
#[test]
fn a_whole_answer_says_what_its_stream_says() {
    let Some(folder) = folder() else { return };
    let (mut compared, mut wrong) = (0, Vec::new());
    for stream in read(&folder.join("manifest.json"))["streams"].as_array().unwrap() {
        if stream["api"] != "openai-responses" {
            continue;
        }
        let body = std::fs::read_to_string(folder.join(stream["file"].as_str().unwrap())).unwrap();
        let last = body
            .lines()
            .filter_map(|line| line.strip_prefix("data: "))
            .rfind(|data| data.contains(r#""type":"response.completed""#));
        let Some(last) = last.and_then(|data| serde_json::from_str::<Value>(data).ok()) else {
            continue;
        };
        // Some servers leave the output out at the end.
        if last["response"]["output"].as_array().is_none_or(Vec::is_empty) {
            continue;
        }
        let streamed = decode_as::<ResponsesDecoder>([body.as_bytes()]);
        let (whole, streamed) = (summary(&document(&last["response"])), summary(&streamed));
        let differ = [HOLDS_TWO_ANSWERS, SHORTENED].concat();
        if whole != streamed && !differ.iter().any(|file| stream["file"] == *file) {
            wrong.push(format!("{}\n  whole    {whole}\n  streamed {streamed}", stream["file"]));
        }
        compared += 1;
    }
    println!("{compared} answers");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(compared > 50, "only {compared} answers found");
}

fn document(response: &Value) -> Decoded {
    use toolloop_providers::codec::{Decoder, Events};
    let (mut decoder, mut events) = (ResponsesDecoder::default(), Events::new());
    let error = decoder.handle_document(&response.to_string(), &mut events).err();
    (events.into(), error)
}

/// What we saw, in the oracle's words.
fn summary((events, error): &Decoded) -> Value {
    if let Some(error) = error {
        return json!({"error": error.to_string()});
    }
    let (mut reasoning, mut calls, mut usage) = (String::new(), Vec::new(), Value::Null);
    for event in events {
        match event {
            StreamEvent::ReasoningDelta(text) => reasoning += text,
            StreamEvent::ToolCallComplete { call, .. } => {
                calls.push(json!({"id": call.id, "name": call.name, "args": call.arguments}));
            }
            StreamEvent::Usage(figures) => {
                usage = json!({"input": figures.input_tokens, "output": figures.output_tokens});
            }
            _ => {}
        }
    }
    let Some(StreamEvent::Done { stop_reason }) = events.last() else { panic!("no end") };
    json!({
        "text": text_of(events), "reasoning": reasoning.replace("\n\n", ""), "tool_calls": calls,
        "encrypted": encrypted_thoughts(events), "stop": stop_reason.to_string(), "usage": usage,
    })
}

fn encrypted_thoughts(events: &[StreamEvent]) -> usize {
    let kept = events.iter().filter_map(|event| match event {
        StreamEvent::ProviderData { data, .. } => {
            Some(serde_json::from_str::<Value>(&data.data).unwrap())
        }
        _ => None,
    });
    kept.filter(|item| item["type"] == "reasoning" && item["encrypted_content"].is_string()).count()
}

/// What the SDK saw, in our words.
fn expectation(oracle: &Value) -> Value {
    if oracle["ok"] == false {
        let error = oracle["error"].as_str().unwrap();
        let error = error.trim_start_matches("APIError: ");
        return match error.starts_with("JSONDecodeError") {
            // Recorded as JSON that breaks off.
            true => json!({"error": "EOF while parsing an object at line 1 column 507"}),
            false => json!({"error": error}),
        };
    }
    // A call that was cut is shown by the SDK with its text; with us it is not complete.
    let calls: Vec<_> = oracle["tool_calls"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|call| call["args"].is_object())
        .cloned()
        .collect();
    let stop = match oracle["stop"].as_str() {
        Some("completed") if calls.is_empty() => StopReason::EndTurn,
        Some("completed") => StopReason::ToolUse,
        Some("incomplete") => StopReason::MaxTokens,
        other => panic!("a stop reason nobody recorded before: {other:?}"),
    };
    // The SDK puts the parts of a summary together without a break between.
    let reasoning = oracle["reasoning"].as_str().unwrap().replace("\n\n", "");
    json!({
        "text": oracle["text"], "reasoning": reasoning, "tool_calls": calls,
        "encrypted": oracle["encrypted"], "stop": stop.to_string(), "usage": oracle["usage"],
    })
}

const HOLDS_TWO_ANSWERS: [&str; 1] = ["openai/vercel-ai__openai-shell-tool.1.sse"];

/// Recordings whose deltas somebody shortened by hand.
const SHORTENED: [&str; 1] = ["openai/vercel-ai__openai-shell-container.1.sse"];
