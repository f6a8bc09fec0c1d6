use serde_json::{Value, json};

use super::validate;

/// A request that is accepted, with these members set; null takes one away.
fn request(members: Value) -> Value {
    let mut body = json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]});
    for (name, value) in members.as_object().unwrap() {
        body[name] = value.clone();
        if value.is_null() {
            body.as_object_mut().unwrap().remove(name);
        }
    }
    body
}

/// Message, param and code of the refusal with status 400.
#[track_caller]
fn refusal(body: &Value) -> (String, Value, Value) {
    let refusal = validate(body).expect_err("the request is accepted");
    let error = &refusal.body["error"];
    assert_eq!((refusal.status, &error["type"]), (400, &json!("invalid_request_error")));
    let message = error["message"].as_str().unwrap().to_owned();
    (message, error["param"].clone(), error["code"].clone())
}

#[track_caller]
fn refuses(members: Value, message: &str, param: impl Into<Value>, code: impl Into<Value>) {
    let expected = (message.to_owned(), param.into(), code.into());
    assert_eq!(refusal(&request(members)), expected);
}

fn user() -> Value {
    json!({"role": "user", "content": "hi"})
}

fn call(id: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": "t", "arguments": "{}"}})
}

fn calls(ids: &[&str]) -> Value {
    let calls: Value = ids.iter().map(|id| call(id)).collect();
    json!({"role": "assistant", "content": null, "tool_calls": calls})
}

fn result(id: &str) -> Value {
    json!({"role": "tool", "tool_call_id": id, "content": "ok"})
}

fn tool(name: &str) -> Value {
    let parameters = json!({"type": "object", "properties": {}});
    json!({"type": "function", "function": {"name": name, "parameters": parameters}})
}

fn none() -> Value {
    Value::Null
}

#[test]
fn a_whole_tool_loop_is_accepted() {
    let messages = json!([
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [
            {"type": "text", "text": "hi"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,"}},
        ]},
        calls(&["a", "b"]), result("b"), {"role": "tool", "tool_call_id": "a", "content": ""},
        // Ids need only be unique within a message.
        calls(&["a"]), result("a"),
        {"role": "assistant", "content": "done"},
    ]);
    let body = request(json!({
        "messages": messages, "tools": [tool("t"), tool("u")],
        "tool_choice": {"type": "function", "function": {"name": "u"}},
        "parallel_tool_calls": true, "temperature": 2, "top_p": 0.5, "max_tokens": 1,
        "stream": true, "stream_options": {"include_usage": true},
    }));
    assert_eq!(validate(&body), Ok(()));
}

#[test]
fn the_body_must_be_an_object_with_model_and_messages() {
    let (message, param, code) = refusal(&json!("{oops"));
    assert!(message.starts_with("We could not parse the JSON body of your request."));
    assert_eq!((param, code), (none(), none()));
    refuses(json!({"model": null}), "you must provide a model parameter", none(), none());
    refuses(
        json!({"messages": null}),
        "Missing required parameter: 'messages'.",
        "messages",
        "missing_required_parameter",
    );
    refuses(
        json!({"messages": "hi"}),
        "Invalid type for 'messages': expected an array of objects, but got a string instead.",
        "messages",
        "invalid_type",
    );
    refuses(
        json!({"messages": []}),
        "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an \
         empty array instead.",
        "messages",
        "empty_array",
    );
}

#[test]
fn roles_are_known() {
    refuses(
        json!({"messages": [{"role": "ai", "content": "x"}]}),
        "Invalid value: 'ai'. Supported values are: 'system', 'assistant', 'user', 'function', \
         'tool', and 'developer'.",
        "messages[0].role",
        "invalid_value",
    );
    refuses(
        json!({"messages": [{"content": "x"}]}),
        "Missing required parameter: 'messages[0].role'.",
        "messages[0].role",
        "missing_required_parameter",
    );
}

