//! What holds for any text: nothing is lost, no markup is shown, and time is linear.

use std::collections::VecDeque;
use std::time::Instant;

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::json;
use toolloop_core::dialect::render::render;
use toolloop_core::dialect::{Dialect, End, Scanner, ToolLimit};
use toolloop_core::{ChatMessage, ChatParams, ChatRole, ContentBlock, ToolCall};

use super::super::plan;
use super::cases::cases;
use super::reading::{Part, read, tools};

/// Pieces of markup and of what looks like it.
const FRAGMENTS: [&str; 56] = [
    "<tool:bash>",
    "<tool:now>",
    "<tool:fly>",
    "</tool:bash>",
    "</tool:now>",
    "<param:command>",
    "</param:command>",
    "&lt;param:",
    "^^^bash",
    "^^^now",
    "^^^",
    "command: ls",
    "content ---",
    "--- content",
    "paths: [",
    "]",
    "<tool_call>",
    "</tool_call>",
    "{\"name\": \"now\"}",
    "{\"na",
    "<function=now>",
    "</function>",
    "<parameter=x>",
    "</parameter>",
    "<invoke name=\"now\">",
    "</invoke>",
    "<n:function_calls>",
    "<n:invoke name=\"now\">",
    "</n:invoke>",
    "</n:function_calls>",
    "[TOOL_CALLS]",
    "[{\"name\": \"now\"}]",
    "now[ARGS]",
    "{'name': 'now',}",
    "<|python_tag|>",
    "<tool:now/>",
    "<param:x />",
    "<invoke name='now'/>",
    "<function = now",
    "functions.",
    "- ",
    "> ",
    "1. ",
    "/>",
    "<think>",
    "</think>",
    "`",
    "```",
    "~~~",
    "\n",
    "\n",
    "\r\n",
    " ",
    "<",
    "漢",
    "text",
];

fn soup() -> impl Strategy<Value = String> {
    vec(prop::sample::select(FRAGMENTS.to_vec()), 0..14).prop_map(|parts| parts.concat())
}

fn dialect() -> impl Strategy<Value = Dialect> {
    prop::sample::select(vec![Dialect::Xml, Dialect::Caret, Dialect::Native])
}

fn limit() -> impl Strategy<Value = ToolLimit> {
    prop::sample::select(vec![ToolLimit::Unlimited, ToolLimit::One, ToolLimit::N(2)])
}

fn end() -> impl Strategy<Value = End> {
    prop::sample::select(vec![End::Proper, End::Limit, End::Interrupted])
}

fn pieces<'a>(text: &'a str, cuts: &[usize]) -> Vec<&'a str> {
    let mut ends: Vec<usize> = cuts.iter().map(|cut| cut % (text.len() + 1)).collect();
    ends.retain(|end| text.is_char_boundary(*end));
    ends.extend([0, text.len()]);
    ends.sort_unstable();
    ends.windows(2).map(|ends| &text[ends[0]..ends[1]]).collect()
}

proptest! {
    #![proptest_config(plan::cases(800))]

    /// However a text is cut, it holds the same.
    #[test]
    fn cuts_change_nothing(
        text in soup(), dialect in dialect(), limit in limit(), end in end(),
        cuts in vec(any::<usize>(), 0..20),
    ) {
        let whole = read(dialect, limit, end, [&*text]);
        prop_assert_eq!(read(dialect, limit, end, pieces(&text, &cuts)), whole.clone());
        let letters = (0..text.len()).collect::<Vec<_>>();
        prop_assert_eq!(read(dialect, limit, end, pieces(&text, &letters)), whole);
    }

    /// What is no call is text: all of it, in order.
    #[test]
    fn nothing_is_swallowed(text in soup(), dialect in dialect(), end in end()) {
        // The tags of an empty thought leave nothing behind.
        let text = text.replace("<think>", "").replace("</think>", "");
        let parts = read(dialect, ToolLimit::Unlimited, end, [&*text]);
        // Each piece of text stands in it, one behind the other, and only markup between.
        let mut rest = &*text;
        for part in &parts {
            if let Part::Text(text) = part {
                let at = rest.find(text.as_str());
                prop_assert!(at.is_some(), "{text:?} is not in {rest:?}");
                rest = &rest[at.unwrap() + text.len()..];
            }
        }
        let is_text = parts.iter().all(|part| matches!(part, Part::Text(_)));
        if is_text {
            let expected = if text.is_empty() { vec![] } else { vec![Part::Text(text)] };
            prop_assert_eq!(parts, expected);
        }
    }

    /// Of what the model was asked to write, the user sees no markup.
    #[test]
    fn no_markup_is_shown(
        chosen in vec((any::<prop::sample::Index>(), "[a-z ]{1,8}"), 1..6),
        dialect in dialect(),
        cuts in vec(any::<usize>(), 0..20),
    ) {
        let known: Vec<_> = cases()
            .into_iter()
            .filter(|case| {
                // A call may lack its end only where the reply ends.
                let has_end = !case.name.contains("closing tag the server took");
                let is_whole = case.end == End::Proper && case.limit == ToolLimit::Unlimited;
                case.dialect == dialect && case.is_well_formed() && is_whole && has_end
            })
            .collect();
        let mut text = String::new();
        for (index, between) in &chosen {
            text += &format!("{}\n\n{between}\n\n", index.get(&known).text);
        }
        for part in read(dialect, ToolLimit::Unlimited, End::Proper, pieces(&text, &cuts)) {
            if let Part::Text(text) = part {
                // But for tags in code.
                let shown = text.replace("```\n<tool:bash>\n```", "");
                prop_assert!(!shown.contains(['<', '^', '[']), "{text:?}");
            }
        }
    }

    /// A piece of plain text goes out at once and as it is.
    #[test]
    fn plain_text_is_not_held(pieces in vec("[a-zäß .,:;(){}>#*_-]{1,9}", 1..9), dialect in dialect()) {
        let mut scanner = Scanner::new(dialect, &tools(), ToolLimit::One);
        for piece in pieces {
            let mut events = VecDeque::new();
            scanner.push(piece.clone(), &mut events).unwrap();
            prop_assert_eq!(events, [toolloop_core::StreamEvent::TextDelta(piece)]);
        }
    }
}

