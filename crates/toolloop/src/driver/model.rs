//! [`ModelCall`]: one call of a model, from opening its stream to its reply.

use std::task::{Context, Poll};

use toolloop_core::effect::{EffectKey, Outcome};
use toolloop_core::{ChatResponse, ChatStream, LlmError, LoopEvent, ReplyAssembler};

use super::Opening;
use super::usage_scope::UsageScope;

/// The model calls of a loop, one after the other.
pub(super) struct ModelCall<'p> {
    state: State<'p>,
    /// Where their tokens are counted besides: the tool this loop is nested in.
    outer: Option<UsageScope>,
}

enum State<'p> {
    Idle,
    Opening { key: EffectKey, opening: Opening<'p>, assembler: ReplyAssembler, is_asked: bool },
    Streaming { key: EffectKey, stream: ChatStream, assembler: ReplyAssembler },
}

pub(super) enum ModelStep {
    Event(LoopEvent),
    Outcome(EffectKey, Outcome),
}

impl<'p> ModelCall<'p> {
    pub(super) fn idle(outer: Option<UsageScope>) -> Self {
        Self { state: State::Idle, outer }
    }

    pub(super) fn open(&mut self, key: EffectKey, opening: Opening<'p>, assembler: ReplyAssembler) {
        self.state = State::Opening { key, opening, assembler, is_asked: false };
    }

    pub(super) fn is_at_work(&self) -> bool {
        !matches!(self.state, State::Idle)
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<ModelStep> {
        loop {
            match &mut self.state {
                State::Idle => return Poll::Pending,
                State::Opening { opening, is_asked, .. } => {
                    *is_asked = true;
                    match opening.as_mut().poll(cx) {
                        Poll::Pending => return Poll::Pending,
                        Poll::Ready(opened) => {
                            if let Some(step) = self.opened(opened) {
                                return Poll::Ready(step);
                            }
                        }
                    }
                }
                State::Streaming { stream, assembler, .. } => {
                    let item = match stream.as_mut().poll_next(cx) {
                        Poll::Pending => return Poll::Pending,
                        Poll::Ready(item) => item,
                    };
                    let end = match item {
                        Some(Ok(event)) => match assembler.push(event) {
                            Ok(Some(event)) => return Poll::Ready(ModelStep::Event(event)),
                            // Nothing follows the end; the stream is dropped here.
                            Ok(None) if assembler.is_done() => End::Whole,
                            Ok(None) => continue,
                            Err(failure) => End::Failed(failure.into()),
                        },
                        Some(Err(error)) => End::Failed(error),
                        None => End::Whole,
                    };
                    if let Some(step) = self.finish(end) {
                        return Poll::Ready(step);
                    }
                }
            }
        }
    }

    /// Ends the call, keeping what arrived; closes its stream. `None` where nobody was asked yet.
    pub(super) fn cut(&mut self) -> Option<ChatResponse> {
        let partial = match std::mem::replace(&mut self.state, State::Idle) {
            State::Idle | State::Opening { is_asked: false, .. } => return None,
            State::Opening { assembler, .. } | State::Streaming { assembler, .. } => {
                assembler.into_partial()
            }
        };
        if let Some(outer) = &self.outer {
            outer.count(partial.usage);
        }
        Some(partial)
    }

    /// The text that has arrived.
    pub(super) fn text(&self) -> Option<String> {
        let State::Streaming { assembler, .. } = &self.state else { return None };
        let text = assembler.text();
        (!text.trim().is_empty()).then_some(text)
    }

    fn opened(&mut self, opened: Result<ChatStream, LlmError>) -> Option<ModelStep> {
        let State::Opening { key, assembler, .. } = std::mem::replace(&mut self.state, State::Idle)
        else {
            return None;
        };
        match opened {
            Ok(stream) => {
                self.state = State::Streaming { key, stream, assembler };
                None
            }
            Err(error) => Some(self.ended(key, assembler.fail(error.into()))),
        }
    }

    fn finish(&mut self, end: End) -> Option<ModelStep> {
        let State::Streaming { key, assembler, .. } =
            std::mem::replace(&mut self.state, State::Idle)
        else {
            return None;
        };
        let outcome = match end {
            End::Whole => assembler.finish(),
            End::Failed(error) => assembler.fail(error.into()),
        };
        Some(self.ended(key, outcome))
    }

    fn ended(&self, key: EffectKey, outcome: Outcome) -> ModelStep {
        let usage = match &outcome {
            Outcome::Reply(reply) => Some(reply.response.usage),
            Outcome::ReplyFailed { partial, .. } => Some(partial.usage),
            _ => None,
        };
        if let Some((outer, usage)) = self.outer.as_ref().zip(usage) {
            outer.count(usage);
        }
        ModelStep::Outcome(key, outcome)
    }
}

/// The tokens of a call that is dropped with its loop count as well.
impl Drop for ModelCall<'_> {
    fn drop(&mut self) {
        // Only for them is there anybody left to tell.
        if self.outer.is_some() {
            self.cut();
        }
    }
}

/// How a stream ended. A whole one may still lack its end marker; the assembler knows.
enum End {
    Whole,
    Failed(LlmError),
}

#[cfg(test)]
mod tests {
    use toolloop_core::StreamEvent;

    use super::*;

    #[test]
    fn the_size_of_a_call_stays_small() {
        // A held loop is one of these and little more; see BENCHMARKS.md, scenario D.
        assert!(size_of::<ModelCall<'static>>() <= 768, "{}", size_of::<ModelCall<'static>>());
        assert!(size_of::<StreamEvent>() <= 128, "{}", size_of::<StreamEvent>());
    }
}
