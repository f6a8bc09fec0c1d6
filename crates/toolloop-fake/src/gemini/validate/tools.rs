//! The declared functions, their schemas, and the choice among them.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{field, list, refusal};
use crate::refusal::Refusal;

/// The declared functions, each with its place.
pub(super) fn declarations(body: &Value) -> impl Iterator<Item = (String, &Value)> {
    list(body, "tools").iter().enumerate().flat_map(|(tool, value)| {
        let declarations = list(value, "function_declarations").iter().enumerate();
        declarations
            .map(move |(at, value)| (format!("tools[{tool}].function_declarations[{at}]"), value))
    })
}

/// What the schemas of the parameters say.
pub(super) fn check(body: &Value, faults: &mut Vec<String>) {
    for (place, declaration) in declarations(body) {
        let parameters = field(declaration, "parameters");
        if parameters.is_null() {
            continue;
        }
        if !field(declaration, "parameters_json_schema").is_null() {
            let text = "only one of parameters and parameters_json_schema may be set";
            faults.push(format!("{place}.parameters: {text}"));
        }
        let place = format!("{place}.parameters");
        if kind(parameters) != "OBJECT" {
            faults.push(format!("{place}.type: should be OBJECT type"));
        }
        check_schema(parameters, &place, faults);
    }
}

pub(super) fn check_schema(schema: &Value, place: &str, faults: &mut Vec<String>) {
    let kind = kind(schema);
    let mut fault = |name: &str, text: &str| faults.push(format!("{place}.{name}: {text}"));
    let any_of = list(schema, "any_of");
    if kind.is_empty() && any_of.is_empty() {
        fault("type", "must be specified");
    }
    let format = field(schema, "format").as_str().unwrap_or_default();
    let formats: &[&str] = match &*kind {
        "STRING" => &["", "enum", "date-time"],
        "INTEGER" => &["", "int32", "int64"],
        "NUMBER" => &["", "float", "double"],
        _ => &[""],
    };
    if !formats.contains(&format) {
        match &*kind {
            "STRING" => {
                fault("format", "only 'enum' and 'date-time' are supported for STRING type");
            }
            other => fault("format", &format!("'{format}' is not supported for {other} type")),
        }
    }
    let values = list(schema, "enum");
    if !values.is_empty() && kind != "STRING" {
        fault("enum", "only allowed for STRING type");
    }
    if values.is_empty() && format == "enum" {
        fault("enum", "should be non-empty for STRING type with enum format");
    }
    for (at, _) in values.iter().enumerate().filter(|(_, value)| *value == "") {
        fault(&format!("enum[{at}]"), "cannot be empty");
    }
    let items = field(schema, "items");
    if kind == "ARRAY" && items.is_null() {
        fault("items", "missing field.");
    }
    if kind != "ARRAY" && !items.is_null() {
        fault("items", "only allowed for ARRAY type");
    }
    let properties = field(schema, "properties");
    if kind != "OBJECT" && !properties.is_null() {
        fault("properties", "only allowed for OBJECT type");
    }
    for (at, name) in list(schema, "required").iter().enumerate() {
        if name.as_str().is_none_or(|name| properties.get(name).is_none()) {
            fault(&format!("required[{at}]"), "property is not defined");
        }
    }
    for (at, name) in list(schema, "property_ordering").iter().enumerate() {
        if name.as_str().is_none_or(|name| properties.get(name).is_none()) {
            fault(&format!("property_ordering[{at}]"), "property is not defined");
        }
    }
    for (name, property) in properties.as_object().into_iter().flatten() {
        check_schema(property, &format!("{place}.properties[{name}]"), faults);
    }
    if !items.is_null() {
        check_schema(items, &format!("{place}.items"), faults);
    }
    for (at, variant) in any_of.iter().enumerate() {
        check_schema(variant, &format!("{place}.any_of[{at}]"), faults);
    }
}

pub(super) fn check_names(body: &Value) -> Result<(), Refusal> {
    let mut known = BTreeSet::new();
    for (place, declaration) in declarations(body) {
        let name = field(declaration, "name").as_str().unwrap_or_default();
        if !is_name(name) {
            return Err(refusal(
                400,
                format!(
                    "The GenerateContentRequest proto is invalid:\n  * {place}.name: \
                     [FIELD_INVALID] Invalid function name. Must start with a letter or an \
                     underscore. Must be a-z, A-Z, 0-9, or contain underscores (_), dots (.), \
                     colons (:), or dashes (-), with a maximum length of 64."
                ),
            ));
        }
        if !known.insert(name) {
            return Err(refusal(400, format!("Duplicate function declaration found: {name}")));
        }
    }
    Ok(())
}

pub(super) fn check_choice(body: &Value) -> Result<(), Refusal> {
    let config = field(field(body, "tool_config"), "function_calling_config");
    let mode = field(config, "mode").as_str().unwrap_or("AUTO").to_ascii_uppercase();
    let names = list(config, "allowed_function_names");
    if config.is_null() || mode == "NONE" && names.is_empty() {
        return Ok(());
    }
    if declarations(body).next().is_none() {
        let text = "Function calling config is set without function_declarations.";
        return Err(refusal(400, text));
    }
    if !names.is_empty() && !matches!(&*mode, "ANY" | "VALIDATED") {
        let text = "Allowed function names should only be set when the mode is ANY or VALIDATED.";
        return Err(refusal(400, text));
    }
    let is_declared = |name: &Value| declarations(body).any(|(_, d)| field(d, "name") == name);
    match names.iter().find(|name| !is_declared(name)) {
        Some(name) => {
            Err(refusal(400, format!("Allowed function name {name} is not declared in tools.")))
        }
        None => Ok(()),
    }
}

fn kind(schema: &Value) -> String {
    field(schema, "type").as_str().unwrap_or_default().to_ascii_uppercase()
}

fn is_name(name: &str) -> bool {
    name.len() <= 64
        && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.:-".contains(&b))
}
