//! What callers put into a conversation, and how they edit it.

use serde_json::Value;
use toolloop::{
    ChatMessage, ChatRole, ContentBlock, ImageSource, ToolCall, ToolContent, ToolResult,
};
use toolloop_core::ToolImage;

use super::choices::Choices;
use super::replies::{arguments, id, name, provider_data, text};

/// Any messages in any order, most of them damaged.
pub(crate) fn messages(choices: &mut Choices) -> Vec<ChatMessage> {
    match choices.below(3) {
        0 => vec![ChatMessage::user("question")],
        1 => vec![ChatMessage::user(text(choices))],
        _ => choices.list(5, message),
    }
}

pub(crate) fn message(choices: &mut Choices) -> ChatMessage {
    use ChatRole::{Assistant, System, Tool, User};
    let role = choices.pick(&[User, Assistant, Tool, System, Assistant, Tool]);
    ChatMessage { role, content: choices.list(4, block) }
}

fn block(choices: &mut Choices) -> ContentBlock {
    match choices.below(11) {
        0..=1 => ContentBlock::Text(text(choices)),
        2..=4 => {
            let arguments = arguments(choices);
            ContentBlock::ToolCall(ToolCall {
                id: id(choices),
                name: name(choices),
                arguments: serde_json::from_str(&arguments).unwrap_or(Value::String(arguments)),
            })
        }
        5..=7 => ContentBlock::ToolResult(ToolResult {
            tool_call_id: id(choices),
            content: tool_content(choices),
            is_error: choices.one_in(3),
        }),
        8 => ContentBlock::Reasoning { content: text(choices) },
        9 => {
            let (media_type, data) = image(choices);
            ContentBlock::Image { media_type, data }
        }
        _ => ContentBlock::ProviderData(provider_data(choices)),
    }
}

pub(crate) fn tool_content(choices: &mut Choices) -> ToolContent {
    let text = text(choices);
    let images = match choices.one_in(6) {
        true => choices.list(2, |choices| {
            let (media_type, data) = image(choices);
            ToolImage { media_type, data }
        }),
        false => Vec::new(),
    };
    let data = ["{\"n\":1.5}", "[]", "\"\"", "null", "3"];
    let structured = choices.one_in(5).then(|| choices.pick(&data));
    let structured = structured.map(|json| serde_json::from_str(json).expect("it is JSON"));
    ToolContent { text, images, structured }
}

fn image(choices: &mut Choices) -> (String, ImageSource) {
    let source = match choices.below(2) {
        0 => ImageSource::Base64("iVBORw0KGgo=".into()),
        _ => ImageSource::Url("https://example.com/a.png".into()),
    };
    ("image/png".into(), source)
}

/// What callers do to a conversation to make it short, and to make it wrong.
pub(crate) fn edit(choices: &mut Choices, messages: &mut Vec<ChatMessage>) {
    for _ in 0..choices.below(3) {
        let len = messages.len();
        if len == 0 {
            return;
        }
        let (at, other) = (choices.below(len), choices.below(len));
        match choices.below(9) {
            0 => drop(messages.drain(..at)),
            1 => {
                let summary = ChatMessage::user("summary of what was said");
                drop(messages.splice(at.min(other)..at.max(other), [summary]));
            }
            2 => messages.truncate(at),
            3 => drop(messages.remove(at)),
            4 => {
                let content = &mut messages[at].content;
                if !content.is_empty() {
                    content.remove(other % content.len());
                }
            }
            5 => {
                let copy = messages[at].clone();
                messages.insert(other, copy);
            }
            6 => messages.swap(at, other),
            7 => {
                for block in &mut messages[at].content {
                    match block {
                        ContentBlock::Text(said) => *said = text(choices),
                        ContentBlock::Reasoning { content } => content.push('!'),
                        ContentBlock::ToolResult(result) => result.content = tool_content(choices),
                        ContentBlock::ToolCall(call) => call.name = name(choices),
                        _ => {}
                    }
                }
            }
            _ => {
                let new = message(choices);
                messages.insert(at, new);
            }
        }
    }
}
