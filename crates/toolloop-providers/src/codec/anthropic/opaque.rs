//! [`Kept`]: what this API wants back verbatim, in the form in which it rides in `ProviderData`.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use toolloop_core::{ContentBlock, ProviderData, StreamEvent};

use super::API;
use super::members::Members;
use crate::codec::ids::fnv1a;

/// One member is there; see [`API`].
#[derive(Serialize, Deserialize, Default)]
pub(super) struct Kept<'a> {
    /// A whole block.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(super) block: Option<&'a RawValue>,
    /// Vouches for the thought before it.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(super) signature: Option<Signature<'a>>,
    /// The bytes of each block of the text before it, and what it cites.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(super) texts: Option<Vec<(usize, Option<&'a RawValue>)>>,
    /// Members of the call before it.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(super) call: Option<&'a RawValue>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Signature<'a> {
    #[serde(borrow)]
    value: Cow<'a, str>,
    /// Hash of the thought; the API refuses a signature beside any other.
    #[serde(borrow)]
    thought: Cow<'a, str>,
}

impl<'a> Kept<'a> {
    /// Reads what a block keeps that came from there.
    pub(super) fn read(block: &'a ContentBlock, origin: &str) -> Option<Self> {
        match block {
            ContentBlock::ProviderData(ProviderData { api, data }) if api == origin => {
                serde_json::from_str(data).ok()
            }
            _ => None,
        }
    }

    /// The event that puts it into the reply.
    pub(super) fn event(&self, call: Option<u32>) -> StreamEvent {
        // Its parts are JSON or strings, and its keys are strings.
        let data = serde_json::to_string(self).unwrap_or_else(|_| unreachable!("it is JSON"));
        let data = ProviderData { api: API.to_owned(), data };
        StreamEvent::ProviderData { index: call, data }
    }
}

impl<'a> Signature<'a> {
    pub(super) fn of(thought: &str, value: &'a str) -> Self {
        Self { value: value.into(), thought: hash(thought).into() }
    }

    /// The signature, while the thought is still the one that was signed.
    pub(super) fn for_thought(self, thought: &str) -> Option<Cow<'a, str>> {
        (self.thought == hash(thought)).then_some(self.value)
    }
}

/// The event that keeps a whole block.
pub(super) fn keep_block(block: &Members) -> Option<StreamEvent> {
    let block = serde_json::value::to_raw_value(block).ok()?;
    Some(Kept { block: Some(&block), ..Kept::default() }.event(None))
}

fn hash(thought: &str) -> String {
    format!("{:016x}", fnv1a(thought.as_bytes()))
}
