//! JSON Schemas as providers take them: subsets, each with sentences on what was left out.
//!
//! What a rewritten schema no longer says still holds: arguments are checked against the schema
//! as it was. A `$ref` is followed inside of the schema only, never loaded from anywhere else.

mod gemini;
mod inline;
mod strict;

use serde_json::{Map, Value};

pub use gemini::gemini;
pub use inline::inline_refs;
pub use strict::openai_strict;

/// A schema in the subset of a provider.
#[derive(Debug, Clone, PartialEq)]
pub struct Rewritten {
    /// The schema.
    pub schema: Value,
    /// What it no longer says, a sentence for each.
    pub dropped: Vec<String>,
}

/// Where a schema stands, for sentences: `properties.a.items`.
#[derive(Clone, Copy)]
struct Place<'a> {
    parent: Option<&'a Place<'a>>,
    name: &'a str,
}

impl<'a> Place<'a> {
    const ROOT: Place<'static> = Place { parent: None, name: "" };

    fn at(&'a self, name: &'a str) -> Self {
        Place { parent: Some(self), name }
    }
}

impl std::fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.parent {
            None => f.write_str("the schema"),
            Some(Place { parent: None, .. }) => f.write_str(self.name),
            Some(parent) => write!(f, "{parent}.{}", self.name),
        }
    }
}

/// What a member of a schema holds.
enum Holds {
    /// One schema.
    Schema,
    /// A list of schemas.
    List,
    /// Schemas by name.
    Map,
    /// No schema.
    Data,
}

impl Holds {
    fn of(keyword: &str, value: &Value) -> Self {
        match (keyword, value) {
            ("items", Value::Array(_)) => Self::List,
            (
                "items"
                | "additionalItems"
                | "additionalProperties"
                | "propertyNames"
                | "contains"
                | "not"
                | "if"
                | "then"
                | "else"
                | "unevaluatedItems"
                | "unevaluatedProperties",
                _,
            ) => Self::Schema,
            ("anyOf" | "oneOf" | "allOf" | "prefixItems", Value::Array(_)) => Self::List,
            (
                "properties" | "patternProperties" | "dependentSchemas" | "dependencies" | "$defs"
                | "definitions",
                Value::Object(_),
            ) => Self::Map,
            _ => Self::Data,
        }
    }
}

/// Puts what `allOf` says into the schema itself. Of two values of a keyword the first counts.
fn merge_all_of(schema: &mut Map<String, Value>, place: &Place<'_>, dropped: &mut Vec<String>) {
    while let Some(parts) = schema.remove("allOf") {
        let Value::Array(parts) = parts else { return };
        for part in parts {
            let Value::Object(part) = part else { continue };
            merge(schema, part, place, dropped);
        }
    }
}

fn merge(
    schema: &mut Map<String, Value>,
    other: Map<String, Value>,
    place: &Place<'_>,
    dropped: &mut Vec<String>,
) {
    for (keyword, value) in other {
        match (keyword.as_str(), schema.get_mut(&keyword), value) {
            (_, None, value) => {
                schema.insert(keyword, value);
            }
            ("properties", Some(Value::Object(known)), Value::Object(new)) => {
                for (name, property) in new {
                    known.entry(name).or_insert(property);
                }
            }
            ("required" | "allOf", Some(Value::Array(known)), Value::Array(new)) => {
                let new: Vec<_> = new.into_iter().filter(|name| !known.contains(name)).collect();
                known.extend(new);
            }
            (_, Some(known), value) if *known == value => {}
            ("title" | "description", Some(_), _) => {}
            (_, Some(_), _) => {
                dropped.push(format!("{place}: one of several `{keyword}` in allOf was left out"));
            }
        }
    }
}

/// The variants of `anyOf` or `oneOf`, of which only one may be told to a provider.
fn take_variants(
    schema: &mut Map<String, Value>,
    place: &Place<'_>,
    dropped: &mut Vec<String>,
) -> Option<Vec<Value>> {
    let any = schema.remove("anyOf");
    let one = schema.remove("oneOf");
    if any.is_some() && one.is_some() {
        dropped.push(format!("{place}: oneOf beside anyOf was left out"));
    } else if one.is_some() {
        dropped.push(format!("{place}: oneOf became anyOf"));
    }
    match any.or(one) {
        Some(Value::Array(variants)) if !variants.is_empty() => Some(variants),
        _ => None,
    }
}

/// `const` is an `enum` of one.
fn const_to_enum(schema: &mut Map<String, Value>) {
    if let Some(value) = schema.remove("const") {
        schema.insert("enum".to_owned(), Value::Array(vec![value]));
    }
}