#[test]
fn content_says_something() {
    let null = "Invalid value for 'content': expected a string, got null.";
    for role in ["user", "assistant", "system"] {
        let message = json!([{"role": role, "content": null}]);
        refuses(json!({"messages": message}), null, "messages.[0].content", none());
    }
    let no_result = json!([user(), calls(&["a"]), {"role": "tool", "tool_call_id": "a"}]);
    refuses(json!({"messages": no_result}), null, "messages.[2].content", none());
    refuses(
        json!({"messages": [{"role": "assistant", "content": ""}]}),
        "Invalid 'messages[0].content': empty string. Expected a string with minimum length 1, \
         but got an empty string instead.",
        "messages[0].content",
        "empty_string",
    );
    refuses(
        json!({"messages": [{"role": "user", "content": []}]}),
        "Invalid 'messages[0].content': empty array. Expected an array with minimum length 1, \
         but got an empty array instead.",
        "messages[0].content",
        "empty_array",
    );
    refuses(
        json!({"messages": [{"role": "user", "content": [{"type": "text", "text": ""}]}]}),
        "Invalid 'messages[0].content[0].text': empty string. Expected a string with minimum \
         length 1, but got an empty string instead.",
        "messages[0].content[0].text",
        "empty_string",
    );
    refuses(
        json!({"messages": [{"role": "user", "content": 7}]}),
        "Invalid type for 'messages[0].content': expected one of a string or array of objects, \
         but got an integer instead.",
        "messages[0].content",
        "invalid_type",
    );
    refuses(
        json!({"messages": [{"role": "user", "content": [{"type": "video"}]}]}),
        "Invalid value: 'video'. Supported values are: 'text', 'image_url', 'input_audio', \
         'refusal', 'audio', and 'file'.",
        "messages[0].content[0].type",
        "invalid_value",
    );
}

#[test]
fn pictures_come_from_users() {
    let picture = json!([{"type": "image_url", "image_url": {"url": "x"}}]);
    let message = json!({"role": "tool", "tool_call_id": "a", "content": picture});
    refuses(
        json!({"messages": [user(), calls(&["a"]), message]}),
        "Invalid 'messages[2]'. Image URLs are only allowed for messages with role 'user', but \
         this message with role 'tool' contains an image URL.",
        "messages[2]",
        "invalid_value",
    );
}

#[test]
fn every_call_has_its_result() {
    let sentence = "An assistant message with 'tool_calls' must be followed by tool messages \
        responding to each 'tool_call_id'. The following tool_call_ids did not have response \
        messages: ";
    let open = |messages: Value, ids: &str, at: &str| {
        refuses(json!({"messages": messages}), &format!("{sentence}{ids}"), at, none());
    };
    open(json!([user(), calls(&["a", "b"])]), "a, b", "messages.[1].role");
    open(json!([user(), calls(&["a", "b"]), result("a")]), "b", "messages.[2].role");
    open(json!([user(), calls(&["a"]), user(), result("a")]), "a", "messages.[2].role");
    open(json!([user(), calls(&["a"]), calls(&["b"]), result("b")]), "a", "messages.[2].role");
}

#[test]
fn every_result_has_its_call() {
    let sentence = "Invalid parameter: messages with role 'tool' must be a response to a \
        preceeding message with 'tool_calls'.";
    let messages = json!([user(), result("a")]);
    refuses(json!({"messages": messages}), sentence, "messages.[1].role", none());
    let messages = json!([user(), calls(&["a"]), result("a"), user(), result("a")]);
    refuses(json!({"messages": messages}), sentence, "messages.[4].role", none());
    refuses(
        json!({"messages": [user(), calls(&["a"]), result("b")]}),
        "Invalid parameter: 'tool_call_id' of 'b' not found in 'tool_calls' of previous message.",
        "messages.[2].tool_call_id",
        none(),
    );
    refuses(
        json!({"messages": [user(), calls(&["a"]), {"role": "tool", "content": "x"}]}),
        "Missing parameter 'tool_call_id': messages with role 'tool' must have a 'tool_call_id'.",
        "messages.[2].tool_call_id",
        none(),
    );
}

