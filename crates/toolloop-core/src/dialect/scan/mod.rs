//! [`Scanner`]: the text of a reply in, text, thought and calls out.
//!
//! One scanner serves all dialects: it follows the text, asks [`opening`] at each character with
//! which markup can begin, and lets a [`Block`] read on until the call is whole. A block that
//! turns out to be none is text from its first character on, so the search goes on right behind
//! it. Nothing depends on where the text was cut on its way.

mod block;
mod caret;
mod cursor;
mod json;
mod line;
mod opening;
mod python;
mod tagged;
mod thought;
mod tools;
mod typed;

use std::collections::VecDeque;
use std::sync::Arc;

use block::{Block, Found, Progress};
use cursor::{Cursor, Halt};
use line::Line;
use opening::{Known, Opening, Place, opening};
use thought::{Piece, Thought};
use tools::Offered;

use super::Dialect;
use super::limit::{StreamingError, ToolLimit};
use crate::arguments::parse_arguments;
use crate::chat::ToolCall;
use crate::params::ToolDefinition;
use crate::stream::StreamEvent;

/// Finds calls and thoughts in the text of one reply.
///
/// Text goes out as it comes, save what could still be markup: a tag in part, the line breaks
/// before one, and a call until it is closed. Line breaks around a call belong to it.
#[derive(Debug, Clone)]
pub struct Scanner {
    known: Arc<Known>,
    limit: ToolLimit,
    /// What has arrived and was not given out before the last piece.
    held: String,
    /// Up to where it is given out.
    given: usize,
    /// Up to where it was looked at.
    at: usize,
    /// Where the white space begins that is text only if text follows.
    gap: Option<usize>,
    /// Where in its line the text is.
    line: Line,
    state: State,
    /// The closing tag that may come behind the last call.
    wrapper: Option<String>,
    /// Whether no text has come since the last call or thought.
    is_behind_block: bool,
    /// Whether any text has come but blanks.
    has_text: bool,
    retries: Retries,
    calls: u32,
    /// The index of the next call.
    next_index: u32,
    found: u32,
}

/// How the text of a reply ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The model has ended it.
    Proper,
    /// The limit of tokens was reached: a call that is open was meant as one, and is given without
    /// its end.
    Limit,
    /// Something else than text comes next, or nothing more at all.
    Interrupted,
}

#[derive(Debug, Clone)]
enum State {
    Text,
    Thought(Thought),
    /// From this byte of what is held.
    Block(usize, Block),
}

/// Text that is read again because what was a block turned out to be none.
#[derive(Debug, Clone, Copy, Default)]
struct Retries {
    /// Up to where the text was read before.
    read_to: usize,
    count: u32,
}

impl Scanner {
    /// For one reply in this dialect to a request that offers these tools.
    pub fn new(dialect: Dialect, tools: &[ToolDefinition], limit: ToolLimit) -> Self {
        Self::of(Arc::new(Known { own: dialect, tools: Offered::new(tools) }), limit)
    }

    fn of(known: Arc<Known>, limit: ToolLimit) -> Self {
        Self {
            known,
            limit,
            held: String::new(),
            given: 0,
            at: 0,
            gap: None,
            line: Line::first(),
            state: State::Text,
            wrapper: None,
            is_behind_block: false,
            has_text: false,
            retries: Retries::default(),
            calls: 0,
            next_index: 0,
            found: 0,
        }
    }

    /// Takes the next piece of text.
    ///
    /// # Errors
    /// [`StreamingError::ToolLimitReached`] where one call more than allowed begins.
    pub fn push(
        &mut self,
        text: String,
        events: &mut VecDeque<StreamEvent>,
    ) -> Result<(), StreamingError> {
        if text.is_empty() {
            return Ok(());
        }
        if self.lets_pass(&text) {
            events.push_back(StreamEvent::TextDelta(text));
            return Ok(());
        }
        self.held.push_str(&text);
        self.scan(None, events)?;
        self.give_text(self.gap.unwrap_or(self.at), events);
        self.compact();
        Ok(())
    }

