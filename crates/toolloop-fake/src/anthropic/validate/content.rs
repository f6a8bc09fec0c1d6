//! The form of each message by itself, and of the system prompt.

use serde_json::{Map, Value};

use super::form::{
    Check, at, list, matches_pattern, object, only, refused, required, required_string, string,
};
use super::given;

pub(super) fn check_system(system: &Value) -> Check {
    if system.is_string() {
        return Ok(());
    }
    for (index, block) in list(system, "system")?.iter().enumerate() {
        let path = format!("system.{index}");
        let block = object(block, &path)?;
        if required_string(block, "type", &path)? != "text" {
            return Err(refused(format!("{path}.type: Input should be 'text'")));
        }
        only(block, &["type", "text", "cache_control", "citations"], &path)?;
        if required_string(block, "text", &path)?.is_empty() {
            return Err(refused("system: text content blocks must be non-empty"));
        }
    }
    Ok(())
}

pub(super) fn check(messages: &[Value]) -> Check {
    for (index, message) in messages.iter().enumerate() {
        let path = format!("messages.{index}");
        let message = object(message, &path)?;
        let role = required_string(message, "role", &path)?;
        match role {
            "user" | "assistant" => {}
            "system" => {
                return Err(refused(
                    "messages: Unexpected role \"system\". The Messages API accepts a top-level \
                     `system` parameter, not \"system\" as an input message role.",
                ));
            }
            _ => {
                let expected = "Input should be 'user' or 'assistant'";
                return Err(refused(format!("{path}.role: {expected}")));
            }
        }
        only(message, &["role", "content"], &path)?;
        let is_final = index + 1 == messages.len() && role == "assistant";
        match required(message, "content", &path)? {
            Value::String(text) if text.is_empty() && !is_final => return Err(empty(&path)),
            Value::String(text) => check_text(text, role)?,
            content => {
                let path = at(&path, "content");
                let blocks = list(content, &path)?;
                if blocks.is_empty() && !is_final {
                    return Err(empty(&format!("messages.{index}")));
                }
                for (index, block) in blocks.iter().enumerate() {
                    check_block(block, role, &format!("{path}.{index}"))?;
                }
            }
        }
    }
    if messages[0]["role"] != "user" {
        return Err(refused("messages: first message must use the \"user\" role"));
    }
    Ok(())
}

fn empty(path: &str) -> crate::refusal::Refusal {
    refused(format!(
        "{path}: all messages must have non-empty content except for the optional final \
         assistant message"
    ))
}

fn check_block(block: &Value, role: &str, path: &str) -> Check {
    let block = object(block, path)?;
    let kind = required_string(block, "type", path)?;
    let path = at(path, kind);
    match kind {
        "text" => {
            only(block, &["type", "text", "citations", "cache_control"], &path)?;
            check_text(required_string(block, "text", &path)?, role)
        }
        "image" => {
            only_for("user", role, kind, &path)?;
            check_source(required(block, "source", &path)?, &at(&path, "source"))
        }
        "tool_use" => {
            only_for("assistant", role, kind, &path)?;
            only(block, &["type", "id", "name", "input", "caller", "cache_control"], &path)?;
            check_id(block, "id", &path)?;
            let name = required_string(block, "name", &path)?;
            matches_pattern(name, 200, "^[a-zA-Z0-9_-]{1,200}$", &at(&path, "name"))?;
            object(required(block, "input", &path)?, &at(&path, "input")).map(|_| ())
        }
        "tool_result" => {
            only_for("user", role, kind, &path)?;
            let known = ["type", "tool_use_id", "content", "is_error", "cache_control"];
            only(block, &known, &path)?;
            check_id(block, "tool_use_id", &path)?;
            check_result(block, &path)
        }
        "thinking" => {
            only_for("assistant", role, kind, &path)?;
            only(block, &["type", "thinking", "signature"], &path)?;
            required_string(block, "thinking", &path)?;
            required_string(block, "signature", &path).map(|_| ())
        }
        "redacted_thinking" => {
            only_for("assistant", role, kind, &path)?;
            only(block, &["type", "data"], &path)?;
            required_string(block, "data", &path).map(|_| ())
        }
        // The tools of the provider and their results; documents and the like of a user.
        kind if kind.ends_with("_tool_result") || kind.ends_with("_tool_use") => {
            only_for("assistant", role, kind, &path)
        }
        "document" | "search_result" | "container_upload" | "compaction" | "fallback" => Ok(()),
        _ => Err(refused(format!(
            "{path}: Input tag '{kind}' found using 'type' does not match any \
             of the expected tags"
        ))),
    }
}

