//! [`object`]: the schema of a tool's arguments in the form that every API takes.

use serde_json::{Map, Value, json};

use super::{Place, Rewritten, inline_refs, merge_all_of};

/// Rewrites a schema to one object without a choice at its top.
///
/// The properties of all choices stand side by side, and only those that all of them require are
/// required: which belong together, whoever runs the tool still checks. A property that may be
/// anything is `{}`, because some servers read `true` into a struct and fail.
pub fn object(schema: &Value) -> Rewritten {
    let place = &Place::ROOT;
    let is_choice =
        |fields: &Map<String, Value>| CHOICES.iter().any(|choice| fields.contains_key(*choice));
    let (mut fields, mut dropped) = match schema {
        Value::Object(fields) if is_choice(fields) || fields.contains_key("$ref") => {
            let Rewritten { schema, dropped } = inline_refs(schema);
            (schema.as_object().cloned().unwrap_or_default(), dropped)
        }
        Value::Object(fields) => (fields.clone(), Vec::new()),
        _ => (Map::new(), Vec::new()),
    };
    merge_all_of(&mut fields, place, &mut dropped);
    for choice in ["anyOf", "oneOf"] {
        let Some(Value::Array(variants)) = fields.shift_remove(choice) else { continue };
        merge_variants(&mut fields, &variants);
        dropped.push(format!("{place}: {choice} became one object with the properties of all"));
    }
    for keyword in ["enum", "not"] {
        if fields.shift_remove(keyword).is_some() {
            dropped.push(format!("{place}: `{keyword}` was left out"));
        }
    }
    if !fields.get("required").is_none_or(Value::is_array) {
        fields.shift_remove("required");
    }
    fields.insert("type".to_owned(), json!("object"));
    fields.entry("properties").or_insert_with(|| json!({}));
    only_objects(&mut fields, place, &mut dropped);
    Rewritten { schema: fields.into(), dropped }
}

fn merge_variants(fields: &mut Map<String, Value>, variants: &[Value]) {
    let mut required_by_all: Option<Vec<Value>> = None;
    for variant in variants {
        let names = variant.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
        required_by_all = Some(match required_by_all {
            Some(all) => all.into_iter().filter(|name| names.contains(name)).collect(),
            None => names,
        });
        let Some(Value::Object(more)) = variant.get("properties") else { continue };
        if let Some(known) = member(fields, "properties", json!({})).as_object_mut() {
            for (name, property) in more {
                known.entry(name).or_insert_with(|| property.clone());
            }
        }
    }
    let names = required_by_all.unwrap_or_default();
    if !names.is_empty()
        && let Some(known) = member(fields, "required", json!([])).as_array_mut()
    {
        let new: Vec<_> = names.into_iter().filter(|name| !known.contains(name)).collect();
        known.extend(new);
    }
}

fn member<'a>(fields: &'a mut Map<String, Value>, name: &str, default: Value) -> &'a mut Value {
    fields.entry(name).or_insert(default)
}

/// Makes every property an object.
fn only_objects(fields: &mut Map<String, Value>, place: &Place<'_>, dropped: &mut Vec<String>) {
    let Some(properties) = fields.get_mut("properties") else { return };
    if !properties.is_object() {
        *properties = json!({});
    }
    let within = place.at("properties");
    for (name, property) in properties.as_object_mut().into_iter().flatten() {
        match property {
            Value::Object(property) => only_objects(property, &within.at(name), dropped),
            // `true` allows any value, and so does a schema that says nothing.
            other => {
                if *other == Value::Bool(false) {
                    dropped.push(format!("{}: that it is forbidden was left out", within.at(name)));
                }
                *other = json!({});
            }
        }
    }
}

const CHOICES: [&str; 3] = ["anyOf", "oneOf", "allOf"];

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(schema: Value) -> Rewritten {
        Rewritten { schema, dropped: vec![] }
    }

    #[test]
    fn an_object_is_left_alone() {
        let schema = json!({
            "type": "object", "additionalProperties": false, "required": ["a"],
            "properties": {"a": {"type": ["string", "null"]}, "b": {"$ref": "#/$defs/B"}},
            "$defs": {"B": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
        });
        assert_eq!(object(&schema), whole(schema));
    }

    #[test]
    fn what_is_missing_is_added() {
        let empty = json!({"type": "object", "properties": {}});
        for schema in [json!({}), json!(true), json!({"type": ["object", "null"]})] {
            assert_eq!(object(&schema), whole(empty.clone()));
        }
        assert_eq!(
            object(&json!({
                "properties": {
                    "any": true,
                    "deep": {"type": "object", "properties": {"x": false}},
                },
                "required": true,
            })),
            Rewritten {
                schema: json!({
                    "properties": {
                        "any": {},
                        "deep": {"type": "object", "properties": {"x": {}}},
                    },
                    "type": "object",
                }),
                dropped: vec![
                    "properties.deep.properties.x: that it is forbidden was left out".into()
                ],
            }
        );
    }

    #[test]
    fn choices_stand_side_by_side() {
        let schema = json!({
            "oneOf": [{"$ref": "#/$defs/Read"}, {"$ref": "#/$defs/Write"}],
            "required": ["kind"], "properties": {"kind": {"type": "string"}},
            "$defs": {
                "Read": {"properties": {"path": {"type": "string"}}, "required": ["kind", "path"]},
                "Write": {
                    "properties": {"path": {"type": "string"}, "text": {"type": "string"}},
                    "required": ["path", "text", "kind"],
                },
            },
        });
        let expected = json!({
            "required": ["kind", "path"],
            "properties": {
                "kind": {"type": "string"}, "path": {"type": "string"}, "text": {"type": "string"},
            },
            "type": "object",
        });
        let dropped =
            vec!["the schema: oneOf became one object with the properties of all".to_owned()];
        assert_eq!(object(&schema), Rewritten { schema: expected, dropped });
    }
}
