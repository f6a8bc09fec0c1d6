use serde_json::{Value, json};

use super::*;

/// A request with these members besides, or instead of, those of a good one.
fn request(members: Value) -> Value {
    let mut body = json!({
        "model": "claude-sonnet-4-5", "max_tokens": 100,
        "messages": [{"role": "user", "content": "hi"}],
        "tools": [tool("t")],
    });
    for (name, value) in members.as_object().unwrap() {
        match value {
            Value::Null => body.as_object_mut().unwrap().remove(name),
            value => body.as_object_mut().unwrap().insert(name.clone(), value.clone()),
        };
    }
    body
}

fn tool(name: &str) -> Value {
    json!({"name": name, "input_schema": {"type": "object"}})
}

fn said(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

fn assistant(content: &[Value]) -> Value {
    json!({"role": "assistant", "content": content})
}

fn user(content: &[Value]) -> Value {
    json!({"role": "user", "content": content})
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn call(id: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "t", "input": {}})
}

fn result(id: &str) -> Value {
    json!({"type": "tool_result", "tool_use_id": id, "content": "1"})
}

fn thought(text: &str) -> Value {
    json!({"type": "thinking", "thinking": text, "signature": signature(text)})
}

fn sentence(body: &Value) -> String {
    let refusal = validate(body).expect_err("it is accepted");
    let error = &refusal.body["error"];
    assert_eq!((refusal.status, &error["type"]), (400, &json!("invalid_request_error")));
    error["message"].as_str().unwrap().to_owned()
}

#[track_caller]
fn refuses(members: Value, expected: &str) {
    let message = sentence(&request(members));
    assert!(message.starts_with(expected), "{message}");
}

#[track_caller]
fn refuses_messages(messages: &[Value], expected: &str) {
    refuses(json!({ "messages": messages }), expected);
}

fn accepts(members: Value) {
    assert_eq!(validate(&request(members)), Ok(()));
}

#[test]
fn good_requests_are_accepted() {
    accepts(json!({}));
    accepts(json!({
        "system": [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}],
        "tools": [tool("t"), {"type": "web_search_20250305", "name": "web_search"}],
        "tool_choice": {"type": "tool", "name": "t"}, "temperature": 1, "stream": true,
        "messages": [
            said("one"), said("two"),
            assistant(&[text("so"), call("a"), call("b")]),
            user(&[result("b"), result("a"), text("go on"),
                json!({"type": "image", "source": {"type": "url", "url": "https://x"}})]),
            assistant(&[text("ends here")]),
        ],
    }));
}

#[test]
fn parameters_have_their_form() {
    refuses(json!({"model": null}), "model: Field required");
    refuses(json!({"max_tokens": null}), "max_tokens: Field required");
    refuses(json!({"messages": null}), "messages: Field required");
    refuses(json!({"max_tokens": 0}), "max_tokens: Input should be greater than or equal to 1");
    refuses(
        json!({"max_tokens": 64_001}),
        "max_tokens: 64001 > 64000, which is the maximum allowed number of output tokens",
    );
    refuses(json!({"messages": []}), "messages: at least one message is required");
    refuses(json!({"stream_options": {}}), "stream_options: Extra inputs are not permitted");
    refuses(json!({"temperature": 1.5}), "temperature: range: 0..1");
    refuses(
        json!({"model": "claude-opus-4-7", "temperature": 0.5}),
        "`temperature` is deprecated for this model.",
    );
    refuses(
        json!({"model": "claude-sonnet-4-6", "output_config": {"effort": "xhigh"}}),
        "This model does not support effort level 'xhigh'. Supported levels: high, low, max, medium.",
    );
    refuses(
        json!({"output_config": {"format": {"type": "json_schema",
            "schema": {"type": "object", "properties": {}}}}}),
        "output_config.format.schema: For 'object' type, 'additionalProperties' must be explicitly \
         set to false",
    );
    refuses(
        json!({"system": "x".repeat(800_100)}),
        "prompt is too long: 200032 tokens > 200000 maximum",
    );
    let mut odd = json!({});
    odd["messages"] = json!("hi");
    refuses(odd, "messages: Input should be a valid list");
}

