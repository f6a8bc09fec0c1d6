//! [`Json`]: calls as JSON, `<tool_call>{..}</tool_call>` or `[TOOL_CALLS][{..}, {..}]`.

use serde_json::Value;

use super::block::{Found, Progress};
use super::cursor::{Cursor, Halt, Read};
use super::opening::Known;

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
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InString {
    No,
    Yes,
    Escaped,
}

impl Json {
    pub(super) fn open_tag(text: &str) -> Read<Self> {
        Self::open(text, "<tool_call>", Some("</tool_call>"))
    }

    pub(super) fn open_list(text: &str) -> Read<Self> {
        Self::open(text, "[TOOL_CALLS]", None)
    }

    fn open(text: &str, opener: &str, closer: Option<&'static str>) -> Read<Self> {
        let mut cursor = Cursor::new(text, 0);
        cursor.literal(opener)?;
        cursor.blank()?;
        if !cursor.rest().starts_with(['{', '[']) {
            return Err(Halt::No);
        }
        let start = cursor.at();
        Ok(Self { start, at: start, end: None, depth: 0, string: InString::No, closer })
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
                Err(Halt::More) if is_end => self.at = end,
                Err(Halt::More) => return Progress::Open,
                Err(Halt::No) => return Progress::Failed,
            }
        }
        match calls(&text[self.start..end], known) {
            Some(calls) => Progress::Whole(self.at, calls),
            None => Progress::Failed,
        }
    }

    /// Where the value ends; a line break inside a string is no JSON.
    fn find_end(&mut self, text: &str) -> Read<usize> {
        for byte in text.as_bytes()[self.at..].iter() {
            self.at += 1;
            self.string = match (self.string, byte) {
                (InString::Escaped, _) => InString::Yes,
                (InString::Yes, b'\\') => InString::Escaped,
                (InString::Yes, b'"') => InString::No,
                (InString::Yes, b'\n') => return Err(Halt::No),
                (InString::No, b'"') => InString::Yes,
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
}

/// The calls of a JSON text; `None` unless all of them are of offered tools.
fn calls(json: &str, known: &Known) -> Option<Vec<Found>> {
    let calls = match serde_json::from_str(json).ok()? {
        Value::Array(calls) => calls,
        call => vec![call],
    };
    let calls: Option<Vec<Found>> = calls.into_iter().map(|call| found(call, known)).collect();
    calls.filter(|calls| !calls.is_empty())
}

fn found(mut call: Value, known: &Known) -> Option<Found> {
    if let Some(function) = call.get_mut("function").filter(|function| function.is_object()) {
        call = function.take();
    }
    let name = call.get("name")?.as_str().filter(|name| known.tools.has(name))?.to_owned();
    let arguments = ["arguments", "parameters"].iter().find_map(|key| call.get(key));
    let arguments = match arguments {
        Some(Value::String(text)) => text.clone(),
        Some(arguments) => arguments.to_string(),
        None => String::new(),
    };
    Some(Found { name, arguments })
}
