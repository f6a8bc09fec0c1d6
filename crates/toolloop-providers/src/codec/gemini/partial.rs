//! [`PartialArguments`]: arguments that come as values at JSON paths, as the text they spell.

use serde_json::value::RawValue;

use super::wire::PartialArg;

/// The JSON text of arguments that come piece by piece, in the order in which the model says
/// them: an array or object is closed as soon as a value outside of it comes.
#[derive(Default)]
pub(super) struct PartialArguments {
    text: String,
    /// Where the last value stands.
    path: Vec<Step>,
    /// Whether that value is a string whose end has not come.
    in_string: bool,
}

/// One step of a path: into an object or into an array.
#[derive(PartialEq)]
enum Step {
    Member(String),
    Element(String),
}

impl PartialArguments {
    /// Adds a piece; gives what it adds to the text.
    pub(super) fn push(&mut self, piece: &PartialArg<'_>) -> &str {
        let before = self.text.len();
        let path = steps(&piece.json_path.0);
        if !(self.in_string && self.path == path) {
            self.end_string();
            self.go_to(path);
            self.in_string = piece.string_value.is_some();
            match &piece.string_value {
                Some(_) => self.text.push('"'),
                None => self.text.push_str(&scalar(piece)),
            }
        }
        if let Some(text) = piece.string_value.as_deref() {
            // A string is always JSON, and its text stands between two quotes.
            let quoted = serde_json::Value::from(text).to_string();
            self.text.push_str(&quoted[1..quoted.len() - 1]);
        }
        if piece.will_continue != Some(true) {
            self.end_string();
        }
        &self.text[before..]
    }

