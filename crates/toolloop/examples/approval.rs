//! Asks a person before a tool runs, while clock and cancellation go on:
//! `cargo run -p toolloop --example approval`
//!
//! The model is a mock, so this runs anywhere.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader, stdin};
use toolloop::mock::MockProvider;
use toolloop::tool::{ToolApproval, ToolLoopConfig};
use toolloop::{Agent, ChatResponse, ContentBlock, LlmError, ToolCall, tool};

/// Deletes a file.
#[tool]
fn delete_file(
    /** Path of the file */
    path: String,
) -> String {
    format!("{path} is gone (not really)")
}

async fn ask(call: ToolCall) -> ToolApproval {
    println!("May I run {call}? [y/N]");
    let answer = BufReader::new(stdin()).lines().next_line().await;
    match answer {
        Ok(Some(line)) if line.trim() == "y" => ToolApproval::Approve,
        _ => ToolApproval::Deny("the user said no".into()),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), LlmError> {
    let arguments = json!({ "path": "notes.txt" });
    let call = ToolCall { id: "call_1".into(), name: "delete_file".into(), arguments };
    let model = MockProvider::default();
    model.queue_response(ChatResponse {
        content: vec![ContentBlock::ToolCall(call)],
        ..ChatResponse::default()
    });
    model.queue_text("That is settled.");

    let config = ToolLoopConfig {
        on_approval: Some(Arc::new(|call| Box::pin(ask(call)))),
        timeout: Some(Duration::from_secs(60)),
        ..ToolLoopConfig::default()
    };
    let agent = Agent::from_provider(Arc::new(model)).tool(delete_file).config(config);
    let result = agent.run("Clean up.").await?;
    for message in &result.messages {
        println!("{message:?}");
    }
    println!("{:?}", result.termination_reason);
    Ok(())
}