fn time(dialect: Dialect, text: &str, piece: usize) -> f64 {
    let bytes: Vec<_> = text.as_bytes().chunks(piece).collect();
    let pieces: Vec<_> = bytes.iter().map(|piece| str::from_utf8(piece).unwrap()).collect();
    let start = Instant::now();
    read(dialect, ToolLimit::Unlimited, End::Proper, pieces);
    start.elapsed().as_secs_f64()
}

/// Four times the text takes about four times as long; sixteen times would be quadratic.
#[test]
fn hostile_text_takes_linear_time() {
    for (dialect, hostile) in [
        (Dialect::Xml, "<"),
        (Dialect::Xml, "\n"),
        (Dialect::Xml, "<tool:bash>"),
        (Dialect::Xml, "<tool:bash>x"),
        (Dialect::Xml, "<tool:bash><param:command>"),
        (Dialect::Xml, "<tool:bash><param:command></"),
        (Dialect::Xml, "<tool:bash><param:a></param:a><param:b>"),
        (Dialect::Xml, "<tool:fly><param:x>"),
        (Dialect::Xml, "<think>"),
        (Dialect::Caret, "^"),
        (Dialect::Caret, "^^^bash\n"),
        (Dialect::Caret, "^^^write_file\ncontent ---\n"),
        (Dialect::Native, "`"),
        (Dialect::Native, "["),
        (Dialect::Native, "<tool_call>"),
        (Dialect::Native, "<tool_call>{"),
        (Dialect::Native, "<tool_call>{\"a\": \""),
        (Dialect::Native, "<function=now><parameter=x>"),
        (Dialect::Native, "<invoke name=\"now\"><parameter name=\"x\">"),
        (Dialect::Native, "<n:function_calls>"),
        (Dialect::Native, "[TOOL_CALLS][["),
        (Dialect::Native, "[TOOL_CALLS]now[ARGS]{'"),
        (Dialect::Native, "<tool_call>{'a',}"),
        (Dialect::Native, "<tool_call>[,,,"),
        (Dialect::Native, "<invoke name ="),
        (Dialect::Xml, "<tool:now/>"),
        (Dialect::Xml, "- ```\n"),
        (Dialect::Xml, "> 1. "),
        (Dialect::Caret, "^^^bash\ncommand: [\n"),
    ] {
        // Long enough that a busy machine interrupts the short one, too.
        for (piece, size) in [(1, 1 << 13), (1 << 20, 1 << 15)] {
            let text = |bytes: usize| hostile.repeat(bytes / hostile.len());
            let (short, long) = (text(size), text(4 * size));
            let growth = || time(dialect, &long, piece) / time(dialect, &short, piece);
            // A busy machine may have paused us.
            let is_linear = (0..20).any(|_| growth() < 8.0);
            assert!(is_linear, "{dialect:?} {hostile:?} in pieces of {piece}");
        }
    }
}

/// Output that is full of brackets is escaped in linear time, too.
#[test]
fn hostile_results_take_linear_time() {
    for hostile in ["<", "</", "a<b ", "^^^\n", "--- \n", "[TOOL_CALLS]", "param:", "&lt;param:"] {
        let time = |bytes: usize| {
            let output = hostile.repeat(bytes / hostile.len());
            let arguments = json!({"command": output});
            let call = ToolCall { id: "1".into(), name: "bash".into(), arguments };
            let said = vec![ContentBlock::ToolCall(call)];
            let messages = vec![
                ChatMessage { role: ChatRole::Assistant, content: said },
                ChatMessage::tool_result("1", output),
            ];
            let params = ChatParams { messages, ..ChatParams::default() };
            let start = Instant::now();
            render(Dialect::Xml, ToolLimit::One, &params);
            start.elapsed().as_secs_f64()
        };
        // A busy machine may have paused us.
        let is_linear = (0..20).any(|_| time(1 << 18) / time(1 << 16) < 8.0);
        assert!(is_linear, "{hostile:?}");
    }
}
