//! Parameters as a dialect writes them become the values that the tool's schema asks for.

use serde_json::{Map, Number, Value};

use crate::dialect::schema::{forms, kinds, other_properties, property};

/// A parameter as it was written.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Parameter {
    pub(super) name: String,
    pub(super) written: Written,
}

/// The value of a parameter as it was written.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Written {
    Text(String),
    /// One element a line.
    Elements(Vec<String>),
}

/// The arguments these parameters make.
///
/// A parameter that comes more than once is a list, and so is one that is the singular of a list
/// in the schema. What is not of the type the schema wants stays text: the check against the
/// schema, which follows for calls of every kind, says what is wrong with it.
pub(super) fn arguments(parameters: Vec<Parameter>, schema: &Value) -> Value {
    let mut grouped: Vec<(String, Vec<Written>)> = Vec::new();
    for Parameter { name, written } in parameters {
        let name = property_name(name, schema);
        match grouped.iter_mut().find(|(known, _)| *known == name) {
            Some((_, all)) => all.push(written),
            None => grouped.push((name, vec![written])),
        }
    }
    let typed = grouped.into_iter().map(|(name, all)| {
        let known = property(schema, &name).or_else(|| other_properties(schema));
        let value = value_of(all, known, schema);
        (name, value)
    });
    Value::Object(typed.collect::<Map<_, _>>())
}

/// The name itself, or that of the list whose singular it is.
fn property_name(name: String, schema: &Value) -> String {
    if property(schema, &name).is_some() {
        return name;
    }
    let mut plurals = vec![format!("{name}s"), format!("{name}es"), format!("{name}_list")];
    plurals.extend(name.strip_suffix('y').map(|stem| format!("{stem}ies")));
    let is_list = |plural: &String| {
        property(schema, plural)
            .is_some_and(|found| kinds(&forms(found, schema)).contains(&"array"))
    };
    plurals.into_iter().find(is_list).unwrap_or(name)
}

fn value_of(mut all: Vec<Written>, schema: Option<&Value>, root: &Value) -> Value {
    let forms = schema.map(|schema| self::forms(schema, root)).unwrap_or_default();
    let kinds = kinds(&forms);
    if let [Written::Text(text)] = all.as_slice() {
        let element_alone = kinds.contains(&"array")
            && !kinds.contains(&"string")
            && first_that_fits(text, &kinds).is_none();
        if !element_alone {
            let Some(Written::Text(text)) = all.pop() else { unreachable!("matched above") };
            return typed(text, &kinds);
        }
    }
    let items = forms.iter().find_map(|form| form.get("items"));
    let items = items.map(|items| self::forms(items, root)).unwrap_or_default();
    let kinds = self::kinds(&items);
    let elements = all.into_iter().flat_map(|written| match written {
        Written::Text(text) => vec![text],
        Written::Elements(elements) => elements,
    });
    elements.map(|element| typed(element, &kinds)).collect()
}

fn typed(text: String, kinds: &[&str]) -> Value {
    first_that_fits(&text, kinds).unwrap_or(Value::String(text))
}

/// The text as the first of these types that it can be, save a string.
fn first_that_fits(text: &str, kinds: &[&str]) -> Option<Value> {
    let text = text.trim();
    kinds.iter().find_map(|kind| match *kind {
        "null" if text == "null" => Some(Value::Null),
        "boolean" if text.eq_ignore_ascii_case("true") => Some(Value::Bool(true)),
        "boolean" if text.eq_ignore_ascii_case("false") => Some(Value::Bool(false)),
        "integer" => text.parse().ok().filter(|n| is_exact(n, text)).map(Value::Number),
        "number" => text.parse().ok().map(Value::Number),
        "array" => serde_json::from_str(text).ok().filter(Value::is_array),
        "object" => serde_json::from_str(text).ok().filter(Value::is_object),
        _ => None,
    })
}

