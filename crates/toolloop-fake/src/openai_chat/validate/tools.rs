//! The offered tools and the choice among them.

use std::collections::BTreeSet;

use serde_json::Value;

use super::form::{
    Check, NO_CHOICE, TOP_LEVEL, function_name, needs_tools, not_empty, object, one_of, refused,
    required, required_string, wrong_type,
};
use super::given;

/// The names of the tools, if any are offered.
pub(super) fn check(tools: Option<&Value>) -> Check<Option<BTreeSet<&str>>> {
    let Some(tools) = tools else { return Ok(None) };
    let Value::Array(tools) = tools else {
        return Err(wrong_type("tools", "an array of objects", tools));
    };
    not_empty(tools, "tools")?;
    let mut names = BTreeSet::new();
    for (index, tool) in tools.iter().enumerate() {
        let name = check_tool(tool, &format!("tools[{index}]"))?;
        if !names.insert(name) {
            return Err(refused("Tool names must be unique.", "tools", None));
        }
    }
    Ok(Some(names))
}

/// Checks `tool_choice`.
pub(super) fn check_choice(choice: Option<&Value>, names: Option<&BTreeSet<&str>>) -> Check {
    let Some(choice) = choice else { return Ok(()) };
    let Some(names) = names else { return Err(needs_tools("tool_choice")) };
    let choice = match choice {
        Value::String(word) => return one_of(word, &["none", "auto", "required"], "tool_choice"),
        Value::Object(choice) => choice,
        other => return Err(wrong_type("tool_choice", "one of a string or object", other)),
    };
    let kind = choice.get("type").and_then(Value::as_str);
    if matches!(kind, Some("allowed_tools")) {
        return Ok(());
    }
    let member = if kind == Some("custom") { "custom" } else { "function" };
    let (function, path) = required(choice, member, "tool_choice")?;
    let name = required_string(object(function, &path)?, "name", &path)?;
    if names.contains(name) {
        return Ok(());
    }
    let message = format!("Tool choice '{name}' not found in 'tools' parameter.");
    Err(refused(message, "tool_choice", None))
}

fn check_tool<'a>(tool: &'a Value, path: &str) -> Check<&'a str> {
    let tool = object(tool, path)?;
    let kind = required_string(tool, "type", path)?;
    one_of(kind, &["function", "custom"], &format!("{path}.type"))?;
    let (function, path) = required(tool, kind, path)?;
    let function = object(function, &path)?;
    let name = required_string(function, "name", &path)?;
    function_name(name, &format!("{path}.name"))?;
    if let Some(parameters) = given(function, "parameters") {
        check_schema(parameters, name, &format!("{path}.parameters"))?;
    }
    Ok(name)
}

fn check_schema(schema: &Value, name: &str, path: &str) -> Check {
    let schema = object(schema, path)?;
    let fault = match schema.get("type") {
        Some(Value::String(kind)) if kind == "object" => match schema.get("properties") {
            _ if TOP_LEVEL.iter().any(|word| schema.contains_key(*word)) => NO_CHOICE.to_owned(),
            Some(_) => return Ok(()),
            None => "In context=(), object schema missing properties.".to_owned(),
        },
        kind => {
            let kind = match kind {
                Some(Value::String(kind)) => kind.clone(),
                Some(other) => other.to_string(),
                None => "None".to_owned(),
            };
            format!("schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{kind}\"'.")
        }
    };
    let message = format!("Invalid schema for function '{name}': {fault}");
    Err(refused(message, path, Some("invalid_function_parameters")))
}
