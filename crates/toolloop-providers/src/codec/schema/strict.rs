//! [`openai_strict`]: the form that the strict mode of OpenAI demands.

use serde_json::{Map, Value, json};

use super::{Holds, Place, Rewritten, const_to_enum, inline_refs, merge_all_of, take_variants};

/// Rewrites a schema to what the strict mode of OpenAI takes: every object closed, every property
/// required, and those that were optional may be null.
///
/// Use it only where the strict mode is asked for: a tool then gets null where it got nothing.
pub fn openai_strict(schema: &Value) -> Rewritten {
    let Rewritten { schema, mut dropped } = inline_refs(schema);
    let schema = rewrite(schema, &Place::ROOT, &mut dropped);
    Rewritten { schema, dropped }
}

fn rewrite(schema: Value, place: &Place<'_>, dropped: &mut Vec<String>) -> Value {
    let Value::Object(mut fields) = schema else {
        dropped.push(format!("{place}: any value is allowed, and the model is asked for a string"));
        return json!({"type": "string"});
    };
    merge_all_of(&mut fields, place, dropped);
    const_to_enum(&mut fields);
    if let Some(Value::Array(tuple)) = fields.remove("prefixItems") {
        dropped.push(format!("{place}: which element has which schema was left out"));
        fields.insert("items".to_owned(), json!({ "anyOf": tuple }));
    }
    if let Some(variants) = take_variants(&mut fields, place, dropped) {
        fields.insert("anyOf".to_owned(), Value::Array(variants));
    }
    let is_object = is_type(&fields, "object") || fields.contains_key("properties");
    if is_object {
        close(&mut fields, place, dropped);
    } else if fields.get("type").is_none()
        && !fields.contains_key("anyOf")
        && !fields.contains_key("enum")
    {
        dropped.push(format!("{place}: any value is allowed, and the model is asked for a string"));
        fields.insert("type".to_owned(), json!("string"));
    }
    fields.retain(|keyword, _| {
        let takes = KEPT.contains(&keyword.as_str());
        if !takes && !UNSAID.contains(&keyword.as_str()) {
            dropped.push(format!("{place}: `{keyword}` was left out"));
        }
        takes
    });
    if let Some(format) = fields.get("format")
        && !format.as_str().is_some_and(|format| FORMATS.contains(&format))
    {
        dropped.push(format!("{place}: the format {format} was left out"));
        fields.remove("format");
    }
    let fields = fields.into_iter().map(|(keyword, value)| {
        let within = place.at(&keyword);
        let value = match (Holds::of(&keyword, &value), value) {
            (Holds::Schema | Holds::List, Value::Array(list)) => {
                list.into_iter().map(|value| rewrite(value, &within, dropped)).collect()
            }
            // `additionalProperties` is false by now.
            (Holds::Schema, value) if keyword != "additionalProperties" => {
                rewrite(value, &within, dropped)
            }
            (Holds::Map, Value::Object(map)) => map
                .into_iter()
                .map(|(name, value)| {
                    let value = rewrite(value, &within.at(&name), dropped);
                    (name, value)
                })
                .collect::<Map<_, _>>()
                .into(),
            (_, value) => value,
        };
        (keyword, value)
    });
    fields.collect::<Map<_, _>>().into()
}

/// Closes an object and requires all its properties.
fn close(fields: &mut Map<String, Value>, place: &Place<'_>, dropped: &mut Vec<String>) {
    if !fields.contains_key("type") {
        fields.insert("type".to_owned(), json!("object"));
    }
    if !matches!(fields.get("additionalProperties"), None | Some(Value::Bool(_))) {
        dropped.push(format!("{place}: properties without a name in the schema were forbidden"));
    }
    let required = fields.remove("required");
    let is_required = |name: &str| {
        let names = required.as_ref().and_then(Value::as_array);
        names.is_some_and(|names| names.iter().any(|known| known.as_str() == Some(name)))
    };
    let mut properties = match fields.remove("properties") {
        Some(Value::Object(properties)) => properties,
        _ => Map::new(),
    };
    for (name, property) in &mut properties {
        if !is_required(name) {
            let within = place.at(name);
            dropped.push(format!("{within}: it was optional, and is null where it is not given"));
            allow_null(property);
        }
    }
    let names = properties.keys().cloned().map(Value::String).collect();
    fields.insert("properties".to_owned(), properties.into());
    fields.insert("required".to_owned(), Value::Array(names));
    fields.insert("additionalProperties".to_owned(), Value::Bool(false));
}

fn allow_null(schema: &mut Value) {
    let null = json!("null");
    let Value::Object(fields) = schema else { return };
    if let Some(constant) = fields.remove("const") {
        fields.insert("enum".to_owned(), json!([constant]));
    }
    if let Some(Value::Array(values)) = fields.get_mut("enum")
        && !values.contains(&Value::Null)
    {
        values.push(Value::Null);
    }
    match fields.get_mut("type") {
        Some(Value::Array(types)) if types.contains(&null) => {}
        Some(Value::Array(types)) => types.push(null),
        Some(kind) if *kind == null => {}
        Some(kind) => *kind = json!([kind, "null"]),
        None => {
            for choice in ["anyOf", "oneOf"] {
                if let Some(Value::Array(variants)) = fields.get_mut(choice) {
                    variants.push(json!({"type": "null"}));
                    return;
                }
            }
            if fields.contains_key("properties") || fields.contains_key("allOf") {
                *schema = json!({"anyOf": [schema.take(), {"type": "null"}]});
            }
        }
    }
}

fn is_type(fields: &Map<String, Value>, name: &str) -> bool {
    match fields.get("type") {
        Some(Value::String(kind)) => kind == name,
        Some(Value::Array(types)) => types.iter().any(|kind| kind == name),
        _ => false,
    }
}

const KEPT: [&str; 18] = [
    "type",
    "title",
    "description",
    "enum",
    "anyOf",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "minItems",
    "maxItems",
    "pattern",
    "format",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
];

const FORMATS: [&str; 9] =
    ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];

/// What forbids nothing, and is left out without a word.
const UNSAID: [&str; 5] = ["$comment", "examples", "default", "deprecated", "readOnly"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_closed_and_options_may_be_null() {
        let schema = json!({
            "type": "object",
            "properties": {
                "a": {"type": "string", "minLength": 1},
                "b": {"enum": ["x"]},
                "c": {"type": "array", "items": {"properties": {"n": {"const": 1}}, "required": ["n"]}},
            },
            "required": ["a"],
        });
        let inner = json!({"properties": {"n": {"enum": [1]}}, "type": "object", "required": ["n"],
            "additionalProperties": false});
        let expected = json!({
            "type": "object",
            "properties": {
                "a": {"type": "string"},
                "b": {"enum": ["x", null]},
                "c": {"type": ["array", "null"], "items": inner},
            },
            "required": ["a", "b", "c"],
            "additionalProperties": false,
        });
        let rewritten = openai_strict(&schema);
        assert_eq!(rewritten.schema, expected);
        assert_eq!(
            rewritten.dropped,
            [
                "b: it was optional, and is null where it is not given",
                "c: it was optional, and is null where it is not given",
                "properties.a: `minLength` was left out",
            ]
        );
        assert_eq!(openai_strict(&expected), Rewritten { schema: expected, dropped: vec![] });
    }
}
