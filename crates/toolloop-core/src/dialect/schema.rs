//! What a schema says of a value, references and alternatives followed.

use serde_json::Value;

/// A schema and all that it names as its alternatives or parts, references inside it followed.
pub(super) fn forms<'a>(schema: &'a Value, root: &'a Value) -> Vec<&'a Value> {
    let mut forms = vec![schema];
    let mut next = 0;
    while let Some(form) = forms.get(next).copied().filter(|_| next < MAX_FORMS) {
        let path = form["$ref"].as_str().and_then(|path| path.strip_prefix('#'));
        forms.extend(path.and_then(|path| root.pointer(path)));
        let parts = ["allOf", "anyOf", "oneOf"].into_iter().filter_map(|key| form[key].as_array());
        forms.extend(parts.flatten());
        next += 1;
    }
    forms
}

/// The types that these forms allow, each once.
pub(super) fn kinds<'a>(forms: &[&'a Value]) -> Vec<&'a str> {
    let mut kinds: Vec<&'a str> = Vec::new();
    for form in forms {
        let found: Vec<&'a str> = match &form["type"] {
            Value::String(kind) => vec![kind.as_str()],
            Value::Array(all) => all.iter().filter_map(Value::as_str).collect(),
            _ => {
                let listed = form["enum"].as_array().into_iter().flatten().chain(form.get("const"));
                let implied = [("properties", "object"), ("items", "array")];
                let implied = implied.iter().filter(|(key, _)| form.get(key).is_some());
                listed.map(kind_of).chain(implied.map(|(_, kind)| *kind)).collect()
            }
        };
        for kind in found {
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
    }
    kinds
}

/// The schema of a property of an object with this schema, if it names it.
pub(super) fn property<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    forms(schema, schema).iter().find_map(|form| form.get("properties")?.get(name))
}

/// The schema of the properties that an object with this schema does not name.
pub(super) fn other_properties(schema: &Value) -> Option<&Value> {
    let forms = forms(schema, schema);
    forms.iter().find_map(|form| form.get("additionalProperties")).filter(|all| all.is_object())
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// A schema may name itself as its alternative.
const MAX_FORMS: usize = 32;
