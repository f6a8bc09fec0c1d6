//! Requests of the Gemini API: what the strict fake takes, whatever the conversation looks like.

use proptest::prelude::*;
use serde_json::{Value, json};
use toolloop_core::{
    ChatMessage, ChatParams, ChatRole, ContentBlock, ImageSource, ProviderData, ToolCall,
    ToolChoice, ToolContent, ToolDefinition, ToolImage, ToolResult, transcript,
};
use toolloop_fake::gemini::validate;
use toolloop_providers::codec::gemini::{API, encode};

use super::schemas::any_schema;

const OLD: &str = "gemini-2.5-flash";
const NEW: &str = "gemini-3-pro-preview";

fn body(model: &str, params: &ChatParams) -> Value {
    let body = serde_json::from_slice(&encode(model, params).unwrap()).unwrap();
    assert_eq!(validate(model, &body), Ok(()), "{body:#}");
    body
}

fn contents(model: &str, messages: Vec<ChatMessage>) -> Value {
    body(model, &ChatParams { messages, ..ChatParams::default() })["contents"].take()
}

fn assistant(content: Vec<ContentBlock>) -> ChatMessage {
    ChatMessage { role: ChatRole::Assistant, content }
}

fn text(text: &str) -> ContentBlock {
    ContentBlock::Text(text.into())
}

fn thought(content: &str) -> ContentBlock {
    ContentBlock::Reasoning { content: content.into() }
}

fn call(id: &str, arguments: Value) -> ContentBlock {
    ContentBlock::ToolCall(ToolCall { id: id.into(), name: "add".into(), arguments })
}

fn kept(data: &str) -> ContentBlock {
    ContentBlock::ProviderData(ProviderData { api: API.into(), data: data.into() })
}

fn user(text: &str) -> Value {
    json!({"role": "user", "parts": [{"text": text}]})
}

fn wire_call(id: &str, args: Value) -> Value {
    json!({"functionCall": {"id": id, "name": "add", "args": args}})
}

fn wire_result(id: &str, response: Value) -> Value {
    json!({"functionResponse": {"id": id, "name": "add", "response": response}})
}

#[test]
fn a_full_request() {
    let tool = |name: &str, parameters: Value| ToolDefinition {
        name: name.into(),
        description: "Adds.".into(),
        parameters: parameters.into(),
        retry: None,
    };
    let schema = json!({"type": "object", "properties": {"x": {"type": ["number", "null"]}},
        "additionalProperties": false});
    let mut params = ChatParams {
        messages: vec![ChatMessage::system("Speak French."), ChatMessage::user("Hi")],
        tools: Some(vec![
            tool("add", schema.clone()),
            tool("now", json!({"type": "object", "properties": {}})),
        ]),
        tool_choice: Some(ToolChoice::Specific("add".into())),
        temperature: Some(0.7),
        max_tokens: Some(100),
        system: Some("Be brief.".into()),
        reasoning_budget: Some(1000),
        structured_output: Some(schema.into()),
        metadata: [("trace".to_owned(), json!(1))].into(),
        ..ChatParams::default()
    };
    let rewritten =
        json!({"type": "object", "properties": {"x": {"type": "number", "nullable": true}}});
    let mut expected = json!({
        "systemInstruction": {"parts": [{"text": "Be brief."}, {"text": "Speak French."}]},
        "tools": [{"functionDeclarations": [
            {"name": "add", "description": "Adds.", "parameters": rewritten},
            {"name": "now", "description": "Adds."},
        ]}],
        "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["add"]}},
        "generationConfig": {
            "temperature": 0.7,
            "maxOutputTokens": 100,
            "thinkingConfig": {"thinkingBudget": 1000, "includeThoughts": true},
            "responseMimeType": "application/json",
            "responseSchema": rewritten,
        },
        "contents": [user("Hi")],
    });
    assert_eq!(body(NEW, &params), expected);

    // Before Gemini 3 there are tools or a schema; the model is told of the schema then.
    let config = expected["generationConfig"].as_object_mut().unwrap();
    config.remove("responseMimeType");
    config.remove("responseSchema");
    let told = "Your final answer is one JSON value and fits this schema: {\"type\":\"object\",\
        \"properties\":{\"x\":{\"type\":[\"number\",\"null\"]}},\"additionalProperties\":false}";
    expected["systemInstruction"]["parts"].as_array_mut().unwrap().push(json!({ "text": told }));
    assert_eq!(body(OLD, &params), expected);
    for (choice, mode) in
        [(ToolChoice::Auto, "AUTO"), (ToolChoice::None, "NONE"), (ToolChoice::Required, "ANY")]
    {
        params.tool_choice = Some(choice);
        expected["toolConfig"] = json!({"functionCallingConfig": {"mode": mode}});
        assert_eq!(body(OLD, &params), expected);
    }
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
    assert_eq!(body(OLD, &params), json!({"contents": [user("Hi")]}));
}

