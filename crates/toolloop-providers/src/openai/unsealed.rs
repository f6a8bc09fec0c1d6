//! [`UnsealedReply`]: a reply that is asked for again without thoughts that the server cannot open.
//!
//! Encrypted thoughts are good for the organization whose key had them made, and at times not even
//! for that one. A conversation that holds such a thought would be refused for ever. Whose key it
//! was cannot be told from a key, so the refusal is what tells it; the thoughts are left out then,
//! and nothing that was said.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures_core::Stream;
use serde_json::Value;
use tokio::time::Instant;
use toolloop_core::{ChatParams, LlmError, RetryNotice, StreamEvent};

use crate::codec::Reading;
use crate::codec::openai_responses::ResponsesDecoder;
use crate::transport::{ReplyStream, Transport};

pub(super) struct UnsealedReply {
    transport: Arc<Transport>,
    /// The request, while it may be made again.
    body: Option<Bytes>,
    /// Without messages: they are in the body.
    params: ChatParams,
    reading: Reading,
    started: Instant,
    reply: ReplyStream<ResponsesDecoder>,
}

impl UnsealedReply {
    pub(super) fn new(
        transport: &Arc<Transport>,
        body: Bytes,
        params: &ChatParams,
        reading: Reading,
    ) -> Self {
        let reply = transport.post(&PATH, body.clone(), params, reading.clone());
        let params = ChatParams {
            timeout: params.timeout,
            extra_headers: params.extra_headers.clone(),
            ..ChatParams::default()
        };
        let (transport, started) = (Arc::clone(transport), Instant::now());
        Self { transport, body: Some(body), params, reading, started, reply }
    }

    /// Asks without the thoughts, where there were any.
    fn ask_again(&mut self, refusal: &LlmError) -> Option<StreamEvent> {
        let body = without_thoughts(&self.body.take()?)?;
        let patience = self.params.timeout;
        self.params.timeout = patience.map(|limit| limit.saturating_sub(self.started.elapsed()));
        let reading = self.reading.clone();
        self.reply = self.transport.post(&PATH, body, &self.params, reading);
        Some(StreamEvent::RetryScheduled(RetryNotice {
            attempt: 1,
            max_attempts: 2,
            delay: Duration::ZERO,
            reason: refusal.to_string(),
            may_have_cost: false,
        }))
    }
}

impl Stream for UnsealedReply {
    type Item = Result<StreamEvent, LlmError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        let event = ready!(Pin::new(&mut this.reply).poll_next(cx));
        match &event {
            Some(Err(error)) if cannot_open(error) => {
                if let Some(notice) = this.ask_again(error) {
                    return Poll::Ready(Some(Ok(notice)));
                }
            }
            // The server still weighs the request, or has yet to be asked again.
            Some(Ok(StreamEvent::RequestId(_) | StreamEvent::RateLimits(_)))
            | Some(Ok(StreamEvent::RetryScheduled(_) | StreamEvent::Model(_))) => {}
            _ => this.body = None,
        }
        Poll::Ready(event)
    }
}

/// `invalid_encrypted_content` of OpenAI and Azure, and what xAI says.
fn cannot_open(error: &LlmError) -> bool {
    !error.is_retryable() && error.to_string().contains("crypt")
}

/// The request with nothing of the provider's making but what was said and called. `None`: there
/// is nothing else in it, or something stands there for messages that are gone.
fn without_thoughts(body: &[u8]) -> Option<Vec<u8>> {
    let mut body: Value = serde_json::from_slice(body).ok()?;
    let input = body["input"].as_array_mut()?;
    let before = input.len();
    if input.iter().any(|item| item["type"] == "compaction") {
        return None;
    }
    input.retain(|item| {
        let kind = item["type"].as_str().unwrap_or_default();
        ["message", "function_call", "function_call_output"].contains(&kind)
    });
    if input.len() == before {
        return None;
    }
    for item in input.iter_mut().filter_map(Value::as_object_mut) {
        // The id of an item is tied to the thought before it. Without one, a message of the model is
        // like any other.
        let is_messages = item["type"] == "message";
        if item.shift_remove("id").is_some() && is_messages {
            item.shift_remove("status");
            let text = item["content"].pointer_mut("/0/text").map(Value::take);
            item.insert("content".into(), text.unwrap_or_default());
        }
    }
    serde_json::to_vec(&body).ok()
}

const PATH: [&str; 1] = ["responses"];
