//! Request bodies: what the API takes, whatever the conversation looks like.

use serde_json::{Value, json};
use toolloop_core::{
    ChatMessage, ChatParams, ChatRole, ContentBlock, ImageSource, ProviderData, ToolCall,
    ToolChoice, ToolContent, ToolDefinition, ToolImage,
};
use toolloop_providers::codec::openai_chat::{API, MaxTokensField, Quirks, encode};

fn body(params: &ChatParams, quirks: &Quirks) -> Value {
    serde_json::from_slice(&encode("m", params, quirks).unwrap()).unwrap()
}

fn messages(messages: Vec<ChatMessage>) -> Value {
    let params = ChatParams { messages, ..ChatParams::default() };
    body(&params, &Quirks::compatible())["messages"].take()
}

fn assistant(content: Vec<ContentBlock>) -> ChatMessage {
    ChatMessage { role: ChatRole::Assistant, content }
}

fn call(id: &str, arguments: Value) -> ContentBlock {
    ContentBlock::ToolCall(ToolCall { id: id.into(), name: "add".into(), arguments })
}

fn wire_call(id: &str, arguments: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": "add", "arguments": arguments}})
}

fn text(text: &str) -> ContentBlock {
    ContentBlock::Text(text.into())
}

#[test]
fn a_full_request() {
    let tool = ToolDefinition {
        name: "add".into(),
        description: "Adds.".into(),
        parameters: json!({"type": "object", "properties": {"x": {"type": "number"}}}).into(),
        retry: None,
    };
    let bare = ToolDefinition {
        name: "now".into(),
        description: String::new(),
        parameters: json!({}).into(),
        retry: None,
    };
    let schema = json!({"type": "object", "title": "My Answer", "properties": {"n": {"type": "integer"}},
        "required": ["n"], "additionalProperties": false});
    let params = ChatParams {
        messages: vec![ChatMessage::user("Hi")],
        tools: Some(vec![tool, bare]),
        tool_choice: Some(ToolChoice::Specific("add".into())),
        temperature: Some(0.7),
        max_tokens: Some(100),
        system: Some("Be brief.".into()),
        reasoning_budget: Some(1000),
        structured_output: Some(schema.clone().into()),
        metadata: [("trace".to_owned(), json!(1))].into(),
        ..ChatParams::default()
    };
    let mut expected = json!({
        "model": "m",
        "stream": true,
        "stream_options": {"include_usage": true, "include_obfuscation": false},
        "temperature": 0.7,
        "max_completion_tokens": 100,
        "tools": [
            {"type": "function", "function": {"name": "add", "description": "Adds.",
                "parameters": {"type": "object", "properties": {"x": {"type": "number"}}}}},
            {"type": "function", "function": {"name": "now",
                "parameters": {"type": "object", "properties": {}}}},
        ],
        "tool_choice": {"type": "function", "function": {"name": "add"}},
        "response_format": {"type": "json_schema",
            "json_schema": {"name": "My_Answer", "strict": true, "schema": schema}},
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Hi"},
        ],
    });
    assert_eq!(body(&params, &Quirks::openai()), expected);

    expected["stream_options"] = json!({"include_usage": true});
    let limit = expected.as_object_mut().unwrap().remove("max_completion_tokens").unwrap();
    expected["max_tokens"] = limit;
    assert_eq!(body(&params, &Quirks::compatible()), expected);

    let mut quirks = Quirks::compatible();
    quirks.stream_usage = false;
    quirks.max_tokens_field = MaxTokensField::MaxTokens;
    expected.as_object_mut().unwrap().remove("stream_options");
    assert_eq!(body(&params, &quirks), expected);
}

#[test]
fn what_is_not_set_is_not_sent() {
    let params = ChatParams {
        messages: vec![ChatMessage::user("Hi")],
        tools: Some(vec![]),
        tool_choice: Some(ToolChoice::Required),
        system: Some(String::new()),
        ..ChatParams::default()
    };
    let expected = json!({
        "model": "m", "stream": true, "stream_options": {"include_usage": true},
        "messages": [{"role": "user", "content": "Hi"}],
    });
    assert_eq!(body(&params, &Quirks::compatible()), expected);
}