#[test]
fn messages_have_their_form() {
    refuses_messages(
        &[json!({"role": "system", "content": "x"})],
        "messages: Unexpected role \"system\".",
    );
    refuses_messages(
        &[json!({"role": "tool", "content": "x"})],
        "messages.0.role: Input should be 'user' or 'assistant'",
    );
    refuses_messages(&[assistant(&[text("x")])], "messages: first message must use the \"user\"");
    refuses_messages(&[user(&[text("")])], "messages: text content blocks must be non-empty");
    refuses_messages(&[said(" \n")], "messages: text content blocks must contain non-whitespace");
    refuses_messages(&[user(&[])], "messages.0: all messages must have non-empty content");
    refuses_messages(
        &[said("q"), assistant(&[]), said("q")],
        "messages.1: all messages must have non-empty content except for the optional final",
    );
    refuses_messages(
        &[user(&[call("a")])],
        "messages.0: `tool_use` blocks can only be in `assistant` messages",
    );
    refuses_messages(
        &[said("q"), assistant(&[result("a")])],
        "messages.1: `tool_result` blocks can only be in `user` messages",
    );
    let mut odd = call("a");
    odd["input"] = json!("{}");
    refuses_messages(
        &[said("q"), assistant(&[odd])],
        "messages.1.content.0.tool_use.input: Input should be a valid dictionary",
    );
    refuses_messages(
        &[said("q"), assistant(&[call("call|1")])],
        "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
    );
    let failed =
        json!({"type": "tool_result", "tool_use_id": "a", "content": "", "is_error": true});
    refuses_messages(
        &[said("q"), assistant(&[call("a")]), user(&[failed])],
        "messages.2.content.0.tool_result: content cannot be empty if `is_error` is true",
    );
    let picture = json!({"type": "image",
        "source": {"type": "base64", "media_type": "image/bmp", "data": "AAAA"}});
    refuses_messages(
        &[user(&[picture])],
        "messages.0.content.0.image.source.base64.media_type: Input should be 'image/jpeg'",
    );
    refuses_messages(
        &[user(&[json!({"type": "input_text", "text": "x"})])],
        "messages.0.content.0.input_text: Input tag 'input_text' found",
    );
    let mut marked = thought("x");
    marked["cache_control"] = json!({"type": "ephemeral"});
    refuses_messages(
        &[said("q"), assistant(&[marked, text("x")]), said("q")],
        "messages.1.content.0.thinking.cache_control: Extra inputs are not permitted",
    );
    refuses(json!({"system": [text("")]}), "system: text content blocks must be non-empty");
}

#[test]
fn every_call_has_its_result_right_behind_it() {
    let missing = "messages.1: `tool_use` ids were found without `tool_result` blocks immediately \
                   after: ";
    let calls = assistant(&[call("a"), call("b")]);
    refuses_messages(&[said("q"), calls.clone()], &format!("{missing}a, b."));
    refuses_messages(&[said("q"), calls.clone(), said("x")], &format!("{missing}a, b."));
    refuses_messages(&[said("q"), calls.clone(), user(&[result("a")])], &format!("{missing}b."));
    // Text before a result hides it.
    refuses_messages(
        &[said("q"), calls.clone(), user(&[result("a"), text("x"), result("b")])],
        &format!("{missing}b."),
    );
    let unexpected = "unexpected `tool_use_id` found in `tool_result` blocks: ";
    refuses_messages(&[user(&[result("a")])], &format!("messages.0.content.0: {unexpected}a."));
    refuses_messages(
        &[said("q"), calls.clone(), user(&[result("a"), result("b"), result("c")])],
        &format!("messages.2.content.2: {unexpected}c."),
    );
    refuses_messages(
        &[said("q"), calls, user(&[result("a"), result("b"), result("a")])],
        "messages.2.content.2: each tool_use must have a single result.",
    );
    refuses_messages(
        &[
            said("q"),
            assistant(&[call("a")]),
            user(&[result("a")]),
            assistant(&[call("a")]),
            user(&[result("a")]),
        ],
        "messages.3.content.0: `tool_use` ids must be unique",
    );
    // Two messages of the user are one.
    accepts(json!({"messages": [
        said("q"), assistant(&[call("a"), call("b")]), user(&[result("b")]), user(&[result("a")]),
    ]}));
}

#[test]
fn tools_have_their_form() {
    refuses(
        json!({"tools": [{"name": "a b", "input_schema": {"type": "object"}}]}),
        "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'",
    );
    refuses(json!({"tools": [tool("t"), tool("t")]}), "tools: Tool names must be unique.");
    refuses(
        json!({"tools": [{"name": "t", "input_schema": {}}]}),
        "tools.0.custom.input_schema.type: Field required",
    );
    refuses(
        json!({"tools": [{"name": "t", "input_schema": {"type": "object", "anyOf": []}}]}),
        "tools.0.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf",
    );
    refuses(
        json!({"tools": null, "tool_choice": {"type": "auto"}}),
        "tool_choice: tool_choice may only be specified while providing tools.",
    );
    refuses(
        json!({"tool_choice": {"type": "tool", "name": "u"}}),
        "tool_choice.tool.name: Tool 'u' not found in provided tools",
    );
    refuses(json!({"tool_choice": {"type": "required"}}), "tool_choice: Input tag 'required'");
    refuses(
        json!({"tools": null,
            "messages": [said("q"), assistant(&[call("a")]), user(&[result("a")])]}),
        "Requests which include `tool_use` or `tool_result` blocks must define tools",
    );
}

