//! Streams and dialogues recorded from Anthropic, against what its own SDK made of them.
//!
//! The recordings are not part of the project: `TOOLLOOP_CORPUS` names the folder.

use std::path::PathBuf;

use serde_json::{Map, Value, json};
use toolloop_core::{
    ChatMessage, ChatParams, ChatRole, ContentBlock, ReplyAssembler, StreamEvent, Usage,
};
use toolloop_providers::codec::DecodeError;
use toolloop_providers::codec::anthropic::{API, MessagesDecoder, Options, encode};

use crate::support::decode::{decode_as, text_of};

fn corpus() -> Option<PathBuf> {
    let folder = std::env::var_os("TOOLLOOP_CORPUS").map(PathBuf::from);
    if folder.is_none() {
        println!("skipped: TOOLLOOP_CORPUS names no folder of recorded streams");
    }
    folder
}

struct Recording {
    name: String,
    body: Vec<u8>,
    oracle: Value,
}

fn recordings() -> Vec<Recording> {
    let Some(folder) = corpus() else { return Vec::new() };
    let read = |file: &Value| std::fs::read(folder.join(file.as_str().unwrap())).unwrap();
    let manifest: Value = serde_json::from_slice(&read(&json!("manifest.json"))).unwrap();
    let streams = manifest["streams"].as_array().unwrap().iter();
    let recordings: Vec<_> = streams
        .filter(|stream| stream["api"] == API && !stream["oracle"].is_null())
        .map(|stream| Recording {
            name: stream["file"].as_str().unwrap().to_owned(),
            body: read(&stream["file"]),
            oracle: serde_json::from_slice(&read(&stream["oracle"])).unwrap(),
        })
        .collect();
    assert_eq!(recordings.len(), 45);
    recordings
}

type Decoded = (Vec<StreamEvent>, Option<DecodeError>);

fn decode<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Decoded {
    decode_as::<MessagesDecoder>(pieces)
}

/// The replies of a recording: three of them hold several, one behind the other.
fn replies(body: &[u8]) -> Vec<&[u8]> {
    const START: &[u8] = b"event: message_start";
    let mut starts: Vec<_> = body
        .windows(START.len())
        .enumerate()
        .filter(|(_, w)| *w == START)
        .map(|(at, _)| at)
        .collect();
    starts.push(body.len());
    starts.windows(2).map(|pair| &body[pair[0]..pair[1]]).collect()
}

#[test]
fn recorded_streams_give_what_their_sdk_saw() {
    for Recording { name, body, oracle } in recordings() {
        let mut seen = Seen::default();
        let replies = replies(&body);
        for reply in &replies {
            let (events, error) = decode([*reply]);
            assert_eq!(error, None, "{name}");
            seen.add(&events);
        }
        let mut expected = expectation(&oracle);
        if replies.len() > 1 {
            // The SDK takes several replies for one, and mixes up their blocks.
            let blocks: Vec<_> = replies.iter().flat_map(|reply| blocks_of(reply)).collect();
            let of = |kind: &'static str| blocks.iter().filter(move |b| b["type"] == kind);
            let text: String = of("text").map(|block| block["text"].as_str().unwrap()).collect();
            let calls = of("tool_use")
                .map(|b| json!({"id": b["id"], "name": b["name"], "args": b["input"]}));
            expected["text"] = text.into();
            expected["tool_calls"] = calls.collect();
        }
        assert_eq!(seen.summary(), expected, "{name}");
    }
}

/// What we saw of all replies of a recording.
#[derive(Default)]
struct Seen {
    text: String,
    reasoning: String,
    signatures: Vec<Value>,
    calls: Vec<Value>,
    stop: String,
    usage: Usage,
}

impl Seen {
    fn add(&mut self, events: &[StreamEvent]) {
        self.text += &text_of(events);
        for event in events {
            match event {
                StreamEvent::ReasoningDelta(text) => self.reasoning += text,
                StreamEvent::ToolCallComplete { call, .. } => self
                    .calls
                    .push(json!({"id": call.id, "name": call.name, "args": call.arguments})),
                StreamEvent::Usage(usage) => self.usage = *usage,
                StreamEvent::Done { stop_reason } => self.stop = stop_reason.to_string(),
                StreamEvent::ProviderData { data, .. } => {
                    let kept: Value = serde_json::from_str(&data.data).unwrap();
                    if let Some(signature) = kept.get("signature") {
                        self.signatures.push(signature["value"].clone());
                    }
                }
                _ => {}
            }
        }
    }

