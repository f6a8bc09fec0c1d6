//! The chunks of an answer as they lie in the buffer: only what is needed, borrowed.
//!
//! Every field is optional and forgiving, because each is missing, null or of another type
//! somewhere; a field of a shape we do not know counts as absent. What few chunks have is boxed:
//! a chunk is moved some ten times while it is parsed, and moving it costs as much as its bytes.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Deserializer, Error, SeqAccess};
use serde_json::Value;
use serde_json::value::RawValue;
use smallvec::SmallVec;

use crate::codec::forgiving::{Forgiving, FromJson, Text, count, object};

/// A list that rarely has more than one element; a chunk is read without an allocation for it.
type Few<T> = SmallVec<[T; 1]>;

/// One chunk of a stream, or a whole completion.
#[derive(Deserialize)]
pub(super) struct Chunk<'a> {
    #[serde(borrow, default)]
    pub(super) model: Text<'a>,
    #[serde(borrow, default)]
    pub(super) choices: Option<Few<Choice<'a>>>,
    #[serde(default, deserialize_with = "object")]
    pub(super) usage: Option<Box<WireUsage>>,
    #[serde(default)]
    pub(super) error: Option<Box<Value>>,
}

#[derive(Deserialize)]
pub(super) struct Choice<'a> {
    #[serde(default, deserialize_with = "count")]
    pub(super) index: Option<u32>,
    #[serde(borrow, default)]
    pub(super) delta: Option<Delta<'a>>,
    /// In a whole completion; some servers send it beside the delta as well.
    #[serde(borrow, default)]
    pub(super) message: Option<Box<Delta<'a>>>,
    #[serde(borrow, default)]
    pub(super) finish_reason: Text<'a>,
    /// Gateways put the failure of the server behind them here.
    #[serde(default)]
    pub(super) error: Option<Box<Value>>,
}

#[derive(Deserialize, Default)]
pub(super) struct Delta<'a> {
    #[serde(borrow, default)]
    pub(super) content: Content<'a>,
    #[serde(borrow, default)]
    pub(super) reasoning_content: Text<'a>,
    #[serde(borrow, default)]
    pub(super) reasoning: Text<'a>,
    /// What OpenRouter wants back with its thoughts.
    #[serde(default)]
    pub(super) reasoning_details: Option<Box<Value>>,
    #[serde(borrow, default)]
    pub(super) refusal: Text<'a>,
    #[serde(borrow, default)]
    pub(super) tool_calls: Option<Vec<CallDelta<'a>>>,
    /// The form before `tool_calls`.
    #[serde(borrow, default)]
    pub(super) function_call: Option<Box<FunctionDelta<'a>>>,
}

#[derive(Deserialize, Default)]
pub(super) struct CallDelta<'a> {
    #[serde(default, deserialize_with = "count")]
    pub(super) index: Option<u32>,
    #[serde(borrow, default)]
    pub(super) id: Text<'a>,
    #[serde(borrow, default)]
    pub(super) function: Option<FunctionDelta<'a>>,
    /// Where Gemini keeps the signature of a thought.
    #[serde(borrow, default)]
    pub(super) extra_content: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
pub(super) struct FunctionDelta<'a> {
    #[serde(borrow, default)]
    pub(super) name: Text<'a>,
    #[serde(borrow, default)]
    pub(super) arguments: ArgumentText<'a>,
}

#[derive(Deserialize)]
pub(super) struct WireUsage {
    #[serde(default, deserialize_with = "count")]
    pub(super) prompt_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    pub(super) completion_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    pub(super) total_tokens: Option<u64>,
    #[serde(default, deserialize_with = "object")]
    pub(super) prompt_tokens_details: Option<PromptDetails>,
    #[serde(default, deserialize_with = "object")]
    pub(super) completion_tokens_details: Option<CompletionDetails>,
    /// DeepSeek's name for `cached_tokens`.
    #[serde(default, deserialize_with = "count")]
    pub(super) prompt_cache_hit_tokens: Option<u64>,
}

#[derive(Deserialize)]
pub(super) struct PromptDetails {
    #[serde(default, deserialize_with = "count")]
    pub(super) cached_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    pub(super) cache_write_tokens: Option<u64>,
}

#[derive(Deserialize)]
pub(super) struct CompletionDetails {
    #[serde(default, deserialize_with = "count")]
    pub(super) reasoning_tokens: Option<u64>,
}

/// The text of a delta: a string, or parts of which some are thought.
pub(super) enum Content<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<Part<'a>>),
}

#[derive(Deserialize)]
pub(super) struct Part<'a> {
    #[serde(borrow, default)]
    pub(super) text: Text<'a>,
    #[serde(borrow, default)]
    pub(super) thinking: Content<'a>,
    #[serde(borrow, default)]
    pub(super) refusal: Text<'a>,
}

/// A piece of argument text. Some servers send the object itself.
#[derive(Default)]
pub(super) struct ArgumentText<'a> {
    pub(super) text: Cow<'a, str>,
    /// The same as it stands in the chunk, without its quotes.
    pub(super) escaped: &'a str,
}

impl Content<'_> {
    /// Whether there is neither text nor a part.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Text(text) => text.is_empty(),
            Self::Parts(parts) => parts.is_empty(),
        }
    }
}

impl Default for Content<'_> {
    fn default() -> Self {
        Self::Text(Cow::Borrowed(""))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Forgiving::default())
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for ArgumentText<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?.get();
        Ok(match raw.as_bytes() {
            [b'"', .., b'"'] => {
                let escaped = &raw[1..raw.len() - 1];
                let text = match escaped.contains('\\') {
                    true => Cow::Owned(serde_json::from_str(raw).map_err(D::Error::custom)?),
                    false => Cow::Borrowed(escaped),
                };
                Self { text, escaped }
            }
            [b'{', ..] => Self { text: Cow::Borrowed(raw), escaped: "" },
            _ => Self::default(),
        })
    }
}

impl<'a> FromJson<'a> for Content<'a> {
    fn from_text(text: Cow<'a, str>) -> Self {
        Self::Text(text)
    }

    fn from_list<A: SeqAccess<'a>>(list: A) -> Result<Self, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(list)).map(Self::Parts)
    }
}
