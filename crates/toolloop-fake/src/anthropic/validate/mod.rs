//! [`validate`]: what the API refuses before any model sees it, in the API's own words.
//!
//! First the form is checked, parameter by parameter; then what the parameters demand of each
//! other, thought, and the order of the messages. Where the API only refuses for some models, the
//! model's name decides.

mod content;
mod form;
mod model;
mod order;
mod thinking;
mod tools;

use serde_json::{Map, Value};

use self::form::{Check, list, object, only, refused, required, string};
use self::model::Model;
use super::{SIGNATURE, signature};
use crate::refusal::Refusal;

/// Whether the Messages API would serve this request body.
///
/// ```
/// use serde_json::json;
/// use toolloop_fake::anthropic::validate;
///
/// let body = json!({"model": "claude-sonnet-4-5", "messages": []});
/// let refusal = validate(&body).unwrap_err();
/// assert_eq!(refusal.body["error"]["message"], "max_tokens: Field required");
/// ```
///
/// # Errors
/// The answer of the API to a request that it refuses.
pub fn validate(body: &Value) -> Result<(), Refusal> {
    let body = members(body)?;
    let name = string(required(body, "model", "")?, "model")?;
    if let Some(stream) = body.get("stream").filter(|stream| !stream.is_boolean()) {
        return Err(refused(format!("stream: Input should be a valid boolean, not {stream}")));
    }
    check(body, Model::by_name(name))
}

/// Whether Bedrock would pass this body on, where the address names the model.
pub(super) fn validate_bedrock(body: &Value) -> Result<(), Refusal> {
    let body = members(body)?;
    if required(body, "anthropic_version", "")? != "bedrock-2023-05-31" {
        return Err(refused("anthropic_version: Input should be 'bedrock-2023-05-31'"));
    }
    for name in ["model", "stream"] {
        if body.contains_key(name) {
            return Err(refused(format!("{name}: Extra inputs are not permitted")));
        }
    }
    check(body, Model::unknown())
}

/// Whether every signature is one that this server made for the thought beside it.
pub(super) fn only_our_signatures(body: &Value) -> Result<(), Refusal> {
    let messages = body["messages"].as_array().into_iter().flatten();
    for (at, message) in messages.enumerate() {
        for (index, block) in message["content"].as_array().into_iter().flatten().enumerate() {
            if block["type"] == "thinking"
                && !block["signature"].as_str().is_some_and(|text| text.starts_with(SIGNATURE))
            {
                return Err(invalid_signature(at, index));
            }
        }
    }
    Ok(())
}

fn members(body: &Value) -> Check<&Map<String, Value>> {
    body.as_object()
        .ok_or_else(|| refused("The request body is not valid JSON: expected an object"))
}

fn check(body: &Map<String, Value>, model: Model) -> Check {
    only(body, &MEMBERS, "")?;
    check_max_tokens(body, model)?;
    let messages = list(required(body, "messages", "")?, "messages")?;
    if messages.is_empty() {
        return Err(refused("messages: at least one message is required"));
    }
    if let Some(system) = given(body, "system") {
        content::check_system(system)?;
    }
    content::check(messages)?;
    let tools = tools::check(given(body, "tools"))?;
    tools::check_choice(given(body, "tool_choice"), &tools)?;
    check_sampling(body, model)?;
    check_output(given(body, "output_config"), model)?;
    check_cache_marks(body)?;
    tools::check_needed(messages, tools.is_empty() && !body.contains_key("mcp_servers"))?;
    thinking::check(body, messages, model)?;
    order::check(messages, model)?;
    check_length(body, model)
}

fn check_max_tokens(body: &Map<String, Value>, model: Model) -> Check {
    let limit = required(body, "max_tokens", "")?;
    let Some(limit) = limit.as_u64() else {
        return Err(refused("max_tokens: Input should be a valid integer"));
    };
    if limit < 1 {
        return Err(refused("max_tokens: Input should be greater than or equal to 1"));
    }
    match model.max_output() {
        Some(most) if limit > most => Err(refused(format!(
            "max_tokens: {limit} > {most}, which is the maximum allowed number of output tokens \
             for this model"
        ))),
        _ => Ok(()),
    }
}

