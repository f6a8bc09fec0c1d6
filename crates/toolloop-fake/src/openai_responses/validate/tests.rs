//! Each refusal with its sentence, parameter and code.

use serde_json::{Value, json};

use super::validate;

/// A request with these members in place of its own.
fn request(members: Value) -> Value {
    let mut body = json!({"model": "gpt-5", "input": "Hi"});
    let Value::Object(members) = members else { unreachable!("members are an object") };
    body.as_object_mut().unwrap().extend(members);
    body
}

#[track_caller]
fn refuses(members: Value, message: &str, param: &str, code: impl Into<Value>) {
    let refusal = validate(&request(members)).unwrap_err();
    let error = &refusal.body["error"];
    assert_eq!(error["message"], message);
    assert_eq!((&error["param"], &error["code"]), (&json!(param), &code.into()));
    assert_eq!(error["type"], "invalid_request_error");
}

#[track_caller]
fn refuses_input(items: Value, message: &str) {
    refuses(json!({"input": items, "store": false}), message, "input", Value::Null);
}

fn accepts(members: Value) {
    assert_eq!(validate(&request(members)), Ok(()));
}

fn user() -> Value {
    json!({"role": "user", "content": "Hi"})
}

fn said() -> Value {
    json!({"type": "message", "role": "assistant", "content": "Hello"})
}

fn call(id: &str) -> Value {
    json!({"type": "function_call", "call_id": id, "name": "t", "arguments": "{}"})
}

fn output(id: &str) -> Value {
    json!({"type": "function_call_output", "call_id": id, "output": "x"})
}

fn thought(id: &str) -> Value {
    json!({"type": "reasoning", "id": id, "summary": [], "encrypted_content": "gAAA"})
}

fn with_id(mut item: Value, id: &str) -> Value {
    item["id"] = json!(id);
    item
}

fn tool(parameters: Value, strict: bool) -> Value {
    json!({"type": "function", "name": "t", "parameters": parameters, "strict": strict})
}

#[test]
fn whole_conversations_are_accepted() {
    let closed = json!({"type": "object", "properties": {"a": {"type": "array", "items":
        {"type": "string"}}}, "required": ["a"], "additionalProperties": false});
    accepts(json!({}));
    accepts(json!({
        "input": [
            user(), thought("rs_1"), with_id(said(), "msg_1"), with_id(call("a"), "fc_1"),
            call("b"), output("b"), output("a"), {"role": "developer", "content": "Go on."},
            thought("rs_2"), {"type": "web_search_call", "id": "ws_1", "status": "completed"},
        ],
        "tools": [tool(closed.clone(), true), {"type": "web_search"}],
        "tool_choice": {"type": "function", "name": "t"},
        "text": {"format": {"type": "json_schema", "name": "x", "strict": true, "schema": closed}},
        "store": false, "stream": true, "stream_options": {"include_obfuscation": false},
        "include": ["reasoning.encrypted_content"], "reasoning": {"effort": "low"},
        "max_output_tokens": 16,
    }));
    // What was before is known to the server alone.
    accepts(json!({"input": [output("a")], "previous_response_id": "resp_1"}));
    accepts(json!({"input": null, "previous_response_id": "resp_1"}));
}

#[test]
fn model_and_input_are_required() {
    refuses(
        json!({"model": null}),
        "Missing required parameter: 'model'.",
        "model",
        "missing_required_parameter",
    );
    refuses(
        json!({"input": null}),
        "Missing required parameter: 'input'.",
        "input",
        "missing_required_parameter",
    );
    refuses(
        json!({"input": 7}),
        "Invalid type for 'input': expected one of a string or array of objects, but got an \
         integer instead.",
        "input",
        "invalid_type",
    );
    assert_eq!(validate(&json!("{oops")).unwrap_err().status, 400);
}

#[test]
fn a_call_needs_its_output_and_an_output_its_call() {
    refuses_input(json!([user(), call("a")]), "No tool output found for function call a.");
    refuses_input(
        json!([user(), call("a"), call("b"), output("b")]),
        "No tool output found for function call a.",
    );
    let sentence = "No tool call found for function call output with call_id a.";
    refuses_input(json!([user(), output("a")]), sentence);
    refuses_input(json!([output("a"), call("a")]), sentence);
}

