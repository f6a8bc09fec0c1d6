//! The form of each item by itself.

use serde_json::{Map, Value};

use super::given;
use crate::openai_chat::validate::form::{
    Check, function_name, no_longer_than, not_blank, object, one_of, refused, required,
    required_string, string, wrong_type,
};

pub(super) fn check(items: &[Value]) -> Check {
    for (index, item) in items.iter().enumerate() {
        let path = format!("input[{index}]");
        let item = object(item, &path)?;
        // A message need not say that it is one.
        let kind = match given(item, "type") {
            None if item.contains_key("role") => "message",
            _ => required_string(item, "type", &path)?,
        };
        one_of(kind, &KINDS, &format!("{path}.type"))?;
        match kind {
            "message" => check_message(item, &path)?,
            "function_call" => check_call(item, &path)?,
            "function_call_output" => check_output(item, &path)?,
            "reasoning" => check_thought(item, &path)?,
            _ => {}
        }
    }
    Ok(())
}

fn check_message(item: &Map<String, Value>, path: &str) -> Check {
    let role = required_string(item, "role", path)?;
    one_of(role, &["assistant", "system", "developer", "user"], &format!("{path}.role"))?;
    if role == "assistant" {
        check_id(item, "msg", path)?;
    }
    let (content, path) = required(item, "content", path)?;
    match content {
        Value::String(_) => Ok(()),
        Value::Array(parts) => check_parts(parts, role, &path),
        other => Err(wrong_type(&path, "one of a string or array of objects", other)),
    }
}

fn check_parts(parts: &[Value], role: &str, path: &str) -> Check {
    for (at, part) in parts.iter().enumerate() {
        let path = format!("{path}[{at}]");
        let part = object(part, &path)?;
        let kind = required_string(part, "type", &path)?;
        let kinds: &[&str] = if role == "assistant" { &["output_text", "refusal"] } else { &PARTS };
        one_of(kind, kinds, &format!("{path}.type"))?;
        match kind {
            "input_text" | "output_text" | "summary_text" => {
                required_string(part, "text", &path)?;
            }
            "input_image" if given(part, "file_id").is_none() => {
                required_string(part, "image_url", &path)?;
            }
            "input_file" => check_file(part, &path)?,
            _ => {}
        }
    }
    Ok(())
}

fn check_file(part: &Map<String, Value>, path: &str) -> Check {
    let Some(data) = given(part, "file_data") else { return Ok(()) };
    let path = format!("{path}.file_data");
    let data = string(data, &path)?;
    let kind = data.strip_prefix("data:").and_then(|data| data.split(';').next());
    let Some(kind) = kind.filter(|kind| kind.starts_with("audio/") || kind.starts_with("video/"))
    else {
        return Ok(());
    };
    let message = format!(
        "Invalid file data: '{path}'. Expected a base64-encoded data URL with a valid file MIME \
         type (e.g. 'data:text/plain;base64,SGVsbG8sIFdvcmxkIQ=='), but got unsupported MIME type \
         '{kind}'. Please see https://platform.openai.com/docs/assistants/tools/file-search#supported-files \
         for supported file types."
    );
    Err(refused(message, &path, Some("invalid_value")))
}

fn check_call(item: &Map<String, Value>, path: &str) -> Check {
    check_id(item, "fc", path)?;
    check_call_id(item, path)?;
    function_name(required_string(item, "name", path)?, &format!("{path}.name"))?;
    required_string(item, "arguments", path).map(drop)
}

fn check_output(item: &Map<String, Value>, path: &str) -> Check {
    check_call_id(item, path)?;
    let (output, path) = required(item, "output", path)?;
    match output {
        Value::String(_) => Ok(()),
        Value::Array(parts) => check_parts(parts, "tool", &path),
        other => Err(wrong_type(&path, "one of a string or array of objects", other)),
    }
}

fn check_thought(item: &Map<String, Value>, path: &str) -> Check {
    check_id(item, "rs", path)?;
    let (summary, summary_path) = required(item, "summary", path)?;
    let Value::Array(summary) = summary else {
        return Err(wrong_type(&summary_path, "an array of objects", summary));
    };
    check_parts(summary, "thought", &summary_path)?;
    match given(item, "content") {
        Some(Value::Array(content)) if !content.is_empty() => {
            let path = format!("{path}.content");
            let message = format!(
                "Invalid '{path}': array too long. Expected an array with maximum length 0, but \
                 got an array with length {} instead.",
                content.len()
            );
            Err(refused(message, &path, Some("array_above_max_length")))
        }
        _ => Ok(()),
    }
}

fn check_call_id(item: &Map<String, Value>, path: &str) -> Check {
    let id = required_string(item, "call_id", path)?;
    let path = format!("{path}.call_id");
    not_blank(id, &path)?;
    no_longer_than(id, 64, &path)
}

/// The id of an item, which tells what it is.
fn check_id(item: &Map<String, Value>, prefix: &str, path: &str) -> Check {
    let Some(id) = given(item, "id") else { return Ok(()) };
    let path = format!("{path}.id");
    let id = string(id, &path)?;
    if id.starts_with(prefix) {
        return Ok(());
    }
    let message = format!("Invalid '{path}': '{id}'. Expected an ID that begins with '{prefix}'.");
    Err(refused(message, &path, Some("invalid_value")))
}

const PARTS: [&str; 7] = [
    "input_text",
    "input_image",
    "output_text",
    "refusal",
    "input_file",
    "computer_screenshot",
    "summary_text",
];

const KINDS: [&str; 29] = [
    "apply_patch_call",
    "apply_patch_call_output",
    "code_interpreter_call",
    "compaction",
    "computer_call",
    "computer_call_output",
    "custom_tool_call",
    "custom_tool_call_output",
    "file_search_call",
    "function_call",
    "function_call_output",
    "image_generation_call",
    "item_reference",
    "local_shell_call",
    "local_shell_call_output",
    "mcp_approval_request",
    "mcp_approval_response",
    "mcp_call",
    "mcp_list_tools",
    "message",
    "program",
    "program_output",
    "reasoning",
    "shell_call",
    "shell_call_output",
    "tool_search_call",
    "tool_search_output",
    "web_search_call",
    "web_search_result",
];