#[test]
fn only_closed_schemas_are_strict() {
    let strict = |schema: Value| {
        let structured_output = Some(schema.into());
        let params = ChatParams { structured_output, ..ChatParams::default() };
        body(&params, &Quirks::compatible())["response_format"]["json_schema"].take()
    };
    let open = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    assert_eq!(strict(open)["strict"], false);
    let optional = json!({"type": "object", "properties": {"a": {"type": "string"}},
        "required": [], "additionalProperties": false});
    assert_eq!(strict(optional)["strict"], false);
    let nested = json!({"type": "object", "properties": {"a": {"type": "object"}},
        "required": ["a"], "additionalProperties": false});
    assert_eq!(strict(nested)["strict"], false);
    let closed = json!({"type": "object", "properties": {"a": {"type": "array", "items":
        {"type": "string"}}}, "required": ["a"], "additionalProperties": false});
    assert_eq!(
        (&strict(closed.clone())["strict"], &strict(closed)["name"]),
        (&json!(true), &json!("answer"))
    );
}

#[test]
fn calls_and_their_results() {
    let raw = Value::String("{\"x\": nope".into());
    let history = vec![
        ChatMessage::user("Add."),
        assistant(vec![
            ContentBlock::Reasoning { content: "Hm.".into() },
            call("c1", json!({"b": 1, "a": "ä\"\n"})),
            call("c2", raw),
            call("c3", json!([1])),
            call("c4", Value::Null),
        ]),
        ChatMessage::tool_result("c1", "1"),
        ChatMessage::tool_error("c2", "The arguments are not readable."),
        ChatMessage::tool_result("c3", ""),
        ChatMessage::tool_result(
            "c4",
            ToolContent { structured: Some(json!({"n": 1})), ..ToolContent::default() },
        ),
        ChatMessage::system("Think again."),
        assistant(vec![text("Done."), text(""), text("Really.")]),
    ];
    let expected = json!([
        {"role": "user", "content": "Add."},
        {"role": "assistant", "content": null, "tool_calls": [
            wire_call("c1", r#"{"b":1,"a":"ä\"\n"}"#),
            wire_call("c2", r#"{"unreadable_arguments":"{\"x\": nope"}"#),
            wire_call("c3", r#"{"unreadable_arguments":[1]}"#),
            wire_call("c4", "{}"),
        ]},
        {"role": "tool", "tool_call_id": "c1", "content": "1"},
        {"role": "tool", "tool_call_id": "c2", "content": "The arguments are not readable."},
        {"role": "tool", "tool_call_id": "c3", "content": "(no output)"},
        {"role": "tool", "tool_call_id": "c4", "content": "{\"n\":1}"},
        {"role": "system", "content": "Think again."},
        {"role": "assistant", "content": "Done.\n\nReally."},
    ]);
    assert_eq!(messages(history), expected);
}

#[test]
fn pictures_of_results_follow_the_last_result() {
    let picture = |data: &str| ToolImage {
        media_type: "image/png".into(),
        data: ImageSource::Base64(data.into()),
    };
    let shot = ToolContent { images: vec![picture("AAAA")], ..ToolContent::default() };
    let history = vec![
        assistant(vec![text("Look."), call("c1", json!({})), call("c2", json!({}))]),
        ChatMessage::tool_result("c1", shot.clone()),
        ChatMessage::tool_result("c2", "text"),
        ChatMessage {
            role: ChatRole::User,
            content: vec![
                text("And this?"),
                ContentBlock::Image {
                    media_type: "image/jpeg".into(),
                    data: ImageSource::Url("https://x/y.jpg".into()),
                },
            ],
        },
        assistant(vec![call("c3", json!({}))]),
        ChatMessage::tool_result("c3", ToolContent { text: "there".into(), ..shot }),
    ];
    let pictures = |id: &str| {
        json!({"role": "user", "content": [
            {"type": "text", "text": format!("Pictures of the result of {id}:")},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
        ]})
    };
    let expected = json!([
        {"role": "assistant", "content": "Look.",
            "tool_calls": [wire_call("c1", "{}"), wire_call("c2", "{}")]},
        {"role": "tool", "tool_call_id": "c1", "content": "(pictures follow)"},
        {"role": "tool", "tool_call_id": "c2", "content": "text"},
        pictures("c1"),
        {"role": "user", "content": [
            {"type": "text", "text": "And this?"},
            {"type": "image_url", "image_url": {"url": "https://x/y.jpg"}},
        ]},
        {"role": "assistant", "content": null, "tool_calls": [wire_call("c3", "{}")]},
        {"role": "tool", "tool_call_id": "c3", "content": "there"},
        pictures("c3"),
    ]);
    assert_eq!(messages(history), expected);
}

#[test]
fn messages_that_say_nothing_are_left_out() {
    let history = vec![
        ChatMessage::user(""),
        ChatMessage::system(""),
        assistant(vec![]),
        assistant(vec![ContentBlock::Reasoning { content: "Hm.".into() }]),
        ChatMessage::user("Hi"),
    ];
    assert_eq!(messages(history), json!([{"role": "user", "content": "Hi"}]));
}

#[test]
fn provider_data_goes_back_where_it_was_and_to_its_api_only() {
    let data = |api: &str, data: &str| {
        ContentBlock::ProviderData(ProviderData { api: api.into(), data: data.into() })
    };
    let history = vec![assistant(vec![
        text("Hi"),
        data(API, r#"{"reasoning_details":[1.50]}"#),
        data("anthropic-messages", "no json"),
        call("c1", json!({})),
        data(API, r#"{"extra_content":{"signature":"c2ln"}}"#),
        call("c2", json!({})),
        data("gemini", "x"),
    ])];
    let mut signed = wire_call("c1", "{}");
    signed["extra_content"] = json!({"signature": "c2ln"});
    let expected = json!([{"role": "assistant", "content": "Hi", "reasoning_details": [1.5],
        "tool_calls": [signed, wire_call("c2", "{}")]}]);
    let params = ChatParams { messages: history, ..ChatParams::default() };
    let bytes =
        String::from_utf8(encode("m", &params, &Quirks::compatible()).unwrap().into()).unwrap();
    assert!(bytes.contains(r#""reasoning_details":[1.50]"#), "{bytes}");
    assert_eq!(messages(params.messages), expected);
}

#[test]
fn thoughts_go_back_where_a_server_wants_them() {
    let mut quirks = Quirks::compatible();
    quirks.reasoning_back = true;
    let thought = ContentBlock::Reasoning { content: "Hm.".into() };
    let params = ChatParams {
        messages: vec![assistant(vec![thought, call("c1", json!({}))])],
        ..ChatParams::default()
    };
    let expected = json!([{"role": "assistant", "content": null, "reasoning_content": "Hm.",
        "tool_calls": [wire_call("c1", "{}")]}]);
    assert_eq!(body(&params, &quirks)["messages"], expected);
}

/// What the provider's cache of prompts needs, and what lets a body grow in place.
#[test]
fn the_body_of_a_longer_conversation_begins_with_that_of_the_shorter() {
    let mut params =
        ChatParams { messages: vec![ChatMessage::user("Hi")], ..ChatParams::default() };
    let shorter = encode("m", &params, &Quirks::compatible()).unwrap();
    params.messages.push(ChatMessage::assistant("Hello"));
    let longer = encode("m", &params, &Quirks::compatible()).unwrap();
    let shared = shorter.strip_suffix(b"]}").unwrap();
    assert!(longer.starts_with(shared));
}