#[test]
fn a_thought_needs_what_it_led_to() {
    let sentence = "Item 'rs_1' of type 'reasoning' was provided without its required following \
        item.";
    refuses_input(json!([user(), thought("rs_1")]), sentence);
    refuses_input(json!([thought("rs_1"), user()]), sentence);
    refuses_input(json!([call("a"), thought("rs_1"), output("a")]), sentence);
    accepts(json!({"input": [thought("rs_1"), thought("rs_2"), said()]}));
}

#[test]
fn what_a_thought_led_to_needs_it() {
    refuses_input(
        json!([with_id(said(), "msg_1_rs_fake_3")]),
        "Item 'msg_1_rs_fake_3' of type 'message' was provided without its required 'reasoning' \
         item: 'rs_fake_3'.",
    );
    accepts(json!({"input": [thought("rs_fake_3"), with_id(said(), "msg_1_rs_fake_3")]}));
}

#[test]
fn nothing_is_found_that_was_not_stored() {
    let mut unknown = thought("rs_1");
    unknown.as_object_mut().unwrap().remove("encrypted_content");
    let body = request(json!({"input": [unknown, said()], "store": false}));
    let refusal = validate(&body).unwrap_err();
    assert_eq!(refusal.status, 404);
    assert_eq!(
        refusal.body["error"]["message"],
        "Item with id 'rs_1' not found. Items are not persisted when `store` is set to false. Try \
         again with `store` set to true, or remove this item from your input."
    );
    accepts(json!({"input": body["input"]}));
}

#[test]
fn ids_are_unique_short_and_of_their_kind() {
    refuses_input(
        json!([thought("rs_1"), said(), thought("rs_1"), said()]),
        "Duplicate item found with id rs_1. Remove duplicate items from your input and try again.",
    );
    let long = "x".repeat(65);
    refuses(
        json!({"input": [call(&long), output(&long)]}),
        "Invalid 'input[0].call_id': string too long. Expected a string with maximum length 64, \
         but got a string with length 65 instead.",
        "input[0].call_id",
        "string_above_max_length",
    );
    for (item, prefix) in [(call("a"), "fc"), (said(), "msg"), (thought("rs_1"), "rs")] {
        refuses(
            json!({"input": [user(), with_id(item, "call_a")]}),
            &format!(
                "Invalid 'input[1].id': 'call_a'. Expected an ID that begins with '{prefix}'."
            ),
            "input[1].id",
            "invalid_value",
        );
    }
}

#[test]
fn items_are_well_formed() {
    refuses(
        json!({"input": [{"role": "tool", "content": "x"}]}),
        "Invalid value: 'tool'. Supported values are: 'assistant', 'system', 'developer', and \
         'user'.",
        "input[0].role",
        "invalid_value",
    );
    refuses(
        json!({"input": [{"role": "user", "content": [{"type": "text", "text": "x"}]}]}),
        "Invalid value: 'text'. Supported values are: 'input_text', 'input_image', 'output_text', \
         'refusal', 'input_file', 'computer_screenshot', and 'summary_text'.",
        "input[0].content[0].type",
        "invalid_value",
    );
    refuses(
        json!({"input": [{"role": "assistant", "content": [{"type": "input_text", "text": "x"}]}]}),
        "Invalid value: 'input_text'. Supported values are: 'output_text' and 'refusal'.",
        "input[0].content[0].type",
        "invalid_value",
    );
    refuses(
        json!({"input": [{"type": "reasoning", "id": "rs_1"}, said()]}),
        "Missing required parameter: 'input[0].summary'.",
        "input[0].summary",
        "missing_required_parameter",
    );
    let mut open = thought("rs_1");
    open["content"] = json!([{"type": "reasoning_text", "text": "Hm."}]);
    refuses(
        json!({"input": [open, said()]}),
        "Invalid 'input[0].content': array too long. Expected an array with maximum length 0, but \
         got an array with length 1 instead.",
        "input[0].content",
        "array_above_max_length",
    );
    for missing in ["call_id", "name", "arguments"] {
        let mut call = call("a");
        call.as_object_mut().unwrap().remove(missing);
        refuses(
            json!({"input": [call, output("a")]}),
            &format!("Missing required parameter: 'input[0].{missing}'."),
            &format!("input[0].{missing}"),
            "missing_required_parameter",
        );
    }
    refuses(
        json!({"input": [{"type": "function_call_output", "call_id": "a", "output": {"n": 1}}]}),
        "Invalid type for 'input[0].output': expected one of a string or array of objects, but \
         got an object instead.",
        "input[0].output",
        "invalid_type",
    );
}

