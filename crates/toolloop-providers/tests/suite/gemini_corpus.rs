//! The Gemini API on recordings: streams against what the SDK saw, dialogues that go on as
//! recorded, errors.

use serde_json::{Value, json};
use toolloop_core::{
    ChatMessage, ChatParams, ChatResponse, ChatRole, ContentBlock, ReplyAssembler, StopReason,
    StreamEvent, Usage,
};
use toolloop_providers::codec::gemini::{GeminiDecoder, encode};
use toolloop_providers::codec::{Decoder, Events};

use crate::support::corpus::{assert_as_the_sdk, folder, read};
use crate::support::decode::{decode_as, text_of};

#[test]
fn recorded_streams_give_what_their_sdk_saw() {
    assert_as_the_sdk("gemini", 31, |stream, body, oracle| {
        let (events, error) = decode_as::<GeminiDecoder>([body]);
        assert_eq!(error, None, "{}", stream["file"]);
        (summary(&events), expectation(stream, oracle, &String::from_utf8_lossy(body)))
    });
}

/// What we saw, in the oracle's words.
fn summary(events: &[StreamEvent]) -> Value {
    let mut reasoning = String::new();
    let (mut calls, mut signatures, mut usage, mut stop) = (Vec::new(), 0, Usage::default(), None);
    for event in events {
        match event {
            StreamEvent::ReasoningDelta(text) => reasoning.push_str(text),
            StreamEvent::ToolCallComplete { call, .. } => {
                calls.push(json!({"name": call.name, "args": call.arguments}));
            }
            StreamEvent::ProviderData { data, .. } => {
                signatures += usize::from(data.data.contains("\"thoughtSignature\":"));
            }
            StreamEvent::Usage(figures) => usage = *figures,
            StreamEvent::Done { stop_reason } => stop = Some(stop_reason.to_string()),
            _ => {}
        }
    }
    json!({
        "text": text_of(events), "reasoning": reasoning, "calls": calls, "stop": stop,
        "signatures": signatures, "usage": [usage.input_tokens, usage.output_tokens],
    })
}

/// What the SDK saw, in our words. Where we see more than the SDK shows, it is said here.
fn expectation(stream: &Value, oracle: &Value, body: &str) -> Value {
    let calls = oracle["tool_calls"].as_array().unwrap();
    let file = stream["file"].as_str().unwrap();
    let calls: Vec<_> = match () {
        // The SDK does not put the pieces of a call together.
        () if file.contains("no-args-tool-call") => {
            let screen = |id: &str| json!({"name": "read_screen", "args": {"id": id}});
            let theme = json!({"name": "read_theme", "args": {}});
            vec![theme, screen("A"), screen("B"), screen("C")]
        }
        () if file.contains("array-arguments-missing-terminal") => {
            let operations = json!([
                {"action": "add", "description": "Fresh red apple", "itemid": "apple_001", "price": 0.5},
                {"action": "add", "description": "Ripe yellow banana", "itemid": "banana_001", "price": 0.3},
            ]);
            vec![json!({"name": "writeItems", "args": {"operations": operations}})]
        }
        () => calls.iter().map(|c| json!({"name": c["name"], "args": c["args"]})).collect(),
    };
    let stop = match oracle["stop"].as_str().unwrap() {
        "STOP" if calls.is_empty() => StopReason::EndTurn,
        "STOP" => StopReason::ToolUse,
        "MAX_TOKENS" => StopReason::MaxTokens,
        other => panic!("a stop reason nobody recorded before: {other}"),
    };
    let figure = |name: &str| oracle["usage"][name].as_u64().unwrap_or(0);
    // What tools on the server gave the model to read; the oracle leaves it out.
    let read = body.rsplit_once("\"toolUsePromptTokenCount\":").map_or(0, |(_, rest)| {
        let digits: String = rest.trim_start().chars().take_while(char::is_ascii_digit).collect();
        digits.parse().unwrap()
    });
    json!({
        "text": oracle["text"], "reasoning": oracle["reasoning"], "calls": calls,
        "stop": stop.to_string(), "signatures": oracle["signatures"],
        "usage": [figure("input") + read, figure("output") + figure("thoughts")],
    })
}

