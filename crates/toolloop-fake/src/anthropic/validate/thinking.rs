//! Thought: what it demands of other parameters, and of the reply that is under way.

use serde_json::{Map, Value};

use super::form::{Check, object, refused, required, required_string};
use super::model::Model;
use super::{given, invalid_signature, is_signed};

pub(super) fn check(body: &Map<String, Value>, messages: &[Value], model: Model) -> Check {
    check_signatures(messages)?;
    let thinking = given(body, "thinking").map(|value| object(value, "thinking")).transpose()?;
    let kind = match thinking {
        Some(thinking) => required_string(thinking, "type", "thinking")?,
        None => "disabled",
    };
    match (kind, thinking) {
        ("disabled", _) => return check_disabled(messages),
        ("adaptive", _) => {}
        ("enabled", Some(thinking)) => check_budget(thinking, body, model)?,
        _ => {
            return Err(refused(format!(
                "thinking: Input tag '{kind}' found using 'type' does not match any of the \
                 expected tags: 'adaptive', 'disabled', 'enabled'"
            )));
        }
    }
    if given(body, "temperature").is_some_and(|t| t.as_f64() != Some(1.0)) {
        return Err(refused(format!(
            "`temperature` may only be set to 1 when thinking is enabled. {CONSULT}"
        )));
    }
    let choice = body.get("tool_choice").and_then(|choice| choice["type"].as_str());
    if let Some("any" | "tool") = choice {
        return Err(refused("Thinking may not be enabled when tool_choice forces tool use."));
    }
    match kind {
        "enabled" => check_start(messages),
        _ => Ok(()),
    }
}

fn check_budget(thinking: &Map<String, Value>, body: &Map<String, Value>, model: Model) -> Check {
    if model.is_adaptive() {
        return Err(refused(
            "\"thinking.type.enabled\" is not supported for this model. Use \
             \"thinking.type.adaptive\" and \"output_config.effort\" to control thinking behavior.",
        ));
    }
    let path = "thinking.enabled";
    let Some(budget) = required(thinking, "budget_tokens", path)?.as_u64() else {
        return Err(refused(format!("{path}.budget_tokens: Input should be a valid integer")));
    };
    if budget < 1_024 {
        return Err(refused(format!(
            "{path}.budget_tokens: Input should be greater than or equal to 1024"
        )));
    }
    if body["max_tokens"].as_u64().is_none_or(|limit| limit <= budget) {
        return Err(refused(format!(
            "`max_tokens` must be greater than `thinking.budget_tokens`. {CONSULT}"
        )));
    }
    Ok(())
}

fn check_signatures(messages: &[Value]) -> Check {
    for (at, message) in messages.iter().enumerate() {
        for (index, block) in blocks(message).iter().enumerate() {
            let text = |name: &str| block[name].as_str().unwrap_or_default();
            if block["type"] == "thinking"
                && (text("signature").is_empty() || !is_signed(text("thinking"), text("signature")))
            {
                return Err(invalid_signature(at, index));
            }
        }
    }
    Ok(())
}

/// Without thought, an answer to go on with must hold none.
fn check_disabled(messages: &[Value]) -> Check {
    let Some((last, message)) = messages.iter().enumerate().next_back() else { return Ok(()) };
    if message["role"] != "assistant" {
        return Ok(());
    }
    match blocks(message).iter().position(is_thought) {
        None => Ok(()),
        Some(index) => Err(refused(format!(
            "messages.{last}.content.{index}: When thinking is disabled, an `assistant` message in \
             the final position cannot contain `thinking`. To use thinking blocks, enable \
             `thinking` in your request."
        ))),
    }
}

/// With thought, a reply that is under way must have begun with some: all of it since the user
/// last said something else than results.
fn check_start(messages: &[Value]) -> Check {
    let under_way = messages.iter().enumerate().rev().take_while(|(_, message)| {
        message["role"] == "assistant" || blocks(message).iter().any(|b| b["type"] == "tool_result")
    });
    let Some((first, message)) = under_way.last() else { return Ok(()) };
    let found = match blocks(message).first() {
        Some(block) if is_thought(block) => return Ok(()),
        Some(block) => block["type"].as_str().unwrap_or_default(),
        None => "text",
    };
    Err(refused(format!(
        "messages.{first}.content.0.type: Expected `thinking` or `redacted_thinking`, but found \
         `{found}`. When `thinking` is enabled, a final `assistant` message must start with a \
         thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks). We \
         recommend you include thinking blocks from previous turns. To avoid this requirement, \
         disable `thinking`. {CONSULT}"
    )))
}

fn is_thought(block: &Value) -> bool {
    block["type"] == "thinking" || block["type"] == "redacted_thinking"
}

fn blocks(message: &Value) -> &[Value] {
    message["content"].as_array().map(Vec::as_slice).unwrap_or_default()
}

const CONSULT: &str = "Please consult our documentation at \
    https://docs.claude.com/en/docs/build-with-claude/extended-thinking";