#[test]
fn results_answer_in_the_order_of_the_calls_and_alone() {
    let shot = ToolContent {
        images: vec![ToolImage {
            media_type: "image/png".into(),
            data: ImageSource::Base64("AAAA".into()),
        }],
        ..ToolContent::default()
    };
    let history = vec![
        ChatMessage::user("Add."),
        assistant(vec![
            text("Look."),
            call("c1", json!({"b": 1, "a": 2})),
            call("c2", Value::String("{\"x\": nope".into())),
            call("c3", Value::Null),
        ]),
        ChatMessage::tool_result("c3", shot),
        ChatMessage::tool_error("c2", "The arguments are not readable."),
        ChatMessage::tool_result(
            "c1",
            ToolContent { structured: Some(json!({"n": 1})), ..ToolContent::default() },
        ),
        ChatMessage::system("Think again."),
        assistant(vec![text("Done."), text(""), text("Really.")]),
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
    ];
    let expected = json!([
        user("Add."),
        {"role": "model", "parts": [
            {"text": "Look."},
            wire_call("c1", json!({"b": 1, "a": 2})),
            wire_call("c2", json!({"unreadable_arguments": "{\"x\": nope"})),
            wire_call("c3", json!({})),
        ]},
        {"role": "user", "parts": [
            wire_result("c1", json!({"result": {"n": 1}})),
            wire_result("c2", json!({"error": "The arguments are not readable."})),
            wire_result("c3", json!({"result": "(pictures follow)"})),
        ]},
        {"role": "user", "parts": [
            {"text": "Pictures of the result of c3:"},
            {"inlineData": {"mimeType": "image/png", "data": "AAAA"}},
            {"text": "Think again."},
        ]},
        {"role": "model", "parts": [{"text": "Done."}, {"text": "Really."}]},
        {"role": "user", "parts": [
            {"text": "And this?"},
            {"fileData": {"mimeType": "image/jpeg", "fileUri": "https://x/y.jpg"}},
        ]},
    ]);
    assert_eq!(contents(OLD, history), expected);
}

#[test]
fn a_conversation_begins_and_ends_with_the_user() {
    let history = vec![
        assistant(vec![call("c1", json!({}))]),
        ChatMessage::tool_result("c1", "1"),
        ChatMessage::assistant("One."),
    ];
    let expected = json!([
        user("(What was said before is left out.)"),
        {"role": "model", "parts": [wire_call("c1", json!({}))]},
        {"role": "user", "parts": [wire_result("c1", json!({"result": "1"}))]},
        {"role": "model", "parts": [{"text": "One."}]},
        user("Continue."),
    ]);
    assert_eq!(contents(OLD, history), expected);
    assert_eq!(contents(OLD, vec![]), json!([user("(What was said before is left out.)")]));
}

