//! Request bodies of the Messages API: what it takes, whatever the conversation looks like.

use serde_json::{Value, json};
use toolloop_core::{
    ChatMessage, ChatParams, ChatRole, ContentBlock, ImageSource, ProviderData, ToolCall,
    ToolChoice, ToolContent, ToolDefinition, ToolImage,
};
use toolloop_providers::codec::anthropic::{API, Options, Platform, encode};

fn plain() -> Options {
    let mut options = Options::default();
    options.caching = false;
    options
}

fn body_with(model: &str, params: &ChatParams, options: &Options) -> Value {
    serde_json::from_slice(&encode(model, params, options).unwrap()).unwrap()
}

fn body(params: &ChatParams) -> Value {
    body_with("claude-sonnet-4-5", params, &plain())
}

fn messages(messages: Vec<ChatMessage>) -> Value {
    body(&ChatParams { messages, ..ChatParams::default() })["messages"].take()
}

fn hello() -> ChatParams {
    ChatParams { messages: vec![ChatMessage::user("Hi")], ..ChatParams::default() }
}

fn tool(name: &str, parameters: Value) -> ToolDefinition {
    let parameters = parameters.into();
    ToolDefinition { name: name.into(), description: "Adds.".into(), parameters, retry: None }
}

fn assistant(content: Vec<ContentBlock>) -> ChatMessage {
    ChatMessage { role: ChatRole::Assistant, content }
}

fn text(text: &str) -> ContentBlock {
    ContentBlock::Text(text.into())
}

fn thought(text: &str) -> ContentBlock {
    ContentBlock::Reasoning { content: text.into() }
}

fn call(id: &str, arguments: Value) -> ContentBlock {
    ContentBlock::ToolCall(ToolCall { id: id.into(), name: "add".into(), arguments })
}

fn kept(data: Value) -> ContentBlock {
    ContentBlock::ProviderData(ProviderData { api: API.into(), data: data.to_string() })
}

fn wire_call(id: &str, input: Value) -> Value {
    json!({"type": "tool_use", "id": id, "name": "add", "input": input})
}

fn wire_result(id: &str, content: Value) -> Value {
    json!({"type": "tool_result", "tool_use_id": id, "content": content})
}

fn wire_text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

