//! What models say: pieces of any kind, and replies in the words of each API, with the data that
//! it wants back.

use std::sync::OnceLock;

use serde_json::{Value, json};
use toolloop::provider::codec::anthropic::MessagesDecoder;
use toolloop::provider::codec::gemini::GeminiDecoder;
use toolloop::provider::codec::openai_chat::ChatDecoder;
use toolloop::provider::codec::openai_responses::ResponsesDecoder;
use toolloop::provider::codec::{Decoder, Events};
use toolloop::{ProviderData, StopReason, StreamEvent, Usage};

use super::choices::Choices;

/// The events of a reply; without its end, it broke off.
pub(crate) fn reply(choices: &mut Choices) -> Vec<StreamEvent> {
    let mut events = match choices.below(4) {
        0 => vec![StreamEvent::TextDelta("Done.".into())],
        1 => choices.pick(recorded()),
        _ => {
            let mut calls = 0;
            choices.list(4, |choices| piece(choices, &mut calls)).concat()
        }
    };
    if choices.one_in(3) {
        events.push(StreamEvent::Usage(Usage { input_tokens: 1, ..Usage::default() }));
    }
    let stop_reason = choices.pick(&STOPS);
    events.push(StreamEvent::Done { stop_reason });
    if choices.one_in(12) {
        let at = choices.below(events.len());
        events.truncate(at);
    }
    events
}

fn piece(choices: &mut Choices, calls: &mut u32) -> Vec<StreamEvent> {
    match choices.below(8) {
        0..=1 => vec![StreamEvent::TextDelta(text(choices))],
        2 => vec![StreamEvent::ReasoningDelta(text(choices))],
        3 => vec![StreamEvent::ProviderData {
            index: choices.one_in(2).then_some(0),
            data: provider_data(choices),
        }],
        _ => {
            let index = *calls;
            *calls += 1;
            let (id, name) = (id(choices), name(choices));
            let json_chunk = arguments(choices);
            vec![
                StreamEvent::ToolCallStart { index, id, name },
                StreamEvent::ToolCallDelta { index, json_chunk },
            ]
        }
    }
}

pub(crate) fn text(choices: &mut Choices) -> String {
    match choices.below(300) {
        299 => "many words ".repeat(500),
        n => TEXTS[n % TEXTS.len()].to_owned(),
    }
}

/// Ids as models and servers make them; they meet again and again.
pub(crate) fn id(choices: &mut Choices) -> String {
    match choices.below(14) {
        13 => "x".repeat(200),
        12 => format!("{}y", "x".repeat(200)),
        n => IDS[n % IDS.len()].to_owned(),
    }
}

pub(crate) fn name(choices: &mut Choices) -> String {
    match choices.below(30) {
        n if n < NAMES.len() => NAMES[n].to_owned(),
        29 => "n".repeat(80),
        n => NAMES[n % 3].to_owned(),
    }
}

pub(crate) fn arguments(choices: &mut Choices) -> String {
    match choices.below(300) {
        296 => format!("{{\"a\":{}1{}}}", "[".repeat(60), "]".repeat(60)),
        297 => "[".repeat(2_000),
        298 => format!("{{\"text\":\"{}\"}}", "long ".repeat(1_000)),
        299 => format!("{}{}", "{\"a\":".repeat(70), "}".repeat(70)),
        n => ARGUMENTS[n % ARGUMENTS.len()].to_owned(),
    }
}

/// Data of any API, also such as none has made.
pub(crate) fn provider_data(choices: &mut Choices) -> ProviderData {
    let kept = recorded().iter().flatten().filter_map(|event| match event {
        StreamEvent::ProviderData { data, .. } => Some(data.clone()),
        _ => None,
    });
    let kept: Vec<_> = kept.collect();
    if !choices.one_in(8) {
        return choices.pick(&kept);
    }
    let api = choices.pick(&["unknown", "openai-chat", "openai-responses", "anthropic-messages"]);
    let data = choices.pick(&["x", "", "{}", "[]", "null", "\"x\""]);
    ProviderData { api: api.into(), data: data.into() }
}

