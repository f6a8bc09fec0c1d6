//! What holds for each scanner: no panic, the same for any cuts, nothing held at the end.

use std::collections::VecDeque;

use toolloop_core::dialect::{Dialect, End, Scanner, ToolLimit};
use toolloop_core::{StreamEvent, ToolCall, ToolDefinition};

#[derive(Debug, PartialEq)]
enum Part {
    Text(String),
    Thought(String),
    Call(ToolCall),
    Other(StreamEvent),
}

/// The first byte says where the text is cut, and how it ends.
pub fn check(dialect: Dialect, input: &str) {
    let seed = input.bytes().next().unwrap_or_default();
    let limit = [ToolLimit::Unlimited, ToolLimit::One][usize::from(seed >> 2 & 1)];
    let end = [End::Proper, End::Limit, End::Interrupted][usize::from(seed >> 3) % 3];
    let whole = read(dialect, limit, end, [input]);
    let single = input.char_indices().map(|(at, c)| &input[at..at + c.len_utf8()]);
    assert_eq!(read(dialect, limit, end, single), whole);
    let cuts = (0..=input.len()).filter(|at| input.is_char_boundary(*at));
    let mut ends: Vec<usize> = cuts.filter(|at| at % (usize::from(seed & 3) + 3) == 0).collect();
    ends.push(input.len());
    let pieces = ends.windows(2).map(|ends| &input[ends[0]..ends[1]]);
    assert_eq!(read(dialect, limit, end, pieces), whole);
    if whole.iter().all(|part| matches!(part, Part::Text(_))) && limit == ToolLimit::Unlimited {
        let text: String = whole
            .iter()
            .map(|part| match part {
                Part::Text(text) => text.as_str(),
                _ => "",
            })
            .collect();
        assert!(text == input || input.contains("<think"), "{text:?}");
    }
}

fn read<'a>(
    dialect: Dialect,
    limit: ToolLimit,
    end: End,
    pieces: impl IntoIterator<Item = &'a str>,
) -> Vec<Part> {
    let tool = |name: &str| ToolDefinition {
        name: name.into(),
        description: String::new(),
        parameters: serde_json::json!({"properties": {
            "paths": {"type": "array", "items": {"type": "string"}},
            "timeout": {"type": "integer"},
        }})
        .into(),
        retry: None,
    };
    let tools = ["bash", "read_files", "write_file", "now"].map(tool);
    let mut scanner = Scanner::new(dialect, &tools, limit);
    let mut events = VecDeque::new();
    let pushed = pieces.into_iter().try_for_each(|piece| scanner.push(piece.into(), &mut events));
    let _ = pushed.and_then(|()| scanner.finish(end, &mut events));
    let mut parts = Vec::new();
    for event in events {
        match (event, parts.last_mut()) {
            (StreamEvent::TextDelta(more), Some(Part::Text(text)))
            | (StreamEvent::ReasoningDelta(more), Some(Part::Thought(text))) => {
                text.push_str(&more);
            }
            (StreamEvent::TextDelta(text), _) => parts.push(Part::Text(text)),
            (StreamEvent::ReasoningDelta(text), _) => parts.push(Part::Thought(text)),
            (StreamEvent::ToolCallComplete { call, .. }, _) => parts.push(Part::Call(call)),
            (other, _) => parts.push(Part::Other(other)),
        }
    }
    parts
}