#[test]
fn signatures_go_back_on_their_parts() {
    let history = vec![
        ChatMessage::user("Hi"),
        assistant(vec![
            thought("Hm. So."),
            kept(r#"{"text":"So.","thought":true,"thoughtSignature":"c2ln+/=="}"#),
            thought("Unsigned."),
            text("Hello you"),
            kept(r#"{"text":" you","thoughtSignature":"dGV4dA=="}"#),
            kept(r#"{"executableCode":{"id":1.50,"code":"1"},"thoughtSignature":"Y29kZQ=="}"#),
            call("c1", json!({})),
            kept(r#"{"thoughtSignature":"Y2FsbA=="}"#),
            call("c2", json!({})),
            ContentBlock::ProviderData(ProviderData { api: "other".into(), data: "x".into() }),
            kept(r#"{"text":"","thoughtSignature":"ZW1wdHk="}"#),
            kept("no json"),
        ]),
        ChatMessage::tool_result("c1", "1"),
        ChatMessage::tool_result("c2", "2"),
    ];
    let mut signed = wire_call("c1", json!({}));
    signed["thoughtSignature"] = json!("Y2FsbA==");
    let expected = json!([
        {"text": "So.", "thought": true, "thoughtSignature": "c2ln+/=="},
        {"text": "Hello"},
        {"text": " you", "thoughtSignature": "dGV4dA=="},
        {"executableCode": {"id": 1.5, "code": "1"}, "thoughtSignature": "Y29kZQ=="},
        signed,
        wire_call("c2", json!({})),
        {"text": "", "thoughtSignature": "ZW1wdHk="},
    ]);
    assert_eq!(contents(NEW, history.clone())[1]["parts"], expected);
    let params = ChatParams { messages: history, ..ChatParams::default() };
    let bytes = String::from_utf8(encode(NEW, &params).unwrap().into()).unwrap();
    assert!(bytes.contains(r#"{"executableCode":{"id":1.50,"code":"1"}"#), "{bytes}");
}

#[test]
fn a_signature_is_dropped_with_the_words_it_signed() {
    let history = vec![
        ChatMessage::user("Hi"),
        assistant(vec![
            text("Edited"),
            kept(r#"{"text":"Hello","thoughtSignature":"dGV4dA=="}"#),
            kept(r#"{"text":"Hm.","thought":true,"thoughtSignature":"c2ln"}"#),
        ]),
        ChatMessage::user("Go on"),
    ];
    assert_eq!(contents(NEW, history)[1]["parts"], json!([{"text": "Edited"}]));
}

#[test]
fn calls_of_other_models_get_the_documented_stand_in() {
    let history = vec![
        ChatMessage::user("Add."),
        assistant(vec![call("c1", json!({})), call("c2", json!({}))]),
        ChatMessage::tool_result("c1", "1"),
        ChatMessage::tool_result("c2", "2"),
    ];
    let mut first = wire_call("c1", json!({}));
    assert_eq!(contents(OLD, history.clone())[1]["parts"][0], first);
    first["thoughtSignature"] = json!("skip_thought_signature_validator");
    assert_eq!(contents(NEW, history)[1]["parts"], json!([first, wire_call("c2", json!({}))]));
}

/// What the provider's cache of prompts needs.
#[test]
fn the_body_of_a_longer_conversation_begins_with_that_of_the_shorter() {
    let mut params =
        ChatParams { messages: vec![ChatMessage::user("Hi")], ..ChatParams::default() };
    let shorter = encode(NEW, &params).unwrap();
    params.messages.push(ChatMessage::assistant("Hello"));
    params.messages.push(ChatMessage::user("Bye"));
    let longer = encode(NEW, &params).unwrap();
    assert!(longer.starts_with(shorter.strip_suffix(b"]}").unwrap()));
}

proptest! {
    /// Whatever a conversation went through, its next request is served.
    #[test]
    fn no_request_is_ever_refused(
        messages in prop::collection::vec(any_message(), 0..7),
        schema in any_schema(),
        answer_schema in prop::option::of(any_schema()),
    ) {
        let mut messages = messages;
        transcript::repair(&mut messages);
        let tool = ToolDefinition {
            name: "add".into(),
            description: String::new(),
            parameters: schema.into(),
            retry: None,
        };
        let mut params = ChatParams { messages, ..ChatParams::default() };
        params.structured_output = answer_schema.map(Into::into);
        for tools in [None, Some(vec![tool])] {
            params.tools = tools;
            for model in [OLD, NEW] {
                let body: Value = serde_json::from_slice(&encode(model, &params).unwrap()).unwrap();
                prop_assert_eq!(validate(model, &body), Ok(()), "{}", body);
            }
        }
    }
}

fn any_message() -> impl Strategy<Value = ChatMessage> {
    let role = prop::sample::select(vec![
        ChatRole::System,
        ChatRole::User,
        ChatRole::Assistant,
        ChatRole::Assistant,
        ChatRole::Tool,
        ChatRole::Tool,
    ]);
    let block = prop_oneof![
        prop::sample::select(vec!["", "Hi", "Hello you"]).prop_map(text),
        Just(thought("Hm.")),
        (id(), arguments()).prop_map(|(id, arguments)| call(&id, arguments)),
        (id(), any::<bool>()).prop_map(|(id, is_error)| ContentBlock::ToolResult(ToolResult {
            tool_call_id: id,
            content: "out".into(),
            is_error,
        })),
        prop::sample::select(vec![
            r#"{"thoughtSignature":"YQ=="}"#,
            r#"{"text":"","thoughtSignature":"YQ=="}"#,
            r#"{"text":" you","thoughtSignature":"YQ=="}"#,
            r#"{"text":"Hm.","thought":true,"thoughtSignature":"YQ=="}"#,
            r#"{"executableCode":{"code":"1"}}"#,
            "{}",
            "no json",
        ])
        .prop_map(kept),
        Just(ContentBlock::ProviderData(ProviderData { api: "other".into(), data: "{}".into() })),
        Just(ContentBlock::Image {
            media_type: "image/png".into(),
            data: ImageSource::Base64("AAAA".into()),
        }),
    ];
    (role, prop::collection::vec(block, 0..4))
        .prop_map(|(role, content)| ChatMessage { role, content })
}

fn id() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "c", ""]).prop_map(str::to_owned)
}

fn arguments() -> impl Strategy<Value = Value> {
    prop::sample::select(vec![json!({"x": 1}), json!("{oops"), json!([1]), Value::Null])
}
