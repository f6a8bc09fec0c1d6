//! The tools of a request, and the choice among them.

use serde_json::Value;

use super::form::{Check, at, list, matches_pattern, object, refused, required, required_string};

/// The names of the tools.
pub(super) fn check(tools: Option<&Value>) -> Check<Vec<&str>> {
    let mut names = Vec::new();
    let Some(tools) = tools else { return Ok(names) };
    for (index, tool) in list(tools, "tools")?.iter().enumerate() {
        let path = format!("tools.{index}");
        let tool = object(tool, &path)?;
        // A tool that the provider runs has a type of its own and no schema.
        let is_own = tool.get("type").is_none_or(|kind| kind == "custom" || kind.is_null());
        let path = if is_own { at(&path, "custom") } else { path };
        let name = required_string(tool, "name", &path)?;
        if is_own {
            matches_pattern(name, 128, "^[a-zA-Z0-9_-]{1,128}$", &at(&path, "name"))?;
            let path = at(&path, "input_schema");
            let schema = object(required(tool, "input_schema", &path)?, &path)?;
            if required(schema, "type", &path)? != "object" {
                return Err(refused(format!("{path}.type: Input should be 'object'")));
            }
            if ["oneOf", "allOf", "anyOf"].iter().any(|name| schema.contains_key(*name)) {
                return Err(refused(format!(
                    "{path}: input_schema does not support oneOf, allOf, or anyOf at the top level"
                )));
            }
        }
        if names.contains(&name) {
            return Err(refused("tools: Tool names must be unique."));
        }
        names.push(name);
    }
    Ok(names)
}

pub(super) fn check_choice(choice: Option<&Value>, tools: &[&str]) -> Check {
    let Some(choice) = choice else { return Ok(()) };
    let choice = object(choice, "tool_choice")?;
    let kind = required_string(choice, "type", "tool_choice")?;
    if !["auto", "any", "tool", "none"].contains(&kind) {
        return Err(refused(format!(
            "tool_choice: Input tag '{kind}' found using 'type' does not match any of the \
             expected tags: 'auto', 'any', 'tool', 'none'"
        )));
    }
    if tools.is_empty() {
        return Err(refused(
            "tool_choice: tool_choice may only be specified while providing tools.",
        ));
    }
    if kind == "tool" {
        let name = required_string(choice, "name", "tool_choice.tool")?;
        if !tools.contains(&name) {
            return Err(refused(format!(
                "tool_choice.tool.name: Tool '{name}' not found in provided tools"
            )));
        }
    }
    Ok(())
}

/// A conversation in which tools were called has tools.
pub(super) fn check_needed(messages: &[Value], is_without: bool) -> Check {
    let blocks = || messages.iter().flat_map(|m| m["content"].as_array().into_iter().flatten());
    let has_calls = || blocks().any(|b| b["type"] == "tool_use" || b["type"] == "tool_result");
    match is_without && has_calls() {
        true => Err(refused(
            "Requests which include `tool_use` or `tool_result` blocks must define tools",
        )),
        false => Ok(()),
    }
}