#[test]
fn thought_has_its_conditions() {
    let on = json!({"type": "enabled", "budget_tokens": 1024});
    let with = |members: Value| {
        let mut all = json!({"thinking": on, "max_tokens": 2000});
        all.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        all
    };
    accepts(with(json!({"temperature": 1})));
    refuses(
        with(json!({"thinking": {"type": "enabled", "budget_tokens": 1023}})),
        "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024",
    );
    refuses(with(json!({"max_tokens": 1024})), "`max_tokens` must be greater than");
    refuses(with(json!({"temperature": 0.5})), "`temperature` may only be set to 1");
    refuses(
        with(json!({"tool_choice": {"type": "any"}})),
        "Thinking may not be enabled when tool_choice forces tool use.",
    );
    refuses(
        with(json!({"model": "claude-opus-4-7"})),
        "\"thinking.type.enabled\" is not supported for this model.",
    );
    let loop_of = |first: &[Value]| {
        with(json!({"messages": [said("q"), assistant(first), user(&[result("a")]),
            assistant(&[call("b")]), user(&[result("b")])]}))
    };
    accepts(loop_of(&[thought("Hm."), call("a")]));
    accepts(loop_of(&[json!({"type": "redacted_thinking", "data": "x"}), call("a")]));
    refuses(
        loop_of(&[call("a")]),
        "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found \
         `tool_use`. When `thinking` is enabled, a final `assistant` message must start with a \
         thinking block",
    );
    // Of turns that are over nothing is demanded.
    accepts(with(json!({"messages": [said("q"), assistant(&[text("x")]), said("q")]})));
}

#[test]
fn a_signature_vouches_for_one_thought() {
    let invalid = "messages.1.content.0: Invalid `signature` in `thinking` block";
    let of = |block: Value| [said("q"), assistant(&[block, text("x")]), said("q")];
    let mut altered = thought("Hm.");
    altered["thinking"] = json!("Hm!");
    refuses_messages(&of(altered), invalid);
    refuses_messages(&of(json!({"type": "thinking", "thinking": "x", "signature": ""})), invalid);
    refuses_messages(
        &of(json!({"type": "thinking", "thinking": "x"})),
        "messages.1.content.0.thinking.signature: Field required",
    );
    let foreign =
        json!({"messages": of(json!({"type": "thinking", "thinking": "x", "signature": "Er8"}))});
    accepts(foreign.clone());
    let refusal = only_our_signatures(&foreign).unwrap_err();
    assert_eq!(refusal.body["error"]["message"], invalid);
    assert_eq!(only_our_signatures(&json!({"messages": of(thought("Hm."))})), Ok(()));
}

#[test]
fn the_end_is_one_to_go_on_from() {
    refuses_messages(
        &[said("q"), assistant(&[text("Once ")])],
        "messages: final assistant content cannot end with trailing whitespace",
    );
    refuses_messages(
        &[said("q"), assistant(&[thought("x"), text("Once")])],
        "messages.1.content.0: When thinking is disabled, an `assistant` message in the final",
    );
    refuses(
        json!({"model": "claude-sonnet-4-6", "messages": [said("q"), assistant(&[text("Once")])]}),
        "This model does not support assistant message prefill.",
    );
}

#[test]
fn tools_of_the_provider_have_results_too() {
    let used =
        json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}});
    let found =
        json!({"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []});
    accepts(json!({"messages": [said("q"), assistant(&[used.clone(), found.clone()]), said("q")]}));
    accepts(json!({"messages": [said("q"), assistant(std::slice::from_ref(&used))]}));
    refuses_messages(
        &[said("q"), assistant(&[used]), said("q")],
        "messages.1.content.0: `web_search` tool use with id `srvtoolu_1` was found without a",
    );
    refuses_messages(
        &[said("q"), assistant(&[found]), said("q")],
        "messages.1.content.0: unexpected `tool_use_id` found in `web_search_tool_result` blocks",
    );
}

#[test]
fn four_places_can_be_cached() {
    let marked =
        |text: &str| json!({"type": "text", "text": text, "cache_control": {"type": "ephemeral"}});
    let texts = |count: usize| vec![marked("x"); count];
    accepts(json!({"messages": [user(&texts(4))]}));
    refuses(
        json!({"system": [marked("s")], "messages": [user(&texts(4))]}),
        "A maximum of 4 blocks with cache_control may be provided. Found 5.",
    );
}

#[test]
fn bedrock_wants_a_version_and_no_model() {
    let body = |members: Value| {
        let mut body = request(json!({"model": null, "anthropic_version": "bedrock-2023-05-31"}));
        body.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        body
    };
    assert_eq!(validate_bedrock(&body(json!({}))), Ok(()));
    for (members, expected) in [
        (json!({"model": "x"}), "model: Extra inputs are not permitted"),
        (json!({"stream": true}), "stream: Extra inputs are not permitted"),
        (json!({"anthropic_version": "1"}), "anthropic_version: Input should be"),
    ] {
        let refusal = validate_bedrock(&body(members)).unwrap_err();
        let message = refusal.body["error"]["message"].as_str().unwrap();
        assert!(message.starts_with(expected), "{message}");
    }
}
