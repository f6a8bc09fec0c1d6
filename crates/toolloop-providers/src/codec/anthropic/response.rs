//! [`MessagesDecoder`]: the events of an answer in, stream events out.

use toolloop_core::{StopReason, StreamEvent};

use super::open_block::{OpenBlock, OpenCall};
use super::text_run::TextRun;
use super::wire::{Delta, Event, Lane, Message, WireUsage};
use crate::codec::api_error::ApiError;
use crate::codec::template::Template;
use crate::codec::{DecodeError, Decoder, Events};

/// Reads one answer of the Messages API.
///
/// The answer is over with `message_stop`, or with a stop reason and the end of the body.
#[derive(Default)]
pub struct MessagesDecoder {
    /// The blocks that have begun, by their index.
    open: Vec<(u32, OpenBlock)>,
    run: TextRun,
    /// How many calls there were.
    calls: u32,
    /// Calls whose arguments ended and are no whole object.
    unfinished: Vec<OpenCall>,
    usage: WireUsage,
    stop: Option<StopReason>,
    paused: bool,
    done: bool,
    /// Of an event with a piece of text for the block of this index.
    template: Option<Template<(u32, Lane)>>,
}

impl Decoder for MessagesDecoder {
    fn handle_data(&mut self, data: &str, events: &mut Events) -> Result<(), DecodeError> {
        if self.done {
            return Ok(());
        }
        if let Some(template) = &self.template
            && let Some(text) = template.read(data)
        {
            let (index, lane) = template.lane;
            self.handle_piece(index, lane, &text, events);
            return Ok(());
        }
        match data.trim() {
            // What some gateways end every stream with.
            "" | "[DONE]" => Ok(()),
            data => self.handle_event(data, events),
        }
    }

    fn handle_document(&mut self, body: &str, events: &mut Events) -> Result<(), DecodeError> {
        let malformed = |error| DecodeError::malformed(&error, body);
        let event: Event<'_> = serde_json::from_str(body).map_err(malformed)?;
        if event.kind.0 != "message" {
            return Err(fault(body));
        }
        let message: Message<'_> = serde_json::from_str(body).map_err(malformed)?;
        self.handle_head(&message, events);
        for raw in message.content.iter().flatten() {
            let block = OpenBlock::start(raw, &mut self.calls, &mut self.run, events)?;
            self.unfinished.extend(block.stop(&mut self.run, events));
        }
        self.handle_stop_reason(&message.stop_reason.0);
        self.finish(events);
        Ok(())
    }

    fn handle_end(&mut self, events: &mut Events) {
        if self.is_finished() {
            self.finish(events);
        }
    }

    fn is_finished(&self) -> bool {
        self.stop.is_some()
    }
}

impl MessagesDecoder {
    /// Whether the provider took a rest in the middle of its own tools, and wants to be asked to
    /// go on.
    pub fn is_paused(&self) -> bool {
        self.paused
    }

    fn handle_event(&mut self, data: &str, events: &mut Events) -> Result<(), DecodeError> {
        let malformed = |error| DecodeError::malformed(&error, data);
        let event: Event<'_> = serde_json::from_str(data).map_err(malformed)?;
        match (&*event.kind.0, event.index) {
            ("content_block_delta", Some(index)) => {
                let Some(delta) = &event.delta else { return Ok(()) };
                if let Some((lane, text)) = delta.piece() {
                    let learned = Template::learn(data, text, None, (index, lane));
                    self.template = learned.or(self.template.take());
                    self.handle_piece(index, lane, text, events);
                } else if let Some(block) = self.block(index) {
                    block.extend(delta, data, events)?;
                }
            }
            ("content_block_start", Some(index)) => {
                if let Some(raw) = event.content_block {
                    let block = OpenBlock::start(raw, &mut self.calls, &mut self.run, events)?;
                    self.open.push((index, block));
                }
            }
            ("content_block_stop", Some(index)) => {
                if let Some(at) = self.open.iter().rposition(|(known, _)| *known == index) {
                    let (_, block) = self.open.remove(at);
                    self.unfinished.extend(block.stop(&mut self.run, events));
                }
            }
            ("message_start", _) => {
                if let Some(message) = event.message {
                    let message = serde_json::from_str(message.get()).map_err(malformed)?;
                    self.handle_head(&message, events);
                }
            }
            ("message_delta", _) => {
                if let Some(Delta { stop_reason, .. }) = &event.delta {
                    self.handle_stop_reason(&stop_reason.0);
                }
                self.handle_usage(event.usage, events);
            }
            ("message_stop", _) => self.finish(events),
            ("" | "error", _) => return Err(fault(data)),
            // An error may also come without its wrapper.
            (kind, _) if kind.ends_with("_error") => return Err(fault(data)),
            // A ping, or what the API may bring one day.
            _ => {}
        }
        Ok(())
    }

    fn handle_piece(&mut self, index: u32, lane: Lane, text: &str, events: &mut Events) {
        if let Some(block) = self.block(index) {
            block.push(lane, text, events);
        }
    }

    fn block(&mut self, index: u32) -> Option<&mut OpenBlock> {
        let open = self.open.iter_mut().rfind(|(known, _)| *known == index);
        open.map(|(_, block)| block)
    }

    fn handle_head(&mut self, message: &Message<'_>, events: &mut Events) {
        if !message.model.0.is_empty() {
            events.push_back(StreamEvent::Model(message.model.0.to_string()));
        }
        self.handle_usage(message.usage, events);
    }

    fn handle_usage(&mut self, usage: Option<WireUsage>, events: &mut Events) {
        if let Some(usage) = usage {
            self.usage.update(usage);
            events.extend(self.usage.usage().map(StreamEvent::Usage));
        }
    }

    fn handle_stop_reason(&mut self, word: &str) {
        self.paused = word == "pause_turn";
        self.stop = match word {
            "" => return,
            "end_turn" => Some(StopReason::EndTurn),
            "tool_use" => Some(StopReason::ToolUse),
            // Either way the reply was cut.
            "max_tokens" | "model_context_window_exceeded" => Some(StopReason::MaxTokens),
            "stop_sequence" => Some(StopReason::StopSequence),
            "refusal" => Some(StopReason::Refusal),
            _ => Some(StopReason::Other),
        };
    }

    fn finish(&mut self, events: &mut Events) {
        if std::mem::replace(&mut self.done, true) {
            return;
        }
        for (_, block) in self.open.drain(..) {
            self.unfinished.extend(block.stop(&mut self.run, events));
        }
        self.run.end(events);
        let stop_reason = self.stop.unwrap_or(match self.calls {
            0 => StopReason::EndTurn,
            _ => StopReason::ToolUse,
        });
        let unfinished = std::mem::take(&mut self.unfinished);
        if stop_reason != StopReason::MaxTokens {
            unfinished.into_iter().for_each(|call| call.complete(events));
        }
        events.push_back(StreamEvent::Done { stop_reason });
    }
}

/// An error in place of an answer, or what is neither.
fn fault(data: &str) -> DecodeError {
    match ApiError::parse(data) {
        Some(error) => DecodeError::Api(error),
        None => DecodeError::Malformed {
            message: "the answer is JSON, but no event of a message".into(),
            raw: data.to_owned(),
        },
    }
}