/// Whether the number is what the text says: one of many digits would be rounded, and no check
/// against the schema could tell.
fn is_exact(number: &Number, text: &str) -> bool {
    !number.is_f64() || text.contains(['.', 'e', 'E'])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Value {
        json!({
            "type": "object",
            "properties": {
                "text": {"type": "string"},
                "lines": {"type": "integer"},
                "share": {"type": "number"},
                "all": {"type": "boolean"},
                "paths": {"type": "array", "items": {"type": "string"}},
                "entries": {"type": "array", "items": {"type": "integer"}},
                "options": {"type": "object"},
                "maybe": {"type": ["integer", "null"]},
                "either": {"anyOf": [{"$ref": "#/$defs/level"}, {"type": "string"}]},
                "mode": {"enum": [1, "auto"]},
                "part": {"description": "x", "allOf": [{"$ref": "#/$defs/alias"}]},
                "shape": {"properties": {"a": {}}},
                "loop": {"anyOf": [{"$ref": "#/properties/loop"}, {"$ref": "#/properties/nowhere"}]},
            },
            "$defs": {"level": {"type": "integer"}, "alias": {"$ref": "#/$defs/level"}},
        })
    }

    fn read(parameters: &[(&str, &str)]) -> Value {
        let parameter = |(name, text): &(&str, &str)| Parameter {
            name: (*name).to_owned(),
            written: Written::Text((*text).to_owned()),
        };
        arguments(parameters.iter().map(parameter).collect(), &schema())
    }

    #[test]
    fn values_are_of_the_type_the_schema_wants() {
        for (name, text, value) in [
            ("text", " 5 ", json!(" 5 ")),
            ("text", "true", json!("true")),
            ("lines", " 5\n", json!(5)),
            ("lines", "18446744073709551615", json!(u64::MAX)),
            ("lines", "18446744073709551616", json!("18446744073709551616")),
            ("lines", "2.0", json!(2.0)),
            ("share", "0.5", json!(0.5)),
            ("all", "True", json!(true)),
            ("options", "{\"a\": [1]}", json!({"a": [1]})),
            ("maybe", "null", json!(null)),
            ("maybe", "3", json!(3)),
            ("either", "3", json!(3)),
            ("either", "three", json!("three")),
            ("mode", "1", json!(1)),
            ("mode", "auto", json!("auto")),
            ("unknown", "5", json!("5")),
            ("loop", "x", json!("x")),
            ("part", "7", json!(7)),
            ("shape", "{\"a\": 1}", json!({"a": 1})),
        ] {
            assert_eq!(read(&[(name, text)]), json!({ name: value }), "{name} {text:?}");
        }
    }

    #[test]
    fn properties_are_found_wherever_the_schema_has_them() {
        let level = json!({"type": "integer"});
        for schema in [
            json!({"oneOf": [{"properties": {"x": {}}}, {"properties": {"level": level}}]}),
            json!({"$ref": "#/$defs/all", "$defs": {"all": {"properties": {"level": level}}}}),
            json!({"type": "object", "additionalProperties": level}),
            json!({"additionalProperties": {"type": ["integer", "array"]}}),
        ] {
            let written = Written::Text("5".into());
            let parameters = vec![Parameter { name: "level".into(), written }];
            assert_eq!(arguments(parameters, &schema), json!({"level": 5}), "{schema}");
        }
    }

    #[test]
    fn what_does_not_fit_stays_for_the_check_against_the_schema() {
        let fits_not = read(&[("lines", "many"), ("all", "yes"), ("options", "{a}")]);
        assert_eq!(fits_not, json!({"lines": "many", "all": "yes", "options": "{a}"}));
    }

    #[test]
    fn lists_come_from_repeats_singulars_and_json() {
        let list = json!({"paths": ["a", "b"]});
        assert_eq!(read(&[("paths", "a"), ("paths", "b")]), list);
        assert_eq!(read(&[("path", "a"), ("path", "b")]), list);
        assert_eq!(read(&[("path", "a"), ("paths", "b")]), list);
        assert_eq!(read(&[("paths", "[\"a\", \"b\"]")]), list);
        assert_eq!(read(&[("path", "a")]), json!({"paths": ["a"]}));
        assert_eq!(read(&[("entry", "1"), ("entry", "2")]), json!({"entries": [1, 2]}));
        assert_eq!(read(&[("text", "a"), ("text", "b")]), json!({"text": ["a", "b"]}));
        assert_eq!(read(&[("paths", "[]")]), json!({"paths": []}));
    }

    #[test]
    fn lines_are_elements() {
        let written = Written::Elements(vec!["1".into(), "2".into()]);
        let parameter = Parameter { name: "entries".into(), written };
        assert_eq!(arguments(vec![parameter], &schema()), json!({"entries": [1, 2]}));
    }
}
