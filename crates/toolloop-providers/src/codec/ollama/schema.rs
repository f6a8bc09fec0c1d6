//! [`Parameters`]: the schema of a tool's arguments in the form the server can read.
//!
//! The server reads schemas into typed structs and refuses the request where one does not fit: a
//! property must be an object (not `true`), `type` of the whole a word, `required` a list.

use serde::ser::{Serialize, Serializer};
use serde_json::{Map, Value, json};

/// Written as it is where it fits.
pub(super) struct Parameters<'a>(pub(super) &'a Value);

impl Serialize for Parameters<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Object(schema)
                if schema.get("type") == Some(&json!("object"))
                    && schema.contains_key("properties")
                    && has_readable_properties(schema) =>
            {
                schema.serialize(serializer)
            }
            other => readable(other).serialize(serializer),
        }
    }
}

fn has_readable_properties(schema: &Map<String, Value>) -> bool {
    match schema.get("properties") {
        None => true,
        Some(Value::Object(properties)) => properties
            .values()
            .all(|property| property.as_object().is_some_and(has_readable_properties)),
        Some(_) => false,
    }
}

fn readable(schema: &Value) -> Value {
    let mut schema = schema.as_object().cloned().unwrap_or_default();
    schema.insert("type".into(), json!("object"));
    schema.entry("properties").or_insert_with(|| json!({}));
    make_properties_readable(&mut schema);
    Value::Object(schema)
}

fn make_properties_readable(schema: &mut Map<String, Value>) {
    let Some(properties) = schema.get_mut("properties") else { return };
    if !properties.is_object() {
        *properties = json!({});
    }
    for property in properties.as_object_mut().into_iter().flat_map(Map::values_mut) {
        match property {
            Value::Object(property) => make_properties_readable(property),
            // `true` takes any value, and so does a schema that says nothing.
            any => *any = json!({}),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(schema: Value) -> Value {
        serde_json::to_value(Parameters(&schema)).unwrap()
    }

    #[test]
    fn a_schema_that_fits_is_left_alone() {
        let schema = json!({
            "type": "object", "additionalProperties": false, "required": ["a"],
            "properties": {"a": {"type": ["string", "null"]}},
        });
        assert_eq!(written(schema.clone()), schema);
    }

    #[test]
    fn what_the_server_cannot_read_is_written_otherwise() {
        let empty = json!({"type": "object", "properties": {}});
        assert_eq!(written(json!({})), empty);
        assert_eq!(written(json!(true)), empty);
        assert_eq!(
            written(json!({
                "type": ["object", "null"],
                "properties": {"any": true, "deep": {"type": "object", "properties": {"x": true}}},
            })),
            json!({
                "type": "object",
                "properties": {"any": {}, "deep": {"type": "object", "properties": {"x": {}}}},
            })
        );
    }
}
