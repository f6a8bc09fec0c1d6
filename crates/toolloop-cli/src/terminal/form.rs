//! [`Form`]: asks a person what an MCP server wants to know, field by field.

use serde_json::{Map, Value};
use toolloop::mcp::{Answer, Elicitation, Wanted};

use super::keys::Key;
use super::line_editor::{Edit, LineEditor};
use super::paint::{Paint, Style};
use super::text::{Span, clean, truncate, wrap};

/// A server's question. Nothing is typed for it before the person has agreed to answer: what they
/// were typing is not for the server.
#[derive(Debug)]
pub(crate) struct Form {
    asked: Elicitation,
    fields: Vec<Field>,
    given: Map<String, Value>,
    state: State,
}

#[derive(Debug)]
enum State {
    Choosing,
    /// The field of this position is typed; `fault`: what was wrong with the last try.
    Typing {
        at: usize,
        editor: LineEditor,
        fault: Option<String>,
    },
}

#[derive(Debug)]
struct Field {
    name: String,
    /// How it is shown.
    title: String,
    kind: Kind,
    default: Option<Value>,
    required: bool,
}

#[derive(Debug, PartialEq)]
enum Kind {
    Text,
    Number,
    Integer,
    Boolean,
    One(Vec<String>),
    Some(Vec<String>),
}

impl Form {
    pub(crate) fn new(asked: Elicitation) -> Self {
        let fields = match &asked.wanted {
            Wanted::Form(schema) => fields(schema),
            _ => Vec::new(),
        };
        Self { asked, fields, given: Map::new(), state: State::Choosing }
    }

    pub(super) fn is_typing(&self) -> bool {
        matches!(self.state, State::Typing { .. })
    }

    pub(super) fn handle(&mut self, key: Key) -> Option<Answer> {
        let State::Typing { at, editor, fault } = &mut self.state else {
            return match key {
                Key::Char('y' | 'Y') => self.next_field(0),
                Key::Char('n' | 'N') => Some(Answer::Decline),
                Key::Escape => Some(Answer::Cancel),
                _ => None,
            };
        };
        match editor.handle(key) {
            Edit::Open => None,
            Edit::Cancelled => {
                self.state = State::Choosing;
                None
            }
            Edit::Accepted(text) => match self.fields[*at].read(text.trim()) {
                Ok(value) => {
                    let (name, next) = (self.fields[*at].name.clone(), *at + 1);
                    self.given.extend(value.map(|value| (name, value)));
                    self.next_field(next)
                }
                Err(wrong) => {
                    *fault = Some(wrong);
                    *editor = LineEditor::new(&text);
                    None
                }
            },
        }
    }

    fn next_field(&mut self, at: usize) -> Option<Answer> {
        if at < self.fields.len() {
            self.state = State::Typing { at, editor: LineEditor::new(""), fault: None };
            return None;
        }
        Some(Answer::Accept(match &self.asked.wanted {
            Wanted::Form(_) => Some(Value::Object(std::mem::take(&mut self.given))),
            _ => None,
        }))
    }

    pub(super) fn lines(&self, columns: usize, paint: Paint) -> Vec<String> {
        let message = format!("{} asks: {}", clean(&self.asked.server), clean(&self.asked.message));
        let message = [Span::new(message, Style::PLAIN)];
        let mut lines = wrap(&message, columns.saturating_sub(2), paint);
        for (index, line) in lines.iter_mut().enumerate() {
            *line = match index {
                0 => format!("{} {line}", paint.yellow("?")),
                _ => format!("  {line}"),
            };
        }
        if let Wanted::Visit(url) = &self.asked.wanted {
            lines.push(format!("  │ {}", clean(url)));
        }
        let State::Typing { at, editor, fault } = &self.state else {
            let choices = match self.asked.wanted {
                Wanted::Visit(_) => "  y I will open this address · n no",
                _ => "  y answer · n no",
            };
            lines.push(paint.dim(&truncate(choices, columns)));
            return lines;
        };
        if let Some(fault) = fault {
            lines.push(format!("  {}", paint.red(&truncate(fault, columns.saturating_sub(2)))));
        }
        let label = self.fields[*at].label();
        let room = columns.saturating_sub(label.chars().count() + 4);
        lines.push(format!("  {} {}", paint.dim(&label), editor.render(room)));
        lines
    }
}

impl Field {
    fn label(&self) -> String {
        let wanted = match &self.kind {
            Kind::Text => String::new(),
            Kind::Number | Kind::Integer => " (a number)".to_owned(),
            Kind::Boolean => " (y or n)".to_owned(),
            Kind::One(choices) => format!(" ({})", choices.join(", ")),
            Kind::Some(choices) => format!(" (some of {})", choices.join(", ")),
        };
        let default = match &self.default {
            Some(Value::String(text)) => format!(" [{text}]"),
            Some(default) => format!(" [{default}]"),
            None if !self.required => " [none]".to_owned(),
            None => String::new(),
        };
        clean(&format!("{}{wanted}{default}:", self.title)).into_owned()
    }

