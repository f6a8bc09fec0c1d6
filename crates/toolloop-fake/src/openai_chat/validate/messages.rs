//! The form of each message by itself.

use serde_json::{Map, Value};

use super::form::{
    Check, function_name, missing, no_longer_than, not_blank, not_empty, object, one_of, refused,
    required, required_string, string, wrong_type,
};
use super::given;

pub(super) fn check(messages: &[Value]) -> Check {
    for (index, message) in messages.iter().enumerate() {
        let path = format!("messages[{index}]");
        let message = object(message, &path)?;
        let role = required_string(message, "role", &path)?;
        one_of(role, &ROLES, &format!("{path}.role"))?;
        check_calls(message, role, &path)?;
        if role == "tool" {
            check_result_id(message, index, &path)?;
        }
        check_content(message, role, index, &path)?;
    }
    Ok(())
}

fn check_calls(message: &Map<String, Value>, role: &str, path: &str) -> Check {
    let Some(calls) = given(message, "tool_calls") else { return Ok(()) };
    let path = format!("{path}.tool_calls");
    if role != "assistant" {
        let message = format!("Unknown parameter: '{path}'.");
        return Err(refused(message, &path, Some("unknown_parameter")));
    }
    let Value::Array(calls) = calls else {
        return Err(wrong_type(&path, "an array of objects", calls));
    };
    not_empty(calls, &path)?;
    for (index, call) in calls.iter().enumerate() {
        check_call(call, &format!("{path}[{index}]"))?;
    }
    Ok(())
}

fn check_call(call: &Value, path: &str) -> Check {
    let call = object(call, path)?;
    check_id(required_string(call, "id", path)?, &format!("{path}.id"))?;
    let kind = required_string(call, "type", path)?;
    one_of(kind, &["function", "custom"], &format!("{path}.type"))?;
    if kind == "custom" {
        return Ok(());
    }
    let (function, path) = required(call, "function", path)?;
    let function = object(function, &path)?;
    function_name(required_string(function, "name", &path)?, &format!("{path}.name"))?;
    let arguments = required_string(function, "arguments", &path)?;
    if serde_json::from_str::<&serde_json::value::RawValue>(arguments).is_err() {
        let path = format!("{path}.arguments");
        let message = format!("Invalid value for '{path}': expected a string of valid JSON.");
        return Err(refused(message, &path, Some("invalid_value")));
    }
    Ok(())
}

fn check_result_id(message: &Map<String, Value>, index: usize, path: &str) -> Check {
    let Some(id) = given(message, "tool_call_id") else {
        let text = "Missing parameter 'tool_call_id': messages with role 'tool' must have a \
            'tool_call_id'.";
        return Err(refused(text, &format!("messages.[{index}].tool_call_id"), None));
    };
    let path = format!("{path}.tool_call_id");
    check_id(string(id, &path)?, &path)
}

fn check_id(id: &str, path: &str) -> Check {
    not_blank(id, path)?;
    no_longer_than(id, 40, path)
}

fn check_content(message: &Map<String, Value>, role: &str, index: usize, path: &str) -> Check {
    // A message that says something else need not say text.
    let says_else =
        role == "assistant" && SAID_ELSE.iter().any(|name| given(message, name).is_some());
    let content_path = format!("{path}.content");
    match given(message, "content") {
        None if says_else => Ok(()),
        None => {
            let text = "Invalid value for 'content': expected a string, got null.";
            Err(refused(text, &format!("messages.[{index}].content"), None))
        }
        // A tool may have nothing to say.
        Some(Value::String(_)) if says_else || role == "tool" => Ok(()),
        Some(Value::String(text)) => not_blank(text, &content_path),
        Some(Value::Array(parts)) => {
            not_empty(parts, &content_path)?;
            for (at, part) in parts.iter().enumerate() {
                check_part(part, role, path, &format!("{content_path}[{at}]"))?;
            }
            Ok(())
        }
        Some(other) => Err(wrong_type(&content_path, "one of a string or array of objects", other)),
    }
}

fn check_part(part: &Value, role: &str, message_path: &str, path: &str) -> Check {
    let part = object(part, path)?;
    let kind = required_string(part, "type", path)?;
    one_of(kind, &PARTS, &format!("{path}.type"))?;
    match kind {
        "text" => {
            let text = required_string(part, "text", path)?;
            if role == "tool" { Ok(()) } else { not_blank(text, &format!("{path}.text")) }
        }
        "image_url" if role != "user" => {
            let text = format!(
                "Invalid '{message_path}'. Image URLs are only allowed for messages with role \
                 'user', but this message with role '{role}' contains an image URL."
            );
            Err(refused(text, message_path, Some("invalid_value")))
        }
        "image_url" => match part.get("image_url").and_then(|image| image.get("url")) {
            Some(url) => string(url, &format!("{path}.image_url.url")).map(drop),
            None => Err(missing(&format!("{path}.image_url.url"))),
        },
        _ => Ok(()),
    }
}

const ROLES: [&str; 6] = ["system", "assistant", "user", "function", "tool", "developer"];
const PARTS: [&str; 6] = ["text", "image_url", "input_audio", "refusal", "audio", "file"];
const SAID_ELSE: [&str; 4] = ["tool_calls", "function_call", "refusal", "audio"];
