//! [`closed`]: a schema in the form to which the API can hold a model.

use serde_json::{Map, Value, json};

/// The schema with every object closed and without bounds the API does not know, which whoever
/// reads the answer still checks. `None`: it says what this form cannot, such as free keys.
pub(super) fn closed(schema: &Value) -> Option<Value> {
    let Value::Object(schema) = schema else { return None };
    let mut out = Map::new();
    for (name, value) in schema {
        let value = match name.as_str() {
            "properties" => named(value)?,
            "items" => closed(value)?,
            "anyOf" | "allOf" => each(value)?,
            "oneOf" => {
                out.insert("anyOf".to_owned(), each(value)?);
                continue;
            }
            "type" | "enum" | "const" | "required" | "title" | "description" | "default" => {
                value.clone()
            }
            "additionalProperties" if *value == json!(false) => continue,
            // Free keys, and references, which may lead in a circle.
            "additionalProperties"
            | "patternProperties"
            | "$ref"
            | "not"
            | "if"
            | "prefixItems" => return None,
            _ => continue,
        };
        out.insert(name.clone(), value);
    }
    let is_object = out.get("type") == Some(&json!("object"));
    match (is_object, out.contains_key("properties")) {
        (true, true) => {
            out.insert("additionalProperties".to_owned(), json!(false));
        }
        // An object of any kind.
        (true, false) => return None,
        (false, _) => {}
    }
    Some(Value::Object(out))
}

fn named(properties: &Value) -> Option<Value> {
    let each = properties.as_object()?.iter();
    each.map(|(name, schema)| Some((name.clone(), closed(schema)?))).collect()
}

fn each(list: &Value) -> Option<Value> {
    list.as_array()?.iter().map(closed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_closed_and_unknown_bounds_dropped() {
        let schema = json!({
            "$schema": "x", "type": "object", "required": ["n"],
            "properties": {
                "n": {"type": "integer", "minimum": 0, "description": "how many"},
                "list": {"type": "array", "minItems": 2, "items": {
                    "type": "object", "properties": {"s": {"type": "string"}},
                }},
                "one": {"oneOf": [{"type": "null"}, {"const": 1}]},
            },
        });
        let expected = json!({
            "type": "object", "required": ["n"],
            "properties": {
                "n": {"type": "integer", "description": "how many"},
                "list": {"type": "array", "items": {
                    "type": "object", "properties": {"s": {"type": "string"}},
                    "additionalProperties": false,
                }},
                "one": {"anyOf": [{"type": "null"}, {"const": 1}]},
            },
            "additionalProperties": false,
        });
        assert_eq!(closed(&schema), Some(expected));
    }

    #[test]
    fn what_cannot_be_said_is_not() {
        for schema in [
            json!(true),
            json!({"type": "object"}),
            json!({"$ref": "#/$defs/node"}),
            json!({"type": "object", "properties": {}, "additionalProperties": {"type": "string"}}),
            json!({"type": "array", "items": {"type": "object"}}),
        ] {
            assert_eq!(closed(&schema), None, "{schema}");
        }
    }
}
