//! Ollama's own API: recorded streams and dialogues, requests, errors with their cures.

use std::path::{Path, PathBuf};

use futures_util::StreamExt;
use serde_json::{Value, json};
use toolloop_core::effect::Outcome;
use toolloop_core::{
    ChatMessage, ChatParams, ChatRole, ContentBlock, ImageSource, LlmError, Provider,
    ReplyAssembler, StopReason, StreamEvent, ToolCall, ToolChoice, ToolContent, ToolDefinition,
    ToolImage, Usage, UsageSource,
};
use toolloop_providers::OllamaProvider;
use toolloop_providers::codec::DecodeError;
use toolloop_providers::codec::ollama::{OllamaDecoder, encode};

use crate::support::decode::{decode_as, text_of};
use crate::support::server::{Act, Server, answer, end, json as json_answer, piece};

type Decoded = (Vec<StreamEvent>, Option<DecodeError>);

fn decode(body: &str) -> Decoded {
    decode_as::<OllamaDecoder>([body.as_bytes()])
}

fn body(params: &ChatParams) -> Value {
    serde_json::from_slice(&encode("m", params, None).unwrap()).unwrap()
}

fn messages(messages: Vec<ChatMessage>) -> Value {
    body(&ChatParams { messages, ..ChatParams::default() })["messages"].take()
}

fn call(id: &str, arguments: Value) -> ToolCall {
    ToolCall { id: id.into(), name: "add".into(), arguments }
}

fn corpus() -> Option<PathBuf> {
    let folder = std::env::var_os("TOOLLOOP_CORPUS").map(PathBuf::from);
    if folder.is_none() {
        println!("skipped: TOOLLOOP_CORPUS names no folder of recorded streams");
    }
    folder
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

#[test]
fn recorded_streams_give_what_their_sdk_saw() {
    let Some(folder) = corpus() else { return };
    let manifest = read(&folder.join("manifest.json"));
    let streams = manifest["streams"].as_array().unwrap().iter();
    let mut count = 0;
    for stream in streams.filter(|stream| stream["api"] == "ollama") {
        count += 1;
        let path = |member: &str| folder.join(stream[member].as_str().unwrap());
        let body = std::fs::read(path("file")).unwrap();
        let whole = decode_as::<OllamaDecoder>([body.as_slice()]);
        assert_eq!(summary(&whole), expectation(&read(&path("oracle"))), "{}", stream["file"]);
    }
    assert_eq!(count, 9);
}

/// What we saw, in the oracle's words.
fn summary((events, error): &Decoded) -> Value {
    assert_eq!(*error, None);
    let (mut reasoning, mut calls, mut usage) = (String::new(), Vec::new(), Value::Null);
    for event in events {
        match event {
            StreamEvent::ReasoningDelta(text) => reasoning += text,
            StreamEvent::ToolCallComplete { call, .. } => {
                calls.push(json!({"name": call.name, "args": call.arguments}));
            }
            StreamEvent::Usage(figures) => {
                usage = json!({"input": figures.input_tokens, "output": figures.output_tokens});
            }
            _ => {}
        }
    }
    let Some(StreamEvent::Done { stop_reason }) = events.last() else { panic!("no end") };
    json!({
        "text": text_of(events), "reasoning": reasoning, "tool_calls": calls,
        "stop": stop_reason.to_string(), "usage": usage,
    })
}

/// What the SDK saw, in our words.
fn expectation(oracle: &Value) -> Value {
    let called = !oracle["tool_calls"].as_array().unwrap().is_empty();
    let stop = match oracle["stop"].as_str() {
        Some("stop") if called => StopReason::ToolUse,
        Some("stop") => StopReason::EndTurn,
        Some("length") => StopReason::MaxTokens,
        other => panic!("a stop reason nobody recorded before: {other:?}"),
    };
    json!({
        "text": oracle["text"], "reasoning": oracle["reasoning"],
        "tool_calls": oracle["tool_calls"], "stop": stop.to_string(), "usage": oracle["usage"],
    })
}

#[test]
fn recorded_dialogues_go_on_as_recorded() {
    let Some(folder) = corpus() else { return };
    let mut compared = 0;
    for entry in std::fs::read_dir(folder.join("_dialogues")).unwrap() {
        let path = entry.unwrap().path();
        let dialogue = read(&path);
        if dialogue["api"] != "ollama" {
            continue;
        }
        let steps = dialogue["steps"].as_array().unwrap();
        for pair in steps.windows(2) {
            let said = reply(pair[0]["body"].as_str().unwrap());
            let recorded = pair[1]["request"]["messages"].as_array().unwrap();
            let at = recorded.iter().rposition(|message| message["role"] == "assistant").unwrap();
            let results = said.iter().filter_map(|block| match block {
                ContentBlock::ToolCall(call) => Some(call.id.clone()),
                _ => None,
            });
            let results: Vec<_> = results
                .zip(&recorded[at + 1..])
                .map(|(id, result)| {
                    ChatMessage::tool_result(id, result["content"].as_str().unwrap())
                })
                .collect();
            let mut history = vec![ChatMessage { role: ChatRole::Assistant, content: said }];
            history.extend(results);
            let mut sent = messages(history);
            // The recorded client left the ids out, which is as good.
            for message in sent.as_array_mut().unwrap() {
                message.as_object_mut().unwrap().remove("tool_call_id");
                for call in message["tool_calls"].as_array_mut().into_iter().flatten() {
                    call.as_object_mut().unwrap().remove("id");
                }
                message.as_object_mut().unwrap().retain(|_, value| !value.is_null());
            }
            assert_eq!(sent, json!(recorded[at..]), "{}", path.display());
            compared += 1;
        }
    }
    assert_eq!(compared, 3);
}

/// The blocks of a reply.
fn reply(body: &str) -> Vec<ContentBlock> {
    let mut assembler = ReplyAssembler::detached();
    for event in decode(body).0 {
        assembler.push(event).unwrap();
    }
    let Outcome::Reply(reply) = assembler.finish() else { panic!("no whole reply") };
    reply.response.content
}

#[test]
fn a_full_request() {
    let tool = |name: &str| ToolDefinition {
        name: name.into(),
        description: "Adds.".into(),
        parameters: json!({"type": "object", "properties": {"x": {"type": "number"}}}).into(),
        retry: None,
    };
    let params = ChatParams {
        messages: vec![ChatMessage::user("Hi")],
        tools: Some(vec![tool("add"), tool("sub")]),
        tool_choice: Some(ToolChoice::Specific("add".into())),
        temperature: Some(0.5),
        max_tokens: Some(100),
        system: Some("Be brief.".into()),
        reasoning_budget: Some(1000),
        structured_output: Some(json!({"type": "object"}).into()),
        ..ChatParams::default()
    };
    let sent: Value = serde_json::from_slice(&encode("m", &params, Some(8192)).unwrap()).unwrap();
    let expected = json!({
        "model": "m", "stream": true, "think": true,
        "options": {"temperature": 0.5, "num_predict": 100, "num_ctx": 8192},
        "tools": [{"type": "function", "function": {"name": "add", "description": "Adds.",
            "parameters": {"type": "object", "properties": {"x": {"type": "number"}}}}}],
        "format": {"type": "object"},
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Hi"},
        ],
    });
    assert_eq!(sent, expected);
    let silent = ChatParams {
        tool_choice: Some(ToolChoice::None),
        reasoning_budget: Some(0),
        ..ChatParams { messages: params.messages, tools: params.tools, ..ChatParams::default() }
    };
    let expected = json!({
        "model": "m", "stream": true, "think": false,
        "messages": [{"role": "user", "content": "Hi"}],
    });
    assert_eq!(body(&silent), expected);
}

