//! The offered tools, the choice among them, and the schemas.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::given;
use crate::openai_chat::validate::form::{
    Check, NO_CHOICE, TOP_LEVEL, boolean, function_name, object, one_of, refused, required_string,
    wrong_type,
};

/// The names of the functions, and whether there is any tool at all.
pub(super) struct Tools<'a> {
    names: BTreeSet<&'a str>,
    is_empty: bool,
}

pub(super) fn check(tools: Option<&Value>) -> Check<Tools<'_>> {
    let mut names = BTreeSet::new();
    let tools = match tools {
        None => &[],
        Some(Value::Array(tools)) => tools.as_slice(),
        Some(other) => return Err(wrong_type("tools", "an array of objects", other)),
    };
    for (index, tool) in tools.iter().enumerate() {
        let path = format!("tools[{index}]");
        let tool = object(tool, &path)?;
        if required_string(tool, "type", &path)? != "function" {
            continue;
        }
        let name = required_string(tool, "name", &path)?;
        function_name(name, &format!("{path}.name"))?;
        if !names.insert(name) {
            return Err(refused("Tool names must be unique.", "tools", None));
        }
        let strict = given(tool, "strict").map(|strict| boolean(strict, &format!("{path}.strict")));
        if let Some(schema) = given(tool, "parameters") {
            let path = format!("{path}.parameters");
            let fault = schema_fault(object(schema, &path)?, strict.transpose()? == Some(true));
            if let Some(fault) = fault {
                let message = format!("Invalid schema for function '{name}': {fault}");
                return Err(refused(message, &path, Some("invalid_function_parameters")));
            }
        }
    }
    Ok(Tools { names, is_empty: tools.is_empty() })
}

/// Checks `tool_choice`.
pub(super) fn check_choice(choice: Option<&Value>, tools: &Tools<'_>) -> Check {
    let unsatisfied = |choice: &str| {
        let message = format!("Tool choice '{choice}' must be specified with 'tools' parameter.");
        Err(refused(message, "tool_choice", None))
    };
    match choice {
        None => Ok(()),
        Some(Value::String(word)) => {
            one_of(word, &["none", "auto", "required"], "tool_choice")?;
            if word == "required" && tools.is_empty { unsatisfied(word) } else { Ok(()) }
        }
        Some(Value::Object(choice)) => {
            if required_string(choice, "type", "tool_choice")? != "function" {
                return Ok(());
            }
            let name = required_string(choice, "name", "tool_choice")?;
            if tools.names.contains(name) {
                return Ok(());
            }
            let message = format!(
                "Tool choice 'function' with name '{name}' not found in 'tools' parameter."
            );
            Err(refused(message, "tool_choice", None))
        }
        Some(other) => Err(wrong_type("tool_choice", "one of a string or object", other)),
    }
}

/// What the API finds wrong with the schema of an object.
pub(super) fn schema_fault(schema: &Map<String, Value>, strict: bool) -> Option<String> {
    match schema.get("type") {
        Some(Value::String(kind)) if kind == "object" => {}
        kind => {
            let kind = match kind {
                Some(Value::String(kind)) => kind.clone(),
                Some(other) => other.to_string(),
                None => "None".to_owned(),
            };
            return Some(format!(
                "schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{kind}\"'."
            ));
        }
    }
    if TOP_LEVEL.iter().any(|word| schema.contains_key(*word)) {
        return Some(NO_CHOICE.to_owned());
    }
    if !schema.contains_key("properties") {
        return Some("In context=(), object schema missing properties.".to_owned());
    }
    strict.then(|| strict_fault(schema, &mut Vec::new())).flatten()
}

/// What the strict mode finds wrong; `context` is the way to the schema.
fn strict_fault(schema: &Map<String, Value>, context: &mut Vec<String>) -> Option<String> {
    let place = |context: &[String]| {
        let steps: Vec<_> = context.iter().map(|step| format!("'{step}'")).collect();
        match &steps[..] {
            [one] => format!("In context=({one},)"),
            steps => format!("In context=({})", steps.join(", ")),
        }
    };
    if schema.get("type").is_some_and(|kind| kind == "object") {
        if schema.get("additionalProperties") != Some(&Value::Bool(false)) {
            return Some(format!(
                "{}, 'additionalProperties' is required to be supplied and to be false.",
                place(context)
            ));
        }
        let required = schema.get("required").and_then(Value::as_array);
        let is_required =
            |name: &&String| required.is_some_and(|all| all.iter().any(|one| one == *name));
        let mut names = schema.get("properties").and_then(Value::as_object)?.keys();
        if let Some(name) = names.find(|name| !is_required(name)) {
            return Some(format!(
                "{}, 'required' is required to be supplied and to be an array including every key \
                 in properties. Missing '{name}'.",
                place(context)
            ));
        }
    }
    for word in ["default", "minLength", "maxLength", "allOf", "oneOf", "not", "if", "then", "else"]
    {
        if schema.contains_key(word) {
            return Some(format!("{}, '{word}' is not permitted.", place(context)));
        }
    }
    let mut below = |steps: &[&str], schema: &Value| {
        context.extend(steps.iter().map(|step| (*step).to_owned()));
        let fault = schema.as_object().and_then(|schema| strict_fault(schema, context));
        context.truncate(context.len() - steps.len());
        fault
    };
    for holder in ["properties", "$defs", "definitions"] {
        for (name, schema) in schema.get(holder).and_then(Value::as_object).into_iter().flatten() {
            if let Some(fault) = below(&[holder, name], schema) {
                return Some(fault);
            }
        }
    }
    for (at, schema) in
        schema.get("anyOf").and_then(Value::as_array).into_iter().flatten().enumerate()
    {
        if let Some(fault) = below(&["anyOf", &at.to_string()], schema) {
            return Some(fault);
        }
    }
    schema.get("items").and_then(|schema| below(&["items"], schema))
}
