//! [`inline_refs`]: a schema without references.

use serde_json::{Map, Value, json};

use super::{Holds, Place, Rewritten};

/// Puts what local references (`#/$defs/..`) refer to in their place.
///
/// Where a reference leads back to itself, or too far, an open object stands in. References to
/// other documents are not loaded: anything is allowed there.
pub fn inline_refs(schema: &Value) -> Rewritten {
    let mut inliner =
        Inliner { root: schema, open: Vec::new(), left: MOST_NODES, dropped: Vec::new() };
    let schema = inliner.schema(schema, &Place::ROOT);
    Rewritten { schema, dropped: inliner.dropped }
}

struct Inliner<'a> {
    root: &'a Value,
    /// The references that are being followed.
    open: Vec<&'a str>,
    /// How many more schemas may come of references.
    left: usize,
    dropped: Vec<String>,
}

impl<'a> Inliner<'a> {
    fn schema(&mut self, schema: &'a Value, place: &Place<'_>) -> Value {
        let Value::Object(fields) = schema else { return schema.clone() };
        if !self.open.is_empty() {
            if self.left == 0 {
                return open_object();
            }
            self.left -= 1;
            if self.left == 0 {
                let note = "the references of the schema multiply: the rest became open objects";
                self.dropped.push(note.to_owned());
            }
        }
        let mut inlined = match fields.get("$ref") {
            Some(Value::String(reference)) => self.follow(reference, place),
            _ => Map::new(),
        };
        for (keyword, value) in fields {
            if REFERENCES.contains(&keyword.as_str()) {
                continue;
            }
            // What stands beside a reference says more about it.
            inlined.insert(keyword.clone(), self.member(keyword, value, &place.at(keyword)));
        }
        Value::Object(inlined)
    }

    fn member(&mut self, keyword: &str, value: &'a Value, place: &Place<'_>) -> Value {
        match (Holds::of(keyword, value), value) {
            (Holds::Schema, value) => self.schema(value, place),
            (Holds::List, Value::Array(list)) => {
                list.iter().map(|value| self.schema(value, place)).collect()
            }
            (Holds::Map, Value::Object(map)) => map
                .iter()
                .map(|(name, value)| (name.clone(), self.schema(value, &place.at(name))))
                .collect::<Map<_, _>>()
                .into(),
            _ => value.clone(),
        }
    }

    fn follow(&mut self, reference: &'a str, place: &Place<'_>) -> Map<String, Value> {
        let Some(target) = self.find(reference) else {
            let note =
                format!("{place}: `{reference}` is not in the schema, so anything is allowed");
            self.dropped.push(note);
            return Map::new();
        };
        if self.open.contains(&reference) || self.open.len() >= MOST_OPEN || self.left == 0 {
            let note = format!("{place}: `{reference}` leads too far, so any object is allowed");
            self.dropped.push(note);
            return object(open_object());
        }
        self.open.push(reference);
        let inlined = self.schema(target, place);
        self.open.pop();
        object(inlined)
    }

    fn find(&self, reference: &str) -> Option<&'a Value> {
        let pointer = reference.strip_prefix('#')?;
        self.root.pointer(&percent_decoded(pointer))
    }
}

fn object(schema: Value) -> Map<String, Value> {
    match schema {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

fn open_object() -> Value {
    json!({"type": "object"})
}

/// A pointer in a reference is part of a URI.
fn percent_decoded(pointer: &str) -> String {
    let bytes = pointer.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let hex = (byte == b'%').then(|| pointer.get(at + 1..at + 3)).flatten();
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(escaped) => {
                decoded.push(escaped);
                at += 3;
            }
            None => {
                decoded.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

/// What is of use for references only.
const REFERENCES: [&str; 10] = [
    "$ref",
    "$defs",
    "definitions",
    "$schema",
    "$id",
    "$anchor",
    "$dynamicRef",
    "$dynamicAnchor",
    "$recursiveRef",
    "$recursiveAnchor",
];

/// A few lines of schema can refer to each other a million times.
const MOST_NODES: usize = 5_000;
const MOST_OPEN: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_references_are_put_in_place() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "a": {"$ref": "#/$defs/Name", "description": "The first."},
                "$ref": {"$ref": "#/definitions/a~1b%20c"},
                "at": {"const": {"$ref": "data"}},
            },
            "$defs": {"Name": {"type": "string", "description": "A name."}},
            "definitions": {"a/b c": {"items": {"$ref": "#/$defs/Name"}}},
        });
        let expected = json!({
            "type": "object",
            "properties": {
                "a": {"type": "string", "description": "The first."},
                "$ref": {"items": {"type": "string", "description": "A name."}},
                "at": {"const": {"$ref": "data"}},
            },
        });
        assert_eq!(inline_refs(&schema), Rewritten { schema: expected, dropped: vec![] });
    }

    #[test]
    fn a_reference_that_leads_back_is_cut() {
        let schema = json!({
            "$defs": {"Node": {"properties": {"next": {"$ref": "#/$defs/Node"}}}},
            "$ref": "#/$defs/Node",
        });
        let expected = json!({"properties": {"next": {"type": "object"}}});
        let dropped =
            vec!["properties.next: `#/$defs/Node` leads too far, so any object is allowed".into()];
        assert_eq!(inline_refs(&schema), Rewritten { schema: expected, dropped });
    }

    #[test]
    fn other_documents_are_not_loaded() {
        for reference in ["http://127.0.0.1:9/x", "file:///etc/passwd", "other.json#/a", "#/none"] {
            let schema = json!({"items": {"$ref": reference, "title": "t"}});
            let dropped =
                vec![format!("items: `{reference}` is not in the schema, so anything is allowed")];
            let expected = json!({"items": {"title": "t"}});
            assert_eq!(inline_refs(&schema), Rewritten { schema: expected, dropped });
        }
    }

    #[test]
    fn references_do_not_multiply_for_ever() {
        let mut schema = json!({"$ref": "#/$defs/d0", "$defs": {}});
        for at in 0..40 {
            let next = json!({"$ref": format!("#/$defs/d{}", at + 1)});
            schema["$defs"][format!("d{at}")] = json!({"anyOf": [next.clone(), next]});
        }
        let rewritten = inline_refs(&schema);
        assert!(rewritten.schema.to_string().len() < 400_000);
        assert!(rewritten.dropped.len() < 50_000);
        assert!(rewritten.dropped[0].contains("leads too far"), "{:?}", rewritten.dropped[0]);
    }
}
