//! The events of an answer as they lie in the buffer: only what is needed, borrowed.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use toolloop_core::{Usage, UsageSource};

use crate::codec::forgiving::{Text, any, count, object};

/// One event of the stream. Which members it has depends on its type.
#[derive(Deserialize)]
pub(super) struct Event<'a> {
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: Text<'a>,
    #[serde(default, deserialize_with = "count")]
    pub(super) index: Option<u32>,
    #[serde(borrow, default)]
    pub(super) delta: Option<Delta<'a>>,
    #[serde(borrow, default)]
    pub(super) content_block: Option<&'a RawValue>,
    /// A [`Message`]; in an error without a wrapper, its sentence.
    #[serde(borrow, default)]
    pub(super) message: Option<&'a RawValue>,
    #[serde(default, deserialize_with = "object")]
    pub(super) usage: Option<WireUsage>,
}

/// More of a block, or the end of the message.
#[derive(Deserialize)]
pub(super) struct Delta<'a> {
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: Text<'a>,
    #[serde(borrow, default)]
    pub(super) text: Text<'a>,
    #[serde(borrow, default)]
    pub(super) thinking: Text<'a>,
    #[serde(borrow, default)]
    pub(super) signature: Text<'a>,
    #[serde(borrow, default)]
    pub(super) partial_json: Text<'a>,
    #[serde(borrow, default)]
    pub(super) citation: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) stop_reason: Text<'a>,
}

/// What most deltas are: a piece of text.
#[derive(Clone, Copy)]
pub(super) enum Lane {
    Text,
    Thought,
    Input,
}

impl<'a> Delta<'a> {
    /// The piece of text that is all there is to this delta.
    pub(super) fn piece(&self) -> Option<(Lane, &Cow<'a, str>)> {
        Some(match &*self.kind.0 {
            "text_delta" => (Lane::Text, &self.text.0),
            "thinking_delta" => (Lane::Thought, &self.thinking.0),
            "input_json_delta" => (Lane::Input, &self.partial_json.0),
            _ => return None,
        })
    }
}

/// The delta of an event as it was written.
#[derive(Deserialize)]
pub(super) struct RawDelta<'a> {
    #[serde(borrow)]
    pub(super) delta: &'a RawValue,
}

/// A message at its start, or a whole one.
#[derive(Deserialize)]
pub(super) struct Message<'a> {
    #[serde(borrow, default)]
    pub(super) model: Text<'a>,
    #[serde(borrow, default, deserialize_with = "any")]
    pub(super) content: Option<Vec<&'a RawValue>>,
    #[serde(borrow, default)]
    pub(super) stop_reason: Text<'a>,
    #[serde(default, deserialize_with = "object")]
    pub(super) usage: Option<WireUsage>,
}

/// A block at its start, or a whole one.
#[derive(Deserialize)]
pub(super) struct Block<'a> {
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: Text<'a>,
    #[serde(borrow, default)]
    pub(super) text: Text<'a>,
    /// A list, where the block is text.
    #[serde(borrow, default)]
    pub(super) citations: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) thinking: Text<'a>,
    #[serde(borrow, default)]
    pub(super) signature: Text<'a>,
    #[serde(borrow, default)]
    pub(super) id: Text<'a>,
    #[serde(borrow, default)]
    pub(super) name: Text<'a>,
    #[serde(borrow, default)]
    pub(super) input: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) caller: Option<&'a RawValue>,
}

/// The tokens so far; a later report replaces the figures it names.
#[derive(Deserialize, Clone, Copy, Default)]
pub(super) struct WireUsage {
    #[serde(default, deserialize_with = "count")]
    input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    output_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    cache_read_input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    cache_creation_input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "object")]
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Deserialize, Clone, Copy)]
struct OutputDetails {
    #[serde(default, deserialize_with = "count")]
    thinking_tokens: Option<u64>,
}

impl WireUsage {
    pub(super) fn update(&mut self, later: Self) {
        self.input_tokens = later.input_tokens.or(self.input_tokens);
        self.output_tokens = later.output_tokens.or(self.output_tokens);
        let read = later.cache_read_input_tokens;
        self.cache_read_input_tokens = read.or(self.cache_read_input_tokens);
        let written = later.cache_creation_input_tokens;
        self.cache_creation_input_tokens = written.or(self.cache_creation_input_tokens);
        self.output_tokens_details = later.output_tokens_details.or(self.output_tokens_details);
    }

    /// `None` where no figure was named.
    pub(super) fn usage(&self) -> Option<Usage> {
        if self.input_tokens.is_none() && self.output_tokens.is_none() {
            return None;
        }
        // This API counts what it reads from a cache, or writes to one, apart.
        let parts =
            [self.input_tokens, self.cache_read_input_tokens, self.cache_creation_input_tokens];
        Some(Usage {
            input_tokens: parts.into_iter().flatten().fold(0, u64::saturating_add),
            output_tokens: self.output_tokens.unwrap_or(0),
            reasoning_tokens: self.output_tokens_details.and_then(|d| d.thinking_tokens),
            cache_read_tokens: self.cache_read_input_tokens,
            cache_write_tokens: self.cache_creation_input_tokens,
            source: match (self.input_tokens, self.output_tokens) {
                (Some(_), Some(_)) => UsageSource::Reported,
                _ => UsageSource::Unknown,
            },
        })
    }
}
