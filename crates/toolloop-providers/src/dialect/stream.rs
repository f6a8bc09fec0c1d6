//! [`DialectStream`]: a provider's reply, read in a dialect and ended at its limit.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use toolloop_core::dialect::StreamProcessor;
use toolloop_core::{
    ChatParams, ChatStream, Dialect, LlmError, StopReason, StreamEvent, StreamingError, ToolChoice,
    ToolLimit,
};

use super::Cancels;
use super::tokens::Tokens;

/// A reply, read as it is polled.
pub(super) struct DialectStream {
    /// The provider's reply; gone, and with it its connection, once no more of it is wanted.
    inner: Option<ChatStream>,
    processor: StreamProcessor,
    tokens: Tokens,
    may_end_early: bool,
    cancels: Option<Cancels>,
    /// Read, and not yet taken.
    events: VecDeque<StreamEvent>,
    error: Option<LlmError>,
}

impl DialectStream {
    /// For the reply to these params, as the caller gave them.
    pub(super) fn new(
        dialect: Dialect,
        limit: ToolLimit,
        cancels: Option<Cancels>,
        params: &ChatParams,
    ) -> Self {
        // Where no call is wanted, whatever looks like one is text.
        let tools = match params.tool_choice {
            Some(ToolChoice::None) => &[],
            _ => params.tools.as_deref().unwrap_or_default(),
        };
        Self {
            inner: None,
            processor: StreamProcessor::new(dialect, tools, limit),
            tokens: Tokens::default(),
            may_end_early: limit != ToolLimit::Unlimited || cancels.is_some(),
            cancels,
            events: VecDeque::new(),
            error: None,
        }
    }

    /// The reply that a provider gives to these params, as it was asked.
    pub(super) fn of(self, inner: ChatStream, asked: &ChatParams) -> Self {
        let tokens = if self.may_end_early { Tokens::of(asked) } else { Tokens::default() };
        Self { inner: Some(inner), tokens, ..self }
    }

    /// Whether an event can be given out at once. Most can, and the queue costs as much as they.
    fn passes(&mut self, event: &StreamEvent) -> bool {
        let passes = self.cancels.is_none() && self.processor.lets_pass(event);
        if passes && self.may_end_early {
            self.tokens.note(event);
        }
        passes
    }

    fn handle(&mut self, event: StreamEvent) {
        if self.may_end_early {
            self.tokens.note(&event);
        }
        if let Err(error) = self.processor.handle(event, &mut self.events) {
            self.end_early(error);
        }
    }

    /// Closes the request, and ends the reply as this error says.
    fn end_early(&mut self, error: StreamingError) {
        self.inner = None;
        let usage = StreamEvent::Usage(self.tokens.estimate());
        if error == StreamingError::ToolLimitReached {
            let kept = self.processor.calls();
            tracing::debug!("Tool limit reached at tool #{}, stopping generation", kept + 1);
            tracing::debug!("Tool blocks kept: {kept}");
            self.processor.end_early(&mut self.events);
            let stop_reason = if kept > 0 { StopReason::ToolUse } else { StopReason::EndTurn };
            self.events.extend([usage, StreamEvent::Done { stop_reason }]);
        } else {
            tracing::debug!("{error}");
            self.cancels = None;
            self.events.clear();
            // Its tokens count, its content does not.
            self.events.extend([usage, StreamEvent::AttemptDiscarded { attempt: 1 }]);
            self.error = Some(error.into());
        }
    }
}

impl Stream for DialectStream {
    type Item = Result<StreamEvent, LlmError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(event) = self.events.pop_front() {
                if self.cancels.as_ref().is_some_and(|cancels| cancels(&event)) {
                    self.end_early(StreamingError::UserCancelled);
                    continue;
                }
                return Poll::Ready(Some(Ok(event)));
            }
            let Some(inner) = &mut self.inner else {
                return Poll::Ready(self.error.take().map(Err));
            };
            match ready!(inner.as_mut().poll_next(cx)) {
                Some(Ok(event)) if self.passes(&event) => return Poll::Ready(Some(Ok(event))),
                Some(Ok(event)) => self.handle(event),
                ended => {
                    self.inner = None;
                    let this = &mut *self;
                    this.processor.interrupt(&mut this.events);
                    this.error = ended.and_then(Result::err);
                }
            }
        }
    }
}
