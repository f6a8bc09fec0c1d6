//! [`openai_strict`] and [`anthropic_answer`]: the forms to which an API holds its model, in which
//! every object is closed.

use serde_json::{Map, Value, json};

use super::{BOUNDS, Place, Rewritten, UNSAID, describe, inline_refs, merge_all_of, take_variants};

/// Rewrites a schema to what the strict mode of OpenAI takes; `None`: that form cannot say it, as
/// with free keys. Such a schema can be sent whole without the mode.
///
/// Nor can it say that a property may be left out. The mode has null for that, and a tool would
/// get null where it got nothing.
pub fn openai_strict(schema: &Value) -> Option<Rewritten> {
    let is_object = schema.get("type").is_some_and(|kind| kind == "object");
    if is_object { closed(schema, &OPENAI) } else { None }
}

/// Rewrites a schema to what Anthropic takes as the form of an answer; `None`: that form cannot
/// say it.
pub fn anthropic_answer(schema: &Value) -> Option<Rewritten> {
    closed(schema, &ANTHROPIC)
}

/// What a form can say, besides types, values and closed objects.
struct Form {
    /// More keywords.
    keywords: &'static [&'static str],
    formats: &'static [&'static str],
    /// Whether schemas may refer to each other, be it in a circle.
    refers: bool,
    /// Whether every property must be required.
    requires_all: bool,
}

const OPENAI: Form = Form {
    keywords: &[
        "pattern",
        "multipleOf",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "minItems",
        "maxItems",
    ],
    formats: &[
        "date-time",
        "time",
        "date",
        "duration",
        "email",
        "hostname",
        "ipv4",
        "ipv6",
        "uuid",
    ],
    refers: true,
    requires_all: true,
};

const ANTHROPIC: Form = Form {
    keywords: &["default"],
    formats: &[
        "date-time",
        "time",
        "date",
        "duration",
        "email",
        "hostname",
        "uri",
        "ipv4",
        "ipv6",
        "uuid",
    ],
    refers: false,
    requires_all: false,
};

fn closed(schema: &Value, form: &Form) -> Option<Rewritten> {
    let inlined = inline_refs(schema);
    let schema = match inlined.dropped.is_empty() {
        true => inlined.schema,
        false if form.refers => schema.clone(),
        false => return None,
    };
    let mut rewriting = Rewriting { form, dropped: Vec::new() };
    let schema = rewriting.schema(schema, &Place::ROOT, DEEPEST)?;
    Some(Rewritten { schema, dropped: rewriting.dropped })
}

struct Rewriting<'a> {
    form: &'a Form,
    dropped: Vec<String>,
}

impl Rewriting<'_> {
    /// `levels`: how deep it may still go.
    fn schema(&mut self, schema: Value, place: &Place<'_>, levels: usize) -> Option<Value> {
        let Value::Object(mut fields) = schema else { return None };
        let levels = levels.checked_sub(1)?;
        merge_all_of(&mut fields, place, &mut self.dropped);
        if let Some(variants) = take_variants(&mut fields, place, &mut self.dropped) {
            fields.insert("anyOf".to_owned(), Value::Array(variants));
        }
        if !SAYING_WHAT.iter().any(|keyword| fields.contains_key(*keyword)) {
            return None;
        }
        let (mut said, mut unsaid) = (Map::new(), Vec::new());
        for (keyword, value) in fields {
            let within = place.at(&keyword);
            let value = match (keyword.as_str(), value) {
                ("properties", Value::Object(map)) => self.map(map, &within, levels)?,
                ("$defs" | "definitions", Value::Object(map)) if self.form.refers => {
                    self.map(map, &within, levels)?
                }
                ("anyOf", Value::Array(list)) => {
                    let variants = list.into_iter();
                    variants.map(|it| self.schema(it, &within, levels)).collect::<Option<_>>()?
                }
                ("items", items) => self.schema(items, &within, levels)?,
                ("$ref", Value::String(to)) if self.form.refers && to.starts_with('#') => {
                    Value::String(to)
                }
                ("additionalProperties", Value::Bool(false)) => continue,
                (name, _) if STRUCTURE.contains(&name) => return None,
                ("format", format) => match format.as_str() {
                    Some(name) if self.form.formats.contains(&name) => format,
                    _ => {
                        unsaid.push(("format", format));
                        continue;
                    }
                },
                (name, value) if ALWAYS.contains(&name) || self.form.keywords.contains(&name) => {
                    value
                }
                (name, _) if UNSAID.contains(&name) => continue,
                (name, value) => {
                    self.dropped.push(format!("{place}: `{name}` was left out"));
                    let bound = BOUNDS.iter().find(|bound| **bound == name);
                    unsaid.extend(bound.map(|bound| (*bound, value)));
                    continue;
                }
            };
            said.insert(keyword, value);
        }
        describe(&mut said, &unsaid);
        self.close(&mut said)?;
        Some(said.into())
    }

    fn map(&mut self, map: Map<String, Value>, place: &Place<'_>, levels: usize) -> Option<Value> {
        map.into_iter()
            .map(|(name, schema)| {
                let schema = self.schema(schema, &place.at(&name), levels)?;
                Some((name, schema))
            })
            .collect()
    }

    fn close(&self, fields: &mut Map<String, Value>) -> Option<()> {
        let is = |kind: &str| match fields.get("type") {
            Some(Value::String(word)) => word == kind,
            Some(Value::Array(words)) => words.iter().any(|word| word == kind),
            _ => false,
        };
        // An array of anything.
        if is("array") && !fields.contains_key("items") {
            return None;
        }
        let Some(Value::Object(properties)) = fields.get("properties") else {
            // An object of any kind.
            return (!is("object")).then_some(());
        };
        let names = fields.get("required").and_then(Value::as_array);
        let is_required = |name: &String| names.is_some_and(|names| names.contains(&json!(name)));
        if self.form.requires_all && !properties.keys().all(is_required) {
            return None;
        }
        if !fields.contains_key("required") && self.form.requires_all {
            fields.insert("required".to_owned(), json!([]));
        }
        fields.insert("additionalProperties".to_owned(), json!(false));
        Some(())
    }
}