/// Replies as each API writes them, read by its decoder.
fn recorded() -> &'static [Vec<StreamEvent>] {
    static RECORDED: OnceLock<Vec<Vec<StreamEvent>>> = OnceLock::new();
    RECORDED.get_or_init(|| {
        let mut replies = Vec::new();
        replies.extend(chat().map(read::<ChatDecoder>));
        replies.extend(responses().map(read::<ResponsesDecoder>));
        replies.extend(anthropic().map(read::<MessagesDecoder>));
        replies.extend(gemini().map(read::<GeminiDecoder>));
        for reply in &replies {
            let is_data = |event: &StreamEvent| matches!(event, StreamEvent::ProviderData { .. });
            assert!(reply.iter().any(is_data), "nothing to keep: {reply:#?}");
        }
        replies
    })
}

fn read<D: Decoder>(stream: Vec<Value>) -> Vec<StreamEvent> {
    let (mut decoder, mut events) = (D::default(), Events::new());
    for data in &stream {
        decoder.handle_data(&data.to_string(), &mut events).expect("the API writes so");
    }
    decoder.handle_end(&mut events);
    assert!(matches!(events.pop_back(), Some(StreamEvent::Done { .. })), "{stream:?} has no end");
    events.into()
}

fn chat() -> [Vec<Value>; 2] {
    let chunk = |delta: Value, finish: Option<&str>| json!({"model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]});
    let extra = json!({"google": {"thought_signature": "QUJD"}});
    let details = json!([{"type": "reasoning.encrypted", "data": "eA==", "index": 0, "id": "r",
        "format": "openai-responses-v1"}]);
    let call = json!([{"index": 0, "id": "c1", "type": "function", "extra_content": extra,
        "function": {"name": "add", "arguments": "{\"x\":1}"}}]);
    [
        vec![chunk(json!({"tool_calls": call}), Some("tool_calls"))],
        vec![
            chunk(json!({"reasoning": "Hm.", "reasoning_details": details}), None),
            chunk(json!({"content": "Hi", "tool_calls": call}), Some("tool_calls")),
        ],
    ]
}

/// Ids end in that of the thought they are tied to, as those of the fake server do.
fn responses() -> [Vec<Value>; 3] {
    let thought = |n: u32, encrypted: Option<&str>| {
        json!({"id": format!("rs_fake_{n}"), "type": "reasoning", "encrypted_content": encrypted,
            "summary": [{"type": "summary_text", "text": "Hm."}]})
    };
    let said = |n: u32| {
        json!({"id": format!("msg_rs_fake_{n}"), "type": "message", "role": "assistant",
            "status": "completed", "phase": "commentary",
            "content": [{"type": "output_text", "text": "Hi", "annotations": []}]})
    };
    let called = |n: u32, id: &str| {
        json!({"id": format!("fc_{id}_rs_fake_{n}"), "type": "function_call", "call_id": id,
            "name": "add", "arguments": "{\"x\":1}", "status": "completed"})
    };
    let search = json!({"id": "ws_1", "type": "web_search_call", "status": "completed",
        "action": {"type": "search", "query": "x"}});
    [
        items(&[thought(1, Some("gAAA")), said(1), called(1, "c1"), called(1, "c2")]),
        items(&[thought(2, Some("gAAA")), search, thought(3, Some("gAAB")), called(3, "c1")]),
        items(&[thought(4, None), called(4, "c3")]),
    ]
}

fn items(items: &[Value]) -> Vec<Value> {
    let mut stream = Vec::new();
    for (at, item) in items.iter().enumerate() {
        let event = |kind: &str| json!({"type": kind, "output_index": at, "item": item});
        stream.push(event("response.output_item.added"));
        if let Some(text) = item["content"][0]["text"].as_str() {
            stream.push(json!({"type": "response.output_text.delta", "output_index": at,
                "content_index": 0, "delta": text}));
        }
        stream.push(event("response.output_item.done"));
    }
    let response = json!({"id": "resp_1", "model": "m", "status": "completed", "output": items});
    stream.push(json!({"type": "response.completed", "response": response}));
    stream
}

fn anthropic() -> [Vec<Value>; 3] {
    let thought = (
        json!({"type": "thinking", "thinking": "", "signature": ""}),
        vec![
            json!({"type": "thinking_delta", "thinking": "Hm."}),
            json!({"type": "signature_delta", "signature": "QUJD"}),
        ],
    );
    let redacted = (json!({"type": "redacted_thinking", "data": "QUJD"}), vec![]);
    let called = |id: &str| {
        let start = json!({"type": "tool_use", "id": id, "name": "add", "input": {}});
        (start, vec![json!({"type": "input_json_delta", "partial_json": "{\"x\":1}"})])
    };
    let text = (
        json!({"type": "text", "text": ""}),
        vec![
            json!({"type": "text_delta", "text": "Hi"}),
            json!({"type": "citations_delta", "citation": {"type": "char_location",
                "cited_text": "x", "document_index": 0, "start_char_index": 0,
                "end_char_index": 1}}),
        ],
    );
    let search = json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search",
        "input": {"query": "x"}});
    let found = json!({"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1",
        "content": [{"type": "web_search_result", "title": "t", "url": "http://h",
            "encrypted_content": "QUJD", "page_age": null}]});
    [
        blocks(vec![thought.clone(), called("toolu_1"), called("toolu_2")]),
        blocks(vec![thought, redacted, text.clone()]),
        blocks(vec![(search, vec![]), (found, vec![]), text, called("toolu_1")]),
    ]
}

