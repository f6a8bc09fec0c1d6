//! The events of an answer as they lie in the buffer: only what is needed, borrowed.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::codec::forgiving::{Text, count, object};

/// One event of a stream.
#[derive(Deserialize)]
pub(super) struct Event<'a> {
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: Text<'a>,
    #[serde(default, deserialize_with = "count")]
    pub(super) output_index: Option<u32>,
    #[serde(default, deserialize_with = "count")]
    pub(super) summary_index: Option<u32>,
    #[serde(borrow, default)]
    pub(super) delta: Text<'a>,
    #[serde(borrow, default)]
    pub(super) arguments: Text<'a>,
    #[serde(borrow, default)]
    pub(super) item: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) response: Option<&'a RawValue>,
}

/// What the text of an event is more of.
#[derive(Clone, Copy)]
pub(super) enum Lane {
    Text,
    Refusal,
    Thought,
    /// This part of it.
    Summary(u32),
    Arguments,
}

impl Event<'_> {
    /// What its delta is, where it is a piece of text.
    pub(super) fn lane(&self) -> Option<Lane> {
        Some(match &*self.kind.0 {
            "response.output_text.delta" => Lane::Text,
            "response.refusal.delta" => Lane::Refusal,
            "response.reasoning_text.delta" => Lane::Thought,
            "response.reasoning_summary_text.delta" => {
                Lane::Summary(self.summary_index.unwrap_or(0))
            }
            "response.function_call_arguments.delta" => Lane::Arguments,
            _ => return None,
        })
    }
}

/// The answer as a whole: at the beginning of a stream nearly empty, at its end complete.
#[derive(Deserialize)]
pub(super) struct Response<'a> {
    #[serde(borrow, default)]
    pub(super) model: Text<'a>,
    #[serde(borrow, default)]
    pub(super) status: Text<'a>,
    #[serde(borrow, default)]
    pub(super) output: Option<Vec<&'a RawValue>>,
    #[serde(borrow, default)]
    pub(super) incomplete_details: Option<Incomplete<'a>>,
    #[serde(default, deserialize_with = "object")]
    pub(super) usage: Option<WireUsage>,
    #[serde(default)]
    pub(super) error: Option<Value>,
}

#[derive(Deserialize)]
pub(super) struct Incomplete<'a> {
    #[serde(borrow, default)]
    pub(super) reason: Text<'a>,
}

/// One item of the output; which fields it has depends on its type.
#[derive(Deserialize)]
pub(super) struct Item<'a> {
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: Text<'a>,
    #[serde(borrow, default)]
    pub(super) id: Text<'a>,
    #[serde(borrow, default)]
    pub(super) call_id: Text<'a>,
    #[serde(borrow, default)]
    pub(super) name: Text<'a>,
    #[serde(borrow, default)]
    pub(super) arguments: Text<'a>,
    #[serde(borrow, default)]
    pub(super) status: Text<'a>,
}

/// What a message or a thought says.
#[derive(Deserialize)]
pub(super) struct Said<'a> {
    #[serde(borrow, default)]
    pub(super) content: Option<Vec<Part<'a>>>,
    #[serde(borrow, default)]
    pub(super) summary: Option<Vec<Part<'a>>>,
}

/// A part of a message or of a thought.
#[derive(Deserialize)]
pub(super) struct Part<'a> {
    #[serde(borrow, default)]
    pub(super) text: Text<'a>,
    #[serde(borrow, default)]
    pub(super) refusal: Text<'a>,
}

#[derive(Deserialize)]
pub(super) struct WireUsage {
    #[serde(default, deserialize_with = "count")]
    pub(super) input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    pub(super) output_tokens: Option<u64>,
    #[serde(default, deserialize_with = "object")]
    pub(super) input_tokens_details: Option<InputDetails>,
    #[serde(default, deserialize_with = "object")]
    pub(super) output_tokens_details: Option<OutputDetails>,
}

#[derive(Deserialize)]
pub(super) struct InputDetails {
    #[serde(default, deserialize_with = "count")]
    pub(super) cached_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    pub(super) cache_write_tokens: Option<u64>,
}

#[derive(Deserialize)]
pub(super) struct OutputDetails {
    #[serde(default, deserialize_with = "count")]
    pub(super) reasoning_tokens: Option<u64>,
}
