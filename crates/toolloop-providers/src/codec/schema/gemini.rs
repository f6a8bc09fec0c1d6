//! [`gemini`]: the subset of OpenAPI that the Gemini API takes.

use serde_json::{Map, Value, json};

use super::{
    BOUNDS, Place, Rewritten, UNSAID, add_to_description, const_to_enum, describe, inline_refs,
    merge_all_of, take_variants,
};

/// Rewrites a schema to what the Gemini API takes as `parameters` or `responseSchema`.
///
/// One type for each value, null as `nullable`, `enum` of strings only, a few formats, no
/// references, and none of the keywords that the API answers with "Unknown name". Bounds that have
/// no keyword go into the description; that other properties are forbidden is not said, since the
/// model sees none. The order of properties is said apart, because the API does not keep it.
pub fn gemini(schema: &Value) -> Rewritten {
    let Rewritten { schema, mut dropped } = inline_refs(schema);
    let schema = rewrite(schema, &Place::ROOT, &mut dropped);
    Rewritten { schema, dropped }
}

fn rewrite(schema: Value, place: &Place<'_>, dropped: &mut Vec<String>) -> Value {
    let Value::Object(mut fields) = schema else {
        // `true` and `false`; nothing can be said to forbid a value.
        return any_value(Map::new(), place, dropped);
    };
    merge_all_of(&mut fields, place, dropped);
    const_to_enum(&mut fields);
    let mut nullable = fields.remove("nullable") == Some(Value::Bool(true));
    nullable |= take_null_of_enum(&mut fields);
    let types = take_types(&mut fields, &mut nullable);
    let variants = take_variants(&mut fields, place, dropped).map(|mut variants| {
        let before = variants.len();
        variants.retain(|variant| variant.get("type") != Some(&json!("null")));
        nullable |= variants.len() < before;
        variants
    });
    let schema = match variants {
        Some(variants) if !has_structure(&fields) => {
            with_variants(fields, &types, variants, place, dropped)
        }
        variants => {
            if variants.is_some() {
                dropped.push(format!("{place}: anyOf beside properties or items was left out"));
            }
            with_types(fields, types, place, dropped)
        }
    };
    match schema {
        Value::Object(mut fields) if nullable => {
            fields.insert("nullable".to_owned(), Value::Bool(true));
            fields.into()
        }
        schema => schema,
    }
}

/// A schema that is one of several.
fn with_variants(
    mut fields: Map<String, Value>,
    types: &[String],
    mut variants: Vec<Value>,
    place: &Place<'_>,
    dropped: &mut Vec<String>,
) -> Value {
    // A type beside the variants is that of each.
    if let [only] = types {
        for variant in variants.iter_mut().filter_map(Value::as_object_mut) {
            variant.entry("type").or_insert_with(|| json!(only));
        }
    }
    if variants.len() <= 1 {
        // Without its null, a choice of two is none.
        if let Some(Value::Object(variant)) = variants.pop() {
            for (keyword, value) in variant {
                fields.entry(keyword).or_insert(value);
            }
        }
        return rewrite(fields.into(), place, dropped);
    }
    let place = place.at("anyOf");
    let variants = variants.into_iter().map(|variant| rewrite(variant, &place, dropped)).collect();
    keep(&mut fields, &["title", "description"], &place, dropped);
    fields.insert("anyOf".to_owned(), Value::Array(variants));
    fields.into()
}

fn with_types(
    fields: Map<String, Value>,
    mut types: Vec<String>,
    place: &Place<'_>,
    dropped: &mut Vec<String>,
) -> Value {
    if types.len() > 1 {
        let mut said = Map::new();
        let mut rest = fields;
        for keyword in ["title", "description"] {
            let text = rest.remove(keyword).filter(Value::is_string);
            said.extend(text.map(|text| (keyword.to_owned(), text)));
        }
        let variants = types.into_iter().map(|kind| {
            let mut variant = rest.clone();
            variant.retain(|keyword, _| is_of_type(keyword, &kind));
            with_type(variant, &kind, &place.at("anyOf"), dropped)
        });
        let variants = variants.collect();
        said.insert("anyOf".to_owned(), Value::Array(variants));
        return said.into();
    }
    match types.pop().or_else(|| inferred_type(&fields).map(str::to_owned)) {
        Some(kind) => with_type(fields, &kind, place, dropped),
        None => any_value(fields, place, dropped),
    }
}