    /// The value of what was typed; `None`: left out.
    fn read(&self, text: &str) -> Result<Option<Value>, String> {
        if text.is_empty() {
            return match self.default.is_some() || !self.required {
                true => Ok(None),
                false => Err("this one is needed (Escape goes back)".to_owned()),
            };
        }
        let one_of = |choices: &[String], text: &str| {
            let found = choices.iter().find(|choice| choice.eq_ignore_ascii_case(text));
            let found = found.map(|choice| Value::from(choice.as_str()));
            found.ok_or_else(|| format!("choose of: {}", choices.join(", ")))
        };
        let value = match &self.kind {
            Kind::Text => text.into(),
            Kind::Integer => text.parse::<i64>().map_err(|_| "a whole number, please")?.into(),
            Kind::Number => {
                let number: f64 = text.parse().map_err(|_| "a number, please")?;
                serde_json::Number::from_f64(number).ok_or("a number, please")?.into()
            }
            Kind::Boolean => match text {
                "y" | "Y" | "yes" | "true" => true.into(),
                "n" | "N" | "no" | "false" => false.into(),
                _ => return Err("y or n, please".to_owned()),
            },
            Kind::One(choices) => one_of(choices, text)?,
            Kind::Some(choices) => {
                let parts = text.split(',').map(|part| one_of(choices, part.trim()));
                parts.collect::<Result<Value, _>>()?
            }
        };
        Ok(Some(value))
    }
}

/// The fields of a flat schema, those that are needed first.
fn fields(schema: &Value) -> Vec<Field> {
    let needed: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let properties = schema["properties"].as_object();
    let mut fields: Vec<Field> = properties
        .into_iter()
        .flatten()
        .map(|(name, schema)| Field {
            name: name.clone(),
            title: ["description", "title"]
                .iter()
                .find_map(|key| schema[*key].as_str())
                .unwrap_or(name)
                .to_owned(),
            kind: kind(schema),
            default: schema.get("default").cloned(),
            required: needed.contains(&name.as_str()),
        })
        .collect();
    fields.sort_by_key(|field| !field.required);
    fields
}

fn kind(schema: &Value) -> Kind {
    match (choices(schema), schema["type"].as_str()) {
        (Some(choices), _) => Kind::One(choices),
        (None, Some("array")) => Kind::Some(choices(&schema["items"]).unwrap_or_default()),
        (None, Some("integer")) => Kind::Integer,
        (None, Some("number")) => Kind::Number,
        (None, Some("boolean")) => Kind::Boolean,
        _ => Kind::Text,
    }
}

/// The values of `enum`, or the constants of `oneOf` or `anyOf`.
fn choices(schema: &Value) -> Option<Vec<String>> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    if let Some(values) = schema["enum"].as_array() {
        return Some(values.iter().filter_map(text).collect());
    }
    let of = schema["oneOf"].as_array().or_else(|| schema["anyOf"].as_array())?;
    Some(of.iter().filter_map(|one| text(&one["const"])).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn form(wanted: Wanted) -> Form {
        Form::new(Elicitation { server: "air".into(), message: "Which seat?".into(), wanted })
    }

    fn booking() -> Form {
        form(Wanted::Form(json!({
            "type": "object",
            "properties": {
                "meal": {"type": "string", "enum": ["Soup", "Salad"], "default": "Soup"},
                "row": {"type": "integer", "title": "Row"},
                "window": {"type": "boolean"},
                "extras": {"type": "array", "items": {"type": "string", "enum": ["wifi", "bag"]}}
            },
            "required": ["row"]
        })))
    }

    fn typed(form: &mut Form, keys: &str) -> Option<Answer> {
        let mut answer = None;
        for c in keys.chars() {
            assert_eq!(answer, None, "an answer before the last key");
            answer = form.handle(match c {
                '\n' => Key::Enter,
                '\x1b' => Key::Escape,
                c => Key::Char(c),
            });
        }
        answer
    }

    #[test]
    fn fields_are_typed_one_by_one_and_become_values() {
        let mut form = booking();
        let answer = typed(&mut form, "y7\nsalad\ny\nwifi, BAG\n");
        let values = json!({"row": 7, "meal": "Salad", "window": true, "extras": ["wifi", "bag"]});
        assert_eq!(answer, Some(Answer::Accept(Some(values))));
    }

    #[test]
    fn what_is_left_out_is_left_out() {
        let answer = typed(&mut booking(), "y7\n\n\n\n");
        assert_eq!(answer, Some(Answer::Accept(Some(json!({"row": 7})))));
    }

    #[test]
    fn a_wrong_value_is_told_and_typed_again() {
        let mut form = booking();
        assert_eq!(typed(&mut form, "y\n"), None);
        assert_eq!(
            form.lines(60, Paint::new(false)),
            [
                "? air asks: Which seat?",
                "  this one is needed (Escape goes back)",
                "  Row (a number): ▏"
            ]
        );
        assert_eq!(typed(&mut form, "x\n"), None);
        assert_eq!(
            form.lines(60, Paint::new(false))[1..],
            ["  a whole number, please", "  Row (a number): x▏"]
        );
    }

    #[test]
    fn no_and_away_are_told_apart_and_enter_is_neither() {
        assert_eq!(typed(&mut booking(), "\n\nn"), Some(Answer::Decline));
        assert_eq!(typed(&mut booking(), "y\x1b\x1b"), Some(Answer::Cancel));
    }

    #[test]
    fn an_address_is_shown_before_it_is_agreed_to() {
        let mut form = form(Wanted::Visit("https://air.example/login".into()));
        assert_eq!(
            form.lines(60, Paint::new(false)),
            [
                "? air asks: Which seat?",
                "  │ https://air.example/login",
                "  y I will open this address · n no",
            ]
        );
        assert_eq!(typed(&mut form, "y"), Some(Answer::Accept(None)));
    }
}
