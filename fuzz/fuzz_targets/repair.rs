//! Any conversation can be repaired, and what is repaired stays as it is.

#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::json;
use toolloop_core::transcript::{keeps_grammar, repair};
use toolloop_core::{ChatMessage, ChatRole, ContentBlock, ProviderData, ToolCall, ToolResult};

fuzz_target!(|bytes: &[u8]| {
    let mut messages = conversation(bytes);
    repair(&mut messages);
    assert!(keeps_grammar(&messages), "{messages:#?}");
    let repaired = messages.clone();
    assert_eq!(repair(&mut messages), Vec::<String>::new());
    assert_eq!(messages, repaired);
});

/// Each byte is a block: its low bits say of which kind and with which id, the high bit whether
/// a message begins with it.
fn conversation(bytes: &[u8]) -> Vec<ChatMessage> {
    let mut messages: Vec<ChatMessage> = Vec::new();
    for byte in bytes {
        let id = ["a", "b", "a_2", ""][usize::from(byte >> 3 & 3)].to_owned();
        let block = match byte & 7 {
            0 => ContentBlock::Text(String::new()),
            1 => ContentBlock::Text("text".into()),
            2 => ContentBlock::Reasoning { content: id },
            3 => ContentBlock::ProviderData(ProviderData { api: id, data: "x".into() }),
            4 | 5 => {
                ContentBlock::ToolCall(ToolCall { id, name: "add".into(), arguments: json!({}) })
            }
            _ => ContentBlock::ToolResult(ToolResult {
                tool_call_id: id,
                content: "ok".into(),
                is_error: false,
            }),
        };
        let role = match byte >> 5 & 3 {
            0 => ChatRole::System,
            1 => ChatRole::User,
            2 => ChatRole::Assistant,
            _ => ChatRole::Tool,
        };
        match messages.last_mut() {
            Some(message) if byte & 0x80 == 0 => message.content.push(block),
            _ => messages.push(ChatMessage { role, content: vec![block] }),
        }
    }
    messages
}
