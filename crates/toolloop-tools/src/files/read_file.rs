//! [`ReadFile`]: the tool `read_file`.

use std::io::{self, BufRead, BufReader, Read};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use toolloop_core::{EffectClass, ToolDefinition, ToolError, ToolFuture, ToolHandler};

use crate::Root;
use crate::binary::binary_kind;
use crate::blocking::{Cut, on_thread};
use crate::output::{size, whole_characters};

/// Reads a text file under a [`Root`], or some of its lines.
///
/// The text comes as it is, without line numbers. Where something is left out, a last line in
/// brackets says so and how to read on. Of a binary file it tells only size and kind; pipes and
/// devices are refused.
#[derive(Debug, Clone)]
pub struct ReadFile {
    root: Root,
    max_output: usize,
}

impl ReadFile {
    /// Reads files under `root`, at most 48 KiB at once.
    pub fn new(root: Root) -> Self {
        Self { root, max_output: MAX_OUTPUT }
    }

    /// Gives at most this many bytes of text at once.
    #[must_use]
    pub fn with_max_output(mut self, bytes: usize) -> Self {
        self.max_output = bytes;
        self
    }
}

impl<Ctx> ToolHandler<Ctx> for ReadFile {
    fn definition(&self) -> ToolDefinition {
        ToolDefinition::from_type::<Arguments>(
            NAME,
            "Reads a text file of the project, whole or from start_line to end_line. Long files \
             come in parts; the last line then says how to read on.",
        )
    }

    fn execute<'a>(&'a self, input: Value, _: &'a Ctx) -> ToolFuture<'a> {
        let Self { root, max_output } = self.clone();
        on_thread(NAME, input, move |arguments, cut| read(&root, arguments, max_output, cut))
    }

    fn effect_class(&self) -> EffectClass {
        EffectClass::ReadOnly
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The file, relative to the project folder.
    path: String,
    /// First line to read, from 1; default 1.
    #[schemars(range(min = 1))]
    start_line: Option<u64>,
    /// Last line to read, itself included; default the end of the file.
    #[schemars(range(min = 1))]
    end_line: Option<u64>,
}

fn read(
    root: &Root,
    arguments: &Arguments,
    max_output: usize,
    cut: &Cut,
) -> Result<String, ToolError> {
    let path = &arguments.path;
    let first = arguments.start_line.unwrap_or(1);
    let last = arguments.end_line.unwrap_or(u64::MAX);
    if first == 0 || last < first {
        return Err(ToolError::new(
            "Lines count from 1, and end_line must not be before start_line.",
        ));
    }
    let (file, metadata) = root.open_file(path)?;
    let length = size(metadata.len());
    let explain = |error: io::Error| root.explain(path, &error);
    let mut lines = Lines { reader: BufReader::with_capacity(BUFFER, file), cut };
    let head = lines.reader.fill_buf().map_err(explain)?;
    if head.is_empty() {
        return Ok(format!("[`{path}` is an empty file.]"));
    }
    if let Some(kind) = binary_kind(head) {
        return Ok(format!("[`{path}` is a binary file ({kind}, {length}); it is not shown.]"));
    }
    let page = Page::read(&mut lines, first, last, max_output).map_err(explain)?;
    page.into_text(path, first, &length)
}

/// The lines that are shown, and why they end.
struct Page {
    text: Vec<u8>,
    /// The line after the last one read.
    next: u64,
    /// Whether the file goes on there.
    more: bool,
}

impl Page {
    fn read<R: Read>(
        lines: &mut Lines<'_, R>,
        first: u64,
        last: u64,
        max_output: usize,
    ) -> io::Result<Self> {
        let mut page = Self { text: Vec::new(), next: 1, more: false };
        let max_line = MAX_LINE.min(max_output);
        let mut line = Vec::new();
        while page.next <= last {
            let keep = if page.next < first { 0 } else { max_line };
            line.clear();
            let length = lines.next(keep, &mut line)?;
            if length == 0 {
                return Ok(page);
            }
            if page.next >= first {
                if length > line.len() as u64 {
                    line.truncate(whole_characters(&line));
                    line.extend(
                        format!(" [... line cut, it has {length} bytes; grep shows parts of it]\n")
                            .bytes(),
                    );
                }
                if !page.text.is_empty() && page.text.len() + line.len() > max_output {
                    page.more = true;
                    return Ok(page);
                }
                page.text.append(&mut line);
            }
            page.next += 1;
        }
        page.more = !lines.reader.fill_buf()?.is_empty();
        Ok(page)
    }

    fn into_text(self, path: &str, first: u64, length: &str) -> Result<String, ToolError> {
        if self.text.is_empty() {
            return Err(ToolError::new(format!(
                "`{path}` has only {} lines; start_line {first} is behind its end.",
                self.next - 1
            )));
        }
        let (mut text, valid) = match String::from_utf8(self.text) {
            Ok(text) => (text, true),
            Err(error) => (String::from_utf8_lossy(error.as_bytes()).into_owned(), false),
        };
        let mut notes = Vec::new();
        let shown = format!("lines {first} to {}", self.next - 1);
        if self.more {
            let next = self.next;
            notes.push(format!("[{shown} of a file of {length}; read on with start_line {next}]"));
        } else if first > 1 {
            notes.push(format!("[{shown}, the end of the file]"));
        }
        if !valid {
            notes.push("[not valid UTF-8: what could not be read stands as \u{fffd}]".into());
        }
        if !notes.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&notes.join("\n"));
        Ok(text)
    }
}

/// A file by lines, of any length.
struct Lines<'a, R> {
    reader: BufReader<R>,
    cut: &'a Cut,
}

impl<R: Read> Lines<'_, R> {
    /// Appends at most `keep` bytes of the next line, its end included; gives its true length,
    /// which is 0 only at the end of the file.
    fn next(&mut self, keep: usize, line: &mut Vec<u8>) -> io::Result<u64> {
        let mut length = 0;
        loop {
            self.cut.check()?;
            let buffer = match self.reader.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                buffer => buffer?,
            };
            let end = memchr::memchr(b'\n', buffer);
            let piece = &buffer[..end.map_or(buffer.len(), |at| at + 1)];
            let room = keep.saturating_sub(line.len());
            line.extend_from_slice(&piece[..piece.len().min(room)]);
            let read = piece.len();
            length += read as u64;
            self.reader.consume(read);
            if end.is_some() || read == 0 {
                return Ok(length);
            }
        }
    }
}

const NAME: &str = "read_file";
const MAX_OUTPUT: usize = 48 * 1024;
const MAX_LINE: usize = 16 * 1024;
const BUFFER: usize = 64 * 1024;
