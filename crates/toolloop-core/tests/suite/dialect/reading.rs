//! Reads a text in pieces and joins what the pieces tore apart.

use std::collections::VecDeque;

use serde_json::{Value, json};
use toolloop_core::dialect::{Dialect, End, Scanner, StreamingError, ToolLimit};
use toolloop_core::{StreamEvent, ToolDefinition};

/// What a text holds, in order, cut nowhere.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Part {
    Text(String),
    Thought(String),
    /// Name and arguments.
    Call(String, Value),
    /// A call that the limit of tokens cut, with what there was of it.
    Cut(String, String),
    /// The call before had leaked.
    Rescued,
    LimitReached,
}

pub(crate) fn text(text: &str) -> Part {
    Part::Text(text.to_owned())
}

pub(crate) fn thought(text: &str) -> Part {
    Part::Thought(text.to_owned())
}

pub(crate) fn call(name: &str, arguments: Value) -> Part {
    Part::Call(name.to_owned(), arguments)
}

pub(crate) fn tool(name: &str, properties: Value) -> ToolDefinition {
    ToolDefinition {
        name: name.into(),
        description: format!("Does {name}."),
        parameters: json!({"type": "object", "properties": properties}).into(),
        retry: None,
    }
}

pub(crate) fn tools() -> Vec<ToolDefinition> {
    let text = json!({"type": "string"});
    vec![
        tool("bash", json!({"command": text, "timeout": {"type": "integer"}})),
        tool("read_files", json!({"paths": {"type": "array", "items": text}})),
        tool("write_file", json!({"path": text, "content": text, "append": {"type": "boolean"}})),
        tool("now", json!({})),
    ]
}

pub(crate) fn read<'a>(
    dialect: Dialect,
    limit: ToolLimit,
    end: End,
    pieces: impl IntoIterator<Item = &'a str>,
) -> Vec<Part> {
    let mut scanner = Scanner::new(dialect, &tools(), limit);
    let mut events = VecDeque::new();
    let pushed = pieces.into_iter().try_for_each(|piece| scanner.push(piece.into(), &mut events));
    let read = pushed.and_then(|()| scanner.finish(end, &mut events));
    let mut parts = joined(events);
    if read == Err(StreamingError::ToolLimitReached) {
        parts.push(Part::LimitReached);
    }
    parts
}

pub(crate) fn joined(events: impl IntoIterator<Item = StreamEvent>) -> Vec<Part> {
    let mut parts = Vec::new();
    for event in events {
        match (event, parts.last_mut()) {
            (StreamEvent::TextDelta(more), Some(Part::Text(text)))
            | (StreamEvent::ReasoningDelta(more), Some(Part::Thought(text))) => {
                text.push_str(&more);
            }
            (StreamEvent::TextDelta(text), _) => parts.push(Part::Text(text)),
            (StreamEvent::ReasoningDelta(text), _) => parts.push(Part::Thought(text)),
            (StreamEvent::ToolCallStart { name, .. }, _) => {
                parts.push(Part::Cut(name, String::new()));
            }
            (StreamEvent::ToolCallDelta { json_chunk, .. }, Some(Part::Cut(_, raw))) => {
                raw.push_str(&json_chunk);
            }
            (StreamEvent::ToolCallComplete { call, .. }, Some(last)) => {
                *last = Part::Call(call.name, call.arguments);
            }
            (StreamEvent::ToolCallRescued { .. }, _) => parts.push(Part::Rescued),
            (other, _) => panic!("{other:?}"),
        }
    }
    parts
}