fn with_type(
    mut fields: Map<String, Value>,
    kind: &str,
    place: &Place<'_>,
    dropped: &mut Vec<String>,
) -> Value {
    let mut schema = Map::new();
    schema.insert("type".to_owned(), json!(kind));
    fields.remove("type");
    strings_only(&mut fields, kind, place, dropped);
    let lower = kind.to_ascii_lowercase();
    if lower == "array" {
        let items = array_items(&mut fields, place, dropped);
        fields.insert("items".to_owned(), items);
    }
    keep(&mut fields, keywords_of(&lower), place, dropped);
    if let Some(Value::Object(properties)) = fields.remove("properties") {
        let within = place.at("properties");
        let properties: Map<_, _> = properties
            .into_iter()
            .map(|(name, property)| {
                let property = rewrite(property, &within.at(&name), dropped);
                (name, property)
            })
            .collect();
        only_known(&mut fields, &properties, place, dropped);
        fields.remove("propertyOrdering");
        if properties.len() > 1 {
            let order = properties.keys().cloned().map(Value::String).collect();
            fields.insert("propertyOrdering".to_owned(), Value::Array(order));
        }
        schema.insert("properties".to_owned(), properties.into());
    } else if lower == "object" {
        only_known(&mut fields, &Map::new(), place, dropped);
        fields.remove("propertyOrdering");
    }
    schema.extend(fields);
    schema.into()
}

/// A schema that allows anything, which the API cannot be told.
fn any_value(fields: Map<String, Value>, place: &Place<'_>, dropped: &mut Vec<String>) -> Value {
    dropped.push(format!("{place}: any value is allowed, and the model is asked for a string"));
    with_type(fields, "string", place, dropped)
}

/// Takes the types other than null out of a schema.
fn take_types(fields: &mut Map<String, Value>, nullable: &mut bool) -> Vec<String> {
    let mut types: Vec<String> = match fields.remove("type") {
        Some(Value::String(kind)) => vec![kind],
        Some(Value::Array(list)) => {
            list.into_iter().filter_map(|kind| kind.as_str().map(str::to_owned)).collect()
        }
        _ => Vec::new(),
    };
    let before = types.len();
    types.retain(|kind| !kind.eq_ignore_ascii_case("null"));
    *nullable |= types.len() < before;
    // Nothing but null: a string that is never there.
    if types.is_empty() && before > 0 {
        types.push("string".to_owned());
    }
    let mut seen = Vec::new();
    types.retain(|kind| {
        let new = KNOWN_TYPES.contains(&&*kind.to_ascii_lowercase()) && !seen.contains(kind);
        seen.push(kind.clone());
        new
    });
    types
}

fn take_null_of_enum(fields: &mut Map<String, Value>) -> bool {
    let Some(Value::Array(values)) = fields.get_mut("enum") else { return false };
    let before = values.len();
    values.retain(|value| !value.is_null());
    values.len() < before
}

fn inferred_type(fields: &Map<String, Value>) -> Option<&'static str> {
    if let Some(Value::Array(values)) = fields.get("enum") {
        return match values.first() {
            Some(Value::String(_)) | None => Some("string"),
            Some(Value::Bool(_)) => Some("boolean"),
            Some(Value::Number(number)) if number.is_f64() => Some("number"),
            Some(Value::Number(_)) => Some("integer"),
            Some(Value::Object(_)) => Some("object"),
            Some(Value::Array(_)) => Some("array"),
            Some(Value::Null) => None,
        };
    }
    let has = |keywords: &[&str]| keywords.iter().any(|keyword| fields.contains_key(*keyword));
    match () {
        () if has(&["properties", "required", "additionalProperties", "patternProperties"]) => {
            Some("object")
        }
        () if has(&["items", "prefixItems", "minItems", "maxItems"]) => Some("array"),
        () if has(&["pattern", "minLength", "maxLength", "format"]) => Some("string"),
        () if has(&["minimum", "maximum", "exclusiveMinimum", "multipleOf"]) => Some("number"),
        () => None,
    }
}

