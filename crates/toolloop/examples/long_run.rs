//! A run whose conversation is too long for its requests:
//! `cargo run -p toolloop --example long_run`
//!
//! The model is a mock, so this runs anywhere.

use std::sync::Arc;

use serde_json::json;
use toolloop::mock::MockProvider;
use toolloop::tool::CompactionConfig;
use toolloop::{
    Agent, ChatResponse, ContentBlock, LlmError, LoopEvent, StreamExt, ToolCall, ToolLoopConfig,
    tool,
};

/// Reads a chapter.
#[tool(read_only)]
fn read(
    /** Its number */
    chapter: u32,
) -> String {
    format!("Chapter {chapter}. ").repeat(500)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), LlmError> {
    let model = MockProvider::default();
    for chapter in 1..=3 {
        let arguments = json!({ "chapter": chapter });
        let call = ToolCall { id: format!("c{chapter}"), name: "read".into(), arguments };
        let content = vec![ContentBlock::ToolCall(call)];
        model.queue_response(ChatResponse { content, ..ChatResponse::default() });
    }
    model.queue_text("Chapters 1 and 2 say who they are.");
    model.queue_text("Every chapter says its number.");

    let compaction =
        CompactionConfig { threshold: 4_000, target: 2_500, ..CompactionConfig::default() };
    let config = ToolLoopConfig {
        compaction: Some(CompactionConfig { max_summary_tokens: 500, ..compaction }),
        ..ToolLoopConfig::default()
    };
    let agent = Agent::from_provider(Arc::new(model)).tool(read).config(config);
    let mut events = agent.stream("What is the book about?");
    while let Some(event) = events.next().await {
        match event? {
            LoopEvent::Compacted { hidden_count, tokens_before, tokens_after, .. } => println!(
                "{hidden_count} messages summed up: {tokens_before} tokens, now {tokens_after}"
            ),
            LoopEvent::TextDelta(text) => println!("{text}"),
            LoopEvent::Done(result) => println!("{} messages are kept", result.messages.len()),
            _ => {}
        }
    }
    Ok(())
}
