//! [`OpenBlock`]: a block of the answer while it arrives.

use serde_json::value::RawValue;
use toolloop_core::{StreamEvent, ToolCall, parse_arguments};

use super::members::Members;
use super::opaque::{Kept, Signature, keep_block};
use super::text_run::TextRun;
use super::wire::{Block, Delta, Lane, RawDelta};
use crate::codec::{DecodeError, Events};

/// A block that has begun.
pub(super) enum OpenBlock {
    Text {
        bytes: usize,
        citations: Vec<Box<RawValue>>,
    },
    Thinking {
        thought: String,
        signature: String,
    },
    Call(OpenCall),
    /// Everything else, kept to be returned: encrypted thought, tools that the provider runs
    /// itself and their results, and what the API may bring one day.
    Opaque {
        block: Members,
        input: String,
    },
}

/// A call whose arguments arrive.
pub(super) struct OpenCall {
    index: u32,
    id: String,
    name: String,
    arguments: String,
}

impl OpenBlock {
    /// A block begins, or comes whole. `calls` counts those of the reply.
    pub(super) fn start(
        raw: &RawValue,
        calls: &mut u32,
        run: &mut TextRun,
        events: &mut Events,
    ) -> Result<Self, DecodeError> {
        let malformed = |error| DecodeError::malformed(&error, raw.get());
        let block: Block<'_> = serde_json::from_str(raw.get()).map_err(malformed)?;
        if block.kind.0 != "text" {
            run.end(events);
        }
        let mut open = match &*block.kind.0 {
            "text" => {
                let citations = block.citations.map(|list| serde_json::from_str(list.get()));
                let citations = citations.and_then(Result::ok).flatten().unwrap_or_default();
                Self::Text { bytes: 0, citations }
            }
            "thinking" => Self::Thinking { thought: String::new(), signature: String::new() },
            "tool_use" => Self::Call(OpenCall::start(&block, calls, events)),
            _ => {
                let block = serde_json::from_str(raw.get()).map_err(malformed)?;
                return Ok(Self::Opaque { block, input: String::new() });
            }
        };
        open.push_text(&block.text.0, events);
        open.push_thought(&block.thinking.0, &block.signature.0, events);
        // A stream says `{}` here, whatever follows.
        if let Some(input) = block.input.filter(|input| input.get() != "{}") {
            open.push_input(input.get(), events);
        }
        Ok(open)
    }

    /// More of the block's text.
    pub(super) fn push(&mut self, lane: Lane, text: &str, events: &mut Events) {
        match lane {
            Lane::Text => self.push_text(text, events),
            Lane::Thought => self.push_thought(text, "", events),
            Lane::Input => self.push_input(text, events),
        }
    }

    /// More of the block that is no piece of its text; `data` is the whole event.
    pub(super) fn extend(
        &mut self,
        delta: &Delta<'_>,
        data: &str,
        events: &mut Events,
    ) -> Result<(), DecodeError> {
        match &*delta.kind.0 {
            "signature_delta" => self.push_thought("", &delta.signature.0, events),
            "citations_delta" => {
                if let (Self::Text { citations, .. }, Some(citation)) = (self, delta.citation) {
                    citations.push(citation.to_owned());
                }
            }
            _ => {
                if let Self::Opaque { block, .. } = self {
                    let malformed = |error| DecodeError::malformed(&error, data);
                    let raw: RawDelta<'_> = serde_json::from_str(data).map_err(malformed)?;
                    block.extend(serde_json::from_str(raw.delta.get()).map_err(malformed)?);
                }
            }
        }
        Ok(())
    }

    /// The block is over. A call is given back: whether it is complete, its reply's end may tell.
    pub(super) fn stop(self, run: &mut TextRun, events: &mut Events) -> Option<OpenCall> {
        match self {
            Self::Text { bytes, citations } => run.push(bytes, &citations),
            Self::Thinking { thought, signature } if !signature.is_empty() => {
                let signature = Some(Signature::of(&thought, &signature));
                events.push_back(Kept { signature, ..Kept::default() }.event(None));
            }
            Self::Thinking { .. } => {}
            Self::Call(call) => return call.complete_if_whole(events),
            Self::Opaque { mut block, input } => {
                if let Ok(input) = RawValue::from_string(input) {
                    block.set("input", input);
                }
                events.extend(keep_block(&block));
            }
        }
        None
    }

    fn push_text(&mut self, text: &str, events: &mut Events) {
        if let Self::Text { bytes, .. } = self
            && !text.is_empty()
        {
            *bytes += text.len();
            events.push_back(StreamEvent::TextDelta(text.to_owned()));
        }
    }

    fn push_thought(&mut self, text: &str, more_signature: &str, events: &mut Events) {
        if let Self::Thinking { thought, signature } = self {
            signature.push_str(more_signature);
            if !text.is_empty() {
                thought.push_str(text);
                events.push_back(StreamEvent::ReasoningDelta(text.to_owned()));
            }
        }
    }

    fn push_input(&mut self, text: &str, events: &mut Events) {
        match self {
            Self::Call(call) if !text.is_empty() => {
                call.arguments.push_str(text);
                let json_chunk = text.to_owned();
                events.push_back(StreamEvent::ToolCallDelta { index: call.index, json_chunk });
            }
            Self::Opaque { input, .. } => input.push_str(text),
            _ => {}
        }
    }
}

impl OpenCall {
    fn start(block: &Block<'_>, calls: &mut u32, events: &mut Events) -> Self {
        let (id, name) = (block.id.0.to_string(), block.name.0.to_string());
        let index = *calls;
        *calls += 1;
        events.push_back(StreamEvent::ToolCallStart { index, id: id.clone(), name: name.clone() });
        if let Some(caller) = block.caller.filter(|caller| !caller.get().contains("\"direct\"")) {
            // Code that the provider runs made the call, and waits for its result.
            let mut call = Members::default();
            call.set("caller", caller.to_owned());
            if let Ok(call) = serde_json::value::to_raw_value(&call) {
                events.push_back(Kept { call: Some(&call), ..Kept::default() }.event(Some(index)));
            }
        }
        Self { index, id, name, arguments: String::new() }
    }

    /// Arguments that are no whole object may have been cut by the limit of tokens.
    fn complete_if_whole(self, events: &mut Events) -> Option<Self> {
        let whole = self.arguments.trim_end().ends_with('}')
            && serde_json::from_str::<serde::de::IgnoredAny>(&self.arguments).is_ok();
        if !whole {
            return Some(self);
        }
        self.complete(events);
        None
    }

    /// No more comes.
    pub(super) fn complete(self, events: &mut Events) {
        let Self { index, id, name, arguments } = self;
        let call = ToolCall { id, name, arguments: parse_arguments(&arguments) };
        events.push_back(StreamEvent::ToolCallComplete { index, call });
    }
}