fn blocks(blocks: Vec<(Value, Vec<Value>)>) -> Vec<Value> {
    let usage = json!({"input_tokens": 1, "output_tokens": 1});
    let mut stream =
        vec![json!({"type": "message_start", "message": {"model": "m", "usage": usage}})];
    for (index, (block, deltas)) in blocks.into_iter().enumerate() {
        stream.push(json!({"type": "content_block_start", "index": index,
            "content_block": block}));
        stream.extend(
            deltas.into_iter().map(
                |delta| json!({"type": "content_block_delta", "index": index, "delta": delta}),
            ),
        );
        stream.push(json!({"type": "content_block_stop", "index": index}));
    }
    stream.push(json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"},
        "usage": {"output_tokens": 2}}));
    stream.push(json!({"type": "message_stop"}));
    stream
}

fn gemini() -> [Vec<Value>; 3] {
    let reply = |parts: Value| {
        vec![json!({"modelVersion": "m", "candidates": [{"index": 0, "finishReason": "STOP",
            "content": {"role": "model", "parts": parts}}]})]
    };
    let called = |name: &str| json!({"name": name, "args": {"x": 1}});
    [
        reply(json!([
            {"text": "Hm.", "thought": true},
            {"functionCall": called("add"), "thoughtSignature": "QUJD"},
            {"functionCall": called("search")},
        ])),
        reply(json!([{"text": "Hi"}, {"text": " you", "thoughtSignature": "QUJD"}])),
        reply(json!([
            {"executableCode": {"language": "PYTHON", "code": "1"}, "thoughtSignature": "QUJD"},
            {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
            {"text": "", "thoughtSignature": "QUJD"},
        ])),
    ]
}

const STOPS: [StopReason; 7] = [
    StopReason::EndTurn,
    StopReason::ToolUse,
    StopReason::ToolUse,
    StopReason::MaxTokens,
    StopReason::StopSequence,
    StopReason::Refusal,
    StopReason::Other,
];

const TEXTS: [&str; 7] = ["text", "", " ", "\n\t", "ü\u{1f600}\0\u{feff}", "two\nlines ", "\"}]"];

const IDS: [&str; 12] = [
    "a",
    "b",
    "",
    "call_1_0",
    "a_2",
    "fc_1|call_1",
    "ü\u{1f600}",
    "a b",
    " ",
    "a/b:c.d",
    "toolu_1",
    "\n",
];

const NAMES: [&str; 9] =
    ["add", "search", "write", "no_such_tool", "", "a.b c/d", "名前", " ", "add\n"];

const ARGUMENTS: [&str; 12] = [
    "{\"x\":1}",
    "{}",
    "",
    "null",
    "[1]",
    "7",
    "\"text\"",
    "{\"x\"",
    "{\"bad\":1}",
    "{\"type\":\"object\",\"\":null,\"ü\":1.5e300}",
    "nonsense",
    "{\"x\":1}{\"x\":2}",
];