/// A schema without any of these may be anything.
const SAYING_WHAT: [&str; 6] = ["type", "properties", "anyOf", "enum", "const", "$ref"];

const ALWAYS: [&str; 6] = ["type", "enum", "const", "required", "title", "description"];

/// What decides over the form of a value, so that nothing may be left out of it.
const STRUCTURE: [&str; 19] = [
    "properties",
    "additionalProperties",
    "patternProperties",
    "propertyNames",
    "unevaluatedProperties",
    "dependentSchemas",
    "dependentRequired",
    "dependencies",
    "anyOf",
    "not",
    "if",
    "then",
    "else",
    "prefixItems",
    "additionalItems",
    "unevaluatedItems",
    "contains",
    "$ref",
    "$dynamicRef",
];

/// Levels of schemas that OpenAI takes.
const DEEPEST: usize = 11;

#[cfg(test)]
mod tests {
    use super::*;

    fn with(property: Value) -> Value {
        json!({"type": "object", "properties": {"type": property}, "required": ["type"],
            "additionalProperties": false})
    }

    #[test]
    fn closed_objects_of_known_keywords_are_left_alone() {
        for property in [
            json!({"type": "string", "format": "date", "description": "A day."}),
            json!({"type": ["integer", "null"], "minimum": 1}),
            json!({"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 3}),
            with(json!({"const": 1})),
        ] {
            let schema = with(property);
            let expected = Rewritten { schema: schema.clone(), dropped: vec![] };
            assert_eq!(openai_strict(&schema), Some(expected));
        }
    }

    #[test]
    fn objects_are_closed_and_bounds_are_said_in_words() {
        let schema = json!({
            "$schema": "x", "type": "object", "required": ["n", "list", "one"],
            "properties": {
                "n": {"type": "integer", "minimum": 0, "format": "uint32", "description": "How many."},
                "list": {"type": "array", "minItems": 2, "items": {"$ref": "#/$defs/Item"}},
                "one": {"oneOf": [{"type": "null"}, {"const": 1}]},
            },
            "$defs": {"Item": {
                "type": "object", "required": ["s"],
                "properties": {"s": {"type": "string", "minLength": 1, "format": "uri"}},
            }},
        });
        let strict = json!({
            "type": "object", "required": ["n", "list", "one"],
            "properties": {
                "n": {"type": "integer", "minimum": 0, "description": "How many."},
                "list": {"type": "array", "minItems": 2, "items": {
                    "type": "object", "required": ["s"],
                    "properties": {"s": {
                        "type": "string", "description": "(minLength: 1, format: \"uri\")",
                    }},
                    "additionalProperties": false,
                }},
                "one": {"anyOf": [{"type": "null"}, {"const": 1}]},
            },
            "additionalProperties": false,
        });
        let dropped = [
            "properties.list.items.properties.s: `minLength` was left out",
            "properties.one: oneOf became anyOf",
        ];
        let dropped = dropped.map(str::to_owned).to_vec();
        assert_eq!(openai_strict(&schema), Some(Rewritten { schema: strict.clone(), dropped }));

        let mut answer = strict;
        answer["properties"]["n"] =
            json!({"type": "integer", "description": "How many. (minimum: 0)"});
        let list = &mut answer["properties"]["list"];
        list.as_object_mut().unwrap().remove("minItems");
        list["description"] = json!("(minItems: 2)");
        list["items"]["properties"]["s"] =
            json!({"type": "string", "format": "uri", "description": "(minLength: 1)"});
        let dropped = [
            "properties.n: `minimum` was left out",
            "properties.list: `minItems` was left out",
            "properties.list.items.properties.s: `minLength` was left out",
            "properties.one: oneOf became anyOf",
        ];
        let dropped = dropped.map(str::to_owned).to_vec();
        assert_eq!(anthropic_answer(&schema), Some(Rewritten { schema: answer, dropped }));
    }

    #[test]
    fn what_cannot_be_said_is_not() {
        for property in [
            json!({}),
            json!(true),
            json!({"type": "object"}),
            json!({"type": "array"}),
            json!({"type": "object", "properties": {}, "additionalProperties": {"type": "string"}}),
            json!({"type": "array", "items": {"type": "object"}}),
            json!({"type": "string", "not": {"const": "a"}}),
            json!({"$ref": "other.json"}),
        ] {
            assert_eq!(openai_strict(&with(property.clone())), None, "{property}");
            assert_eq!(anthropic_answer(&with(property.clone())), None, "{property}");
        }
        let deep = (0..11).fold(json!({"type": "string"}), |schema, _| with(schema));
        assert_eq!(openai_strict(&deep), None);
        assert_eq!(openai_strict(&json!({"type": "string"})), None);
    }

    #[test]
    fn only_anthropic_takes_what_may_be_left_out_and_only_openai_a_circle() {
        let optional = json!({"type": "object", "properties": {"a": {"type": "string"}}});
        assert_eq!(openai_strict(&optional), None);
        assert!(anthropic_answer(&optional).is_some());
        let node = with(json!({"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]}));
        let mut circle = with(json!({"$ref": "#/$defs/Node"}));
        circle["$defs"] = json!({"Node": node});
        let expected = Rewritten { schema: circle.clone(), dropped: vec![] };
        assert_eq!(openai_strict(&circle), Some(expected));
        assert_eq!(anthropic_answer(&circle), None);
    }
}