/// Keeps an `enum` and a `format` only where the API takes them; the values of another `enum`
/// go into the description.
fn strings_only(
    fields: &mut Map<String, Value>,
    kind: &str,
    place: &Place<'_>,
    dropped: &mut Vec<String>,
) {
    let kind = kind.to_ascii_lowercase();
    let formats: &[&str] = match &*kind {
        "string" => &["date-time"],
        "integer" => &["int32", "int64"],
        "number" => &["float", "double"],
        _ => &[],
    };
    let format = fields.get("format").and_then(Value::as_str).unwrap_or_default();
    if !formats.contains(&format)
        && let Some(format) = fields.remove("format")
        // An enum is one without that word for it.
        && format != "enum"
    {
        let is_string = kind == "string" && format.is_string();
        describe(fields, &is_string.then_some(("format", format)).into_iter().collect::<Vec<_>>());
    }
    let Some(Value::Array(values)) = fields.remove("enum") else { return };
    let all_text = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
    if kind == "string" && !values.is_empty() && values.iter().all(all_text) {
        fields.insert("enum".to_owned(), Value::Array(values));
        return;
    }
    if values.is_empty() {
        return;
    }
    dropped
        .push(format!("{place}: the values of enum are no strings and went into the description"));
    let allowed: Vec<_> = values.iter().map(Value::to_string).collect();
    add_to_description(fields, &format!("Allowed: {}.", allowed.join(", ")));
}

/// What the elements of an array are; the API insists on one schema for all.
fn array_items(
    fields: &mut Map<String, Value>,
    place: &Place<'_>,
    dropped: &mut Vec<String>,
) -> Value {
    let within = place.at("items");
    let tuple = match (fields.remove("prefixItems"), fields.remove("items")) {
        (Some(Value::Array(tuple)), _) | (None, Some(Value::Array(tuple))) => tuple,
        (_, Some(items)) => return rewrite(items, &within, dropped),
        (_, None) => return any_value(Map::new(), &within, dropped),
    };
    dropped.push(format!("{place}: which element has which schema was left out"));
    let mut variants: Vec<Value> = Vec::new();
    for item in tuple {
        if !variants.contains(&item) {
            variants.push(item);
        }
    }
    rewrite(json!({ "anyOf": variants }), &within, dropped)
}

/// Takes the names of properties out of `required` that are not there.
fn only_known(
    fields: &mut Map<String, Value>,
    properties: &Map<String, Value>,
    place: &Place<'_>,
    dropped: &mut Vec<String>,
) {
    let Some(Value::Array(names)) = fields.get_mut("required") else {
        fields.remove("required");
        return;
    };
    let before = names.len();
    names.retain(|name| name.as_str().is_some_and(|name| properties.contains_key(name)));
    if names.len() < before {
        dropped.push(format!("{place}: required names properties that are not described"));
    }
    if names.is_empty() {
        fields.remove("required");
    }
}

/// Leaves out all keywords but these.
fn keep(
    fields: &mut Map<String, Value>,
    known: &[&str],
    place: &Place<'_>,
    dropped: &mut Vec<String>,
) {
    let mut unsaid = Vec::new();
    fields.retain(|keyword, value| {
        let takes = known.contains(&keyword.as_str()) && has_right_form(keyword, value);
        let is_closed = keyword == "additionalProperties" && *value == Value::Bool(false);
        if !takes && !is_closed && !UNSAID.contains(&keyword.as_str()) {
            dropped.push(format!("{place}: `{keyword}` was left out"));
            let bound = BOUNDS.iter().copied().find(|bound| keyword == bound);
            let bound = bound.filter(|bound| !known.contains(bound));
            unsaid.extend(bound.map(|bound| (bound, value.take())));
        }
        takes
    });
    describe(fields, &unsaid);
}

