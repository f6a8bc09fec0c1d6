//! Takes a loop forward turn by turn, and says something in between:
//! `cargo run -p toolloop --example turns`
//!
//! The model is a mock, so this runs anywhere.

use std::sync::Arc;

use serde_json::json;
use toolloop::mock::MockProvider;
use toolloop::tool::{ToolLoopHandle, TurnResult};
use toolloop::{
    ChatMessage, ChatParams, ChatResponse, ContentBlock, LlmError, ToolCall, ToolLoopConfig,
    ToolRegistry, tool,
};

/// Looks something up.
#[tool(read_only)]
fn look_up(
    /** What to look up */
    word: String,
) -> String {
    format!("{word}: a word of {} letters", word.len())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), LlmError> {
    let model = MockProvider::default();
    for word in ["loop", "tool"] {
        let arguments = json!({ "word": word });
        let call = ToolCall { id: word.into(), name: "look_up".into(), arguments };
        let content = vec![ContentBlock::ToolCall(call)];
        model.queue_response(ChatResponse { content, ..ChatResponse::default() });
    }
    model.queue_text("Both have four letters.");

    let mut registry = ToolRegistry::<()>::new();
    registry.register(look_up);
    let params = ChatParams {
        messages: vec![ChatMessage::user("Compare loop and tool.")],
        ..ChatParams::default()
    };
    let config = ToolLoopConfig::default();
    let mut handle =
        ToolLoopHandle::new(Arc::new(model), Arc::new(registry), params, config, Arc::new(()))?;
    loop {
        match handle.next_turn().await {
            TurnResult::Yielded(turn) => {
                println!("turn {}: {}", turn.iteration, turn.results[0].content);
                match turn.iteration {
                    1 => turn.inject_and_continue(vec![ChatMessage::user("Be brief.")]),
                    _ => turn.continue_loop(),
                }
            }
            TurnResult::Completed(done) => {
                println!("{}", done.response.text().unwrap_or_default());
                return Ok(());
            }
            TurnResult::Error(failed) => return Err(failed.error),
        }
    }
}
