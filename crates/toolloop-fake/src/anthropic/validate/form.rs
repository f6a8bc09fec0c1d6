//! The form of single values, and the sentences of the API about it.

use serde_json::{Map, Value};

use crate::anthropic::refusal;
use crate::refusal::Refusal;

pub(super) type Check<T = ()> = Result<T, Refusal>;

pub(super) fn refused(message: impl Into<String>) -> Refusal {
    refusal(400, "invalid_request_error", message)
}

/// A member that must be there.
pub(super) fn required<'a>(
    object: &'a Map<String, Value>,
    name: &str,
    path: &str,
) -> Check<&'a Value> {
    object.get(name).ok_or_else(|| refused(format!("{}: Field required", at(path, name))))
}

/// A string that must be there.
pub(super) fn required_string<'a>(
    object: &'a Map<String, Value>,
    name: &str,
    path: &str,
) -> Check<&'a str> {
    string(required(object, name, path)?, &at(path, name))
}

pub(super) fn string<'a>(value: &'a Value, path: &str) -> Check<&'a str> {
    value.as_str().ok_or_else(|| refused(format!("{path}: Input should be a valid string")))
}

pub(super) fn list<'a>(value: &'a Value, path: &str) -> Check<&'a [Value]> {
    match value {
        Value::Array(list) => Ok(list),
        _ => Err(refused(format!("{path}: Input should be a valid list"))),
    }
}

pub(super) fn object<'a>(value: &'a Value, path: &str) -> Check<&'a Map<String, Value>> {
    value.as_object().ok_or_else(|| refused(format!("{path}: Input should be a valid dictionary")))
}

/// Refuses members the API does not know.
pub(super) fn only(object: &Map<String, Value>, known: &[&str], path: &str) -> Check {
    match object.keys().find(|name| !known.contains(&name.as_str())) {
        None => Ok(()),
        Some(name) => Err(refused(format!("{}: Extra inputs are not permitted", at(path, name)))),
    }
}

pub(super) fn matches_pattern(text: &str, most: usize, pattern: &str, path: &str) -> Check {
    let is_legal = !text.is_empty()
        && text.len() <= most
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    match is_legal {
        true => Ok(()),
        false => Err(refused(format!("{path}: String should match pattern '{pattern}'"))),
    }
}

/// A path with one more step.
pub(super) fn at(path: &str, name: &str) -> String {
    match path {
        "" => name.to_owned(),
        path => format!("{path}.{name}"),
    }
}
