//! Scripts for models, and models that are slow or mute.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use serde_json::Value;
use toolloop::mock::MockProvider;
use toolloop::{
    ChatParams, ChatResponse, ChatStream, LlmError, Provider, ProviderMetadata, StopReason,
    StreamEvent, ToolCall, Usage,
};

/// A whole reply of 10 tokens in and 1 out, ending as its calls suggest.
pub(crate) fn reply(blocks: impl IntoIterator<Item = StreamEvent>) -> Vec<StreamEvent> {
    let blocks: Vec<_> = blocks.into_iter().collect();
    let calls = blocks.iter().any(|block| matches!(block, StreamEvent::ToolCallComplete { .. }));
    let stop_reason = if calls { StopReason::ToolUse } else { StopReason::EndTurn };
    reply_ending(stop_reason, blocks)
}

/// A whole reply that ends for this reason.
pub(crate) fn reply_ending(
    stop_reason: StopReason,
    blocks: impl IntoIterator<Item = StreamEvent>,
) -> Vec<StreamEvent> {
    let mut calls = 0;
    let mut events: Vec<_> = blocks.into_iter().collect();
    for event in &mut events {
        if let StreamEvent::ToolCallComplete { index, .. } = event {
            *index = calls;
            calls += 1;
        }
    }
    let usage = Usage { input_tokens: 10, output_tokens: 1, ..Usage::default() };
    events.extend([StreamEvent::Usage(usage), StreamEvent::Done { stop_reason }]);
    events
}

/// A whole reply of text.
pub(crate) fn says(words: &str) -> Vec<StreamEvent> {
    reply([text(words)])
}

pub(crate) fn text(words: &str) -> StreamEvent {
    StreamEvent::TextDelta(words.into())
}

pub(crate) fn thought(words: &str) -> StreamEvent {
    StreamEvent::ReasoningDelta(words.into())
}

/// A call that arrives in one piece.
pub(crate) fn call(id: &str, name: &str, arguments: Value) -> StreamEvent {
    let call = ToolCall { id: id.into(), name: name.into(), arguments };
    StreamEvent::ToolCallComplete { index: 0, call }
}

/// A scripted model that takes its time before each event.
#[derive(Debug)]
pub(crate) struct Paced {
    pub(crate) model: Arc<MockProvider>,
    pub(crate) pace: Duration,
}

impl Provider for Paced {
    async fn generate(&self, params: &ChatParams) -> Result<ChatResponse, LlmError> {
        self.model.generate(params).await
    }

    async fn stream(&self, params: &ChatParams) -> Result<ChatStream, LlmError> {
        let events = self.model.stream(params).await?;
        if self.pace.is_zero() {
            return Ok(events);
        }
        let pace = self.pace;
        Ok(Box::pin(events.then(move |event| async move {
            tokio::time::sleep(pace).await;
            event
        })))
    }

    fn metadata(&self) -> ProviderMetadata {
        Provider::metadata(&*self.model)
    }
}

/// A server that takes the request and never answers.
#[derive(Debug)]
pub(crate) struct Mute;

impl Provider for Mute {
    async fn generate(&self, _: &ChatParams) -> Result<ChatResponse, LlmError> {
        std::future::pending().await
    }

    async fn stream(&self, _: &ChatParams) -> Result<ChatStream, LlmError> {
        std::future::pending().await
    }

    fn metadata(&self) -> ProviderMetadata {
        Provider::metadata(&MockProvider::default())
    }
}
