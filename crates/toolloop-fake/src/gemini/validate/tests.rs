use serde_json::{Value, json};

use super::validate;

const OLD: &str = "gemini-2.5-flash";
const NEW: &str = "gemini-3-pro-preview";

#[track_caller]
fn refuses(model: &str, body: Value, message: &str) {
    let refusal = validate(model, &body).expect_err("the request is accepted");
    let error = &refusal.body["error"];
    assert_eq!((refusal.status, &error["status"]), (400, &json!("INVALID_ARGUMENT")));
    assert_eq!(error["message"], message);
}

/// A request with these members beside a question.
fn with(members: Value) -> Value {
    let mut body = json!({"contents": [user("hi")]});
    for (name, value) in members.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

fn turns(contents: Value) -> Value {
    json!({ "contents": contents })
}

fn tools(declarations: Value) -> Value {
    with(json!({"tools": [{"functionDeclarations": declarations}]}))
}

fn parameters(schema: Value) -> Value {
    tools(json!([{"name": "t", "parameters": schema}]))
}

fn property(schema: Value) -> Value {
    parameters(json!({"type": "object", "properties": {"p": schema}}))
}

fn user(text: &str) -> Value {
    json!({"role": "user", "parts": [{"text": text}]})
}

fn calls(names: &[&str]) -> Value {
    let part = |name: &&str| json!({"functionCall": {"name": name, "args": {}}});
    json!({"role": "model", "parts": names.iter().map(part).collect::<Vec<_>>()})
}

fn results(names: &[&str]) -> Value {
    let part = |name: &&str| json!({"functionResponse": {"name": name, "response": {"result": 1}}});
    json!({"role": "user", "parts": names.iter().map(part).collect::<Vec<_>>()})
}

fn signed(mut turn: Value) -> Value {
    turn["parts"][0]["thoughtSignature"] = json!("c2lnbmF0dXJl");
    turn
}

#[test]
fn a_whole_tool_loop_is_accepted() {
    let mut body = turns(json!([
        user("hi"), {"role": "model", "parts": [{"text": "Hello"}]}, user("look"),
        calls(&["a", "b"]), results(&["a", "b"]), calls(&["a"]), results(&["a"]), user("and?"),
    ]));
    body["tools"] = json!([{"function_declarations": [
        {"name": "a", "description": "A.", "parameters": {"type": "OBJECT", "properties": {
            "x": {"type": "string", "nullable": true, "enum": ["y"], "format": "enum"},
            "l": {"type": "array", "items": {"anyOf": [{"type": "integer"}, {"type": "string"}]}},
        }, "required": ["x"], "propertyOrdering": ["x", "l"]}},
        {"name": "b", "parametersJsonSchema": {"$ref": "#/x", "additionalProperties": false}},
    ]}, {"googleSearch": {}}]);
    body["toolConfig"] =
        json!({"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["b"]}});
    body["generationConfig"] = json!({"temperature": 2, "maxOutputTokens": 1,
        "thinkingConfig": {"thinkingBudget": 0, "includeThoughts": true}});
    body["systemInstruction"] = json!({"parts": [{"text": "Be brief."}]});
    body["safetySettings"] = Value::Null;
    assert_eq!(validate(OLD, &body), Ok(()));
}

#[test]
fn unknown_names_are_all_named() {
    let schema = json!({"type": "object", "$schema": "x", "properties": {
        "p": {"type": "array", "items": {"type": "object", "additionalProperties": false}},
    }});
    let message = "Invalid JSON payload received. Unknown name \"$schema\" at \
        'tools[0].function_declarations[0].parameters': Cannot find field.\n\
        Invalid JSON payload received. Unknown name \"additionalProperties\" at \
        'tools[0].function_declarations[0].parameters.properties[0].value.items': Cannot find field.";
    refuses(OLD, parameters(schema), message);
    let message = "Invalid JSON payload received. Unknown name \"messages\": Cannot find field.";
    refuses(OLD, with(json!({"messages": []})), message);
}

#[test]
fn values_have_the_type_of_their_field() {
    let message = "Invalid JSON payload received. Unknown name \"type\" at \
        'tools[0].function_declarations[0].parameters.properties[0].value': Proto field is not \
        repeating, cannot start list.";
    refuses(OLD, property(json!({"type": ["string", "null"]})), message);
    let message = "Invalid value at \
        'tools[0].function_declarations[0].parameters.properties[0].value.enum[0]' (TYPE_STRING), 0";
    refuses(OLD, property(json!({"type": "integer", "enum": [0]})), message);
    let message = "Invalid value at \
        'tools[0].function_declarations[0].parameters.properties[0].value.type' \
        (type.googleapis.com/google.ai.generativelanguage.v1beta.Type), \"enum\"";
    refuses(OLD, property(json!({"type": "enum"})), message);
    let mut call = calls(&["a"]);
    call["parts"][0]["functionCall"]["args"] = json!("{}");
    let message = "Invalid value at 'contents[1].parts[0].function_call.args' \
        (type.googleapis.com/google.protobuf.Struct), \"{}\"";
    refuses(OLD, turns(json!([user("hi"), call, results(&["a"])])), message);
    let mut call = calls(&["a"]);
    call["parts"][0]["thoughtSignature"] = json!("no base64!");
    let message = "Invalid value at 'contents[1].parts[0].thought_signature' (TYPE_BYTES), Base64 \
        decoding failed for \"no base64!\"";
    refuses(OLD, turns(json!([user("hi"), call, results(&["a"])])), message);
}

#[test]
fn turns_have_parts_and_parts_are_something() {
    let message = "* GenerateContentRequest.contents: contents is not specified\n";
    refuses(OLD, turns(json!([])), message);
    let message = "* GenerateContentRequest.contents[1].parts: contents.parts must not be empty.\n";
    refuses(OLD, turns(json!([user("hi"), {"role": "model", "parts": []}, user("x")])), message);
    let message = "* GenerateContentRequest.contents[0].parts[0].data: required oneof field 'data' \
        must have one initialized field\n";
    refuses(OLD, turns(json!([{"role": "user", "parts": [{}]}])), message);
    refuses(
        OLD,
        turns(json!([{"role": "user", "parts": [{"thoughtSignature": "YQ=="}]}])),
        message,
    );
    let message = "Please use a valid role: user, model.";
    for role in ["assistant", "tool", "system"] {
        refuses(OLD, turns(json!([{"role": role, "parts": [{"text": "x"}]}])), message);
    }
    assert_eq!(validate(OLD, &turns(json!([{"parts": [{"text": "x"}]}]))), Ok(()));
}

#[test]
fn schemas_are_of_the_subset() {
    let place = "* GenerateContentRequest.tools[0].function_declarations[0].parameters";
    for (schema, fault) in [
        (
            json!({"type": "string", "format": "uri"}),
            "format: only 'enum' and 'date-time' are supported for STRING type",
        ),
        (json!({"type": "integer", "enum": ["1"]}), "enum: only allowed for STRING type"),
        (json!({"type": "string", "enum": ["a", ""]}), "enum[1]: cannot be empty"),
        (json!({"type": "array"}), "items: missing field."),
        (json!({"type": "object", "required": ["x"]}), "required[0]: property is not defined"),
        (
            json!({"type": "string", "format": "enum"}),
            "enum: should be non-empty for STRING type with enum format",
        ),
    ] {
        refuses(OLD, property(schema), &format!("{place}.properties[p].{fault}\n"));
    }
}

#[test]
fn functions_have_names_of_their_own() {
    let message = "The GenerateContentRequest proto is invalid:\n  * \
        tools[0].function_declarations[1].name: [FIELD_INVALID] Invalid function name. Must start \
        with a letter or an underscore. Must be a-z, A-Z, 0-9, or contain underscores (_), dots \
        (.), colons (:), or dashes (-), with a maximum length of 64.";
    for name in ["1st", "a b", "", "ü", &"x".repeat(65)] {
        refuses(OLD, tools(json!([{"name": "ok.a:b-c_1"}, {"name": name}])), message);
    }
    let message = "Duplicate function declaration found: t";
    refuses(OLD, tools(json!([{"name": "t"}, {"name": "t"}])), message);
}

#[test]
fn a_choice_needs_functions() {
    let config = |config: Value| json!({ "functionCallingConfig": config });
    let message = "Function calling config is set without function_declarations.";
    refuses(OLD, with(json!({"toolConfig": config(json!({"mode": "ANY"}))})), message);
    let mut body = tools(json!([{"name": "t"}]));
    body["toolConfig"] = config(json!({"mode": "ANY", "allowedFunctionNames": ["u"]}));
    refuses(OLD, body, "Allowed function name \"u\" is not declared in tools.");
}

#[test]
fn calls_and_results_pair_up() {
    let first = "Please ensure that function call turn comes immediately after a user turn or \
        after a function response turn.";
    let alone =
        "Please ensure that function response turn comes immediately after a function call turn.";
    let many = "Please ensure that the number of function response parts is equal to the number \
        of function call parts of the function call turn.";
    refuses(OLD, turns(json!([calls(&["a"]), results(&["a"])])), first);
    let said = json!({"role": "model", "parts": [{"text": "Hm"}]});
    refuses(OLD, turns(json!([user("hi"), said, calls(&["a"]), results(&["a"])])), first);
    refuses(OLD, turns(json!([user("hi"), results(&["a"])])), alone);
    refuses(OLD, turns(json!([user("hi"), calls(&["a", "b"]), results(&["a"])])), many);
    refuses(OLD, turns(json!([user("hi"), calls(&["a"]), user("never mind")])), many);
    refuses(OLD, turns(json!([user("hi"), calls(&["a"])])), many);
}

#[test]
fn the_last_turn_is_not_the_models() {
    let said = json!({"role": "model", "parts": [{"text": "Hm"}]});
    let single =
        "Please ensure that single turn requests end with a user role or the role field is empty.";
    refuses(OLD, turns(json!([said])), single);
    let multi =
        "Please ensure that multiturn requests ends with a user role or a function response.";
    refuses(OLD, turns(json!([user("hi"), said])), multi);
}

#[test]
fn gemini_3_wants_its_signatures_back() {
    let message = "Function call is missing a thought_signature in functionCall parts. This is \
        required for tools to work correctly, and missing thought_signature may lead to degraded \
        model performance. Additional data, function call `default_api:b` , position 6. Please \
        refer to https://ai.google.dev/gemini-api/docs/thought-signatures for more details.";
    let unsigned = |last: Value| {
        turns(json!([
            user("hi"), calls(&["a"]), results(&["a"]), {"role": "model", "parts": [{"text": "x"}]},
            user("more"), last, results(&["b", "c"]),
        ]))
    };
    refuses(NEW, unsigned(calls(&["b", "c"])), message);
    // Of parallel calls only the first is signed, and turns that are over are not looked at.
    assert_eq!(validate(NEW, &unsigned(signed(calls(&["b", "c"])))), Ok(()));
    assert_eq!(validate(OLD, &unsigned(calls(&["b", "c"]))), Ok(()));
}

#[test]
fn json_and_functions_exclude_each_other_before_gemini_3() {
    let mut body = tools(json!([{"name": "t"}]));
    body["generationConfig"] = json!({"responseMimeType": "application/json"});
    let message = "Function calling with a response mime type: 'application/json' is unsupported";
    refuses(OLD, body.clone(), message);
    assert_eq!(validate(NEW, &body), Ok(()));
}
