//! The parameters around the conversation.

use serde_json::{Map, Value};

use super::{given, tools};
use crate::openai_chat::validate::form::{
    Check, boolean, function_name, object, one_of, range, refused, required, required_string,
    wrong_type,
};

/// Refuses parameters that the API does not have, above all those of Chat Completions.
pub(super) fn check_names(body: &Map<String, Value>) -> Check {
    for name in body.keys() {
        if let Some((_, moved)) = MOVED.iter().find(|(old, _)| old == name) {
            let message = format!(
                "Unsupported parameter: '{name}'. In the Responses API, this parameter has moved \
                 to '{moved}'. Try again with the new parameter. See the API documentation for \
                 more information: https://platform.openai.com/docs/api-reference/responses/create."
            );
            return Err(refused(message, name, Some("unsupported_parameter")));
        }
        if !KNOWN.contains(&name.as_str()) {
            let message = format!("Unknown parameter: '{name}'.");
            return Err(refused(message, name, Some("unknown_parameter")));
        }
    }
    Ok(())
}

pub(super) fn check(body: &Map<String, Value>, model: &str) -> Check {
    for name in ["store", "stream", "parallel_tool_calls"] {
        given(body, name).map_or(Ok(false), |value| boolean(value, name))?;
    }
    for (name, least, most) in [("temperature", 0.0, 2.0), ("top_p", 0.0, 1.0)] {
        if let Some(value) = given(body, name) {
            let number = value.as_f64().ok_or_else(|| wrong_type(name, "a decimal", value))?;
            range(name, "decimal", value, number, least, most)?;
        }
    }
    if let Some(value) = given(body, "max_output_tokens") {
        let name = "max_output_tokens";
        let number = value.as_i64().ok_or_else(|| wrong_type(name, "an integer", value))?;
        range(name, "integer", value, number as f64, 16.0, f64::MAX)?;
    }
    if given(body, "stream_options").is_some() && body.get("stream") != Some(&Value::Bool(true)) {
        let message = "The 'stream_options' parameter is only allowed when 'stream' is enabled.";
        return Err(refused(message, "stream_options", None));
    }
    check_reasoning(body, model)?;
    check_format(body)
}

fn check_reasoning(body: &Map<String, Value>, model: &str) -> Check {
    let does_not_reason = WITHOUT_REASONING.iter().any(|prefix| model.starts_with(prefix));
    let include = given(body, "include").and_then(Value::as_array).into_iter().flatten();
    for part in include.filter_map(Value::as_str) {
        if does_not_reason && part == "reasoning.encrypted_content" {
            let message = "Encrypted content is not supported with this model.";
            return Err(refused(message, "include", None));
        }
    }
    let Some(reasoning) = given(body, "reasoning") else { return Ok(()) };
    let Some(effort) = given(object(reasoning, "reasoning")?, "effort") else { return Ok(()) };
    let Value::String(effort) = effort else {
        return Err(wrong_type("reasoning.effort", "a string", effort));
    };
    one_of(effort, &EFFORTS, "reasoning.effort")?;
    if does_not_reason {
        let message = "Unsupported parameter: 'reasoning.effort' is not supported with this model.";
        return Err(refused(message, "reasoning.effort", Some("unsupported_parameter")));
    }
    Ok(())
}

fn check_format(body: &Map<String, Value>) -> Check {
    let Some(text) = given(body, "text") else { return Ok(()) };
    let Some(format) = given(object(text, "text")?, "format") else { return Ok(()) };
    let path = "text.format";
    let format = object(format, path)?;
    let kind = required_string(format, "type", path)?;
    one_of(kind, &["json_object", "json_schema", "text"], "text.format.type")?;
    if kind != "json_schema" {
        return Ok(());
    }
    let name = required_string(format, "name", path)?;
    function_name(name, "text.format.name")?;
    let (schema, path) = required(format, "schema", path)?;
    let strict = format.get("strict") == Some(&Value::Bool(true));
    match tools::schema_fault(object(schema, &path)?, strict) {
        None => Ok(()),
        Some(fault) => {
            let message = format!("Invalid schema for response_format '{name}': {fault}");
            Err(refused(message, &path, Some("invalid_json_schema")))
        }
    }
}

const EFFORTS: [&str; 6] = ["none", "minimal", "low", "medium", "high", "xhigh"];

/// How the names of models begin that do not reason.
const WITHOUT_REASONING: [&str; 4] = ["gpt-4", "gpt-3.5", "chatgpt-4o", "gpt-5-chat"];

/// Parameters of Chat Completions, and what they are here.
const MOVED: [(&str, &str); 5] = [
    ("messages", "input"),
    ("max_tokens", "max_output_tokens"),
    ("max_completion_tokens", "max_output_tokens"),
    ("response_format", "text.format"),
    ("reasoning_effort", "reasoning.effort"),
];

const KNOWN: [&str; 32] = [
    "background",
    "context_management",
    "conversation",
    "include",
    "input",
    "instructions",
    "max_output_tokens",
    "max_tool_calls",
    "metadata",
    "model",
    "moderation",
    "multi_agent",
    "parallel_tool_calls",
    "previous_response_id",
    "prompt",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "reasoning",
    "safety_identifier",
    "service_tier",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "text",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "truncation",
    "user",
];
