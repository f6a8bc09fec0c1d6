//! The Responses API: requests, what of a reply goes back, oddities of streams, errors.

use futures_util::StreamExt;
use serde_json::{Value, json};
use toolloop_core::{
    Capability, ChatMessage, ChatParams, ChatRole, ContentBlock, ImageSource, LlmError, Provider,
    ProviderData, ReplyAssembler, StopReason, StreamEvent, ToolCall, ToolChoice, ToolContent,
    ToolDefinition, ToolImage, Usage,
};
use toolloop_fake::{Call, FakeServer, Reply, Script};
use toolloop_providers::ResponsesProvider;
use toolloop_providers::codec::openai_responses::{API, Quirks, ResponsesDecoder, encode};
use toolloop_providers::codec::{DecodeError, Decoder, Events};

use crate::support::server::{KEY, Server, answer, end, head, json as json_answer, piece};

fn body(params: &ChatParams, quirks: &Quirks) -> Value {
    serde_json::from_slice(&encode("m", params, quirks).unwrap()).unwrap()
}

fn input(messages: Vec<ChatMessage>) -> Value {
    let params = ChatParams { messages, ..ChatParams::default() };
    body(&params, &Quirks::openai("gpt-5"))["input"].take()
}

fn assistant(content: Vec<ContentBlock>) -> ChatMessage {
    ChatMessage { role: ChatRole::Assistant, content }
}

fn text(text: &str) -> ContentBlock {
    ContentBlock::Text(text.into())
}

fn call(id: &str, arguments: Value) -> ContentBlock {
    ContentBlock::ToolCall(ToolCall { id: id.into(), name: "add".into(), arguments })
}

fn kept(data: &str) -> ContentBlock {
    ContentBlock::ProviderData(ProviderData { api: API.into(), data: data.into() })
}

fn wire_call(id: &str, arguments: &str) -> Value {
    json!({"type": "function_call", "call_id": id, "name": "add", "arguments": arguments})
}

fn said(role: &str, content: impl Into<Value>) -> Value {
    json!({"type": "message", "role": role, "content": content.into()})
}

const THOUGHT: &str =
    r#"{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"gAAA","x":1.50}"#;

#[test]
fn a_full_request() {
    let tool = |name: &str, parameters: Value| ToolDefinition {
        name: name.into(),
        description: "Adds.".into(),
        parameters: parameters.into(),
        retry: None,
    };
    let closed = json!({"type": "object", "properties": {"x": {"type": "number"}},
        "required": ["x"], "additionalProperties": false});
    let params = ChatParams {
        messages: vec![ChatMessage::user("Hi")],
        tools: Some(vec![
            tool("add", closed.clone()),
            tool("now", json!({})),
            tool("any", json!({"type": "object", "description": "Whatever."})),
        ]),
        tool_choice: Some(ToolChoice::Specific("add".into())),
        temperature: Some(0.5),
        max_tokens: Some(5),
        system: Some("Be brief.".into()),
        reasoning_budget: Some(4_000),
        structured_output: Some(closed.clone().into()),
        metadata: [("trace".to_owned(), json!(1))].into(),
        ..ChatParams::default()
    };
    let mut expected = json!({
        "model": "m", "stream": true, "store": false,
        "stream_options": {"include_obfuscation": false},
        "include": ["reasoning.encrypted_content"],
        "reasoning": {"effort": "medium"},
        "temperature": 0.5,
        // The least that the API takes.
        "max_output_tokens": 16,
        "tools": [
            {"type": "function", "name": "add", "description": "Adds.", "parameters": closed,
                "strict": true},
            {"type": "function", "name": "now", "description": "Adds.",
                "parameters": {"type": "object", "properties": {}}, "strict": false},
            {"type": "function", "name": "any", "description": "Adds.", "parameters":
                {"type": "object", "description": "Whatever.", "properties": {}}, "strict": false},
        ],
        "tool_choice": {"type": "function", "name": "add"},
        "text": {"format": {"type": "json_schema", "name": "answer", "strict": true,
            "schema": closed}},
        "instructions": "Be brief.",
        "input": [said("user", "Hi")],
    });
    assert_eq!(body(&params, &Quirks::openai("gpt-5")), expected);

    let mut quirks = Quirks::compatible("gpt-5");
    quirks.summaries = true;
    expected["reasoning"]["summary"] = json!("auto");
    expected.as_object_mut().unwrap().remove("stream_options");
    assert_eq!(body(&params, &quirks), expected);

    for member in ["include", "reasoning"] {
        expected.as_object_mut().unwrap().remove(member);
    }
    assert_eq!(body(&params, &Quirks::compatible("my-model")), expected);
}