    /// Closes all that is open; gives what that adds to the text.
    pub(super) fn end(&mut self) -> &str {
        let before = self.text.len();
        self.end_string();
        match self.path.is_empty() {
            true => self.text.push_str("{}"),
            false => self.close_to(0),
        }
        &self.text[before..]
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    fn end_string(&mut self) {
        if std::mem::take(&mut self.in_string) {
            self.text.push('"');
        }
    }

    /// Closes what the path leaves and opens what it enters.
    fn go_to(&mut self, path: Vec<Step>) {
        if self.path.is_empty() {
            self.open(&path, 0);
        } else {
            let shared = self.path.iter().zip(&path).take_while(|(a, b)| a == b).count();
            // Of two equal paths the last step counts as another: a value is said once.
            let shared = shared.min(path.len().saturating_sub(1)).min(self.path.len() - 1);
            self.close_to(shared + 1);
            self.text.push(',');
            self.label(&path, shared);
            self.open(&path, shared + 1);
        }
        self.path = path;
    }

    fn open(&mut self, path: &[Step], from: usize) {
        for at in from..path.len() {
            self.text.push(match path[at] {
                Step::Member(_) => '{',
                Step::Element(_) => '[',
            });
            self.label(path, at);
        }
    }

    fn label(&mut self, path: &[Step], at: usize) {
        if let Some(Step::Member(name)) = path.get(at) {
            self.text.push_str(&serde_json::Value::from(name.as_str()).to_string());
            self.text.push(':');
        }
    }

    /// Closes the containers of all steps from this one on.
    fn close_to(&mut self, depth: usize) {
        for step in self.path.drain(depth.min(self.path.len())..).rev() {
            self.text.push(match step {
                Step::Member(_) => '}',
                Step::Element(_) => ']',
            });
        }
    }
}

/// The text of a value that is no string.
fn scalar(piece: &PartialArg<'_>) -> String {
    match (piece.number_value, piece.bool_value) {
        (Some(number), _) => RawValue::get(number).to_owned(),
        (None, Some(value)) => value.to_string(),
        (None, None) => "null".to_owned(),
    }
}

/// Reads `$.a[0].b` and `$['a.b'][0]`.
fn steps(path: &str) -> Vec<Step> {
    let mut rest = path.strip_prefix('$').unwrap_or(path);
    let mut steps = Vec::new();
    while !rest.is_empty() {
        if let Some(inner) = rest.strip_prefix('[') {
            let quote = inner.chars().next().filter(|c| matches!(c, '\'' | '"'));
            let end = match quote {
                Some(quote) => inner[1..].find(&format!("{quote}]")[..]).map(|end| end + 2),
                None => inner.find(']'),
            };
            let end = end.unwrap_or(inner.len());
            let step = &inner[..end];
            steps.push(match quote {
                Some(quote) => Step::Member(step.trim_matches(quote).to_owned()),
                None => Step::Element(step.to_owned()),
            });
            rest = inner.get(end + 1..).unwrap_or_default();
        } else {
            let name = rest.strip_prefix('.').unwrap_or(rest);
            let end = name.find(['.', '[']).unwrap_or(name.len());
            steps.push(Step::Member(name[..end].to_owned()));
            rest = &name[end..];
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn text(pieces: &str) -> String {
        let pieces: Vec<PartialArg<'_>> = serde_json::from_str(pieces).unwrap();
        let mut arguments = PartialArguments::default();
        let mut added: String =
            pieces.iter().map(|piece| arguments.push(piece).to_owned()).collect();
        added.push_str(arguments.end());
        assert_eq!(added, arguments.text());
        added
    }

    #[test]
    fn nothing_is_no_arguments() {
        assert_eq!(text("[]"), "{}");
    }

    #[test]
    fn values_at_paths_become_one_object() {
        let pieces = r#"[
            {"jsonPath": "$.list[0].name", "stringValue": "a\"", "willContinue": true},
            {"jsonPath": "$.list[0].name", "stringValue": "b", "willContinue": true},
            {"jsonPath": "$.list[0].name", "stringValue": ""},
            {"jsonPath": "$.list[0].price", "numberValue": 0.50},
            {"jsonPath": "$.list[1].tags[0]", "stringValue": "x"},
            {"jsonPath": "$.list[1].tags[1]", "stringValue": "y"},
            {"jsonPath": "$.done", "boolValue": true},
            {"jsonPath": "$['a.b']", "nullValue": "NULL_VALUE"}
        ]"#;
        let expected =
            r#"{"list":[{"name":"a\"b","price":0.50},{"tags":["x","y"]}],"done":true,"a.b":null}"#;
        assert_eq!(text(pieces), expected);
    }

    #[test]
    fn a_string_that_never_ends_is_ended() {
        let pieces = r#"[{"jsonPath": "$.a", "stringValue": "x", "willContinue": true}]"#;
        assert_eq!(text(pieces), r#"{"a":"x"}"#);
        let pieces = r#"[{"jsonPath": "$.a", "stringValue": "x", "willContinue": true},
            {"jsonPath": "$.b", "numberValue": 1}]"#;
        assert_eq!(text(pieces), r#"{"a":"x","b":1}"#);
    }

    /// The pieces of a value, text character by character.
    fn pieces(path: &str, value: &Value, list: &mut Vec<Value>) {
        match value {
            Value::Object(members) => {
                for (name, value) in members {
                    pieces(&format!("{path}['{name}']"), value, list);
                }
            }
            Value::Array(elements) => {
                for (at, value) in elements.iter().enumerate() {
                    pieces(&format!("{path}[{at}]"), value, list);
                }
            }
            Value::String(text) => {
                let pieces = text
                    .chars()
                    .map(|c| json!({"jsonPath": path, "stringValue": c, "willContinue": true}));
                list.extend(pieces);
                list.push(json!({"jsonPath": path, "stringValue": ""}));
            }
            Value::Bool(value) => list.push(json!({"jsonPath": path, "boolValue": value})),
            Value::Null => list.push(json!({"jsonPath": path, "nullValue": "NULL_VALUE"})),
            Value::Number(value) => list.push(json!({"jsonPath": path, "numberValue": value})),
        }
    }

    fn any_object() -> impl Strategy<Value = Value> {
        let name = || prop::sample::select(vec!["a", "b c", "d.e", "[0]", "é"]);
        let leaf = prop_oneof![
            "[a\"\\\\\n{}é]{0,4}".prop_map(Value::from),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            Just(Value::Null),
        ];
        let value = leaf.prop_recursive(3, 20, 3, move |inner| {
            let members = prop::collection::btree_map(name(), inner.clone(), 1..4);
            prop_oneof![
                prop::collection::vec(inner, 1..4).prop_map(Value::from),
                members.prop_map(|members| json!(members)),
            ]
        });
        prop::collection::btree_map(name(), value, 0..4).prop_map(|members| json!(members))
    }

    proptest! {
        #[test]
        fn what_is_taken_apart_comes_together(object in any_object()) {
            let mut list = Vec::new();
            pieces("$", &object, &mut list);
            let text = text(&Value::Array(list).to_string());
            prop_assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), object);
        }

        #[test]
        fn no_path_does_harm(paths in prop::collection::vec("[$.\\[\\]'\"a0é]{0,8}", 0..6)) {
            let list: Value =
                paths.iter().map(|path| json!({"jsonPath": path, "stringValue": "x"})).collect();
            text(&list.to_string());
        }
    }
}
