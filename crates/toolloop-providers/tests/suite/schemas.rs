//! Rewriting schemas: whatever comes, it ends, leaves no reference, and once is enough. Who made
//! the request is told what was left out.

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use toolloop_core::{ChatMessage, ChatParams, LlmError, ToolDefinition};
use toolloop_providers::codec::schema::{
    self, Rewritten, anthropic_answer, inline_refs, object, openai_strict,
};
use toolloop_providers::codec::{anthropic, gemini, ollama, openai_chat, openai_responses};

type Rewriting = fn(&Value) -> Option<Rewritten>;

const ALL: [(&str, Rewriting); 5] = [
    ("inline", |schema| Some(inline_refs(schema))),
    ("object", |schema| Some(object(schema))),
    ("gemini", |schema| Some(schema::gemini(schema))),
    ("strict", openai_strict),
    ("answer", anthropic_answer),
];

/// Forms in which schemas may refer to each other.
const REFERRING: [&str; 2] = ["object", "strict"];

proptest! {
    #[test]
    fn any_schema_is_rewritten_for_good(schema in any_schema(), one in any_schema(), two in any_schema()) {
        let mut schema = schema;
        if let Value::Object(fields) = &mut schema {
            fields.insert("$defs".into(), json!({"one": one, "two": two}));
        }
        for (name, rewrite) in ALL {
            let Some(once) = rewrite(&schema).map(|rewritten| rewritten.schema) else { continue };
            let may_refer = REFERRING.contains(&name);
            prop_assert!(may_refer || !refers(&once), "{} leaves a reference: {}", name, once);
            let twice = rewrite(&once).map(|rewritten| rewritten.schema);
            prop_assert_eq!(twice, Some(once), "{} is not done at once with {}", name, schema);
        }
    }
}

/// A server of one's own may hold its model to bounds for which OpenAI's strict mode has no keyword.
#[test]
fn only_openai_is_told_less_than_a_schema_says() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string", "minLength": 1}},
        "required": ["a"], "additionalProperties": false});
    let params = ChatParams {
        messages: vec![ChatMessage::user("Hi")],
        structured_output: Some(schema.clone().into()),
        ..ChatParams::default()
    };
    let sent = |quirks: openai_chat::Quirks| {
        let body = openai_chat::encode("m", &params, &quirks).unwrap();
        let mut body: Value = serde_json::from_slice(&body).unwrap();
        let mut format = body["response_format"]["json_schema"].take();
        (format["strict"].take(), format["schema"].take())
    };
    let mut subset = schema.clone();
    subset["properties"]["a"] = json!({"type": "string", "description": "(minLength: 1)"});
    assert_eq!(sent(openai_chat::Quirks::openai()), (json!(true), subset));
    assert_eq!(sent(openai_chat::Quirks::compatible()), (json!(false), schema));
}

/// Schemas of arguments as tools of the field have them, such as one API or another refuses.
#[test]
fn no_api_refuses_the_schema_of_a_tool() {
    let variants = json!([
        {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
        {"$ref": "#/$defs/B"},
    ]);
    let b = json!({"B": {"type": "object", "properties": {"b": {"const": 1}}}});
    for schema in [
        json!(true),
        json!({}),
        json!({"type": ["object", "null"]}),
        json!({"anyOf": variants, "$defs": b}),
        json!({"type": "object", "oneOf": variants, "$defs": b}),
        json!({"type": "object", "allOf": variants, "$defs": b}),
        json!({"$ref": "#/$defs/B", "$defs": b}),
        json!({"type": "object", "properties": {"a": true}, "not": {"required": ["a"]}}),
        json!({"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}),
        json!({"type": "object", "properties": {"a": {"type": "string", "minLength": 1}},
            "required": ["a"], "additionalProperties": false, "$schema": "x"}),
    ] {
        let tool = ToolDefinition {
            name: "t".into(),
            description: String::new(),
            parameters: schema.clone().into(),
            retry: None,
        };
        let params = ChatParams {
            messages: vec![ChatMessage::user("Hi")],
            tools: Some(vec![tool]),
            ..ChatParams::default()
        };
        let sent = |body: Result<Bytes, LlmError>| -> Value {
            serde_json::from_slice(&body.unwrap()).unwrap()
        };
        let chat = sent(openai_chat::encode("m", &params, &openai_chat::Quirks::openai()));
        let quirks = openai_responses::Quirks::openai("gpt-5");
        let responses = sent(openai_responses::encode("gpt-5", &params, &quirks));
        let options = anthropic::Options::default();
        let messages = sent(anthropic::encode("claude-sonnet-4-5", &params, &options));
        let gemini = sent(gemini::encode("gemini-2.5-flash", &params));
        let ollama = sent(ollama::encode("m", &params, None));
        let refusals = [
            toolloop_fake::openai_chat::validate(&chat),
            toolloop_fake::openai_responses::validate(&responses),
            toolloop_fake::anthropic::validate(&messages),
            toolloop_fake::gemini::validate("gemini-2.5-flash", &gemini),
            toolloop_fake::ollama::validate(&ollama),
        ];
        assert!(refusals.iter().all(Result::is_ok), "{schema}: {refusals:?}");
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
