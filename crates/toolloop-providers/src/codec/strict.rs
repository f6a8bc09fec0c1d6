//! Which schemas the strict mode of OpenAI's APIs takes. Any other would be refused there.

use std::borrow::Cow;

use serde_json::{Map, Value};

/// Whether a schema may be sent as strict: an object whose objects are closed and require all of
/// their properties, with no word that the mode does not know.
pub(in crate::codec) fn fits(schema: &Value) -> bool {
    schema.get("type").is_some_and(|kind| kind == "object") && schema_fits(schema, 0)
}

/// The name of a schema: its title, as far as the API takes it.
pub(in crate::codec) fn name(schema: &Value) -> Cow<'static, str> {
    let title = schema.get("title").and_then(Value::as_str).unwrap_or_default();
    let name: String = title
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' })
        .take(64)
        .collect();
    if name.is_empty() { Cow::Borrowed("answer") } else { Cow::Owned(name) }
}

fn schema_fits(schema: &Value, depth: usize) -> bool {
    let Value::Object(schema) = schema else { return false };
    let says_what =
        ["type", "anyOf", "$ref", "enum", "const"].iter().any(|w| schema.contains_key(*w));
    says_what
        && depth <= DEEPEST
        && is_closed(schema)
        && schema.iter().all(|(word, value)| word_fits(word, value, depth + 1))
}

fn word_fits(word: &str, value: &Value, depth: usize) -> bool {
    match word {
        "properties" | "$defs" | "definitions" => value
            .as_object()
            .is_some_and(|schemas| schemas.values().all(|schema| schema_fits(schema, depth))),
        "anyOf" => value
            .as_array()
            .is_some_and(|schemas| schemas.iter().all(|schema| schema_fits(schema, depth))),
        "items" => schema_fits(value, depth),
        "format" => value.as_str().is_some_and(|format| FORMATS.contains(&format)),
        _ => WORDS.contains(&word),
    }
}

fn is_closed(schema: &Map<String, Value>) -> bool {
    let is = |kind: &str| match schema.get("type") {
        Some(Value::String(word)) => word == kind,
        Some(Value::Array(words)) => words.iter().any(|word| word == kind),
        _ => false,
    };
    if is("array") && !schema.contains_key("items") {
        return false;
    }
    let Some(Value::Object(properties)) = schema.get("properties") else { return !is("object") };
    let required = schema.get("required").and_then(Value::as_array);
    schema.get("additionalProperties") == Some(&Value::Bool(false))
        && properties.keys().all(|name| {
            required.is_some_and(|names| names.iter().any(|n| n.as_str() == Some(name)))
        })
}

const DEEPEST: usize = 10;

/// Words that may stand in a strict schema, beside those that hold schemas.
const WORDS: [&str; 16] = [
    "type",
    "required",
    "additionalProperties",
    "title",
    "description",
    "enum",
    "const",
    "$ref",
    "pattern",
    "multipleOf",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minItems",
    "maxItems",
];

const FORMATS: [&str; 9] =
    ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn with(property: Value) -> Value {
        json!({"type": "object", "properties": {"type": property}, "required": ["type"],
            "additionalProperties": false})
    }

    #[test]
    fn closed_objects_of_known_words_fit() {
        for property in [
            json!({"type": "string", "format": "date", "description": "A day."}),
            json!({"type": ["integer", "null"], "minimum": 1}),
            json!({"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 3}),
            json!({"anyOf": [{"$ref": "#/$defs/x"}, {"type": "null"}]}),
            with(json!({"const": 1})),
        ] {
            assert!(fits(&with(property.clone())), "{property}");
        }
    }

    #[test]
    fn nothing_else_does() {
        for property in [
            json!({}),
            json!(true),
            json!({"type": "object"}),
            json!({"type": "array"}),
            json!({"type": "string", "minLength": 1}),
            json!({"type": "string", "format": "uri"}),
            json!({"type": "string", "default": "a"}),
            json!({"allOf": [{"type": "string"}]}),
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}),
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": [],
                "additionalProperties": false}),
        ] {
            assert!(!fits(&with(property.clone())), "{property}");
        }
        assert!(!fits(&json!({"type": "string"})));
        assert!(!fits(&json!({"anyOf": [with(json!({"type": "string"}))]})));
        let deep = (0..11).fold(json!({"type": "string"}), |schema, _| with(schema));
        assert!(!fits(&deep));
    }

    #[test]
    fn a_name_is_made_of_the_title() {
        assert_eq!(name(&json!({"title": "My Answer ü"})), "My_Answer__");
        assert_eq!(name(&json!({})), "answer");
    }
}
