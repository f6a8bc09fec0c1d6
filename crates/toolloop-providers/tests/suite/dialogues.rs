//! Recorded dialogues: after the recorded reply, our next request says what the recorded one
//! said, which the real API accepted.

use bytes::Bytes;
use std::collections::BTreeMap;

use serde_json::{Value, json};
use toolloop_core::{ChatMessage, ChatParams, ChatRole, ReplyAssembler};
use toolloop_providers::codec::openai_chat::{self, ChatDecoder};
use toolloop_providers::codec::openai_responses::{self, ResponsesDecoder};
use toolloop_providers::codec::{DecodeError, Decoder, Events};

use crate::support::corpus::{folder, read};
use crate::support::decode::decode_as;

#[test]
fn responses_dialogues_go_on_as_recorded() {
    use openai_responses::{Quirks, encode};
    let Some(steps) = steps("openai-responses") else { return };
    let compared = compare(steps, "input", |step, recorded| {
        // A search for tools is run by the client there; we offer no such tool.
        if recorded.iter().any(|item| item["type"] == "tool_search_output") {
            return None;
        }
        let quirks = match step.provider.as_str() {
            "xai" | "deepseek" => Quirks::compatible("gpt-5"),
            _ => Quirks::openai("gpt-5"),
        };
        let messages = step.continued::<ResponsesDecoder>(recorded)?;
        let params = ChatParams { messages, ..ChatParams::default() };
        Some(encode("m", &params, &quirks).unwrap())
    });
    assert!(compared > 30, "only {compared} steps found");
}

#[test]
fn chat_dialogues_go_on_as_recorded() {
    use openai_chat::{Quirks, encode};
    let Some(steps) = steps("openai-chat") else { return };
    let compared = compare(steps, "messages", |step, recorded| {
        let messages = step.continued::<ChatDecoder>(recorded)?;
        let params = ChatParams { messages, ..ChatParams::default() };
        Some(encode("m", &params, &Quirks::compatible()).unwrap())
    });
    assert!(compared > 60, "only {compared} steps found");
}

/// Compares what was recorded after each step with what `encode` makes of it; gives how many
/// steps there were.
fn compare(
    steps: Vec<Step>,
    member: &str,
    encode: impl Fn(&Step, &[Value]) -> Option<Bytes>,
) -> usize {
    let (mut compared, mut wrong) = (0, String::new());
    for step in steps {
        let Some(recorded) = step.tail(member) else { continue };
        let Some(body) = encode(&step, &recorded) else { continue };
        let body: Value = serde_json::from_slice(&body).unwrap();
        let strict = match member {
            "input" => toolloop_fake::openai_responses::validate(&body),
            _ => toolloop_fake::openai_chat::validate(&body),
        };
        // DeepSeek's thoughts lie open and have ids of their own form; OpenAI refuses both.
        if step.provider != "deepseek" {
            assert_eq!(strict, Ok(()), "{}", step.name);
        }
        let (sent, recorded) = (said(body[member].as_array().unwrap()), said(&recorded));
        if sent != recorded {
            let (sent, recorded) = (json!(sent), json!(recorded));
            wrong += &format!("{}\n  sent     {sent}\n  recorded {recorded}\n", step.name);
        }
        compared += 1;
    }
    println!("{compared} steps");
    assert!(wrong.is_empty(), "{wrong}");
    compared
}

/// A request with its reply, and the request after it.
struct Step {
    name: String,
    provider: String,
    request: Value,
    body: String,
    next: Value,
}

/// All steps that have a next one; `None` without recordings.
fn steps(api: &str) -> Option<Vec<Step>> {
    let folder = folder()?.join("_dialogues");
    let mut files: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut steps = Vec::new();
    for path in files {
        let dialogue = read(&path);
        let name = path.file_stem().unwrap().to_str().unwrap();
        if dialogue["api"] != api || name == NOT_CONTINUED {
            continue;
        }
        for (at, pair) in dialogue["steps"].as_array().unwrap().windows(2).enumerate() {
            let [step, next] = pair else { unreachable!() };
            if step["status"] != 200 || next["status"] != 200 {
                continue;
            }
            steps.push(Step {
                name: format!("{name} step {at}"),
                provider: dialogue["provider"].as_str().unwrap().to_owned(),
                request: step["request"].clone(),
                body: step["body"].as_str().unwrap().to_owned(),
                next: next["request"].clone(),
            });
        }
    }
    Some(steps)
}

impl Step {
    /// What the next request says beyond this one, from the model's reply on; `None` where it
    /// does not go on with it. One client left its first question out.
    fn tail(&self, member: &str) -> Option<Vec<Value>> {
        let (before, after) = (self.request[member].as_array()?, self.next[member].as_array()?);
        let same = before.iter().zip(after).take_while(|(before, after)| before == after).count();
        let is_models = |item: &Value| {
            let kind = item["type"].as_str().filter(|kind| *kind != "message");
            kind.or(item["role"].as_str()).is_some_and(|who| !["user", "system"].contains(&who))
        };
        let from = after[same..].iter().position(is_models)?;
        Some(after[same + from..].to_vec())
    }

