//! [`ModelCall`]: one call of a model, from opening its stream to its reply.

use std::task::{Context, Poll};

use toolloop_core::effect::{EffectKey, Outcome};
use toolloop_core::{ChatResponse, ChatStream, LlmError, LoopEvent, ReplyAssembler};

use super::Opening;

pub(super) enum ModelCall<'p> {
    Idle,
    Opening { key: EffectKey, opening: Opening<'p>, assembler: ReplyAssembler },
    Streaming { key: EffectKey, stream: ChatStream, assembler: ReplyAssembler },
}

pub(super) enum ModelStep {
    Event(LoopEvent),
    Outcome(EffectKey, Outcome),
}

impl<'p> ModelCall<'p> {
    pub(super) fn open(key: EffectKey, opening: Opening<'p>, assembler: ReplyAssembler) -> Self {
        Self::Opening { key, opening, assembler }
    }

    pub(super) fn is_at_work(&self) -> bool {
        !matches!(self, Self::Idle)
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<ModelStep> {
        loop {
            match self {
                Self::Idle => return Poll::Pending,
                Self::Opening { opening, .. } => match opening.as_mut().poll(cx) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(opened) => {
                        if let Some(step) = self.opened(opened) {
                            return Poll::Ready(step);
                        }
                    }
                },
                Self::Streaming { stream, assembler, .. } => {
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

    /// Ends the call, keeping what arrived; closes its stream.
    pub(super) fn cut(&mut self) -> Option<ChatResponse> {
        match std::mem::replace(self, Self::Idle) {
            Self::Idle => None,
            Self::Opening { assembler, .. } | Self::Streaming { assembler, .. } => {
                Some(assembler.into_partial())
            }
        }
    }

    /// The text that has arrived.
    pub(super) fn text(&self) -> Option<String> {
        let Self::Streaming { assembler, .. } = self else { return None };
        let text = assembler.text();
        (!text.trim().is_empty()).then_some(text)
    }

    fn opened(&mut self, opened: Result<ChatStream, LlmError>) -> Option<ModelStep> {
        let Self::Opening { key, assembler, .. } = std::mem::replace(self, Self::Idle) else {
            return None;
        };
        match opened {
            Ok(stream) => {
                *self = Self::Streaming { key, stream, assembler };
                None
            }
            Err(error) => Some(ModelStep::Outcome(key, assembler.fail(error.into()))),
        }
    }

    fn finish(&mut self, end: End) -> Option<ModelStep> {
        let Self::Streaming { key, assembler, .. } = std::mem::replace(self, Self::Idle) else {
            return None;
        };
        let outcome = match end {
            End::Whole => assembler.finish(),
            End::Failed(error) => assembler.fail(error.into()),
        };
        Some(ModelStep::Outcome(key, outcome))
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
