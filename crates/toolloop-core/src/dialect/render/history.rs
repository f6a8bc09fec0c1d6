//! [`messages`]: the calls and results of a conversation as text.

use std::collections::HashMap;

use super::call::call;
use crate::chat::{ChatMessage, ChatRole, ContentBlock, ToolResult};
use crate::dialect::Dialect;
use crate::dialect::escape::escape_result;

/// The conversation with its calls and results as text. Results become what the user says; those
/// of one reply are one message.
pub(super) fn messages(dialect: Dialect, messages: &[ChatMessage]) -> Vec<ChatMessage> {
    let mut names: HashMap<&str, &str> = HashMap::new();
    let mut rendered: Vec<ChatMessage> = Vec::with_capacity(messages.len());
    let mut follows_results = false;
    for message in messages {
        names.extend(message.tool_calls().map(|call| (call.id.as_str(), call.name.as_str())));
        let content = match message.role {
            ChatRole::Assistant => said(dialect, &message.content),
            _ => told(dialect, &message.content, &names),
        };
        let is_result = message.tool_results().next().is_some();
        match rendered.last_mut().filter(|_| is_result && follows_results) {
            Some(results) => results.content.extend(content),
            None => {
                let role = if is_result { ChatRole::User } else { message.role };
                rendered.push(ChatMessage { role, content });
            }
        }
        follows_results = is_result;
    }
    rendered
}

/// What the model said, its calls behind the text they follow.
fn said(dialect: Dialect, blocks: &[ContentBlock]) -> Vec<ContentBlock> {
    let mut content: Vec<ContentBlock> = Vec::with_capacity(blocks.len());
    let has_calls = blocks.iter().any(|block| matches!(block, ContentBlock::ToolCall(_)));
    for block in blocks {
        match (block, content.last_mut()) {
            (ContentBlock::ToolCall(made), last) => {
                let block = call(dialect, &made.name, &made.arguments);
                match last {
                    Some(ContentBlock::Text(text)) => {
                        text.truncate(text.trim_end().len());
                        *text += &format!("\n\n{block}");
                    }
                    _ => content.push(ContentBlock::Text(block)),
                }
            }
            // It belongs to a text that is another now, or to a call that is none any more.
            (ContentBlock::ProviderData(_), Some(ContentBlock::Text(_))) if has_calls => {}
            (block, _) => content.push(block.clone()),
        }
    }
    content
}

fn told(
    dialect: Dialect,
    blocks: &[ContentBlock],
    names: &HashMap<&str, &str>,
) -> Vec<ContentBlock> {
    let mut content = Vec::with_capacity(blocks.len());
    for block in blocks {
        let ContentBlock::ToolResult(answer) = block else {
            content.push(block.clone());
            continue;
        };
        let name = names.get(answer.tool_call_id.as_str()).copied().unwrap_or("unknown");
        content.push(ContentBlock::Text(result(dialect, name, answer)));
        let images = answer.content.images.iter().cloned();
        content.extend(
            images.map(|image| ContentBlock::Image {
                media_type: image.media_type,
                data: image.data,
            }),
        );
    }
    content
}

fn result(dialect: Dialect, name: &str, result: &ToolResult) -> String {
    let text = escape_result(&result.content);
    match (dialect, result.is_error) {
        (Dialect::Caret, false) => format!("result of {name} ---\n{text}\n--- result of {name}"),
        (Dialect::Caret, true) => format!("error of {name} ---\n{text}\n--- error of {name}"),
        (_, false) => format!("<result:{name}>\n{text}\n</result:{name}>"),
        (_, true) => format!("<result:{name} status=\"error\">\n{text}\n</result:{name}>"),
    }
}
