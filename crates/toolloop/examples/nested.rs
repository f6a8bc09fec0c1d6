//! A tool that asks a model of its own; its tokens count for the outer loop:
//! `cargo run -p toolloop --example nested`
//!
//! The models are mocks, so this runs anywhere.

use std::sync::Arc;

use serde_json::json;
use toolloop::mock::MockProvider;
use toolloop::tool::tool_loop;
use toolloop::{
    Agent, ChatMessage, ChatParams, ChatResponse, ContentBlock, LlmError, LoopContext, ToolCall,
    ToolLoopConfig, ToolRegistry, Usage, tool,
};

type Shared = LoopContext<Arc<MockProvider>>;

/// Gives a question to a specialist.
#[tool]
async fn ask_specialist(
    ctx: &Shared,
    /** The question */
    question: String,
) -> Result<String, LlmError> {
    let params =
        ChatParams { messages: vec![ChatMessage::user(question)], ..ChatParams::default() };
    let tools = ToolRegistry::new();
    let answer = tool_loop(&*ctx.state, &tools, params, ToolLoopConfig::default(), ctx).await?;
    Ok(answer.response.text().unwrap_or_default().to_owned())
}

fn reply(block: ContentBlock, output_tokens: u64) -> ChatResponse {
    let usage = Usage { output_tokens, ..Usage::default() };
    ChatResponse { content: vec![block], usage, ..ChatResponse::default() }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), LlmError> {
    let arguments = json!({ "question": "Why is the sky blue?" });
    let call = ToolCall { id: "call_1".into(), name: "ask_specialist".into(), arguments };
    let model = MockProvider::default();
    model.queue_response(reply(ContentBlock::ToolCall(call), 20));
    model.queue_response(reply(ContentBlock::Text("The specialist says: scattering.".into()), 10));
    let specialist = MockProvider::default();
    specialist.queue_response(reply(ContentBlock::Text("Rayleigh scattering.".into()), 300));

    let agent = Agent::from_provider(Arc::new(model))
        .ctx(Shared::new(Arc::new(specialist)))
        .tool(ask_specialist);
    let result = agent.run("Ask why the sky is blue.").await?;
    println!("{}", result.response.text().unwrap_or_default());
    println!("{} (20 + 300 + 10 tokens written)", result.total_usage);
    Ok(())
}
