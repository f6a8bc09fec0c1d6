//! Rewriting schemas: whatever comes, it ends, leaves no reference, and once is enough.

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use toolloop_providers::codec::schema::{Rewritten, gemini, inline_refs, openai_strict};

type Rewriting = fn(&Value) -> Rewritten;

const ALL: [(&str, Rewriting); 3] =
    [("inline", inline_refs), ("gemini", gemini), ("strict", openai_strict)];

proptest! {
    #[test]
    fn any_schema_is_rewritten_for_good(schema in any_schema(), one in any_schema(), two in any_schema()) {
        let mut schema = schema;
        if let Value::Object(fields) = &mut schema {
            fields.insert("$defs".into(), json!({"one": one, "two": two}));
        }
        for (name, rewrite) in ALL {
            let once = rewrite(&schema).schema;
            prop_assert!(!refers(&once), "{} leaves a reference: {}", name, once);
            let twice = rewrite(&once).schema;
            prop_assert_eq!(&twice, &once, "{} is not done at once with {}", name, schema);
        }
    }
}

/// Whether a schema, or one within it, has a reference. Properties and data may be called so.
fn refers(schema: &Value) -> bool {
    let Value::Object(fields) = schema else { return false };
    fields.iter().any(|(keyword, value)| match (keyword.as_str(), value) {
        ("$ref" | "$defs" | "definitions", _) => true,
        ("properties" | "patternProperties", Value::Object(map)) => map.values().any(refers),
        ("anyOf" | "oneOf" | "allOf" | "prefixItems" | "items", Value::Array(list)) => {
            list.iter().any(refers)
        }
        ("items" | "not" | "additionalProperties", value) => refers(value),
        _ => false,
    })
}

pub(super) fn any_schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(true)),
        Just(json!(false)),
        Just(json!({})),
        Just(json!(null)),
        Just(json!(3)),
        Just(json!({"const": null})),
        Just(json!({"type": "null", "nullable": true})),
        Just(json!({"enum": [], "type": "string"})),
        reference(),
        members().prop_map(Value::Object),
    ];
    leaf.prop_recursive(4, 40, 4, |inner| {
        let list = || prop::collection::vec(inner.clone(), 0..3);
        let map = prop::collection::vec((name(), inner.clone()), 0..4);
        let map = map.prop_map(|map| Value::Object(map.into_iter().collect()));
        let parts = prop_oneof![
            map.prop_map(|map| ("properties", map)),
            list().prop_map(|list| ("anyOf", list.into())),
            list().prop_map(|list| ("oneOf", list.into())),
            list().prop_map(|list| ("allOf", list.into())),
            list().prop_map(|list| ("prefixItems", list.into())),
            list().prop_map(|list| ("items", list.into())),
            inner.clone().prop_map(|schema| ("items", schema)),
            inner.clone().prop_map(|schema| ("not", schema)),
            inner.clone().prop_map(|schema| ("additionalProperties", schema)),
        ];
        (members(), prop::collection::vec(parts, 0..3)).prop_map(|(mut fields, parts)| {
            fields.extend(parts.into_iter().map(|(keyword, value)| (keyword.to_owned(), value)));
            Value::Object(fields)
        })
    })
}

fn reference() -> impl Strategy<Value = Value> {
    let target = prop::sample::select(vec![
        "#",
        "#/$defs/one",
        "#/$defs/two",
        "#/$defs/none",
        "#/%zz",
        "http://127.0.0.1:9/a",
        "",
    ]);
    let beside = prop::option::of(Just("beside"));
    (target, beside).prop_map(|(target, beside)| match beside {
        Some(text) => json!({"$ref": target, "description": text}),
        None => json!({ "$ref": target }),
    })
}

fn name() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "$ref", "type"]).prop_map(str::to_owned)
}

fn members() -> impl Strategy<Value = Map<String, Value>> {
    let member = prop::sample::select(vec![
        ("type", json!("object")),
        ("type", json!("array")),
        ("type", json!("STRING")),
        ("type", json!("string")),
        ("type", json!(["integer", "null"])),
        ("type", json!(["object", "array", "string", "null"])),
        ("type", json!([])),
        ("type", json!(7)),
        ("type", json!("any")),
        ("required", json!(["a", "z", 1])),
        ("required", json!(true)),
        ("enum", json!(["x", null, 1])),
        ("enum", json!(["x", ""])),
        ("enum", json!([null])),
        ("enum", json!("x")),
        ("const", json!({"$ref": "data"})),
        ("format", json!("uri")),
        ("format", json!("enum")),
        ("format", json!("date-time")),
        ("minItems", json!(-1)),
        ("minimum", json!("low")),
        ("nullable", json!("yes")),
        ("nullable", json!(true)),
        ("description", json!("Text.")),
        ("description", json!(1)),
        ("propertyOrdering", json!(["a"])),
        ("properties", json!([])),
        ("anyOf", json!({})),
        ("allOf", json!("x")),
        ("default", json!(null)),
        ("$id", json!("http://x/")),
    ]);
    let members = prop::collection::vec(member, 0..4);
    members.prop_map(|list| list.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}