#[test]
fn ids_are_unique_and_short() {
    refuses(
        json!({"messages": [user(), calls(&["a", "a"]), result("a")]}),
        "Duplicate value for 'tool_call_id' of a in message[1]",
        "messages.[1].tool_calls",
        none(),
    );
    refuses(
        json!({"messages": [user(), calls(&["a"]), result("a"), result("a")]}),
        "Invalid parameter: Duplicate value for 'tool_call_id' of 'a', in messages[2] and \
         messages[3].",
        "messages.[3].tool_call_id",
        none(),
    );
    let long = "x".repeat(41);
    refuses(
        json!({"messages": [user(), calls(&[&long]), result(&long)]}),
        "Invalid 'messages[1].tool_calls[0].id': string too long. Expected a string with maximum \
         length 40, but got a string with length 41 instead.",
        "messages[1].tool_calls[0].id",
        "string_above_max_length",
    );
}

#[test]
fn calls_are_well_formed() {
    let with = |call: Value| {
        let message = json!({"role": "assistant", "tool_calls": call});
        json!({"messages": [user(), message, result("a")]})
    };
    let function =
        |function: Value| with(json!([{"id": "a", "type": "function", "function": function}]));
    refuses(
        with(json!([])),
        "Invalid 'messages[1].tool_calls': empty array. Expected an array with minimum length 1, \
         but got an empty array instead.",
        "messages[1].tool_calls",
        "empty_array",
    );
    refuses(
        function(json!({"name": "t", "arguments": {"n": 1}})),
        "Invalid type for 'messages[1].tool_calls[0].function.arguments': expected a string, but \
         got an object instead.",
        "messages[1].tool_calls[0].function.arguments",
        "invalid_type",
    );
    for text in ["", "{\"n\": ", "{} {}", "{'n': 1}"] {
        refuses(
            function(json!({"name": "t", "arguments": text})),
            "Invalid value for 'messages[1].tool_calls[0].function.arguments': expected a string \
             of valid JSON.",
            "messages[1].tool_calls[0].function.arguments",
            "invalid_value",
        );
    }
    refuses(
        function(json!({"name": "a.b", "arguments": "{}"})),
        "Invalid 'messages[1].tool_calls[0].function.name': string does not match pattern. \
         Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.",
        "messages[1].tool_calls[0].function.name",
        "invalid_value",
    );
    refuses(
        with(json!([{"id": "a", "function": {"name": "t", "arguments": "{}"}}])),
        "Missing required parameter: 'messages[1].tool_calls[0].type'.",
        "messages[1].tool_calls[0].type",
        "missing_required_parameter",
    );
    refuses(
        json!({"messages": [{"role": "user", "content": "x", "tool_calls": [call("a")]}]}),
        "Unknown parameter: 'messages[0].tool_calls'.",
        "messages[0].tool_calls",
        "unknown_parameter",
    );
}

#[test]
fn tools_are_well_formed() {
    refuses(
        json!({"tools": []}),
        "Invalid 'tools': empty array. Expected an array with minimum length 1, but got an empty \
         array instead.",
        "tools",
        "empty_array",
    );
    refuses(
        json!({"tools": [tool("a b")]}),
        "Invalid 'tools[0].function.name': string does not match pattern. Expected a string that \
         matches the pattern '^[a-zA-Z0-9_-]+$'.",
        "tools[0].function.name",
        "invalid_value",
    );
    refuses(
        json!({"tools": [tool("a"), tool(&"b".repeat(65))]}),
        "Invalid 'tools[1].function.name': string too long. Expected a string with maximum \
         length 64, but got a string with length 65 instead.",
        "tools[1].function.name",
        "string_above_max_length",
    );
    refuses(
        json!({"tools": [tool("a"), tool("a")]}),
        "Tool names must be unique.",
        "tools",
        none(),
    );
    refuses(
        json!({"tools": [{"type": "function"}]}),
        "Missing required parameter: 'tools[0].function'.",
        "tools[0].function",
        "missing_required_parameter",
    );
}