    /// Our conversation from this step's reply on: the reply, and what the recorded client said
    /// then. `None` where the provider did not reply.
    fn continued<D: Decoder>(&self, recorded: &[Value]) -> Option<Vec<ChatMessage>> {
        let reply = self.reply::<D>()?;
        // Some clients renamed the calls.
        let ids: BTreeMap<_, _> = calls(recorded)
            .map(|call| call_id(call).to_owned())
            .zip(reply.tool_calls().map(|call| call.id.clone()))
            .collect();
        let mut history = vec![reply];
        for message in recorded {
            let result = || {
                let output =
                    message.get("output").map(|output| output.as_str().unwrap().to_owned());
                ChatMessage::tool_result(
                    &ids[call_id(message)],
                    output.unwrap_or_else(|| text(message)),
                )
            };
            match (message["type"].as_str(), message["role"].as_str()) {
                (Some("function_call_output"), _) | (_, Some("tool")) => history.push(result()),
                (_, Some("user")) => history.push(ChatMessage::user(text(message))),
                _ => {}
            }
        }
        Some(history)
    }

    fn reply<D: Decoder>(&self) -> Option<ChatMessage> {
        let events = match self.body.trim_start().starts_with('{') {
            true => {
                let (mut decoder, mut events) = (D::default(), Events::new());
                decoder.handle_document(&self.body, &mut events).unwrap();
                events.into()
            }
            false => match decode_as::<D>([self.body.as_bytes()]) {
                (events, None) => events,
                (_, Some(DecodeError::Api(_))) => return None,
                (_, Some(error)) => panic!("{}: {error}", self.name),
            },
        };
        let mut assembler = ReplyAssembler::detached();
        for event in events {
            assembler.push(event).unwrap();
        }
        let content = assembler.into_response().unwrap().content;
        Some(ChatMessage { role: ChatRole::Assistant, content })
    }
}

/// The calls among messages or items.
fn calls(items: &[Value]) -> impl Iterator<Item = &Value> {
    items.iter().flat_map(|item| {
        let own = (item["type"] == "function_call").then_some(item);
        item["tool_calls"].as_array().into_iter().flatten().chain(own)
    })
}

fn call_id(item: &Value) -> &str {
    ["call_id", "tool_call_id", "id"].iter().find_map(|name| item[*name].as_str()).unwrap()
}

/// What messages or items say; calls and results are paired by the position of the call.
fn said(items: &[Value]) -> Vec<Value> {
    let ids: Vec<_> = calls(items).map(call_id).collect();
    let position = |item: &Value| ids.iter().position(|id| *id == call_id(item)).unwrap();
    let call = |call: &Value| {
        let function = call.get("function").unwrap_or(call);
        let arguments: Value =
            serde_json::from_str(function["arguments"].as_str().unwrap()).unwrap();
        json!({"call": position(call), "name": function["name"], "arguments": arguments,
            "extra": call["extra_content"]})
    };
    let mut all = Vec::new();
    for item in items {
        match (item["type"].as_str(), item["role"].as_str()) {
            (Some("function_call"), _) => all.push(call(item)),
            (Some("function_call_output"), _) => {
                all.push(json!({"of": position(item), "says": item["output"]}));
            }
            // Stored at the provider, a summary may go back alone; we store nothing.
            (Some("reasoning"), _) if is_summary(item) => {}
            (Some("reasoning"), _) => all.push(json!({
                "thought": item["encrypted_content"], "open": item["content"][0]["text"],
            })),
            // The recorded client sent the search back without what it found; we send both.
            (Some("tool_search_call" | "tool_search_output"), _) => {}
            (_, Some("tool")) => all.push(json!({"of": position(item), "says": text(item)})),
            (_, role) => {
                let calls = item["tool_calls"].as_array().into_iter().flatten();
                let calls: Vec<_> = calls.map(call).collect();
                all.push(json!({"role": role, "says": text(item), "calls": calls}));
            }
        }
    }
    all
}

/// Whether a thought can be neither decrypted nor read.
fn is_summary(thought: &Value) -> bool {
    thought["encrypted_content"].is_null() && thought["content"][0].is_null()
}

/// The text of a message, be it a string or parts. One recorded client wrote plain quotation marks
/// in place of the model's, another the model's thoughts in front, in tags.
fn text(message: &Value) -> String {
    let text: String = match &message["content"] {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            parts.iter().map(|part| part["text"].as_str().unwrap_or("(no text)")).collect()
        }
        _ => String::new(),
    };
    let text = text.split_once("</think>").map_or(text.as_str(), |(_, text)| text);
    text.replace('’', "'").replace(['“', '”'], "\"")
}

/// The second step of this one belongs to another conversation.
const NOT_CONTINUED: &str = "openai-responses__chatgpt__rig__long_history_replay_nonstreaming";
