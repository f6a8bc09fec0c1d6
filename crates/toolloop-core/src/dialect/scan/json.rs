//! [`Json`]: calls as JSON.
//!
//! ```text
//!  <tool_call>{"name": "a", "arguments": {"x": 1}}</tool_call>
//!  [TOOL_CALLS][{"name": "a", "arguments": {"x": 1}}, ..]
//!  [TOOL_CALLS]a[ARGS]{"x": 1}
//!  <|python_tag|>{"name": "a", "parameters": {"x": 1}}
//! ```
//!
//! What is no JSON but the literal of a Python program, or has a comma too many, is read, too.

use serde_json::Value;

use super::block::{Found, Progress};
use super::cursor::{Cursor, Halt, Read};
use super::opening::Known;
use super::python::as_json;

/// Calls as one JSON value.
#[derive(Debug, Clone)]
pub(super) struct Json {
    /// Where the value begins.
    start: usize,
    at: usize,
    /// Where the value ends, once that is known.
    end: Option<usize>,
    /// Arrays and objects that are open.
    depth: usize,
    string: InString,
    closer: Option<&'static str>,
    /// The tool, where it stands before the value and the value is its arguments.
    name: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InString {
    No,
    /// Up to this quote.
    Yes(u8),
    Escaped(u8),
}

impl Json {
    pub(super) fn open_tag(text: &str) -> Read<Self> {
        let mut cursor = Cursor::new(text, 0);
        cursor.literal("<tool_call>")?;
        Self::open(cursor, Some("</tool_call>"), None)
    }

    pub(super) fn open_python(text: &str) -> Read<Self> {
        let mut cursor = Cursor::new(text, 0);
        cursor.literal("<|python_tag|>")?;
        Self::open(cursor, None, None)
    }

    pub(super) fn open_list(text: &str, known: &Known) -> Read<Self> {
        let mut cursor = Cursor::new(text, 0);
        cursor.literal("[TOOL_CALLS]")?;
        cursor.blank()?;
        if cursor.rest().starts_with(VALUES) {
            return Self::open(cursor, None, None);
        }
        let name = known.tools.leaked(cursor.name()?).ok_or(Halt::No)?.to_owned();
        if cursor.optional("[CALL_ID]")? {
            cursor.name()?;
        }
        cursor.optional("[ARGS]")?;
        Self::open(cursor, None, Some(name))
    }

    fn open(
        mut cursor: Cursor<'_>,
        closer: Option<&'static str>,
        name: Option<String>,
    ) -> Read<Self> {
        cursor.blank()?;
        if !cursor.rest().starts_with(VALUES) {
            return Err(Halt::No);
        }
        let start = cursor.at();
        Ok(Self { start, at: start, end: None, depth: 0, string: InString::No, closer, name })
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn advance(&mut self, text: &str, is_end: bool, known: &Known) -> Progress {
        let end = match self.end {
            Some(end) => end,
            None => match self.find_end(text) {
                Ok(end) => end,
                Err(Halt::More) => return Progress::Open,
                Err(Halt::No) => return Progress::Failed,
            },
        };
        if let Some(closer) = self.closer {
            let mut cursor = Cursor::new(text, end);
            match cursor.blank().and_then(|()| cursor.literal(closer)) {
                Ok(()) => self.at = cursor.at(),
                // Some servers take the closing tag for the end of the reply and swallow it.
                Err(Halt::More) if is_end => self.at = text.len(),
                Err(Halt::More) => return Progress::Open,
                Err(Halt::No) => return Progress::Failed,
            }
        }
        match self.calls(&text[self.start..end], known) {
            Some(calls) => Progress::Whole(self.at, calls),
            None => Progress::Failed,
        }
    }

    /// Where the value ends; a line break inside a string is no JSON.
    fn find_end(&mut self, text: &str) -> Read<usize> {
        for byte in text.as_bytes()[self.at..].iter() {
            self.at += 1;
            self.string = match (self.string, byte) {
                (InString::Escaped(quote), _) => InString::Yes(quote),
                (InString::Yes(quote), b'\\') => InString::Escaped(quote),
                (InString::Yes(quote), byte) if quote == *byte => InString::No,
                (InString::Yes(_), b'\n') => return Err(Halt::No),
                (InString::No, b'"' | b'\'') => InString::Yes(*byte),
                (InString::No, b'{' | b'[') => {
                    self.depth += 1;
                    InString::No
                }
                (InString::No, b'}' | b']') => {
                    self.depth -= 1;
                    if self.depth == 0 {
                        self.end = Some(self.at);
                        return Ok(self.at);
                    }
                    InString::No
                }
                // No JSON outside of a string holds it: here the text goes on.
                (InString::No, b'<') => return Err(Halt::No),
                (string, _) => string,
            };
        }
        Err(Halt::More)
    }

    /// The calls of the value; `None` unless all of them are of offered tools.
    fn calls(&self, text: &str, known: &Known) -> Option<Vec<Found>> {
        let value: Value = match serde_json::from_str(text) {
            Ok(value) => value,
            Err(_) => serde_json::from_str(&as_json(text)).ok()?,
        };
        if let Some(name) = &self.name {
            let found = Found { name: name.clone(), arguments: value.to_string() };
            return value.is_object().then(|| vec![found]);
        }
        let calls = match value {
            Value::Array(calls) => calls,
            call => vec![call],
        };
        let calls: Option<Vec<Found>> = calls.into_iter().map(|call| found(call, known)).collect();
        calls.filter(|calls| !calls.is_empty())
    }
}

fn found(mut call: Value, known: &Known) -> Option<Found> {
    if let Some(function) = call.get_mut("function").filter(|function| function.is_object()) {
        call = function.take();
    }
    let name = known.tools.leaked(call.get("name")?.as_str()?)?.to_owned();
    let arguments = ["arguments", "parameters"].iter().find_map(|key| call.get(key));
    let arguments = match arguments {
        Some(Value::String(text)) => text.clone(),
        Some(arguments) => arguments.to_string(),
        None => String::new(),
    };
    Some(Found { name, arguments })
}

/// What a value begins with.
const VALUES: [char; 2] = ['{', '['];