fn check_sampling(body: &Map<String, Value>, model: Model) -> Check {
    let Some(temperature) = given(body, "temperature") else { return Ok(()) };
    let Some(number) = temperature.as_f64() else {
        return Err(refused("temperature: Input should be a valid number"));
    };
    if model.is_adaptive() {
        return Err(refused("`temperature` is deprecated for this model."));
    }
    match (0.0..=1.0).contains(&number) {
        true => Ok(()),
        false => Err(refused("temperature: range: 0..1")),
    }
}

fn check_output(output: Option<&Value>, model: Model) -> Check {
    let Some(output) = output else { return Ok(()) };
    let output = object(output, "output_config")?;
    only(output, &["effort", "format", "task_budget"], "output_config")?;
    if let Some(effort) = given(output, "effort") {
        let effort = string(effort, "output_config.effort")?;
        let levels = model.efforts();
        if !levels.contains(&effort) {
            let levels = levels.join(", ");
            return Err(refused(format!(
                "This model does not support effort level '{effort}'. Supported levels: {levels}."
            )));
        }
    }
    if let Some(format) = given(output, "format") {
        let path = "output_config.format";
        let format = object(format, path)?;
        only(format, &["type", "schema"], path)?;
        content::check_closed(required(format, "schema", path)?, &format!("{path}.schema"))?;
    }
    Ok(())
}

fn check_cache_marks(body: &Map<String, Value>) -> Check {
    fn count(value: &Value) -> usize {
        match value {
            Value::Array(list) => list.iter().map(count).sum(),
            Value::Object(members) => {
                // What a tool is called with may have any member.
                let inner = members.iter().filter(|(name, _)| {
                    !["input", "input_schema", "cache_control"].contains(&name.as_str())
                });
                let marked = members.get("cache_control").is_some_and(|mark| !mark.is_null());
                usize::from(marked) + inner.map(|(_, value)| count(value)).sum::<usize>()
            }
            _ => 0,
        }
    }
    let places = ["system", "tools", "messages"];
    match places.iter().filter_map(|name| body.get(*name)).map(count).sum::<usize>() {
        0..=4 => Ok(()),
        found => Err(refused(format!(
            "A maximum of 4 blocks with cache_control may be provided. Found {found}."
        ))),
    }
}

/// Four bytes are a token here.
fn check_length(body: &Map<String, Value>, model: Model) -> Check {
    let Some(window) = model.context_window() else { return Ok(()) };
    fn bytes(value: &Value) -> u64 {
        match value {
            Value::String(text) => text.len() as u64,
            Value::Array(list) => list.iter().map(bytes).sum(),
            // Pictures are measured otherwise.
            Value::Object(members) if members.get("type") == Some(&"base64".into()) => 0,
            Value::Object(members) => members.values().map(bytes).sum(),
            _ => 0,
        }
    }
    let tokens = body.values().map(bytes).sum::<u64>() / 4;
    match tokens > window {
        true => Err(refused(format!("prompt is too long: {tokens} tokens > {window} maximum"))),
        false => Ok(()),
    }
}

/// Whether a signature is none of the fake's, or vouches for this thought.
fn is_signed(thought: &str, given: &str) -> bool {
    !given.starts_with(SIGNATURE) || given == signature(thought)
}

fn invalid_signature(message: usize, block: usize) -> Refusal {
    refused(format!("messages.{message}.content.{block}: Invalid `signature` in `thinking` block"))
}

/// A parameter, unless it is absent or null.
fn given<'a>(body: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    body.get(name).filter(|value| !value.is_null())
}

const MEMBERS: [&str; 22] = [
    "model",
    "messages",
    "max_tokens",
    "system",
    "tools",
    "tool_choice",
    "temperature",
    "top_p",
    "top_k",
    "stop_sequences",
    "stream",
    "metadata",
    "thinking",
    "output_config",
    "output_format",
    "context_management",
    "container",
    "mcp_servers",
    "service_tier",
    "inference_geo",
    "speed",
    "anthropic_version",
];

#[cfg(test)]
mod tests;
