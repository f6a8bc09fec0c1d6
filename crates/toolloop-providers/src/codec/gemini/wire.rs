//! The events of an answer as they lie in the buffer: only what is needed, borrowed.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::codec::forgiving::{Text, count, object};

/// One event of a stream, or a whole answer.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Chunk<'a> {
    #[serde(borrow, default)]
    pub(super) candidates: Option<Vec<Candidate<'a>>>,
    #[serde(borrow, default)]
    pub(super) prompt_feedback: Option<PromptFeedback<'a>>,
    #[serde(default, deserialize_with = "object")]
    pub(super) usage_metadata: Option<WireUsage>,
    #[serde(borrow, default)]
    pub(super) model_version: Text<'a>,
    #[serde(borrow, default)]
    pub(super) response_id: Text<'a>,
    #[serde(default)]
    pub(super) error: Option<Box<Value>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Candidate<'a> {
    #[serde(default, deserialize_with = "count")]
    pub(super) index: Option<u32>,
    #[serde(borrow, default)]
    pub(super) content: Option<Content<'a>>,
    #[serde(borrow, default)]
    pub(super) finish_reason: Text<'a>,
    #[serde(borrow, default)]
    pub(super) finish_message: Text<'a>,
}

#[derive(Deserialize)]
pub(super) struct Content<'a> {
    #[serde(borrow, default)]
    pub(super) parts: Option<Vec<Part<'a>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PromptFeedback<'a> {
    #[serde(borrow, default)]
    pub(super) block_reason: Text<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WireUsage {
    #[serde(default, deserialize_with = "count")]
    pub(super) prompt_token_count: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    pub(super) candidates_token_count: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    pub(super) thoughts_token_count: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    pub(super) cached_content_token_count: Option<u64>,
    /// What the results of tools on the server added to the prompt.
    #[serde(default, deserialize_with = "count")]
    pub(super) tool_use_prompt_token_count: Option<u64>,
}

/// A piece of the answer. A part is text, a call, or something of a kind in `others`.
#[derive(Default)]
pub(super) struct Part<'a> {
    pub(super) text: Option<Text<'a>>,
    pub(super) thought: bool,
    pub(super) signature: Text<'a>,
    pub(super) call: Option<Box<FunctionCall<'a>>>,
    pub(super) others: Vec<(Cow<'a, str>, &'a RawValue)>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
pub(super) struct FunctionCall<'a> {
    #[serde(borrow, default)]
    pub(super) id: Text<'a>,
    #[serde(borrow, default)]
    pub(super) name: Text<'a>,
    #[serde(borrow, default)]
    pub(super) args: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) partial_args: Option<Vec<PartialArg<'a>>>,
    #[serde(default)]
    pub(super) will_continue: Option<bool>,
}

/// The next piece of one argument.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PartialArg<'a> {
    #[serde(borrow, default)]
    pub(super) json_path: Text<'a>,
    #[serde(borrow, default)]
    pub(super) string_value: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) number_value: Option<&'a RawValue>,
    #[serde(default)]
    pub(super) bool_value: Option<bool>,
    #[serde(default)]
    pub(super) will_continue: Option<bool>,
}

/// By hand: what `flatten` would collect is copied, and its numbers are not what they were.
impl<'de: 'a, 'a> Deserialize<'de> for Part<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(PartVisitor)
    }
}

struct PartVisitor;

impl<'de> Visitor<'de> for PartVisitor {
    type Value = Part<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a part")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Part<'de>, A::Error> {
        let mut part = Part::default();
        while let Some(Text(key)) = map.next_key::<Text<'de>>()? {
            match &*key {
                "text" => part.text = map.next_value()?,
                "thought" => part.thought = map.next_value::<Option<bool>>()?.unwrap_or(false),
                "thoughtSignature" => part.signature = map.next_value()?,
                "functionCall" => part.call = map.next_value()?,
                _ => {
                    let value = map.next_value::<&'de RawValue>()?;
                    // Some gateways send every member, null where the part is of another kind.
                    if value.get() != "null" {
                        part.others.push((key, value));
                    }
                }
            }
        }
        Ok(part)
    }
}