#[test]
fn a_conversation_in_the_words_of_the_api() {
    let said = ChatMessage {
        role: ChatRole::Assistant,
        content: vec![
            ContentBlock::Reasoning { content: "Hm".into() },
            ContentBlock::Text("One".into()),
            ContentBlock::Text("Two".into()),
            ContentBlock::ToolCall(call("a", json!({"x": 1}))),
            ContentBlock::ToolCall(call("b", json!("{oops"))),
        ],
    };
    let picture = |data| ToolImage { media_type: "image/png".into(), data };
    let mut seen = ToolContent::from("");
    seen.images = vec![
        picture(ImageSource::Base64("QUJD".into())),
        picture(ImageSource::Url("http://h/p.png".into())),
    ];
    let shown = ChatMessage {
        role: ChatRole::User,
        content: vec![ContentBlock::Image {
            media_type: "image/png".into(),
            data: ImageSource::Base64("QUJD".into()),
        }],
    };
    let history = vec![
        said,
        ChatMessage::tool_result("a", seen),
        ChatMessage::tool_error("b", ""),
        ChatMessage::user(""),
        shown,
    ];
    let wire_call = |id: &str, arguments: Value| json!({"id": id, "type": "function", "function": {"name": "add", "arguments": arguments}});
    let expected = json!([
        {"role": "assistant", "content": "One\n\nTwo", "thinking": "Hm", "tool_calls": [
            wire_call("a", json!({"x": 1})),
            wire_call("b", json!({"unreadable_arguments": "{oops"})),
        ]},
        {"role": "tool", "content": "(a picture at http://h/p.png)", "images": ["QUJD"],
            "tool_name": "add", "tool_call_id": "a"},
        {"role": "tool", "content": "(no output)", "tool_name": "add", "tool_call_id": "b"},
        {"role": "user", "content": "", "images": ["QUJD"]},
    ]);
    assert_eq!(messages(history), expected);
}

