//! Runs the tools of a model itself, step by step: `cargo run -p toolloop --example chat_loop`
//!
//! The model is a mock, so this runs anywhere.

use serde_json::json;
use toolloop::chat_loop::LoopStep;
use toolloop::mock::MockProvider;
use toolloop::{ChatLoopExt, ChatMessage, ChatResponse, ContentBlock, ToolCall, ToolResult};
use toolloop::{JsonSchema, LlmError, ToolDefinition};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), LlmError> {
    let model = MockProvider::default();
    let call = ToolCall { id: "c1".into(), name: "add".into(), arguments: json!({"a": 2, "b": 3}) };
    let content = vec![ContentBlock::Text("Let me add.".into()), ContentBlock::ToolCall(call)];
    model.queue_response(ChatResponse { content, ..ChatResponse::default() });
    model.queue_text("It is 5.");

    let add = ToolDefinition {
        name: "add".into(),
        description: "Adds two numbers.".into(),
        parameters: JsonSchema::new(json!({"type": "object", "required": ["a", "b"]})),
        retry: None,
    };
    let mut steps = model.chat_loop(vec![ChatMessage::user("2 + 3?")], vec![add]);
    while let Some(step) = steps.next().await {
        match step? {
            LoopStep::Content(text) => println!("{text}"),
            LoopStep::ToolCallsRequested { tool_calls, .. } => {
                steps.submit_tool_results(tool_calls.into_iter().map(run).collect())?;
            }
            LoopStep::Done { total_usage, .. } => println!("({total_usage})"),
            _ => {}
        }
    }
    Ok(())
}

fn run(call: ToolCall) -> ToolResult {
    let sum = call.arguments["a"].as_i64().zip(call.arguments["b"].as_i64()).map(|(a, b)| a + b);
    let content = sum.map_or("a and b must be whole numbers".into(), |sum| sum.to_string());
    ToolResult { tool_call_id: call.id, content: content.into(), is_error: sum.is_none() }
}