fn check_text(text: &str, role: &str) -> Check {
    if text.is_empty() {
        return Err(refused("messages: text content blocks must be non-empty"));
    }
    // Of an assistant, white space has been accepted.
    if role == "user" && text.trim().is_empty() {
        return Err(refused("messages: text content blocks must contain non-whitespace text"));
    }
    Ok(())
}

fn only_for(wanted: &str, role: &str, kind: &str, path: &str) -> Check {
    match wanted == role {
        true => Ok(()),
        false => {
            let message = path.split('.').take(2).collect::<Vec<_>>().join(".");
            Err(refused(format!("{message}: `{kind}` blocks can only be in `{wanted}` messages")))
        }
    }
}

fn check_id(block: &Map<String, Value>, name: &str, path: &str) -> Check {
    let id = required_string(block, name, path)?;
    matches_pattern(id, usize::MAX, "^[a-zA-Z0-9_-]+$", &at(path, name))
}

fn check_result(block: &Map<String, Value>, path: &str) -> Check {
    let failed = match given(block, "is_error") {
        None => false,
        Some(Value::Bool(failed)) => *failed,
        Some(_) => {
            let path = at(path, "is_error");
            return Err(refused(format!("{path}: Input should be a valid boolean")));
        }
    };
    let is_empty = match given(block, "content") {
        None => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(content) => {
            let path = at(path, "content");
            let parts = list(content, &path)?;
            for (index, part) in parts.iter().enumerate() {
                let path = format!("{path}.{index}");
                let part = object(part, &path)?;
                match required_string(part, "type", &path)? {
                    "text" => check_text(required_string(part, "text", &path)?, "user")?,
                    "image" => {
                        let path = at(&path, "image.source");
                        check_source(required(part, "source", &path)?, &path)?;
                    }
                    "document" | "search_result" | "tool_reference" => {}
                    kind => {
                        let found = format!("Input tag '{kind}' found using 'type'");
                        return Err(refused(format!(
                            "{path}: {found} does not match any of the \
                             expected tags: 'document', 'image', 'search_result', 'text'"
                        )));
                    }
                }
            }
            parts.is_empty()
        }
    };
    match failed && is_empty {
        true => Err(refused(format!("{path}: content cannot be empty if `is_error` is true"))),
        false => Ok(()),
    }
}

fn check_source(source: &Value, path: &str) -> Check {
    let source = object(source, path)?;
    let kind = required_string(source, "type", path)?;
    let path = at(path, kind);
    match kind {
        "base64" => {
            only(source, &["type", "media_type", "data"], &path)?;
            let media_type = required_string(source, "media_type", &path)?;
            if !PICTURES.contains(&media_type) {
                let expected = "Input should be 'image/jpeg', 'image/png', 'image/gif' or \
                    'image/webp'";
                return Err(refused(format!("{}: {expected}", at(&path, "media_type"))));
            }
            match required_string(source, "data", &path)? {
                "" => Err(refused(format!("{path}: image cannot be empty"))),
                _ => Ok(()),
            }
        }
        "url" => {
            only(source, &["type", "url"], &path)?;
            required_string(source, "url", &path).map(|_| ())
        }
        "file" => Ok(()),
        kind => Err(refused(format!(
            "{path}: Input tag '{kind}' found using 'type' does not match \
             any of the expected tags: 'base64', 'file', 'url'"
        ))),
    }
}

/// A schema of answers: closed objects, and no bounds.
pub(super) fn check_closed(schema: &Value, path: &str) -> Check {
    let schema = object(schema, path)?;
    if schema.get("type") == Some(&"object".into())
        && schema.get("additionalProperties") != Some(&Value::Bool(false))
    {
        return Err(refused(format!(
            "{path}: For 'object' type, 'additionalProperties' must be explicitly set to false"
        )));
    }
    for name in ["minimum", "maximum", "minLength", "maxLength", "multipleOf", "oneOf"] {
        if schema.contains_key(name) {
            return Err(refused(format!(
                "{path}: For this type, property '{name}' is not \
                 supported"
            )));
        }
    }
    for (name, value) in schema {
        match (name.as_str(), value) {
            ("properties", Value::Object(properties)) => {
                for (name, schema) in properties {
                    check_closed(schema, &format!("{path}.properties.{name}"))?;
                }
            }
            ("items", items) => check_closed(items, &at(path, "items"))?,
            ("anyOf" | "allOf", Value::Array(each)) => {
                for (index, schema) in each.iter().enumerate() {
                    check_closed(schema, &format!("{path}.{name}.{index}"))?;
                }
            }
            _ => {}
        }
    }
    if let Some(kind) = given(schema, "type").filter(|kind| !kind.is_array()) {
        string(kind, &at(path, "type"))?;
    }
    Ok(())
}

const PICTURES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];
