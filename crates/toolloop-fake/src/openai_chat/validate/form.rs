//! The form of single values, and the sentences of the API about it.

use serde_json::{Map, Value};

use crate::refusal::Refusal;

pub(crate) type Check<T = ()> = Result<T, Refusal>;

pub(crate) fn refused(message: impl Into<String>, param: &str, code: Option<&str>) -> Refusal {
    Refusal::openai(400, message, Some(param), code)
}

/// What may not stand at the top of the schema of arguments.
pub(crate) const TOP_LEVEL: [&str; 5] = ["oneOf", "anyOf", "allOf", "enum", "not"];

pub(crate) const NO_CHOICE: &str = "schema must have type 'object' and not have \
    'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level.";

pub(crate) fn missing(path: &str) -> Refusal {
    let message = format!("Missing required parameter: '{path}'.");
    refused(message, path, Some("missing_required_parameter"))
}

pub(crate) fn wrong_type(path: &str, expected: &str, found: &Value) -> Refusal {
    let message =
        format!("Invalid type for '{path}': expected {expected}, but got {} instead.", kind(found));
    refused(message, path, Some("invalid_type"))
}

pub(crate) fn needs_tools(path: &str) -> Refusal {
    let message =
        format!("Invalid value for '{path}': '{path}' is only allowed when 'tools' are specified.");
    refused(message, path, None)
}

pub(crate) fn object<'a>(value: &'a Value, path: &str) -> Check<&'a Map<String, Value>> {
    value.as_object().ok_or_else(|| wrong_type(path, "an object", value))
}

pub(crate) fn string<'a>(value: &'a Value, path: &str) -> Check<&'a str> {
    value.as_str().ok_or_else(|| wrong_type(path, "a string", value))
}

pub(crate) fn boolean(value: &Value, path: &str) -> Check<bool> {
    value.as_bool().ok_or_else(|| wrong_type(path, "a boolean", value))
}

/// A member that must be there, and its path.
pub(crate) fn required<'a>(
    object: &'a Map<String, Value>,
    name: &str,
    path: &str,
) -> Check<(&'a Value, String)> {
    let path = format!("{path}.{name}");
    match object.get(name) {
        Some(value) => Ok((value, path)),
        None => Err(missing(&path)),
    }
}

/// A string that must be there.
pub(crate) fn required_string<'a>(
    object: &'a Map<String, Value>,
    name: &str,
    path: &str,
) -> Check<&'a str> {
    let (value, path) = required(object, name, path)?;
    string(value, &path)
}

pub(crate) fn not_empty(array: &[Value], path: &str) -> Check {
    if !array.is_empty() {
        return Ok(());
    }
    let message = format!(
        "Invalid '{path}': empty array. Expected an array with minimum length 1, but got an \
         empty array instead."
    );
    Err(refused(message, path, Some("empty_array")))
}

pub(crate) fn not_blank(text: &str, path: &str) -> Check {
    if !text.is_empty() {
        return Ok(());
    }
    let message = format!(
        "Invalid '{path}': empty string. Expected a string with minimum length 1, but got an \
         empty string instead."
    );
    Err(refused(message, path, Some("empty_string")))
}

pub(crate) fn no_longer_than(text: &str, most: usize, path: &str) -> Check {
    let length = text.chars().count();
    if length <= most {
        return Ok(());
    }
    let message = format!(
        "Invalid '{path}': string too long. Expected a string with maximum length {most}, but \
         got a string with length {length} instead."
    );
    Err(refused(message, path, Some("string_above_max_length")))
}

/// The name of a function: `^[a-zA-Z0-9_-]{1,64}$`.
pub(crate) fn function_name(name: &str, path: &str) -> Check {
    not_blank(name, path)?;
    no_longer_than(name, 64, path)?;
    if name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-') {
        return Ok(());
    }
    let message = format!(
        "Invalid '{path}': string does not match pattern. Expected a string that matches the \
         pattern '^[a-zA-Z0-9_-]+$'."
    );
    Err(refused(message, path, Some("invalid_value")))
}

pub(crate) fn one_of(value: &str, allowed: &[&str], path: &str) -> Check {
    if allowed.contains(&value) {
        return Ok(());
    }
    let quoted: Vec<String> = allowed.iter().map(|allowed| format!("'{allowed}'")).collect();
    let list = match &quoted[..] {
        [one] => one.clone(),
        [one, other] => format!("{one} and {other}"),
        [all @ .., last] => format!("{}, and {last}", all.join(", ")),
        [] => String::new(),
    };
    let message = format!("Invalid value: '{value}'. Supported values are: {list}.");
    Err(refused(message, path, Some("invalid_value")))
}

/// `number` is `value`, which is shown as it was written.
pub(crate) fn range(
    path: &str,
    kind: &str,
    value: &Value,
    number: f64,
    least: f64,
    most: f64,
) -> Check {
    let (side, word, sign, bound) = if number < least {
        ("below", "min", ">=", least)
    } else if number > most {
        ("above", "max", "<=", most)
    } else {
        return Ok(());
    };
    let message = format!(
        "Invalid '{path}': {kind} {side} {word}imum value. Expected a value {sign} {bound}, but \
         got {value} instead."
    );
    Err(refused(message, path, Some(&format!("{kind}_{side}_{word}_value"))))
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(number) if number.is_f64() => "a decimal",
        Value::Number(_) => "an integer",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