#[test]
fn parameters_are_the_schema_of_an_object() {
    let schema = |schema: Value, fault: &str| {
        refuses(
            json!({"tools": [{"type": "function", "function": {"name": "t", "parameters": schema}}]}),
            &format!("Invalid schema for function 't': {fault}"),
            "tools[0].function.parameters",
            "invalid_function_parameters",
        );
    };
    let must = "schema must be a JSON Schema of 'type: \"object\"', got 'type: ";
    schema(json!({}), &format!("{must}\"None\"'."));
    schema(json!({"type": "string"}), &format!("{must}\"string\"'."));
    schema(
        json!({"type": "object", "properties": {}, "oneOf": []}),
        "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top \
         level.",
    );
    schema(json!({"type": "object"}), "In context=(), object schema missing properties.");
    refuses(
        json!({"tools": [{"type": "function", "function": {"name": "t", "parameters": "x"}}]}),
        "Invalid type for 'tools[0].function.parameters': expected an object, but got a string \
         instead.",
        "tools[0].function.parameters",
        "invalid_type",
    );
    let none = json!({"tools": [{"type": "function", "function": {"name": "t"}}]});
    assert_eq!(validate(&request(none)), Ok(()));
}

#[test]
fn a_choice_is_among_the_tools() {
    refuses(
        json!({"tool_choice": "auto"}),
        "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are \
         specified.",
        "tool_choice",
        none(),
    );
    refuses(
        json!({"parallel_tool_calls": false}),
        "Invalid value for 'parallel_tool_calls': 'parallel_tool_calls' is only allowed when \
         'tools' are specified.",
        "parallel_tool_calls",
        none(),
    );
    refuses(
        json!({"tools": [tool("t")], "tool_choice": "any"}),
        "Invalid value: 'any'. Supported values are: 'none', 'auto', and 'required'.",
        "tool_choice",
        "invalid_value",
    );
    refuses(
        json!({"tools": [tool("t")], "tool_choice": {"type": "function", "function": {"name": "u"}}}),
        "Tool choice 'u' not found in 'tools' parameter.",
        "tool_choice",
        none(),
    );
    refuses(
        json!({"tools": [tool("t")], "tool_choice": {"type": "function"}}),
        "Missing required parameter: 'tool_choice.function'.",
        "tool_choice.function",
        "missing_required_parameter",
    );
}

#[test]
fn numbers_are_in_range() {
    refuses(
        json!({"temperature": 2.5}),
        "Invalid 'temperature': decimal above maximum value. Expected a value <= 2, but got 2.5 \
         instead.",
        "temperature",
        "decimal_above_max_value",
    );
    refuses(
        json!({"temperature": -1}),
        "Invalid 'temperature': decimal below minimum value. Expected a value >= 0, but got -1 \
         instead.",
        "temperature",
        "decimal_below_min_value",
    );
    refuses(
        json!({"temperature": "hot"}),
        "Invalid type for 'temperature': expected a decimal, but got a string instead.",
        "temperature",
        "invalid_type",
    );
    refuses(
        json!({"max_tokens": 0}),
        "Invalid 'max_tokens': integer below minimum value. Expected a value >= 1, but got 0 \
         instead.",
        "max_tokens",
        "integer_below_min_value",
    );
}

#[test]
fn stream_options_need_a_stream() {
    for stream in [json!(false), none()] {
        refuses(
            json!({"stream": stream, "stream_options": {"include_usage": true}}),
            "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
            "stream_options",
            none(),
        );
    }
    refuses(
        json!({"stream": "yes"}),
        "Invalid type for 'stream': expected a boolean, but got a string instead.",
        "stream",
        "invalid_type",
    );
}