#[test]
fn a_full_request() {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let params = ChatParams {
        messages: vec![ChatMessage::system("Be kind."), ChatMessage::user("Hi")],
        tools: Some(vec![tool("add", json!({"type": "object"})), tool("now", json!({}))]),
        tool_choice: Some(ToolChoice::Specific("add".into())),
        temperature: Some(0.5),
        max_tokens: Some(100),
        system: Some("Be brief.".into()),
        structured_output: Some(schema.into()),
        metadata: [("user_id".to_owned(), json!("u1")), ("trace".to_owned(), json!(1))].into(),
        ..ChatParams::default()
    };
    let nothing = json!({"type": "object", "properties": {}});
    let tools = json!([
        {"name": "add", "description": "Adds.", "input_schema": nothing},
        {"name": "now", "description": "Adds.", "input_schema": nothing},
    ]);
    let format = json!({"type": "json_schema", "schema": {"type": "object",
        "properties": {"n": {"type": "integer"}}, "additionalProperties": false}});
    let mut expected = json!({
        "model": "claude-sonnet-4-5", "stream": true, "max_tokens": 100, "temperature": 0.5,
        "metadata": {"user_id": "u1"}, "output_config": {"format": format},
        "tools": tools, "tool_choice": {"type": "tool", "name": "add"},
        "system": [wire_text("Be brief."), wire_text("Be kind.")],
        "messages": [{"role": "user", "content": [wire_text("Hi")]}],
    });
    assert_eq!(body(&params), expected);

    // Another platform has the model in its address, and no format for answers.
    let mut bedrock = plain();
    bedrock.platform = Platform::Bedrock;
    let sent = body_with("claude-sonnet-4-5", &params, &bedrock);
    let members = expected.as_object_mut().unwrap();
    for name in ["model", "stream", "output_config"] {
        members.remove(name);
    }
    members.insert("anthropic_version".into(), json!("bedrock-2023-05-31"));
    let system = members["system"].as_array_mut().unwrap();
    system.push(sent["system"][2].clone());
    assert_eq!(sent, expected);
    let wanted = sent["system"][2]["text"].as_str().unwrap();
    assert!(wanted.ends_with(r#"{"type":"object","properties":{"n":{"type":"integer"}}}"#));
}

#[test]
fn what_is_not_set_is_not_sent() {
    let params = ChatParams {
        tools: Some(vec![]),
        tool_choice: Some(ToolChoice::Required),
        system: Some(" \n".into()),
        ..hello()
    };
    let expected = json!({
        "model": "claude-sonnet-4-5", "stream": true, "max_tokens": 32_000,
        "messages": [{"role": "user", "content": [wire_text("Hi")]}],
    });
    assert_eq!(body(&params), expected);
    let limit = |model| body_with(model, &hello(), &plain())["max_tokens"].take();
    assert_eq!(limit("claude-3-haiku-20240307"), 4_096);
    assert_eq!(limit("some-model"), 8_192);
}

#[test]
fn thought_has_its_conditions() {
    let sent = |model: &str, params: ChatParams| {
        let mut sent = body_with(model, &params, &plain());
        let members = ["max_tokens", "thinking", "temperature", "output_config"];
        Value::Array(members.map(|name| sent[name].take()).into())
    };
    let budget =
        |budget| ChatParams { reasoning_budget: Some(budget), temperature: Some(0.0), ..hello() };
    let enabled = |tokens: u32| json!({"type": "enabled", "budget_tokens": tokens});
    let none = Value::Null;
    // A default makes room; never for more than the model can.
    assert_eq!(sent("claude-sonnet-4-5", budget(2000)), json!([34_000, enabled(2000), none, none]));
    assert_eq!(sent("claude-opus-4-1", budget(9000)), json!([32_000, enabled(9000), none, none]));
    assert_eq!(sent("claude-haiku-4-5", budget(1)), json!([32_001, enabled(1024), none, none]));
    // A limit of the caller is kept.
    let limited = |limit| ChatParams { max_tokens: Some(limit), ..budget(5000) };
    assert_eq!(sent("claude-sonnet-4-5", limited(3000)), json!([3000, enabled(2999), none, none]));
    assert_eq!(sent("claude-sonnet-4-5", limited(1024)), json!([1024, none, 0.0, none]));
    // A forced tool forbids thought.
    let forced = ChatParams {
        tools: Some(vec![tool("add", json!({}))]),
        tool_choice: Some(ToolChoice::Required),
        ..budget(2000)
    };
    assert_eq!(sent("claude-sonnet-4-5", forced), json!([32_000, none, 0.0, none]));
    assert_eq!(sent("claude-3-5-sonnet-latest", budget(2000)), json!([8_192, none, 0.0, none]));
    // Newer models measure themselves, and take no temperature.
    let adaptive = json!({"type": "adaptive", "display": "summarized"});
    let effort = json!({"effort": "low"});
    assert_eq!(sent("claude-opus-4-7", budget(2000)), json!([32_000, adaptive, none, effort]));
    assert_eq!(sent("claude-opus-4-7", budget(20_000)), json!([32_000, adaptive, none, none]));
    let cool = ChatParams { temperature: Some(0.0), ..hello() };
    assert_eq!(sent("claude-opus-4-7", cool), json!([32_000, none, none, none]));
}

#[test]
fn results_come_first_and_in_the_order_of_their_calls() {
    let raw = Value::String("{\"x\": nope".into());
    let history = vec![
        ChatMessage::user("Add."),
        assistant(vec![text("So:"), call("a", json!({"x": 1})), call("b", raw)]),
        ChatMessage::tool_error("b", ""),
        ChatMessage::system("Try another way."),
        ChatMessage::tool_result("a", "1"),
        ChatMessage::user("And?"),
        assistant(vec![call("a/2", Value::Null)]),
        ChatMessage::tool_result(
            "a/2",
            ToolContent { structured: Some(json!({"n": 1})), ..ToolContent::default() },
        ),
    ];
    let sent = messages(history);
    let renamed = sent[3]["content"][0]["id"].as_str().unwrap();
    assert!(renamed.bytes().all(|b| b.is_ascii_alphanumeric()), "{renamed}");
    let mut failed = wire_result("b", json!("(no output)"));
    failed["is_error"] = json!(true);
    let expected = json!([
        {"role": "user", "content": [wire_text("Add.")]},
        {"role": "assistant", "content": [wire_text("So:"), wire_call("a", json!({"x": 1})),
            wire_call("b", json!({"unreadable_arguments": "{\"x\": nope"}))]},
        {"role": "user", "content": [wire_result("a", json!("1")), failed,
            wire_text("Try another way."), wire_text("And?")]},
        {"role": "assistant", "content": [wire_call(renamed, json!({}))]},
        {"role": "user", "content": [wire_result(renamed, json!("{\"n\":1}"))]},
    ]);
    assert_eq!(sent, expected);
}

#[test]
fn neighbours_of_one_role_are_one_message_and_empty_ones_none() {
    let history = vec![
        assistant(vec![text("Hello.")]),
        ChatMessage::user(" \n"),
        assistant(vec![thought("Unsigned."), text("")]),
        assistant(vec![text("Still here.")]),
        ChatMessage::user("One"),
        ChatMessage::user("two"),
        assistant(vec![thought("Only a thought.")]),
        ChatMessage::user("three"),
        assistant(vec![text("Once upon a \n")]),
    ];
    let expected = json!([
        {"role": "user", "content": "(The conversation begins with you.)"},
        {"role": "assistant", "content": [wire_text("Hello."), wire_text("Still here.")]},
        {"role": "user", "content": [wire_text("One"), wire_text("two"), wire_text("three")]},
        {"role": "assistant", "content": [wire_text("Once upon a")]},
    ]);
    assert_eq!(messages(history), expected);
}

#[test]
fn pictures_are_sent_where_they_are() {
    let picture = |data: &ImageSource| ContentBlock::Image {
        media_type: "image/png".into(),
        data: data.clone(),
    };
    let (bytes, url) =
        (ImageSource::Base64("AAAA".into()), ImageSource::Url("https://x/y.png".into()));
    let shown = ToolImage { media_type: "image/png".into(), data: bytes.clone() };
    let shot = ToolContent { images: vec![shown.clone()], ..ToolContent::default() };
    let told = ToolContent { text: "there".into(), images: vec![shown], structured: None };
    let history = vec![
        ChatMessage { role: ChatRole::User, content: vec![text("See?"), picture(&url)] },
        assistant(vec![picture(&bytes), call("a", json!({})), call("b", json!({}))]),
        ChatMessage::tool_result("a", shot),
        ChatMessage::tool_result("b", told),
    ];
    let base64 = json!({"type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}});
    let expected = json!([
        {"role": "user", "content": [wire_text("See?"),
            {"type": "image", "source": {"type": "url", "url": "https://x/y.png"}}]},
        {"role": "assistant", "content": [wire_call("a", json!({})), wire_call("b", json!({}))]},
        {"role": "user", "content": [wire_result("a", json!([base64])),
            wire_result("b", json!([wire_text("there"), base64]))]},
    ]);
    assert_eq!(messages(history), expected);
}

/// The signature of "Hm." as the decoder keeps it.
fn signature() -> ContentBlock {
    kept(json!({"signature": {"value": "c2ln", "thought": "496e6e19cdb39040"}}))
}

#[test]
fn a_thought_goes_back_with_its_signature_or_not_at_all() {
    let signed = json!({"type": "thinking", "thinking": "Hm.", "signature": "c2ln"});
    let sent = |content: Vec<ContentBlock>| {
        messages(vec![ChatMessage::user("q"), assistant(content), ChatMessage::user("go on")])[1]
            ["content"]
            .take()
    };
    let other = ContentBlock::ProviderData(ProviderData { api: "gemini".into(), data: "x".into() });
    let hidden = kept(json!({"signature": {"value": "c2ln", "thought": "cbf29ce484222325"}}));
    assert_eq!(
        sent(vec![thought("Hm."), signature(), text("Yes.")]),
        json!([signed, wire_text("Yes.")])
    );
    // A thought that the API kept to itself is signed, too.
    assert_eq!(
        sent(vec![hidden, text("Yes.")]),
        json!([{"type": "thinking", "thinking": "", "signature": "c2ln"}, wire_text("Yes.")])
    );
    for content in [
        vec![thought("Hm."), text("Yes.")],
        vec![thought("Changed."), signature(), text("Yes.")],
        vec![signature(), text("Yes.")],
        vec![thought("Hm."), other, text("Yes.")],
        vec![thought("Hm."), kept(json!("not an object")), text("Yes.")],
    ] {
        assert_eq!(sent(content), json!([wire_text("Yes.")]));
    }
}

/// Anthropic says so of its platforms; another server of the API cannot have signed for Claude.
#[test]
fn a_signature_of_claude_is_good_on_all_its_platforms_and_nowhere_else() {
    let said = assistant(vec![thought("Hm."), signature(), text("Yes.")]);
    let history = vec![ChatMessage::user("q"), said, ChatMessage::user("go on")];
    let params = ChatParams { messages: history, ..ChatParams::default() };
    let sent = |change: fn(&mut Options)| {
        let mut options = plain();
        change(&mut options);
        body_with("claude-sonnet-4-5", &params, &options)["messages"][1]["content"].take()
    };
    let signed = json!({"type": "thinking", "thinking": "Hm.", "signature": "c2ln"});
    let whole = json!([signed, wire_text("Yes.")]);
    assert_eq!(sent(|_| {}), whole);
    assert_eq!(sent(|options| options.platform = Platform::Bedrock), whole);
    let elsewhere = sent(|options| options.origin = format!("{API}@api.deepseek.com").into());
    assert_eq!(elsewhere, json!([wire_text("Yes.")]));
}

#[test]
fn thought_is_off_while_calls_are_under_way_that_began_without() {
    let thinks = |history: Vec<ChatMessage>| {
        let params =
            ChatParams { messages: history, reasoning_budget: Some(2000), ..ChatParams::default() };
        !body(&params)["thinking"].is_null()
    };
    let question = ChatMessage::user("q");
    let result = |id| ChatMessage::tool_result(id, "1");
    let unsigned = assistant(vec![thought("Hm."), call("a", json!({}))]);
    let signed = assistant(vec![thought("Hm."), signature(), call("a", json!({}))]);
    let later = assistant(vec![call("b", json!({}))]);
    let redacted = assistant(vec![
        kept(json!({"block": {"type": "redacted_thinking", "data": "x"}})),
        call("a", json!({})),
    ]);
    assert!(thinks(vec![question.clone(), signed.clone(), result("a")]));
    assert!(thinks(vec![question.clone(), signed, result("a"), later.clone(), result("b")]));
    assert!(thinks(vec![question.clone(), redacted, result("a")]));
    assert!(!thinks(vec![question.clone(), unsigned.clone(), result("a")]));
    assert!(!thinks(vec![question.clone(), unsigned.clone(), result("a"), later, result("b")]));
    assert!(thinks(vec![
        question.clone(),
        unsigned,
        result("a"),
        assistant(vec![text("So.")]),
        question
    ]));
}

#[test]
fn what_the_provider_made_goes_back_byte_for_byte() {
    let block = r#"{"type":"new_block","x":[1.50],"u":"\u00e9"}"#;
    let data = format!(r#"{{"block":{block}}}"#);
    let block_kept = ContentBlock::ProviderData(ProviderData { api: API.into(), data });
    let caller = json!({"type": "code_execution_20250825", "tool_id": "srvtoolu_1"});
    let params = ChatParams {
        messages: vec![
            ChatMessage::user("q"),
            assistant(vec![
                block_kept,
                text("One.Two."),
                kept(json!({"texts": [[4, null], [4, [{"type": "char_location"}]]]})),
                text("Changed!!"),
                kept(json!({"texts": [[4, null], [4, [{"type": "char_location"}]]]})),
                call("a", json!({})),
                kept(json!({"call": {"caller": caller}})),
            ]),
            ChatMessage::tool_result("a", "1"),
        ],
        ..ChatParams::default()
    };
    let bytes = encode("m", &params, &plain()).unwrap();
    assert!(std::str::from_utf8(&bytes).unwrap().contains(block));
    let mut called = wire_call("a", json!({}));
    called["caller"] = caller;
    let expected = json!([serde_json::from_str::<Value>(block).unwrap(), wire_text("One."),
        {"type": "text", "text": "Two.", "citations": [{"type": "char_location"}]},
        wire_text("Changed!!"), called]);
    assert_eq!(body(&params)["messages"][1]["content"], expected);
}

#[test]
fn four_marks_say_what_to_cache() {
    let params = ChatParams {
        system: Some("Be brief.".into()),
        tools: Some(vec![tool("add", json!({})), tool("sub", json!({}))]),
        messages: vec![
            ChatMessage::user("One"),
            assistant(vec![text("1")]),
            ChatMessage::user("Two"),
            assistant(vec![call("a", json!({})), call("b", json!({}))]),
            ChatMessage::tool_result("a", "1"),
            ChatMessage::tool_result("b", "2"),
        ],
        ..ChatParams::default()
    };
    let sent = body_with("m", &params, &Options::default());
    let mut marked = Vec::new();
    for (place, list) in [("tools", &sent["tools"]), ("system", &sent["system"])]
        .into_iter()
        .chain(sent["messages"].as_array().unwrap().iter().map(|m| ("message", &m["content"])))
    {
        for (at, block) in list.as_array().unwrap().iter().enumerate() {
            if block["cache_control"] == json!({"type": "ephemeral"}) {
                marked.push((place, at));
            }
        }
    }
    assert_eq!(marked, [("tools", 1), ("system", 0), ("message", 0), ("message", 1)]);
    assert!(!body_with("m", &params, &plain()).to_string().contains("cache_control"));
}

#[test]
fn a_conversation_with_calls_has_tools_even_where_none_are_offered() {
    let history = || {
        vec![
            ChatMessage::user("q"),
            assistant(vec![call("a", json!({}))]),
            ChatMessage::tool_result("a", "1"),
        ]
    };
    let sent = body(&ChatParams { messages: history(), ..ChatParams::default() });
    assert_eq!(sent["tools"], json!([{"name": "add", "input_schema": {"type": "object"}}]));
    assert_eq!(sent["tool_choice"], json!({"type": "none"}));

    let mut options = plain();
    options.server_tools = vec![json!({"type": "web_search_20250305", "name": "web_search"})];
    let params = ChatParams { messages: history(), ..ChatParams::default() };
    let sent = body_with("m", &params, &options);
    assert_eq!(sent["tools"], json!(options.server_tools));
    assert_eq!(sent["tool_choice"], Value::Null);
}

#[test]
fn a_choice_at_the_top_of_a_schema_is_spread() {
    let schema = json!({"description": "either", "anyOf": [
        {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
        {"type": "object", "properties": {"b": {"type": "string"}}},
    ]});
    let sent = body(&ChatParams { tools: Some(vec![tool("add", schema)]), ..hello() });
    let expected = json!({"description": "either", "type": "object", "properties": {
        "a": {"type": "string"}, "b": {"type": "string"},
    }});
    assert_eq!(sent["tools"][0]["input_schema"], expected);
}

#[test]
fn a_model_that_takes_no_beginning_is_asked_to_go_on() {
    let history = || vec![ChatMessage::user("q"), assistant(vec![text("Once upon")])];
    let go_on = json!({"role": "user", "content": [wire_text("(Go on.)")]});
    let params = ChatParams { messages: history(), ..ChatParams::default() };
    assert_eq!(body_with("claude-opus-4-6", &params, &plain())["messages"][2], go_on);
    assert_eq!(body(&params)["messages"][2], Value::Null);
    // Thought allows no beginning either.
    let thinking = ChatParams { reasoning_budget: Some(2000), ..params };
    let sent = body(&thinking);
    assert_eq!((&sent["messages"][2], &sent["thinking"]["type"]), (&go_on, &json!("enabled")));
}

#[test]
fn what_a_tool_of_the_provider_never_ended_is_left_out() {
    let used = |id: &str| {
        kept(json!({"block": {"type": "server_tool_use", "id": id, "name": "web_search"}}))
    };
    let found = kept(json!({"block": {"type": "web_search_tool_result", "tool_use_id": "s1"}}));
    let ids = |history: Vec<ChatMessage>| {
        let sent = messages(history);
        let blocks = sent[1]["content"].as_array().cloned().unwrap_or_default();
        blocks
            .iter()
            .filter_map(|block| block["id"].as_str().map(str::to_owned))
            .collect::<Vec<_>>()
    };
    let said = assistant(vec![used("s1"), found, text("So."), used("s2")]);
    let question = ChatMessage::user("q");
    assert_eq!(ids(vec![question.clone(), said.clone(), question.clone()]), ["s1"]);
    // At the end it is under way; beside calls it waits for them.
    assert_eq!(ids(vec![question.clone(), said]), ["s1", "s2"]);
    let waiting = assistant(vec![used("s3"), call("a", json!({}))]);
    let result = ChatMessage::tool_result("a", "1");
    assert_eq!(ids(vec![question.clone(), waiting, result, question.clone()]), ["s3", "a"]);
    // A result without its use is none.
    let orphan = kept(json!({"block": {"type": "web_search_tool_result", "tool_use_id": "s4"}}));
    let sent = messages(vec![question.clone(), assistant(vec![text("So."), orphan]), question]);
    assert_eq!(sent[1]["content"], json!([wire_text("So.")]));
}

#[test]
fn the_provider_may_sum_a_long_conversation_up() {
    let mut options = plain();
    options.compact_above = Some(80_000);
    let summary = r#"{"type":"compaction","content":"What was said."}"#;
    let data = format!(r#"{{"block":{summary}}}"#);
    let summary = ContentBlock::ProviderData(ProviderData { api: API.into(), data });
    let history = vec![ChatMessage::user("q"), assistant(vec![summary, text("So.")])];
    let question = ChatMessage::user("Next?");
    let messages = history.into_iter().chain([question]).collect();
    let sent = body_with("m", &ChatParams { messages, ..ChatParams::default() }, &options);
    let trigger = json!({"type": "input_tokens", "value": 80_000});
    let edits = json!([{"type": "compact_20260112", "trigger": trigger}]);
    assert_eq!(sent["context_management"], json!({"edits": edits}));
    let block = json!({"type": "compaction", "content": "What was said."});
    assert_eq!(sent["messages"][1]["content"], json!([block, wire_text("So.")]));
}