fn has_right_form(keyword: &str, value: &Value) -> bool {
    match keyword {
        "title" | "description" | "pattern" | "format" => value.is_string(),
        "minimum" | "maximum" => value.is_number(),
        "minItems" | "maxItems" | "minLength" | "maxLength" | "minProperties" | "maxProperties" => {
            value.is_u64()
        }
        _ => true,
    }
}

fn has_structure(fields: &Map<String, Value>) -> bool {
    fields.contains_key("properties") || fields.contains_key("items")
}

/// Whether a keyword means something for values of this type.
fn is_of_type(keyword: &str, kind: &str) -> bool {
    let kind = kind.to_ascii_lowercase();
    let all = ["object", "array", "string", "integer", "number", "boolean"];
    let foreign = all.iter().any(|other| *other != kind && keywords_of(other).contains(&keyword));
    keywords_of(&kind).contains(&keyword) || !foreign
}

fn keywords_of(kind: &str) -> &'static [&'static str] {
    match kind {
        "object" => &[
            "title",
            "description",
            "properties",
            "required",
            "propertyOrdering",
            "minProperties",
            "maxProperties",
        ],
        "array" => &["title", "description", "items", "minItems", "maxItems"],
        "string" => {
            &["title", "description", "enum", "format", "pattern", "minLength", "maxLength"]
        }
        "integer" | "number" => &["title", "description", "format", "minimum", "maximum"],
        _ => &["title", "description"],
    }
}

const KNOWN_TYPES: [&str; 6] = ["object", "array", "string", "integer", "number", "boolean"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_subset_says_what_it_can() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "path": {"type": ["string", "null"], "format": "uri", "description": "Where."},
                "mode": {"oneOf": [{"const": "r"}, {"const": "w"}, {"type": "null"}]},
                "kind": {"const": "file"},
                "level": {"enum": [1, 2], "description": "How much."},
                "size": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": null},
                "pair": {"prefixItems": [{"type": "number"}, {"type": "string"}]},
                "any": true,
                "union": {"type": ["string", "integer"], "minLength": 1, "title": "U"},
                "when": {"type": "string", "format": "date-time"},
                "node": {"$ref": "#/$defs/Node"},
            },
            "required": ["path", "gone"],
            "additionalProperties": false,
            "$defs": {"Node": {"allOf": [
                {"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"]},
                {"properties": {"b": {"type": "number", "multipleOf": 2}}, "required": ["b"]},
            ]}},
        });
        let expected = json!({
            "type": "object",
            "properties": {
                "path": {
                    "type": "string", "description": "Where. (format: \"uri\")", "nullable": true,
                },
                "mode": {
                    "anyOf": [{"type": "string", "enum": ["r"]}, {"type": "string", "enum": ["w"]}],
                    "nullable": true,
                },
                "kind": {"type": "string", "enum": ["file"]},
                "level": {"type": "integer", "description": "How much. Allowed: 1, 2."},
                "size": {"type": "integer", "nullable": true},
                "pair": {"type": "array", "items": {"anyOf": [{"type": "number"}, {"type": "string"}]}},
                "any": {"type": "string"},
                "union": {"title": "U", "anyOf": [{"type": "string", "minLength": 1}, {"type": "integer"}]},
                "when": {"type": "string", "format": "date-time"},
                "node": {
                    "type": "object",
                    "properties": {
                        "a": {"type": "boolean"},
                        "b": {"type": "number", "description": "(multipleOf: 2)"},
                    },
                    "required": ["a", "b"],
                    "propertyOrdering": ["a", "b"],
                },
            },
            "required": ["path"],
            "propertyOrdering": ["path", "mode", "kind", "level", "size", "pair", "any", "union",
                "when", "node"],
        });
        let dropped = [
            "properties.mode: oneOf became anyOf",
            "properties.level: the values of enum are no strings and went into the description",
            "properties.pair: which element has which schema was left out",
            "properties.any: any value is allowed, and the model is asked for a string",
            "properties.node.properties.b: `multipleOf` was left out",
            "the schema: required names properties that are not described",
        ];
        let rewritten = gemini(&schema);
        assert_eq!(rewritten.schema, expected);
        assert_eq!(rewritten.dropped, dropped);
        assert_eq!(gemini(&expected).schema, expected);
    }
}