#[test]
fn calls_come_whole_with_or_without_ids() {
    let lines = concat!(
        r#"{"model":"m","message":{"role":"assistant","content":"","tool_calls":["#,
        r#"{"function":{"name":"add","arguments":{"x":1}}},"#,
        r#"{"id":"c","function":{"index":1,"name":"add","arguments":"{\"x\":2}"}}]},"done":false}"#,
        "\n",
        r#"{"model":"m","message":{"content":""},"done":true,"done_reason":"stop","eval_count":5}"#,
    );
    let start =
        |index, id: &str| StreamEvent::ToolCallStart { index, id: id.into(), name: "add".into() };
    let delta = |index, text: &str| StreamEvent::ToolCallDelta { index, json_chunk: text.into() };
    let whole = |index, id: &str, arguments| StreamEvent::ToolCallComplete {
        index,
        call: call(id, arguments),
    };
    let usage = Usage { output_tokens: 5, source: UsageSource::Unknown, ..Usage::default() };
    let events = [
        StreamEvent::Model("m".into()),
        start(0, ""),
        delta(0, r#"{"x":1}"#),
        whole(0, "", json!({"x": 1})),
        start(1, "c"),
        delta(1, r#"{"x":2}"#),
        whole(1, "c", json!({"x": 2})),
        StreamEvent::Usage(usage),
        StreamEvent::Done { stop_reason: StopReason::ToolUse },
    ];
    // The last line has no end of its own: the end of the body is one, too, for the transport.
    assert_eq!(decode(&format!("{lines}\n")), (events.to_vec(), None));
}

fn provider(server: &Server) -> OllamaProvider {
    OllamaProvider::builder("m").base_url(&server.url).max_retries(0).build().unwrap()
}

fn hello() -> ChatParams {
    ChatParams { messages: vec![ChatMessage::user("Hi")], ..ChatParams::default() }
}

fn stream_head() -> Act {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/x-ndjson\r\n\
                transfer-encoding: chunked\r\n\r\n";
    Act::Send(head.into())
}

const WORD: &str = "{\"model\":\"m\",\"message\":{\"content\":\"Hi\"},\"done\":false}\n";
const DONE: &str = "{\"model\":\"m\",\"message\":{\"content\":\"\"},\"done\":true,\
                    \"done_reason\":\"stop\",\"prompt_eval_count\":3,\"eval_count\":1}";

#[tokio::test]
async fn a_reply_is_read_to_an_end_without_a_line_break() {
    let script = vec![stream_head(), piece(WORD), piece(DONE), end()];
    let server = Server::start([script]).await;
    let response = provider(&server).generate(&hello()).await.unwrap();
    let usage = Usage { input_tokens: 3, output_tokens: 1, ..Usage::default() };
    assert_eq!((response.text(), response.usage), (Some("Hi"), usage));
    let request = &server.requests()[0];
    assert!(request.starts_with("POST /api/chat HTTP/1.1\r\n"), "{request}");
    assert!(request.contains("accept: application/x-ndjson\r\n"), "{request}");
}

#[tokio::test]
async fn a_reply_that_breaks_off_is_an_error() {
    let scripts = [
        vec![stream_head(), piece(WORD), end()],
        vec![stream_head(), piece(WORD), piece(&DONE[..40]), end()],
    ];
    for script in scripts {
        let server = Server::start([script]).await;
        let events: Vec<_> = provider(&server).stream(&hello()).await.unwrap().collect().await;
        assert!(matches!(&events[1], Ok(StreamEvent::TextDelta(text)) if text == "Hi"));
        let error = events.last().unwrap().as_ref().unwrap_err();
        assert!(matches!(error, LlmError::StreamInterrupted { .. }), "{error}");
    }
}

#[tokio::test]
async fn an_error_in_mid_stream_is_the_servers() {
    let script = vec![
        stream_head(),
        piece(WORD),
        piece("{\"error\":\"model runner has stopped\"}\n"),
        end(),
    ];
    let server = Server::start([script]).await;
    let error = provider(&server).generate(&hello()).await.unwrap_err();
    assert_eq!(error.to_string(), "provider error (error): model runner has stopped");
}

#[tokio::test]
async fn a_missing_model_comes_with_its_cure() {
    let server = Server::start([
        json_answer("404 Not Found", r#"{"error":"model 'qwen3:4b' not found"}"#),
        json_answer("400 Bad Request", r#"{"error":"library/gemma:2b does not support tools"}"#),
    ])
    .await;
    let provider = provider(&server);
    let error = provider.generate(&hello()).await.unwrap_err();
    assert!(matches!(error, LlmError::InvalidRequest(_)));
    let sentence =
        "invalid request: model 'qwen3:4b' not found (get it with: ollama pull qwen3:4b)";
    assert_eq!((error.to_string().as_str(), error.status()), (sentence, Some(404)));
    let error = provider.generate(&hello()).await.unwrap_err().to_string();
    assert!(error.ends_with("(choose a model that is made for tools, or offer none)"), "{error}");
}

#[tokio::test]
async fn the_servers_models_are_listed() {
    let list =
        r#"{"models":[{"name":"qwen3:4b","model":"qwen3:4b","size":1},{"name":"b:latest"}]}"#;
    let server =
        Server::start([json_answer("200 OK", list), answer("200 OK", &[], "no list")]).await;
    let provider = provider(&server);
    assert_eq!(provider.list_models().await.unwrap(), ["qwen3:4b", "b:latest"]);
    assert!(server.requests()[0].starts_with("GET /api/tags HTTP/1.1\r\n"));
    assert!(matches!(provider.list_models().await, Err(LlmError::ResponseFormat { .. })));
}