    fn summary(&self) -> Value {
        let (read, written) = (self.usage.cache_read_tokens, self.usage.cache_write_tokens);
        let cached = read.unwrap_or(0) + written.unwrap_or(0);
        json!({
            "text": self.text, "reasoning": self.reasoning, "signatures": self.signatures,
            "tool_calls": self.calls, "stop": self.stop,
            "usage": {
                "input": self.usage.input_tokens - cached, "output": self.usage.output_tokens,
                "cache_read": read.unwrap_or(0), "cache_write": written.unwrap_or(0),
            },
        })
    }
}

/// What the SDK saw, in our words.
fn expectation(oracle: &Value) -> Value {
    let stop = match oracle["stop"].as_str().unwrap() {
        "pause_turn" => "other",
        known => known,
    };
    json!({
        "text": oracle["text"], "reasoning": oracle["reasoning"],
        "signatures": oracle["signatures"], "tool_calls": oracle["tool_calls"],
        "stop": stop, "usage": oracle["usage"],
    })
}

/// A reply goes back as the blocks in which it came, whatever they are.
#[test]
fn every_recorded_block_goes_back_as_it_came() {
    for Recording { name, body, .. } in recordings() {
        let mut messages = vec![ChatMessage::user("q")];
        for reply in replies(&body) {
            let content = assembled(reply);
            let calls = content.iter().filter_map(|block| match block {
                ContentBlock::ToolCall(call) => Some(ChatMessage::tool_result(&call.id, "1")),
                _ => None,
            });
            let results: Vec<_> = calls.collect();
            messages.push(ChatMessage { role: ChatRole::Assistant, content });
            messages.extend(results);
            // A paused reply goes on by itself.
            if !name.contains("pause_turn") {
                messages.push(ChatMessage::user("go on"));
            }
            let sent = sent(messages.clone());
            let mut said = sent.as_array().unwrap().iter().rev();
            let said = said.find(|message| message["role"] == "assistant");
            let said = said.map(|message| message["content"].as_array().unwrap().clone());
            assert_eq!(said.unwrap_or_default(), as_we_send(blocks_of(reply)), "{name}");
        }
    }
}

fn assembled(reply: &[u8]) -> Vec<ContentBlock> {
    let mut assembler = ReplyAssembler::detached();
    for event in decode([reply]).0 {
        assembler.push(event).unwrap();
    }
    assembler.into_response().unwrap().content
}

fn sent(messages: Vec<ChatMessage>) -> Value {
    let mut options = Options::default();
    options.caching = false;
    // Without thought, a reply that goes on would lose its own.
    let reasoning_budget = Some(1024);
    let params = ChatParams { messages, reasoning_budget, ..ChatParams::default() };
    let body = encode("claude-sonnet-4-5", &params, &options).unwrap();
    serde_json::from_slice::<Value>(&body).unwrap()["messages"].take()
}

/// The blocks of a reply, put together without a type.
fn blocks_of(reply: &[u8]) -> Vec<Value> {
    let mut blocks: Vec<Value> = Vec::new();
    let mut inputs: Vec<String> = Vec::new();
    for line in std::str::from_utf8(reply).unwrap().lines() {
        let Some(data) = line.strip_prefix("data: ") else { continue };
        let event: Value = serde_json::from_str(data).unwrap();
        if event["type"] == "content_block_start" {
            blocks.push(event["content_block"].clone());
            inputs.push(String::new());
        }
        if event["type"] != "content_block_delta" {
            continue;
        }
        let at = event["index"].as_u64().unwrap() as usize;
        for (name, value) in event["delta"].as_object().unwrap() {
            match (name.as_str(), value) {
                ("type", _) => {}
                ("partial_json", piece) => inputs[at] += piece.as_str().unwrap(),
                ("citation", citation) => match &mut blocks[at]["citations"] {
                    Value::Array(list) => list.push(citation.clone()),
                    none => *none = json!([citation]),
                },
                (name, value) => {
                    let before = blocks[at][name].as_str().unwrap_or_default().to_owned();
                    blocks[at][name] = match value.as_str() {
                        Some(text) => Value::String(before + text),
                        None => value.clone(),
                    };
                }
            }
        }
    }
    for (block, input) in blocks.iter_mut().zip(inputs) {
        if !input.is_empty() {
            block["input"] = serde_json::from_str(&input).unwrap();
        }
    }
    blocks
}

