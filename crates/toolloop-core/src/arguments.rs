//! The arguments of a call: [`parse_arguments`] reads their text, [`fault`] says what is wrong.

use serde_json::{Value, json};

use crate::dialect::unread_call;

/// The arguments of a call from their text: `{}` for nothing, a `Value::String` of the text where
/// it is not readable as JSON, nested too deep, or itself a string.
pub fn parse_arguments(raw: &str) -> Value {
    match raw.trim() {
        "" | "null" => json!({}),
        text => match serde_json::from_str::<Value>(text) {
            Ok(arguments) if !arguments.is_string() && depth(&arguments) <= MAX_DEPTH => arguments,
            _ => Value::String(raw.to_owned()),
        },
    }
}

/// What is wrong with arguments that are not a JSON object.
pub(crate) fn fault(arguments: &Value) -> Option<String> {
    match arguments {
        Value::Object(_) => None,
        Value::String(raw) => Some(match serde_json::from_str::<Value>(raw) {
            Err(_) if let Some(fault) = unread_call(raw) => fault.to_owned(),
            Err(error) => format!("The arguments are not readable as JSON: {error}."),
            Ok(value) if depth(&value) > MAX_DEPTH => {
                format!("The arguments are nested deeper than {MAX_DEPTH} levels.")
            }
            Ok(_) => "The arguments are a JSON string, not an object.".to_owned(),
        }),
        _ => Some("The arguments are JSON, but not an object.".to_owned()),
    }
}

/// Levels of arrays and objects in a value.
fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// Deeper arguments are not read: in a journal they stand some levels deeper, and readers of JSON
/// stop at 128.
const MAX_DEPTH: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_read_forgivingly_and_never_replaced() {
        assert_eq!(parse_arguments(" "), json!({}));
        assert_eq!(parse_arguments("null"), json!({}));
        assert_eq!(parse_arguments("{\"a\""), Value::String("{\"a\"".into()));
        let deep = "[".repeat(200_000);
        assert_eq!(parse_arguments(&deep), Value::String(deep));
    }

    #[test]
    fn arguments_that_no_journal_could_hold_are_not_read() {
        let nested = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
        assert!(parse_arguments(&nested(64)).is_array());
        let arguments = parse_arguments(&nested(65));
        assert_eq!(arguments, Value::String(nested(65)));
        let fault = fault(&arguments);
        assert_eq!(fault.unwrap(), "The arguments are nested deeper than 64 levels.");
    }
}
