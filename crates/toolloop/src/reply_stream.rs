//! A reply as a stream of its events, and a stream as one reply.

use futures_util::StreamExt;
use toolloop_core::{
    ChatResponse, ChatStream, ContentBlock, LlmError, ReplyAssembler, StreamEvent,
};

/// A reply as the stream of events by which it would have arrived.
pub fn as_stream(response: ChatResponse) -> ChatStream {
    Box::pin(futures_util::stream::iter(events_of(response).into_iter().map(Ok)))
}

/// Waits for the whole reply.
pub(crate) async fn whole(mut stream: ChatStream) -> Result<ChatResponse, LlmError> {
    let mut assembler = ReplyAssembler::detached();
    while let Some(event) = stream.next().await {
        assembler.push(event?)?;
    }
    assembler.into_response()
}

/// The events by which a reply would have arrived.
pub(crate) fn events_of(response: ChatResponse) -> Vec<StreamEvent> {
    let mut events = Vec::new();
    let mut index = 0;
    let mut last_call = None;
    if !response.model.is_empty() {
        events.push(StreamEvent::Model(response.model));
    }
    for block in response.content {
        if !matches!(block, ContentBlock::ToolCall(_) | ContentBlock::ProviderData(_)) {
            last_call = None;
        }
        match block {
            ContentBlock::Text(text) => events.push(StreamEvent::TextDelta(text)),
            ContentBlock::Reasoning { content } => {
                events.push(StreamEvent::ReasoningDelta(content));
            }
            ContentBlock::ToolCall(call) => {
                let (id, name) = (call.id.clone(), call.name.clone());
                events.push(StreamEvent::ToolCallStart { index, id, name });
                let json_chunk = call.arguments.to_string();
                events.push(StreamEvent::ToolCallDelta { index, json_chunk });
                events.push(StreamEvent::ToolCallComplete { index, call });
                last_call = Some(index);
                index += 1;
            }
            ContentBlock::ProviderData(data) => {
                events.push(StreamEvent::ProviderData { index: last_call, data });
            }
            // A model does not say pictures or results.
            _ => {}
        }
    }
    events.push(StreamEvent::Usage(response.usage));
    events.push(StreamEvent::Done { stop_reason: response.stop_reason });
    events
}