/// Where we send less than came: text without a word, an empty list, who made a direct call, and
/// where neighbouring texts that cite nothing end.
fn as_we_send(blocks: Vec<Value>) -> Vec<Value> {
    let mut sent: Vec<Value> = Vec::new();
    let cites = |block: &Value| block["citations"].as_array().is_some_and(|list| !list.is_empty());
    for run in blocks.chunk_by(|a, b| a["type"] == "text" && b["type"] == "text") {
        let plain = run[0]["type"] == "text" && !run.iter().any(cites);
        if plain {
            let text: String = run.iter().map(|block| block["text"].as_str().unwrap()).collect();
            sent.push(json!({"type": "text", "text": text}));
            continue;
        }
        for block in run {
            let mut block = block.clone();
            let members = block.as_object_mut().unwrap();
            if members["type"] == "text" && !cites(&Value::Object(members.clone())) {
                members.remove("citations");
            }
            let direct = Some(&json!({"type": "direct"}));
            if members["type"] == "tool_use" && members.get("caller") == direct {
                members.remove("caller");
            }
            sent.push(block);
        }
    }
    sent.retain(|block| {
        block["type"] != "text" || !block["text"].as_str().unwrap().trim().is_empty()
    });
    sent
}

#[test]
fn recorded_dialogues_go_on_as_recorded() {
    let Some(folder) = corpus() else { return };
    let mut compared = 0;
    for entry in std::fs::read_dir(folder.join("_dialogues")).unwrap() {
        let path = entry.unwrap().path();
        let dialogue: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        if dialogue["api"] != API {
            continue;
        }
        let steps = dialogue["steps"].as_array().unwrap();
        let recorded = |step: &Value| step["request"]["messages"].as_array().unwrap().clone();
        let mut messages: Vec<_> = recorded(&steps[0]).iter().flat_map(from_user).collect();
        let mut known = recorded(&steps[0]).len();
        for pair in steps.windows(2) {
            let reply = assembled(pair[0]["body"].as_str().unwrap().as_bytes());
            messages.push(ChatMessage { role: ChatRole::Assistant, content: reply });
            let next = recorded(&pair[1]);
            messages.extend(next[known + 1..].iter().flat_map(from_user));
            known = next.len();
            let expected: Vec<_> = next.iter().map(normal).collect();
            let sent = sent(messages.clone());
            let sent: Vec<_> = sent.as_array().unwrap().iter().map(normal).collect();
            assert_eq!(sent, expected, "{}", path.display());
            compared += 1;
        }
    }
    assert_eq!(compared, 18);
}

/// What a client would have us send as the user's part.
fn from_user(message: &Value) -> Vec<ChatMessage> {
    assert_eq!(message["role"], "user");
    let blocks = message["content"].as_array().unwrap().iter();
    blocks
        .map(|block| match block["type"].as_str().unwrap() {
            "text" => ChatMessage::user(block["text"].as_str().unwrap()),
            "tool_result" => {
                let id = block["tool_use_id"].as_str().unwrap();
                ChatMessage::tool_result(id, words(&block["content"]))
            }
            other => panic!("{other}"),
        })
        .collect()
}

fn words(content: &Value) -> &str {
    content.as_str().or_else(|| content[0]["text"].as_str()).unwrap()
}

/// A message in one of the forms that say the same.
fn normal(message: &Value) -> Value {
    let blocks = message["content"].as_array().unwrap().iter();
    let blocks = blocks.filter_map(|block| {
        let mut block: Map<String, Value> = block.as_object().unwrap().clone();
        block.retain(|_, value| *value != json!(false) && !value.is_null());
        block.remove("cache_control");
        if block["type"] == "text" && block["text"].as_str().unwrap().trim().is_empty() {
            return None;
        }
        if block["type"] == "tool_result" {
            let text = words(&block["content"]).to_owned();
            block.insert("content".into(), text.into());
        }
        Some(Value::Object(block))
    });
    json!({"role": message["role"], "content": blocks.collect::<Vec<_>>()})
}