#[test]
fn tools_are_flat() {
    let nested = json!({"type": "function", "function": {"name": "t"}});
    refuses(
        json!({"tools": [nested]}),
        "Missing required parameter: 'tools[0].name'.",
        "tools[0].name",
        "missing_required_parameter",
    );
    refuses(
        json!({"tools": [tool(json!({"type": "object", "properties": {}}), false)],
            "tool_choice": {"type": "function", "function": {"name": "t"}}}),
        "Missing required parameter: 'tool_choice.name'.",
        "tool_choice.name",
        "missing_required_parameter",
    );
    refuses(
        json!({"tool_choice": "required"}),
        "Tool choice 'required' must be specified with 'tools' parameter.",
        "tool_choice",
        Value::Null,
    );
    refuses(
        json!({"tools": [{"type": "function", "name": "a b"}]}),
        "Invalid 'tools[0].name': string does not match pattern. Expected a string that matches \
         the pattern '^[a-zA-Z0-9_-]+$'.",
        "tools[0].name",
        "invalid_value",
    );
}

#[test]
fn schemas_fit_their_mode() {
    let schema = |schema: Value, strict, fault: &str| {
        refuses(
            json!({"tools": [tool(schema, strict)]}),
            &format!("Invalid schema for function 't': {fault}"),
            "tools[0].parameters",
            "invalid_function_parameters",
        );
    };
    schema(
        json!({}),
        false,
        "schema must be a JSON Schema of 'type: \"object\"', got 'type: \"None\"'.",
    );
    schema(
        json!({"type": "object", "properties": {}, "not": {}}),
        false,
        "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top \
         level.",
    );
    schema(json!({"type": "object"}), false, "In context=(), object schema missing properties.");
    let open = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    accepts(json!({"tools": [tool(open.clone(), false)]}));
    schema(
        open.clone(),
        true,
        "In context=(), 'additionalProperties' is required to be supplied and to be false.",
    );
    let closed = |property: Value| {
        json!({"type": "object", "properties": {"a": property}, "required": ["a"],
            "additionalProperties": false})
    };
    schema(
        closed(open),
        true,
        "In context=('properties', 'a'), 'additionalProperties' is required to be supplied and to \
         be false.",
    );
    let mut optional = closed(json!({"type": "string"}));
    optional["required"] = json!([]);
    schema(
        optional,
        true,
        "In context=(), 'required' is required to be supplied and to be an array including every \
         key in properties. Missing 'a'.",
    );
    schema(
        closed(json!({"type": "string", "default": "x"})),
        true,
        "In context=('properties', 'a'), 'default' is not permitted.",
    );
    refuses(
        json!({"text": {"format": {"type": "json_schema", "name": "x", "schema": {}}}}),
        "Invalid schema for response_format 'x': schema must be a JSON Schema of 'type: \
         \"object\"', got 'type: \"None\"'.",
        "text.format.schema",
        "invalid_json_schema",
    );
}

#[test]
fn parameters_are_those_of_this_api() {
    refuses(
        json!({"max_tokens": 5}),
        "Unsupported parameter: 'max_tokens'. In the Responses API, this parameter has moved to \
         'max_output_tokens'. Try again with the new parameter. See the API documentation for more \
         information: https://platform.openai.com/docs/api-reference/responses/create.",
        "max_tokens",
        "unsupported_parameter",
    );
    refuses(json!({"stop": "x"}), "Unknown parameter: 'stop'.", "stop", "unknown_parameter");
    refuses(
        json!({"max_output_tokens": 5}),
        "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but \
         got 5 instead.",
        "max_output_tokens",
        "integer_below_min_value",
    );
    refuses(
        json!({"stream_options": {"include_obfuscation": false}}),
        "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
        "stream_options",
        Value::Null,
    );
}

#[test]
fn only_models_that_reason_are_asked_for_thoughts() {
    refuses(
        json!({"model": "gpt-4o", "include": ["reasoning.encrypted_content"]}),
        "Encrypted content is not supported with this model.",
        "include",
        Value::Null,
    );
    refuses(
        json!({"model": "gpt-4.1", "reasoning": {"effort": "low"}}),
        "Unsupported parameter: 'reasoning.effort' is not supported with this model.",
        "reasoning.effort",
        "unsupported_parameter",
    );
    refuses(
        json!({"reasoning": {"effort": "much"}}),
        "Invalid value: 'much'. Supported values are: 'none', 'minimal', 'low', 'medium', 'high', \
         and 'xhigh'.",
        "reasoning.effort",
        "invalid_value",
    );
}
