//! Messages sent while a loop runs go in before the next model call.

use std::sync::Arc;

use serde_json::json;
use toolloop::mock::MockProvider;
use toolloop::tool::{Inbox, ToolLoopConfig};
use toolloop::{
    Agent, ChatMessage, ChatResponse, ContentBlock, JsonSchema, StopReason, TerminationReason,
    ToolCall, ToolDefinition, tool_fn,
};

fn calls_tool() -> ChatResponse {
    let call = ToolCall { id: "c1".into(), name: "work".into(), arguments: json!({}) };
    ChatResponse { content: vec![ContentBlock::ToolCall(call)], ..ChatResponse::default() }
}

fn definition() -> ToolDefinition {
    ToolDefinition {
        name: "work".into(),
        description: "Works.".into(),
        parameters: JsonSchema::new(json!({ "type": "object" })),
        retry: None,
    }
}

/// An agent whose tool sends a message while it runs.
fn agent(model: &Arc<MockProvider>, max_iterations: u32) -> Agent {
    let inbox = Inbox::new();
    let config =
        ToolLoopConfig { inbox: Some(inbox.clone()), max_iterations, ..ToolLoopConfig::default() };
    let work = tool_fn(definition(), move |_| {
        inbox.send(ChatMessage::user("be brief"));
        async { Ok("worked") }
    });
    Agent::from_provider(model.clone()).tool(work).config(config)
}

#[tokio::test(start_paused = true)]
async fn a_message_goes_in_behind_the_results() {
    let model = Arc::new(MockProvider::default());
    model.queue_response(calls_tool()).queue_text("done");
    let result = agent(&model, 10).run("go").await.unwrap();
    let said = &model.recorded_calls()[1].messages;
    assert_eq!(said.last(), Some(&ChatMessage::user("be brief")));
    assert_eq!(said[said.len() - 2], ChatMessage::tool_result("c1", "worked"));
    assert_eq!(result.termination_reason, TerminationReason::Complete);
}

#[tokio::test(start_paused = true)]
async fn a_run_about_to_end_goes_on_to_answer() {
    let model = Arc::new(MockProvider::default());
    model.queue_text("first").queue_text("second");
    let inbox = Inbox::new();
    inbox.send(ChatMessage::user("and then?"));
    let config = ToolLoopConfig { inbox: Some(inbox), ..ToolLoopConfig::default() };
    let result = Agent::from_provider(model).config(config).run("go").await.unwrap();
    let expected = [
        ChatMessage::user("go"),
        ChatMessage::assistant("first"),
        ChatMessage::user("and then?"),
        ChatMessage::assistant("second"),
    ];
    assert_eq!(result.messages, expected);
}

#[tokio::test(start_paused = true)]
async fn a_model_that_refused_is_not_asked_on() {
    let model = Arc::new(MockProvider::default());
    model.queue_response(ChatResponse {
        content: vec![ContentBlock::Text("No.".into())],
        stop_reason: StopReason::Refusal,
        ..ChatResponse::default()
    });
    let inbox = Inbox::new();
    inbox.send(ChatMessage::user("and then?"));
    let config = ToolLoopConfig { inbox: Some(inbox), ..ToolLoopConfig::default() };
    let result = Agent::from_provider(model).config(config).run("go").await.unwrap();
    let expected =
        [ChatMessage::user("go"), ChatMessage::assistant("No."), ChatMessage::user("and then?")];
    assert_eq!(result.messages, expected);
    let refusal = TerminationReason::StopCondition { reason: Some("refusal".into()) };
    assert_eq!(result.termination_reason, refusal);
}

#[tokio::test(start_paused = true)]
async fn at_the_limit_the_message_stays_in_the_conversation() {
    let model = Arc::new(MockProvider::default());
    model.queue_response(calls_tool());
    let result = agent(&model, 1).run("go").await.unwrap();
    assert_eq!(result.messages.last(), Some(&ChatMessage::user("be brief")));
    assert_eq!(result.termination_reason, TerminationReason::MaxIterations { limit: 1 });
}