#[test]
fn what_is_not_set_is_not_sent() {
    let params = ChatParams {
        messages: vec![ChatMessage::user("Hi"), ChatMessage::user(""), assistant(vec![])],
        tools: Some(vec![]),
        tool_choice: Some(ToolChoice::Required),
        system: Some(String::new()),
        ..ChatParams::default()
    };
    let expected =
        json!({"model": "m", "stream": true, "store": false, "input": [said("user", "Hi")]});
    assert_eq!(body(&params, &Quirks::compatible("m")), expected);
}

#[test]
fn a_budget_becomes_an_effort() {
    let effort = |budget| {
        let params = ChatParams { reasoning_budget: Some(budget), ..ChatParams::default() };
        body(&params, &Quirks::openai("o3"))["reasoning"]["effort"].take()
    };
    let efforts = [0, 2_048, 2_049, 16_384, 16_385].map(effort);
    assert_eq!(efforts, ["low", "low", "medium", "medium", "high"]);
}

#[test]
fn a_conversation_in_the_words_of_the_api() {
    let picture = |data| ToolImage { media_type: "image/png".into(), data };
    let mut seen = ToolContent::from("a dot");
    seen.images = vec![
        picture(ImageSource::Base64("QUJD".into())),
        picture(ImageSource::Url("http://h/p.png".into())),
    ];
    let shown = ContentBlock::Image {
        media_type: "image/png".into(),
        data: ImageSource::Base64("QUJD".into()),
    };
    let history = vec![
        ChatMessage { role: ChatRole::User, content: vec![text("Look"), shown] },
        assistant(vec![
            ContentBlock::Reasoning { content: "Hm.".into() },
            text("One."),
            call("c1", json!({"b": 1})),
            call("a|b", json!("{\"x\": nope")),
        ]),
        ChatMessage::tool_result("c1", seen),
        ChatMessage::tool_error("a|b", ""),
        ChatMessage::system("Think again."),
    ];
    let sent = input(history);
    // An id of another provider is made legal, the same in call and result.
    let legal = sent[3]["call_id"].as_str().unwrap();
    assert!(legal.starts_with("ab") && legal.len() <= 64, "{legal}");
    let image = |url: &str| json!({"type": "input_image", "detail": "auto", "image_url": url});
    let expected = json!([
        said("user", json!([
            {"type": "input_text", "text": "Look"}, image("data:image/png;base64,QUJD"),
        ])),
        said("assistant", "One."),
        wire_call("c1", r#"{"b":1}"#),
        wire_call(legal, r#"{"unreadable_arguments":"{\"x\": nope"}"#),
        {"type": "function_call_output", "call_id": "c1", "output": [
            {"type": "input_text", "text": "a dot"},
            image("data:image/png;base64,QUJD"), image("http://h/p.png"),
        ]},
        {"type": "function_call_output", "call_id": legal, "output": "(no output)"},
        said("system", "Think again."),
    ]);
    assert_eq!(sent, expected);
}

#[test]
fn a_name_that_the_model_made_up_is_made_legal() {
    let call = ToolCall { id: "c".into(), name: "tools.add it".into(), arguments: json!({}) };
    let sent = input(vec![assistant(vec![ContentBlock::ToolCall(call)])]);
    let name = sent[0]["name"].as_str().unwrap();
    assert!(name.starts_with("toolsaddit") && name.len() <= 64, "{name}");
}

#[test]
fn thoughts_go_back_byte_for_byte_before_what_they_led_to() {
    let history = vec![assistant(vec![
        ContentBlock::Reasoning { content: "Hm.".into() },
        kept(THOUGHT),
        text("Let me see."),
        kept(r#"{"id":"msg_1","phase":"commentary"}"#),
        call("c1", json!({})),
        kept(r#"{"id":"fc_1"}"#),
    ])];
    let params = ChatParams { messages: history, ..ChatParams::default() };
    let bytes = encode("m", &params, &Quirks::openai("gpt-5")).unwrap();
    let bytes = String::from_utf8(bytes.into()).unwrap();
    assert!(bytes.contains(&format!("[{THOUGHT},")), "{bytes}");
    let mut tied_call = wire_call("c1", "{}");
    tied_call["id"] = json!("fc_1");
    let expected = json!([
        serde_json::from_str::<Value>(THOUGHT).unwrap(),
        {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": "Let me see.", "annotations": []}],
            "phase": "commentary"},
        tied_call,
    ]);
    assert_eq!(input(params.messages), expected);
}

#[test]
fn no_thought_goes_back_that_would_be_refused() {
    let open = r#"{"id":"rs_2","type":"reasoning","summary":[],"content":[{"text":"Hm."}]}"#;
    let empty = r#"{"id":"rs_3","type":"reasoning","summary":[{"text":"Hm."}],"content":[]}"#;
    let history = |thought: &str| {
        vec![assistant(vec![
            kept(thought),
            text("Hi"),
            kept(r#"{"id":"msg_1","phase":"final_answer"}"#),
        ])]
    };
    let mut alone = said("assistant", "Hi");
    alone["phase"] = json!("final_answer");
    // Not encrypted, it would have to be stored there; without it, so would what it led to.
    assert_eq!(input(history(open)), json!([alone]));
    let compatible = |thought: &str| {
        let params = ChatParams { messages: history(thought), ..ChatParams::default() };
        body(&params, &Quirks::compatible("m"))["input"].take()
    };
    assert_eq!(compatible(open), json!([serde_json::from_str::<Value>(open).unwrap(), alone]));
    assert_eq!(compatible(empty), json!([alone]));
    // Nothing follows: the reply was cut while the model thought.
    let cut = vec![assistant(vec![kept(THOUGHT)]), ChatMessage::user("Go on")];
    assert_eq!(input(cut), json!([said("user", "Go on")]));
    // The same message twice.
    let thought: Value = serde_json::from_str(THOUGHT).unwrap();
    let twice = [history(THOUGHT), history(THOUGHT)].concat();
    let sent = input(twice);
    assert_eq!((&sent[0], &sent[1]["id"], &sent[2]), (&thought, &json!("msg_1"), &alone));
    // Of another API.
    let mut foreign = history(THOUGHT);
    for block in &mut foreign[0].content {
        if let ContentBlock::ProviderData(data) = block {
            data.api = "anthropic-messages".into();
        }
    }
    assert_eq!(input(foreign), json!([said("assistant", "Hi")]));
}

#[test]
fn an_id_goes_back_with_the_very_thought_it_is_tied_to() {
    let sent = |members: &str| {
        let blocks = vec![kept(THOUGHT), call("c1", json!({})), kept(members)];
        input(vec![assistant(blocks)])[1]["id"].take()
    };
    assert_eq!(sent(r#"{"id":"fc_1","thought":"rs_1"}"#), "fc_1");
    // A caller has taken that thought out, or moved the data of a message behind a call.
    assert_eq!(sent(r#"{"id":"fc_1","thought":"rs_2"}"#), Value::Null);
    assert_eq!(sent(r#"{"id":"msg_1","thought":"rs_1"}"#), Value::Null);
    assert_eq!(sent("null"), Value::Null);
}

#[test]
fn items_of_the_providers_own_tools_go_back_with_their_outcome() {
    let search = r#"{"id":"ws_1","type":"web_search_call","status":"completed"}"#;
    let shell = r#"{"id":"sh_1","type":"shell_call","call_id":"s1"}"#;
    let output = r#"{"id":"so_1","type":"shell_call_output","call_id":"s1","output":[]}"#;
    let value = |item: &str| serde_json::from_str::<Value>(item).unwrap();
    let blocks = |shell_output: bool| {
        let mut blocks = vec![kept(THOUGHT), kept(search), kept(shell)];
        blocks.extend(shell_output.then(|| kept(output)));
        vec![assistant(blocks)]
    };
    let whole = json!([value(THOUGHT), value(search), value(shell), value(output)]);
    assert_eq!(input(blocks(true)), whole);
    // Somebody should have run this; it would be refused without its outcome.
    assert_eq!(input(blocks(false)), json!([value(THOUGHT), value(search)]));
    // So would the thought that led to it.
    let unanswered = vec![assistant(vec![kept(THOUGHT), kept(shell), text("Hi")])];
    assert_eq!(input(unanswered), json!([said("assistant", "Hi")]));
}

#[test]
fn the_server_may_make_a_long_conversation_shorter() {
    let mut quirks = Quirks::openai("gpt-5");
    quirks.compact_above = Some(80_000);
    let sent = body(&ChatParams::default(), &quirks);
    let expected = json!([{"type": "compaction", "compact_threshold": 80_000}]);
    assert_eq!(sent["context_management"], expected);
    // What stands for it then comes in the reply, and goes back with it.
    let shorter = json!({"id": "cmp_1", "type": "compaction", "encrypted_content": "gAAAA"});
    let (events, error) = decode(&[
        item("added", 0, shorter.clone()),
        item("done", 0, shorter.clone()),
        completed(json!([shorter])),
    ]);
    assert_eq!(error, None);
    let data = events.into_iter().find_map(|event| match event {
        StreamEvent::ProviderData { data, .. } => Some(ContentBlock::ProviderData(data)),
        _ => None,
    });
    assert_eq!(input(vec![assistant(vec![data.unwrap(), text("So.")])])[0], shorter);
}

#[test]
fn the_body_of_a_longer_conversation_begins_with_that_of_the_shorter() {
    let quirks = Quirks::openai("gpt-5");
    let mut params =
        ChatParams { messages: vec![ChatMessage::user("Hi")], ..ChatParams::default() };
    let shorter = encode("m", &params, &quirks).unwrap();
    params.messages.push(assistant(vec![kept(THOUGHT), text("Hello")]));
    let longer = encode("m", &params, &quirks).unwrap();
    assert!(longer.starts_with(shorter.strip_suffix(b"]}").unwrap()));
}

fn decode(events: &[Value]) -> (Vec<StreamEvent>, Option<DecodeError>) {
    let (mut decoder, mut decoded) = (ResponsesDecoder::default(), Events::new());
    for event in events {
        if let Err(error) = decoder.handle_data(&event.to_string(), &mut decoded) {
            return (decoded.into(), Some(error));
        }
    }
    decoder.handle_end(&mut decoded);
    (decoded.into(), None)
}

fn completed(output: Value) -> Value {
    json!({"type": "response.completed", "response": {"status": "completed", "output": output}})
}

fn incomplete(reason: &str) -> Value {
    let details = json!({"reason": reason});
    let response = json!({"status": "incomplete", "incomplete_details": details});
    json!({"type": "response.incomplete", "response": response})
}

fn item(kind: &str, index: u32, item: Value) -> Value {
    json!({"type": format!("response.output_item.{kind}"), "output_index": index, "item": item})
}

fn function(status: &str, arguments: &str) -> Value {
    json!({"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "add",
        "arguments": arguments, "status": status})
}

fn delta(kind: &str, index: u32, text: &str) -> Value {
    json!({"type": format!("response.{kind}.delta"), "output_index": index, "delta": text})
}

fn done(stop_reason: StopReason) -> StreamEvent {
    StreamEvent::Done { stop_reason }
}

fn whole_call(arguments: Value) -> StreamEvent {
    let call = ToolCall { id: "c1".into(), name: "add".into(), arguments };
    StreamEvent::ToolCallComplete { index: 0, call }
}

fn start() -> StreamEvent {
    StreamEvent::ToolCallStart { index: 0, id: "c1".into(), name: "add".into() }
}

fn chunk(text: &str) -> StreamEvent {
    StreamEvent::ToolCallDelta { index: 0, json_chunk: text.into() }
}

#[test]
fn the_status_of_a_call_says_whether_it_is_whole() {
    let stream = |status: &str, last: Value| {
        decode(&[
            item("added", 0, function("in_progress", "")),
            delta("function_call_arguments", 0, "{\"x\":4"),
            item("done", 0, function(status, "{\"x\":4")),
            last,
        ])
    };
    let cut = vec![start(), chunk("{\"x\":4"), done(StopReason::MaxTokens)];
    assert_eq!(stream("incomplete", incomplete("max_output_tokens")), (cut, None));
    let unreadable = whole_call(json!("{\"x\":4"));
    let whole = vec![start(), chunk("{\"x\":4"), unreadable, done(StopReason::ToolUse)];
    assert_eq!(stream("completed", completed(json!([]))), (whole, None));
}

#[test]
fn what_no_delta_brought_comes_with_the_item_or_at_the_end() {
    let message = json!({"type": "message", "content": [{"type": "output_text", "text": "Hi"}]});
    let thought = json!({"type": "reasoning", "summary": [{"text": "A"}, {"text": "B"}]});
    let call = function("completed", "{\"x\":1}");
    let expected = [
        StreamEvent::ReasoningDelta("A".into()),
        StreamEvent::ReasoningDelta("\n\n".into()),
        StreamEvent::ReasoningDelta("B".into()),
        StreamEvent::ProviderData {
            index: None,
            data: ProviderData { api: API.into(), data: thought.to_string() },
        },
        StreamEvent::TextDelta("Hi".into()),
        start(),
        chunk("{\"x\":1}"),
        whole_call(json!({"x": 1})),
        StreamEvent::ProviderData {
            index: Some(0),
            data: ProviderData { api: API.into(), data: r#"{"id":"fc_1"}"#.into() },
        },
        done(StopReason::ToolUse),
    ];
    let output = [thought, message, call];
    let items = (0..).zip(output.clone()).map(|(index, it)| item("done", index, it));
    let with_items: Vec<_> = items.chain([completed(json!([]))]).collect();
    assert_eq!(decode(&with_items), (expected.to_vec(), None));
    assert_eq!(decode(&[completed(json!(output))]), (expected.to_vec(), None));
}

/// Some servers announce a call and say what it is only at the end, or have one index for all items.
#[test]
fn calls_are_found_where_indices_say_little() {
    let at_the_end = [
        item("added", 0, function("in_progress", "")),
        completed(json!([function("completed", "{\"x\":1}")])),
    ];
    let events =
        vec![start(), chunk("{\"x\":1}"), whole_call(json!({"x": 1})), done(StopReason::ToolUse)];
    assert_eq!(decode(&at_the_end), (events, None));

    let call = |id: &str, arguments: &str| {
        let mut call = function("completed", arguments);
        call["call_id"] = id.into();
        call
    };
    let one_index = [
        item("added", 0, call("a", "")),
        delta("function_call_arguments", 0, "{\"x\":1}"),
        item("done", 0, call("a", "{\"x\":1}")),
        item("added", 0, call("b", "")),
        delta("function_call_arguments", 0, "{\"x\":2}"),
        item("done", 0, call("b", "{\"x\":2}")),
        completed(json!([])),
    ];
    let (events, error) = decode(&one_index);
    let calls: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            StreamEvent::ToolCallComplete { index, call } => {
                Some((*index, call.id.as_str(), call.arguments["x"].as_i64()))
            }
            _ => None,
        })
        .collect();
    assert_eq!((calls, error), (vec![(0, "a", Some(1)), (1, "b", Some(2))], None));
}

#[test]
fn refusals_and_other_endings() {
    let refused = [delta("refusal", 0, "No."), completed(json!([]))];
    let events = vec![StreamEvent::TextDelta("No.".into()), done(StopReason::Refusal)];
    assert_eq!(decode(&refused), (events, None));
    let ending = |reason| decode(&[incomplete(reason)]).0;
    assert_eq!(ending("content_filter"), [done(StopReason::Refusal)]);
    assert_eq!(ending("a_new_reason"), [done(StopReason::Other)]);
    // Without its end there is none.
    let text = delta("output_text", 0, "Hi");
    assert_eq!(decode(&[text]), (vec![StreamEvent::TextDelta("Hi".into())], None));
}

#[test]
fn errors_in_every_shape_are_the_providers() {
    let error = json!({"code": "server_error", "message": "Oops"});
    let shapes = [
        json!({"type": "error", "error": error}),
        json!({"type": "error", "code": "server_error", "message": "Oops", "param": null}),
        json!({"error": error}),
        json!({"type": "response.failed", "response": {"status": "failed", "error": error}}),
    ];
    for shape in shapes {
        let (events, found) = decode(&[delta("output_text", 0, "Hi"), shape.clone()]);
        assert_eq!(events, [StreamEvent::TextDelta("Hi".into())]);
        let Some(DecodeError::Api(found)) = found else { panic!("{shape}: {found:?}") };
        let code = found.code.as_deref();
        assert_eq!((found.message.as_str(), code), ("Oops", Some("server_error")), "{shape}");
    }
    let chat = json!({"choices": [{"delta": {"content": "Hi"}}]});
    let (_, error) = decode(&[chat]);
    assert!(matches!(error, Some(DecodeError::Malformed { .. })), "{error:?}");
}

fn stream(events: &[Value]) -> String {
    let event = |event: &Value| {
        format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or("message"))
    };
    events.iter().map(event).collect()
}

fn provider(server: &Server) -> ResponsesProvider {
    let base_url = format!("{}/v1", server.url);
    ResponsesProvider::builder("gpt-5").base_url(base_url).api_key(KEY).build().unwrap()
}

fn hello() -> ChatParams {
    ChatParams { messages: vec![ChatMessage::user("Hi")], ..ChatParams::default() }
}

#[tokio::test]
async fn a_reply_over_the_network() {
    let usage = json!({"input_tokens": 9, "output_tokens": 5,
        "input_tokens_details": {"cached_tokens": 4}, "output_tokens_details": {"reasoning_tokens": 3}});
    let mut last = completed(json!([]));
    last["response"]["usage"] = usage;
    let created = json!({"type": "response.created", "response": {"model": "gpt-5-2025"}});
    let text = stream(&[created, delta("output_text", 0, "Hello"), last]);
    let server = Server::start([vec![head(), piece(&text), end()]]).await;
    let response = provider(&server).generate(&hello()).await.unwrap();
    let usage = Usage {
        input_tokens: 9,
        output_tokens: 5,
        reasoning_tokens: Some(3),
        cache_read_tokens: Some(4),
        ..Usage::default()
    };
    assert_eq!(
        (response.text(), response.usage, response.model.as_str()),
        (Some("Hello"), usage, "gpt-5-2025")
    );
    let request = &server.requests()[0];
    assert!(request.starts_with("POST /v1/responses HTTP/1.1\r\n"), "{request}");
    assert!(request.contains(&format!("authorization: Bearer {KEY}\r\n")), "{request}");
}

#[tokio::test]
async fn an_error_after_text_keeps_what_came() {
    let failed = json!({"type": "response.failed", "response": {"status": "failed",
        "error": {"code": "server_error", "message": "The server had an error."}}});
    let text = stream(&[delta("output_text", 0, "Half"), failed]);
    let server = Server::start([vec![head(), piece(&text), end()]]).await;
    let mut reply = provider(&server).stream(&hello()).await.unwrap();
    let mut assembler = ReplyAssembler::detached();
    let error = loop {
        match reply.next().await.unwrap() {
            Ok(event) => assembler.push(event).unwrap(),
            Err(error) => break error,
        };
    };
    assert_eq!(assembler.text(), "Half");
    assert!(
        matches!(&error, LlmError::Provider { code, retryable: true, .. } if code == "server_error")
    );
    assert_eq!(error.request_id(), Some("req_1"));
}

/// A thought that another key had made cannot be opened; the conversation goes on without it.
#[tokio::test]
async fn thoughts_that_cannot_be_opened_are_left_out() {
    let error = json!({"error": {"message": "The encrypted content gAAA...0= could not be verified.",
        "type": "invalid_request_error", "param": null, "code": "invalid_encrypted_content"}});
    let refused = || json_answer("400 Bad Request", &error.to_string());
    let fine = stream(&[delta("output_text", 0, "Hi"), completed(json!([]))]);
    let fine = answer("200 OK", &[("content-type", "text/event-stream")], &fine);
    let server = Server::start([refused(), fine, refused(), refused(), refused()]).await;
    let kept = |data: Value| {
        let api = format!("{API}@{}", server.url.strip_prefix("http://").unwrap());
        ContentBlock::ProviderData(ProviderData { api, data: data.to_string() })
    };
    let thought = json!({"type": "reasoning", "id": "rs_1", "summary": [],
        "encrypted_content": "gAAA"});
    let call = ToolCall { id: "c1".into(), name: "add".into(), arguments: json!({"x": 1}) };
    let said = vec![
        kept(thought.clone()),
        ContentBlock::Text("Adding.".into()),
        kept(json!({"id": "msg_1"})),
        ContentBlock::ToolCall(call),
        kept(json!({"id": "fc_1"})),
    ];
    let params = ChatParams {
        messages: vec![
            ChatMessage::user("Add."),
            ChatMessage { role: ChatRole::Assistant, content: said },
            ChatMessage::tool_result("c1", "1"),
        ],
        ..ChatParams::default()
    };
    let events: Vec<_> = provider(&server).stream(&params).await.unwrap().collect().await;
    let Some(Ok(StreamEvent::RetryScheduled(notice))) = events.first() else {
        panic!("{events:?}")
    };
    assert!(notice.reason.contains("could not be verified") && !notice.may_have_cost);
    assert!(matches!(events.last(), Some(Ok(StreamEvent::Done { .. }))), "{events:?}");

    let bodies = || -> Vec<Value> {
        let requests = server.requests();
        let bodies = requests.iter().map(|request| request.split_once("\r\n\r\n").unwrap().1);
        bodies.map(|body| serde_json::from_str(body).unwrap()).collect()
    };
    let [first, second] = &bodies()[..] else { panic!("{:?}", bodies().len()) };
    assert_eq!(first["input"][1], thought);
    assert_eq!(toolloop_fake::openai_responses::validate(second), Ok(()));
    let expected = json!([
        {"type": "message", "role": "user", "content": first["input"][0]["content"]},
        {"type": "message", "role": "assistant", "content": "Adding."},
        {"type": "function_call", "call_id": "c1", "name": "add", "arguments": "{\"x\":1}"},
        {"type": "function_call_output", "call_id": "c1", "output": "1"},
    ]);
    assert_eq!(second["input"], expected);

    // Refused for good, and where there is nothing to leave out, it is told.
    for (params, requests) in [(params, 4), (hello(), 5)] {
        let error = provider(&server).generate(&params).await.unwrap_err();
        assert!(matches!(error, LlmError::InvalidRequest(_)), "{error}");
        assert_eq!(server.requests().len(), requests);
    }
}

#[tokio::test]
async fn a_failure_before_text_is_tried_again() {
    let failed =
        json!({"type": "error", "error": {"code": "rate_limit_exceeded", "message": "Slow"}});
    let good = stream(&[delta("output_text", 0, "Hi"), completed(json!([]))]);
    let server = Server::start([
        vec![head(), piece(&stream(&[failed])), end()],
        json_answer("200 OK", &completed(json!([]))["response"].to_string()),
        vec![head(), piece(&good), end()],
    ])
    .await;
    let provider = provider(&server);
    tokio::time::pause();
    // The second answer comes whole, and says nothing.
    assert_eq!(provider.generate(&hello()).await.unwrap().text(), None);
    assert_eq!(provider.generate(&hello()).await.unwrap().text(), Some("Hi"));
    assert_eq!(server.requests().len(), 3);
}

/// Two calls with a thought before, and their results, as the strict server takes them.
#[tokio::test]
async fn a_loop_with_thoughts_is_never_refused() {
    let calls = [Call::new("add", json!({"n": 1})), Call::with_text("add", "{oops")];
    let server = FakeServer::start(Script::new([
        Reply::calls(calls).reasoning("Hm. Well.").usage(3, 4),
        Reply::text("Half").reasoning("And").finish_reason("length"),
        Reply::text("Done."),
    ]));
    let provider =
        ResponsesProvider::builder("gpt-5").base_url(server.base_url()).api_key(KEY).build();
    let provider = provider.unwrap();
    let mut params = hello();
    let reply = provider.generate(&params).await.unwrap();
    let thought = ContentBlock::Reasoning { content: "Hm. Well.".into() };
    assert_eq!((&reply.content[0], reply.stop_reason), (&thought, StopReason::ToolUse));
    let ids: Vec<_> = reply.tool_calls_iter().map(|call| call.id.clone()).collect();
    params.messages.push(assistant(reply.content));
    params.messages.extend(ids.iter().rev().map(|id| ChatMessage::tool_result(id, "ok")));
    let reply = provider.generate(&params).await.unwrap();
    assert_eq!((reply.text(), reply.stop_reason), (Some("Half"), StopReason::MaxTokens));
    params.messages.extend([assistant(reply.content), ChatMessage::user("Go on")]);
    assert_eq!(provider.generate(&params).await.unwrap().text(), Some("Done."));
    let kinds: Vec<_> = server.requests()[2].body["input"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| (item["type"].clone(), item.get("id").is_some()))
        .collect();
    let expected = [
        ("message", false),
        ("reasoning", true),
        ("function_call", true),
        ("function_call", true),
        ("function_call_output", false),
        ("function_call_output", false),
        ("reasoning", true),
        ("message", true),
        ("message", false),
    ];
    assert_eq!(kinds, expected.map(|(kind, has_id)| (json!(kind), has_id)));
}

#[test]
fn a_provider_says_what_its_model_can() {
    let provider = ResponsesProvider::create("gpt-5", KEY).unwrap();
    let metadata = provider.metadata();
    assert_eq!((metadata.name.as_ref(), metadata.context_window), ("openai", 400_000));
    for capability in [Capability::Reasoning, Capability::MidSystem, Capability::Vision] {
        assert!(metadata.capabilities.contains(&capability), "{capability:?}");
    }
    assert!(!format!("{provider:?}").contains(KEY));
}
