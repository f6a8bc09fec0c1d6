//! JSON Schemas as providers take them: subsets, each with sentences on what was left out.
//!
//! A `Form` is such a subset, `Sent` a schema in the first form that can say it. What a schema
//! no longer says still holds: arguments are checked against the schema as it was. A `$ref` is
//! followed inside of the schema only, never loaded from anywhere else.

mod closed;
mod gemini;
mod inline;
mod object;

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::{Map, Value};
use toolloop_core::{ChatParams, JsonSchema, ReducedSchema, SchemaForm};

pub use closed::{anthropic_answer, openai_strict};
pub use gemini::gemini;
pub use inline::inline_refs;
pub use object::object;

/// A schema in the subset of a provider.
#[derive(Debug, Clone, PartialEq)]
pub struct Rewritten {
    /// The schema.
    pub schema: Value,
    /// What it no longer says, a sentence for each.
    pub dropped: Vec<String>,
}

/// A subset of JSON Schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// [`object`].
    Object,
    /// [`gemini`].
    Gemini,
    /// [`openai_strict`].
    OpenAiStrict,
    /// The same, where it says all that the schema says.
    OpenAiStrictWhole,
    /// [`anthropic_answer`].
    AnthropicAnswer,
}

impl Form {
    /// The schema in this form, made once; `None`: it cannot say it.
    fn of(self, schema: &JsonSchema) -> Option<Arc<SchemaForm>> {
        let (name, rewrite): (_, fn(&Value) -> Option<Rewritten>) = match self {
            Self::Object => ("object", |schema| Some(object(schema))),
            Self::Gemini => ("gemini", |schema| Some(gemini(schema))),
            Self::OpenAiStrict => ("openai-strict", openai_strict),
            Self::OpenAiStrictWhole => ("openai-strict-whole", |schema| {
                openai_strict(schema).filter(|rewritten| rewritten.schema == *schema)
            }),
            Self::AnthropicAnswer => ("anthropic-answer", anthropic_answer),
        };
        schema.form(name, |whole| {
            let Rewritten { schema, dropped } = rewrite(whole)?;
            Some(SchemaForm { schema: (schema != *whole).then_some(schema), dropped })
        })
    }
}

/// A schema as it is sent: in the first of some forms that can say it, else whole.
pub(crate) struct Sent<'a> {
    whole: &'a Value,
    form: Option<(Form, Arc<SchemaForm>)>,
}

impl<'a> Sent<'a> {
    pub(crate) fn new(schema: &'a JsonSchema, forms: &[Form]) -> Self {
        let form = forms.iter().find_map(|form| Some((*form, form.of(schema)?)));
        Self { whole: schema.as_value(), form }
    }

    pub(crate) fn schema(&self) -> &Value {
        let form = self.form.as_ref().and_then(|(_, form)| form.schema.as_ref());
        form.unwrap_or(self.whole)
    }

    pub(crate) fn is_in(&self, form: Form) -> bool {
        self.form.as_ref().is_some_and(|(its, _)| *its == form)
    }

    /// Whether it may be sent to the strict mode of OpenAI.
    pub(crate) fn is_strict(&self) -> bool {
        self.is_in(Form::OpenAiStrict) || self.is_in(Form::OpenAiStrictWhole)
    }

    fn dropped(&self) -> &[String] {
        self.form.as_ref().map_or(&[], |(_, form)| &form.dropped)
    }
}

/// The schemas of a request that say less where tools and the answer are sent in these forms.
pub(crate) fn reduced(params: &ChatParams, tools: &[Form], answer: &[Form]) -> Vec<ReducedSchema> {
    let tools =
        params.tools.iter().flatten().map(|tool| (Some(&tool.name), &tool.parameters, tools));
    let answer = params.structured_output.iter().map(|schema| (None, schema, answer));
    let reduced = tools.chain(answer).filter_map(|(tool, schema, forms)| {
        let sent = Sent::new(schema, forms);
        let dropped = sent.dropped();
        (!dropped.is_empty())
            .then(|| ReducedSchema { tool: tool.cloned(), dropped: dropped.to_owned() })
    });
    reduced.collect()
}

/// The name of a schema: its title, as far as OpenAI takes it.
pub(crate) fn name(schema: &JsonSchema) -> Cow<'static, str> {
    let title = schema.as_value().get("title").and_then(Value::as_str).unwrap_or_default();
    let name: String = title
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' })
        .take(64)
        .collect();
    if name.is_empty() { Cow::Borrowed("answer") } else { Cow::Owned(name) }
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

/// Says in words what the form cannot: a model that knows of a bound mostly keeps it.
fn describe(schema: &mut Map<String, Value>, unsaid: &[(&str, Value)]) {
    let is_number = ["integer", "number"].iter().any(|kind| is_type(schema, kind));
    // `uint32` tells a model nothing.
    let unsaid = unsaid.iter().filter(|(keyword, _)| *keyword != "format" || !is_number);
    let bounds: Vec<_> = unsaid.map(|(keyword, value)| format!("{keyword}: {value}")).collect();
    if !bounds.is_empty() {
        add_to_description(schema, &format!("({})", bounds.join(", ")));
    }
}

fn add_to_description(schema: &mut Map<String, Value>, words: &str) {
    let description = match schema.get("description").and_then(Value::as_str) {
        Some(text) if !text.is_empty() => format!("{text} {words}"),
        _ => words.to_owned(),
    };
    schema.insert("description".to_owned(), Value::String(description));
}

fn is_type(schema: &Map<String, Value>, name: &str) -> bool {
    match schema.get("type") {
        Some(Value::String(kind)) => kind.eq_ignore_ascii_case(name),
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == name),
        _ => false,
    }
}

/// What bounds a value and can be said in words.
const BOUNDS: [&str; 13] = [
    "pattern",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
];

/// What forbids nothing, and is left out without a word.
const UNSAID: [&str; 8] =
    ["$comment", "$schema", "$id", "examples", "default", "deprecated", "readOnly", "writeOnly"];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_name_is_made_of_the_title() {
        assert_eq!(name(&json!({"title": "My Answer ü"}).into()), "My_Answer__");
        assert_eq!(name(&json!({}).into()), "answer");
    }

    #[test]
    fn the_first_form_that_can_say_it_is_sent() {
        let forms = [Form::OpenAiStrict, Form::Object];
        let free = JsonSchema::new(json!({"type": "object"}));
        let sent = Sent::new(&free, &forms);
        assert!(sent.is_in(Form::Object));
        assert_eq!(*sent.schema(), json!({"type": "object", "properties": {}}));
        let whole = Sent::new(&free, &[Form::OpenAiStrict]);
        assert_eq!(whole.schema(), free.as_value());
    }
}