#[test]
fn recorded_dialogues_go_on_as_recorded() {
    let Some(folder) = folder() else { return };
    let mut files: Vec<_> = std::fs::read_dir(folder.join("_dialogues"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("gemini__"))
        .collect();
    files.sort();
    let mut compared = 0;
    for path in &files {
        let dialogue = read(path);
        let steps = dialogue["steps"].as_array().unwrap();
        let mut messages = Vec::new();
        let mut known = 0;
        for pair in steps.windows(2) {
            let (step, next) = (&pair[0], &pair[1]);
            let (before, after) = (contents(&step["request"]), contents(&next["request"]));
            if after.len() <= before.len() {
                // Another conversation begins.
                break;
            }
            messages.extend(before[known..].iter().map(user_message));
            let reply = reply(step["body"].as_str().unwrap());
            let calls: Vec<_> = reply.tool_calls_iter().map(|call| call.id.clone()).collect();
            messages.push(ChatMessage { role: ChatRole::Assistant, content: reply.content });
            // What the recorded client said next, with our ids.
            let mut ids = calls.into_iter();
            for content in &after[before.len() + 1..] {
                messages.extend(results(content, &mut ids));
                if content["parts"][0]["functionResponse"].is_null() {
                    messages.push(user_message(content));
                }
            }
            known = after.len();
            let model = step["path"].as_str().unwrap().rsplit_once("models/").unwrap().1;
            let params = ChatParams { messages: messages.clone(), ..ChatParams::default() };
            let ours = encode(model.split(':').next().unwrap(), &params).unwrap();
            let ours: Value = serde_json::from_slice(&ours).unwrap();
            assert_eq!(
                said(contents(&ours)),
                said(after),
                "{}, request {compared}",
                path.display()
            );
            compared += 1;
        }
    }
    println!("{compared} requests of {} dialogues", files.len());
    assert!(compared >= 25, "only {compared} requests found");
}

fn contents(request: &Value) -> &[Value] {
    request["contents"].as_array().unwrap()
}

fn reply(body: &str) -> ChatResponse {
    let (events, error) = match body.trim_start().starts_with('{') {
        true => {
            let mut events = Events::new();
            let error = GeminiDecoder::default().handle_document(body, &mut events).err();
            (events.into(), error)
        }
        false => decode_as::<GeminiDecoder>([body.as_bytes()]),
    };
    assert_eq!(error, None);
    let mut assembler = ReplyAssembler::detached();
    for event in events {
        assembler.push(event).unwrap();
    }
    assembler.into_response().unwrap()
}

fn user_message(content: &Value) -> ChatMessage {
    let texts = content["parts"].as_array().unwrap().iter();
    let blocks = texts.map(|part| ContentBlock::Text(part["text"].as_str().unwrap().to_owned()));
    ChatMessage { role: ChatRole::User, content: blocks.collect() }
}

/// The results of a recorded turn, last one first: the order is ours to restore.
fn results(content: &Value, ids: &mut impl Iterator<Item = String>) -> Vec<ChatMessage> {
    let parts = content["parts"].as_array().unwrap().iter();
    let responses = parts.filter(|part| part["functionResponse"].is_object());
    let mut messages: Vec<_> = responses
        .map(|part| {
            let text = outcome(&part["functionResponse"]["response"]);
            ChatMessage::tool_result(ids.next().unwrap(), text)
        })
        .collect();
    messages.reverse();
    messages
}

/// What a tool gave, whatever object a client puts around it.
fn outcome(response: &Value) -> String {
    let text = [&response["result"], &response["return_value"], &response["content"][0]["text"]];
    let text = text.into_iter().find(|value| !value.is_null()).unwrap();
    text.as_str().map_or_else(|| text.to_string(), str::to_owned)
}

/// What turns say: speaker, text, calls with their signatures, results. How text is cut, how ids
/// are made and which of the two alphabets of Base64 is used may differ; thoughts without a
/// signature need not go back.
fn said(contents: &[Value]) -> Vec<Value> {
    let mut turns = Vec::new();
    for content in contents {
        let mut text = String::new();
        let mut calls = Vec::new();
        let mut results = Vec::new();
        let mut signatures = Vec::new();
        for part in content["parts"].as_array().unwrap() {
            let signature = part["thoughtSignature"].as_str();
            let signature = signature.map(|s| s.replace('-', "+").replace('_', "/"));
            if let Some(call) = part["functionCall"].as_object() {
                calls.push(json!([call["name"], call["args"], signature]));
            } else if let Some(response) = part["functionResponse"].as_object() {
                results.push(json!([response["name"], outcome(&response["response"])]));
            } else if part["thought"] != true || signature.is_some() {
                text.push_str(part["text"].as_str().unwrap_or_default());
                signatures.extend(signature);
            }
        }
        turns.push(json!([content["role"], text.trim_end(), calls, results, signatures]));
    }
    turns
}

#[test]
fn recorded_errors_are_told_apart() {
    use toolloop_providers::codec::ApiError;
    let Some(folder) = folder() else { return };
    let mut seen = Vec::new();
    for error in read(&folder.join("errors.json")).as_array().unwrap() {
        if error["api"] == "gemini" {
            let error = ApiError::parse(error["body"].as_str().unwrap()).unwrap();
            let wait = error.retry_after.map(|wait| wait.as_secs());
            seen.push((error.status.unwrap(), error.code.clone().unwrap(), wait));
        }
    }
    seen.sort();
    let expected = [
        (400, "INVALID_ARGUMENT", None),
        (400, "invalid_api_key", None),
        (404, "NOT_FOUND", None),
        (404, "NOT_FOUND", None),
        (429, "RESOURCE_EXHAUSTED", Some(48)),
    ];
    assert_eq!(seen, expected.map(|(status, code, wait)| (status, code.to_owned(), wait)));
}
