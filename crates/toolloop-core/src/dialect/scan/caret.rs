//! [`Caret`]: calls in lines.
//!
//! ```text
//!  ^^^write_file
//!  path: src/main.rs
//!  content ---
//!  fn main() {}
//!  --- content
//!  tags: [
//!  first
//!  second
//!  ]
//!  ^^^
//! ```

use serde_json::Value;

use super::block::{Found, Progress};
use super::cursor::{Cursor, Halt, Read};
use super::opening::{Known, Place, opening};
use super::typed::{Parameter, Written, arguments};
use crate::dialect::escape::unescape_lines;

/// A call in lines.
#[derive(Debug, Clone)]
pub(super) struct Caret {
    name: String,
    is_offered: bool,
    /// Where the line that is read begins.
    line: usize,
    /// Up to where its end was looked for.
    at: usize,
    open: Option<Open>,
    parameters: Vec<Parameter>,
    has_stray: bool,
}

/// A parameter of several lines that is open.
#[derive(Debug, Clone)]
enum Open {
    Text { name: String, start: usize, closer: String },
    Elements { name: String, elements: Vec<String> },
}

impl Caret {
    pub(super) fn open(text: &str, known: &Known) -> Read<Self> {
        let mut cursor = Cursor::new(text, 0);
        cursor.literal("^^^")?;
        let name = cursor.name()?;
        let rest = cursor.rest();
        let left = rest.trim_start_matches([' ', '\t', '\r']);
        match left.as_bytes().first() {
            _ if rest.len() - left.len() > MAX_BLANK => return Err(Halt::No),
            Some(b'\n') => {}
            Some(_) => return Err(Halt::No),
            None => return Err(Halt::More),
        }
        let line = text.len() - left.len() + 1;
        Ok(Self {
            name: name.to_owned(),
            is_offered: known.tools.has(name),
            line,
            at: line,
            open: None,
            parameters: Vec::new(),
            has_stray: false,
        })
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn name(&self) -> Option<&str> {
        (self.is_offered && !self.has_stray).then_some(&self.name)
    }

    pub(super) fn advance(&mut self, text: &str, is_end: bool, known: &Known) -> Progress {
        loop {
            let (end, next) = match text[self.at..].find('\n') {
                Some(found) => (self.at + found, self.at + found + 1),
                None if is_end && self.line < text.len() => (text.len(), text.len()),
                None => {
                    self.at = text.len();
                    return Progress::Open;
                }
            };
            let line = text[self.line..end].trim_end();
            if line == "^^^" && !matches!(self.open, Some(Open::Text { .. })) {
                // A list that is open belongs to nothing.
                self.has_stray |= self.open.is_some();
                let whole = self.line + line.len();
                return Progress::Whole(whole, vec![self.found(&text[..whole], known)]);
            }
            let is_read = self.handle_line(text, end, next);
            if !is_read {
                // The next call begins while this one is not closed.
                if !self.is_offered || opening(&text[self.line..next], LINE_START, known).is_ok() {
                    return Progress::Failed;
                }
                self.has_stray = true;
            }
            (self.line, self.at) = (next, next);
        }
    }

    /// Takes a line, up to `end`, that does not close the call; `false` where it means nothing.
    fn handle_line(&mut self, text: &str, end: usize, next: usize) -> bool {
        let line = text[self.line..end].trim_end_matches('\r');
        match &mut self.open {
            Some(Open::Text { start, closer, .. }) => {
                if line.trim_end() != closer.as_str() {
                    return true;
                }
                // Up to the line break before this line.
                let value = &text[*start..self.line.max(*start + 1) - 1];
                let value = value.strip_suffix('\r').unwrap_or(value);
                let written = Written::Text(unescape_lines(value, closer));
                self.close(written);
            }
            Some(Open::Elements { elements, .. }) => match line.trim() {
                "" => {}
                "]" => {
                    let written = Written::Elements(std::mem::take(elements));
                    self.close(written);
                }
                line if line.starts_with("^^^") => return false,
                element => elements.push(element.to_owned()),
            },
            None => return self.begin(line, next),
        }
        true
    }

    /// A line outside any value.
    fn begin(&mut self, line: &str, next: usize) -> bool {
        let line = line.trim_start();
        if line.trim_end().is_empty() {
            return true;
        }
        let is_name = |name: &str| !name.is_empty() && !name.contains(char::is_whitespace);
        if let Some(name) = line.trim_end().strip_suffix(" ---").map(str::trim_end)
            && is_name(name)
            && !name.contains(':')
        {
            let (name, closer) = (name.to_owned(), format!("--- {name}"));
            self.open = Some(Open::Text { name, start: next, closer });
            return true;
        }
        let Some((name, value)) = line.split_once(':') else { return false };
        if !is_name(name) || name.starts_with("^^^") {
            return false;
        }
        let name = name.to_owned();
        match value.trim() {
            "[" => self.open = Some(Open::Elements { name, elements: Vec::new() }),
            value => {
                let written = Written::Text(value.to_owned());
                self.parameters.push(Parameter { name, written });
            }
        }
        true
    }

    fn close(&mut self, written: Written) {
        if let Some(Open::Text { name, .. } | Open::Elements { name, .. }) = self.open.take() {
            self.parameters.push(Parameter { name, written });
        }
    }

    fn found(&mut self, block: &str, known: &Known) -> Found {
        let name = std::mem::take(&mut self.name);
        let arguments = match known.tools.schema(&name) {
            _ if self.has_stray => block.to_owned(),
            schema => {
                let parameters = std::mem::take(&mut self.parameters);
                arguments(parameters, schema.unwrap_or(&Value::Null)).to_string()
            }
        };
        Found { name, arguments }
    }
}

const LINE_START: Place = Place { is_line_start: true, is_first: false };
/// Most blanks behind a name; no more are held for it.
const MAX_BLANK: usize = 64;