    /// No more text comes, or none before something else: gives all that is held. Text may follow.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub fn finish(
        &mut self,
        end: End,
        events: &mut VecDeque<StreamEvent>,
    ) -> Result<(), StreamingError> {
        self.scan(Some(end), events)?;
        let is_behind_block = self.is_behind_block;
        if !is_behind_block {
            self.give_text(self.held.len(), events);
        }
        self.clear();
        self.line = Line::first();
        self.is_behind_block = is_behind_block;
        Ok(())
    }

    /// Forgets all of the reply: it starts anew.
    pub fn reset(&mut self) {
        *self = Self::of(Arc::clone(&self.known), self.limit);
    }

    /// Calls that have begun, native ones included.
    pub fn calls(&self) -> u32 {
        self.calls
    }

    /// Whether a call was found in the text.
    pub(super) fn has_found(&self) -> bool {
        self.found > 0
    }

    /// A native call begins; gives its index in the reply.
    pub(super) fn begin_native(&mut self, index: u32) -> Result<u32, StreamingError> {
        self.begin_call()?;
        let index = index.saturating_add(self.found);
        self.next_index = self.next_index.max(index.saturating_add(1));
        Ok(index)
    }

    /// Whether the next piece of text goes out as it is; it is counted as given then.
    pub(super) fn lets_pass(&mut self, text: &str) -> bool {
        let is_idle = self.held.is_empty() && matches!(self.state, State::Text);
        let passes = is_idle
            && (self.is_blind()
                || !self.is_behind_block
                    && self.line.is_plain()
                    && !text.bytes().any(|byte| SPECIAL[usize::from(byte)]));
        if passes {
            self.has_text |= !text.trim_ascii_start().is_empty();
            self.line.skip(text);
        }
        passes
    }

    /// Whether no text can be anything else. Without tools, a text dialect still knows thoughts.
    fn is_blind(&self) -> bool {
        !self.known.own.is_text() && self.known.tools.is_empty()
    }

    fn scan(
        &mut self,
        end: Option<End>,
        events: &mut VecDeque<StreamEvent>,
    ) -> Result<(), StreamingError> {
        loop {
            let goes_on = match &self.state {
                State::Text => self.scan_text(end.is_some(), events)?,
                State::Thought(..) => self.scan_thought(end.is_some(), events),
                State::Block(..) => self.scan_block(end, events)?,
            };
            if !goes_on {
                return Ok(());
            }
        }
    }

    /// Follows text up to the next markup; `false` when all that came is looked at.
    fn scan_text(
        &mut self,
        is_end: bool,
        events: &mut VecDeque<StreamEvent>,
    ) -> Result<bool, StreamingError> {
        while let Some(&byte) = self.held.as_bytes().get(self.at) {
            if byte.is_ascii_whitespace() {
                if matches!(byte, b'\r' | b'\n') || self.is_behind_block {
                    self.gap.get_or_insert(self.at);
                }
                self.line.feed(byte);
                self.at += 1;
                continue;
            }
            match self.markup(byte) {
                Ok(Markup::Wrapper(end)) => {
                    self.wrapper = None;
                    self.restart(end);
                    continue;
                }
                Ok(Markup::Opening(what, start)) => {
                    self.open(what, start, events)?;
                    return Ok(true);
                }
                Err(Halt::More) if !is_end => return Ok(false),
                Err(_) => self.take_as_text(byte),
            }
        }
        Ok(false)
    }

    /// What begins at the next character.
    fn markup(&self, byte: u8) -> Result<Markup, Halt> {
        if !matches!(byte, b'<' | b'[' | b'^') || self.line.is_code() {
            return Err(Halt::No);
        }
        let text = &self.held[self.at..];
        if let Some(wrapper) = self.wrapper.as_ref().filter(|_| self.is_behind_block) {
            let mut cursor = Cursor::new(text, 0);
            match cursor.literal(wrapper) {
                Ok(()) => return Ok(Markup::Wrapper(self.at + cursor.at())),
                Err(Halt::More) => return Err(Halt::More),
                Err(Halt::No) => {}
            }
        }
        if self.at < self.retries.read_to && self.retries.count >= MAX_RETRIES {
            return Err(Halt::No);
        }
        let place = Place { is_line_start: self.line.is_start(), is_first: !self.has_text };
        let (what, start) = opening(text, place, &self.known)?;
        Ok(Markup::Opening(what, start))
    }

    /// The next character is text, and so is the white space before it.
    fn take_as_text(&mut self, byte: u8) {
        if self.is_behind_block {
            // The line breaks behind a call belong to it.
            let space = &self.held[self.given..self.at];
            self.given += space.rfind('\n').map_or(0, |last| last + 1);
            self.is_behind_block = false;
            self.wrapper = None;
        }
        self.gap = None;
        self.has_text = true;
        self.line.feed(byte);
        self.at = self.held.ceil_char_boundary(self.at + 1);
    }

    fn open(
        &mut self,
        what: Opening,
        start: usize,
        events: &mut VecDeque<StreamEvent>,
    ) -> Result<(), StreamingError> {
        if let Opening::Block(_) = what
            && !self.limit.allows_another(self.calls)
        {
            self.give_text(self.gap.unwrap_or(self.at), events);
            self.clear();
            return Err(StreamingError::ToolLimitReached);
        }
        self.give_text(self.gap.unwrap_or(self.at), events);
        match what {
            Opening::Block(block) => {
                self.retries.count =
                    if self.at < self.retries.read_to { self.retries.count + 1 } else { 0 };
                self.state = State::Block(self.at, block);
            }
            Opening::Thought(closer) => {
                self.gap = None;
                self.given = self.at + start;
                self.state = State::Thought(Thought::until(closer));
            }
        }
        Ok(())
    }

    fn scan_thought(&mut self, is_end: bool, events: &mut VecDeque<StreamEvent>) -> bool {
        let State::Thought(thought) = &mut self.state else { return true };
        let text = &self.held[self.given..];
        let Piece { start, end, next } = thought.read(text, is_end);
        if end > start {
            events.push_back(StreamEvent::ReasoningDelta(text[start..end].to_owned()));
        }
        match next {
            Some(next) => self.restart(self.given + next),
            None => self.given += end,
        }
        next.is_some()
    }

    fn scan_block(
        &mut self,
        end: Option<End>,
        events: &mut VecDeque<StreamEvent>,
    ) -> Result<bool, StreamingError> {
        let State::Block(start, block) = &mut self.state else { return Ok(true) };
        let (start, text) = (*start, &self.held[*start..]);
        let is_end = matches!(end, Some(End::Proper));
        match block.advance(text, is_end, &self.known) {
            Progress::Open if end.is_none() => return Ok(false),
            Progress::Open if end == Some(End::Limit) && block.name().is_some() => {
                let name = block.name().unwrap_or_default().to_owned();
                self.give_cut(name, text.to_owned(), events);
            }
            Progress::Open | Progress::Failed => {
                self.retries.read_to = start + block.at();
                let byte = text.as_bytes()[0];
                self.state = State::Text;
                self.at = start;
                self.take_as_text(byte);
            }
            Progress::Whole(len, calls) => {
                let raw = block.is_leak().then(|| text[..len].to_owned());
                self.wrapper = block.wrapper().or(self.wrapper.take());
                self.restart(start + len);
                self.give_calls(calls, raw, events)?;
            }
        }
        Ok(true)
    }

    fn give_text(&mut self, end: usize, events: &mut VecDeque<StreamEvent>) {
        if end > self.given && matches!(self.state, State::Text) {
            events.push_back(StreamEvent::TextDelta(self.held[self.given..end].to_owned()));
            self.given = end;
        }
    }

    fn give_calls(
        &mut self,
        calls: Vec<Found>,
        mut raw: Option<String>,
        events: &mut VecDeque<StreamEvent>,
    ) -> Result<(), StreamingError> {
        for Found { name, arguments } in calls {
            let index = self.next_index;
            self.begin_call()?;
            self.next_index += 1;
            self.found += 1;
            let call = ToolCall {
                id: String::new(),
                name: name.clone(),
                arguments: parse_arguments(&arguments),
            };
            events.extend([
                StreamEvent::ToolCallStart { index, id: String::new(), name },
                StreamEvent::ToolCallDelta { index, json_chunk: arguments },
                StreamEvent::ToolCallComplete { index, call },
            ]);
            let rescued = raw.take().map(|text| StreamEvent::ToolCallRescued { index, text });
            events.extend(rescued);
        }
        Ok(())
    }

    /// A call that the limit of tokens has cut: without its end, so that it is not run.
    fn give_cut(&mut self, name: String, raw: String, events: &mut VecDeque<StreamEvent>) {
        let index = self.next_index;
        self.calls += 1;
        self.next_index += 1;
        self.found += 1;
        let id = String::new();
        events.push_back(StreamEvent::ToolCallStart { index, id, name });
        events.push_back(StreamEvent::ToolCallDelta { index, json_chunk: raw });
        self.clear();
    }

    fn begin_call(&mut self) -> Result<(), StreamingError> {
        if !self.limit.allows_another(self.calls) {
            return Err(StreamingError::ToolLimitReached);
        }
        self.calls += 1;
        Ok(())
    }

    /// Behind a call or a thought that ends there.
    fn restart(&mut self, end: usize) {
        (self.given, self.at) = (end, end);
        self.gap = None;
        self.line = Line::behind_block();
        self.state = State::Text;
        self.is_behind_block = true;
        self.retries = Retries::default();
    }

    fn clear(&mut self) {
        self.held.clear();
        self.restart(0);
    }

    /// Drops what is given out.
    fn compact(&mut self) {
        let given = std::mem::take(&mut self.given);
        self.held.drain(..given);
        // In a thought it is left behind.
        self.at = self.at.saturating_sub(given);
        self.gap = self.gap.map(|gap| gap - given);
        self.retries.read_to = self.retries.read_to.saturating_sub(given);
        if let State::Block(start, _) = &mut self.state {
            *start -= given;
        }
    }
}

/// What begins at a character.
enum Markup {
    /// The closing tag around a call, which ends there.
    Wrapper(usize),
    /// With where its content begins.
    Opening(Opening, usize),
}

/// What is wrong with the text of a call that holds more than parameters, if it is one.
pub(crate) fn unread_call(text: &str) -> Option<&'static str> {
    let is_call =
        ["<tool:", "<function=", "<tool_call>", "^^^"].iter().any(|m| text.starts_with(m))
            || text.starts_with('<') && text.contains("invoke name=");
    is_call.then_some(
        "The call holds text that belongs to no parameter: write each argument as a parameter, as \
         the instructions show.",
    )
}

/// A text is not read again more often than this, be it ever so broken: it stays linear.
const MAX_RETRIES: u32 = 16;

/// Bytes that may begin markup, code, or a line.
const SPECIAL: [bool; 256] = {
    let mut special = [false; 256];
    let mut bytes: &[u8] = b"<[^`~\r\n";
    while let [byte, rest @ ..] = bytes {
        special[*byte as usize] = true;
        bytes = rest;
    }
    special
};
