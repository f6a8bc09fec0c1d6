//! Code around each call of a model and of a tool: `cargo run -p toolloop --example interceptors`
//!
//! The model is a mock, so this runs anywhere.

use std::sync::Arc;
use std::time::Instant;

use serde_json::json;
use toolloop::intercept::{
    ModelInterceptors, ModelNext, ToolInterceptors, ToolNext, ToolRequest, as_stream,
};
use toolloop::mock::MockProvider;
use toolloop::provider::BoxFuture;
use toolloop::{
    Agent, ChatParams, ChatResponse, ChatStream, ContentBlock, LlmError, ToolCall, ToolFuture,
    ToolRegistry, tool,
};

/// Adds two numbers.
#[tool(read_only)]
fn add(
    /** First */
    a: i64,
    /** Second */
    b: i64,
) -> i64 {
    a + b
}

/// Waits for the whole reply and says what it cost.
fn timed<'a>(
    params: &'a ChatParams,
    next: ModelNext<'a>,
) -> BoxFuture<'a, Result<ChatStream, LlmError>> {
    Box::pin(async move {
        let started = Instant::now();
        let response = next.response(params).await?;
        println!("model: {} in {:?}", response.usage, started.elapsed());
        Ok(as_stream(response))
    })
}

/// Says what each tool was asked and what it said.
fn logged<'a>(request: ToolRequest<'a>, next: ToolNext<'a>) -> ToolFuture<'a> {
    Box::pin(async move {
        println!("tool: {}({})", request.name, request.input);
        let output = next.run(request).await?;
        println!("tool: {}", output.content);
        Ok(output)
    })
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), LlmError> {
    let model = MockProvider::default();
    let arguments = json!({"a": 2, "b": 2});
    let call = ToolCall { id: "c1".into(), name: "add".into(), arguments };
    let content = vec![ContentBlock::ToolCall(call)];
    model.queue_response(ChatResponse { content, ..ChatResponse::default() });
    model.queue_text("4, of course.");

    let mut tools = ToolRegistry::new();
    tools.register(add);
    let model = ModelInterceptors::new().with(timed).around(Arc::new(model));
    let tools = ToolInterceptors::new().with(logged).around(&tools);
    let result = Agent::from_provider(model).tools(&tools).run("What is 2 + 2?").await?;
    println!("{}", result.response.text().unwrap_or_default());
    Ok(())
}
