//! [`ResumedReply`]: a reply that goes on where the provider paused.
//!
//! Tools that the provider runs itself may take long. It then ends the answer with the reason
//! `pause_turn` and wants the conversation again, with what the model said so far. To a reader
//! both answers are one reply.

use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use tokio::time::Instant;
use toolloop_core::{
    ChatParams, ContentBlock, ErrorMessage, LlmError, ReplyAssembler, StreamEvent, Usage,
};

use super::AnthropicProvider;
use crate::codec::anthropic::MessagesDecoder;
use crate::transport::ReplyStream;

/// A reply of one or more answers.
pub(super) struct ResumedReply {
    provider: AnthropicProvider,
    params: Arc<ChatParams>,
    answer: ReplyStream<MessagesDecoder>,
    /// When the answer was asked for.
    started: Instant,
    /// The try of an answer that is under way.
    said: ReplyAssembler,
    /// The answers before it.
    before: Vec<ContentBlock>,
    /// Their tokens, as far as the reader has not counted them.
    usage_before: Usage,
    calls_before: u32,
    resumes: u32,
    /// What comes behind the tokens of a try that was cut.
    behind: Option<Item>,
}

type Item = Result<StreamEvent, LlmError>;

impl ResumedReply {
    pub(super) fn new(provider: AnthropicProvider, params: ChatParams) -> Result<Self, LlmError> {
        let answer = provider.ask(&params, &[])?;
        let params = Arc::new(params);
        Ok(Self {
            provider,
            answer,
            started: Instant::now(),
            said: ReplyAssembler::of_request(Arc::clone(&params)),
            params,
            before: Vec::new(),
            usage_before: Usage::default(),
            calls_before: 0,
            resumes: 0,
            behind: None,
        })
    }

    /// The provider paused: asks it to go on.
    fn resume(&mut self, paused: StreamEvent) -> Result<(), LlmError> {
        let mut said = self.take_said();
        said.push(paused)?;
        let response = said.into_response()?;
        self.calls_before += response.tool_calls_iter().count() as u32;
        self.usage_before += response.usage;
        self.before.extend(response.content);
        self.resumes += 1;
        if let Some(patience) = self.params.timeout {
            let gone = mem::replace(&mut self.started, Instant::now()).elapsed();
            Arc::make_mut(&mut self.params).timeout = Some(patience.saturating_sub(gone));
        }
        self.answer = self.provider.ask(&self.params, &self.before)?;
        Ok(())
    }

    /// A try was cut: its tokens come before the reason. With that the reader closes the account
    /// and begins another, so the answers before are in the first, and not again in the next.
    fn count_cut(&mut self, end: Item) -> Item {
        let cut = self.take_said().into_partial();
        self.behind = Some(end);
        Ok(StreamEvent::Usage(mem::take(&mut self.usage_before) + cut.usage))
    }

    fn take_said(&mut self) -> ReplyAssembler {
        mem::replace(&mut self.said, ReplyAssembler::of_request(Arc::clone(&self.params)))
    }

    /// What an event of this answer is in the whole reply.
    fn in_reply(&self, mut event: StreamEvent) -> Result<StreamEvent, LlmError> {
        match &mut event {
            StreamEvent::ToolCallStart { index, .. }
            | StreamEvent::ToolCallDelta { index, .. }
            | StreamEvent::ToolCallComplete { index, .. }
            | StreamEvent::ProviderData { index: Some(index), .. } => *index += self.calls_before,
            StreamEvent::Usage(usage) => *usage += self.usage_before,
            // It would void the answers before, too.
            StreamEvent::AttemptDiscarded { .. } if self.resumes > 0 => {
                let message = ErrorMessage::from("a paused reply could not be continued");
                return Err(LlmError::StreamInterrupted { message });
            }
            _ => {}
        }
        Ok(event)
    }
}

impl Stream for ResumedReply {
    type Item = Item;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Item>> {
        let this = self.get_mut();
        if let Some(end) = this.behind.take() {
            return Poll::Ready(Some(end));
        }
        loop {
            let event = match ready!(Pin::new(&mut this.answer).poll_next(cx)) {
                Some(Ok(StreamEvent::RetryScheduled(notice))) if notice.may_have_cost => {
                    let end = Ok(StreamEvent::RetryScheduled(notice));
                    return Poll::Ready(Some(this.count_cut(end)));
                }
                Some(Err(error)) if error.may_have_cost() => {
                    return Poll::Ready(Some(this.count_cut(Err(error))));
                }
                Some(Ok(event)) => event,
                end => return Poll::Ready(end),
            };
            let is_done = matches!(event, StreamEvent::Done { .. });
            let paused = is_done && this.answer.decoder().is_paused();
            let outcome = if paused && this.resumes < MOST_RESUMES {
                this.resume(event)
            } else {
                match this.said.push(event.clone()) {
                    Ok(_) => return Poll::Ready(Some(this.in_reply(event))),
                    Err(failure) => Err(failure.into()),
                }
            };
            if let Err(error) = outcome {
                return Poll::Ready(Some(Err(error)));
            }
        }
    }
}

/// More pauses than any reply needs; the reply then ends as it is.
const MOST_RESUMES: u32 = 16;
