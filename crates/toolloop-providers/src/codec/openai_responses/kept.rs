//! What a reply leaves behind for the next request, in `ProviderData`: whole items, and
//! [`Members`] of the items whose text or call is a block of its own.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use toolloop_core::{ContentBlock, ProviderData, StreamEvent};

use super::API;
use crate::codec::forgiving::Text;

/// Keeps data of this API behind the call of that index, or behind what came last.
pub(super) fn keep(index: Option<u32>, data: impl Into<String>) -> StreamEvent {
    let data = ProviderData { api: API.to_owned(), data: data.into() };
    StreamEvent::ProviderData { index, data }
}

/// Members of a message or a call that go back with it.
#[derive(Deserialize, Serialize, Default)]
pub(super) struct Members<'a> {
    /// Ties the item to the thought before it: refused without that thought.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<&'a RawValue>,
    /// That thought, where it has an id.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(super) thought: Option<Cow<'a, str>>,
    /// Whether a message is a comment on the way or the answer.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(super) phase: Option<&'a RawValue>,
    /// Where a tool was found that was searched for.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(super) namespace: Option<&'a RawValue>,
}

impl<'a> Members<'a> {
    /// Those of an item, as JSON; the id only where it is tied to a thought.
    pub(super) fn of_item(item: &'a RawValue, thought: Option<&'a str>) -> Option<String> {
        let mut members: Self = serde_json::from_str(item.get()).ok()?;
        members.id = members.id.filter(|_| thought.is_some());
        let tied_to = thought.filter(|id| members.id.is_some() && !id.is_empty());
        members.thought = tied_to.map(Cow::Borrowed);
        let data = serde_json::to_string(&members).ok()?;
        (data != "{}").then_some(data)
    }

    /// Those from there that stand at the beginning of the blocks behind a text or a call.
    pub(super) fn behind(blocks: &'a [ContentBlock], origin: &str) -> Self {
        for block in blocks {
            match block {
                ContentBlock::ProviderData(data) if data.api != origin => {}
                ContentBlock::ProviderData(_) if Kept::of_block(block, origin).is_some() => break,
                // What this API cannot have given is left out.
                ContentBlock::ProviderData(data) => {
                    return serde_json::from_str(&data.data).unwrap_or_default();
                }
                _ => break,
            }
        }
        Self::default()
    }
}

/// What is asked of a whole item before it goes back.
#[derive(Deserialize)]
pub(super) struct Kept<'a> {
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: Text<'a>,
    #[serde(borrow, default)]
    pub(super) id: Text<'a>,
    #[serde(borrow, default)]
    call_id: Text<'a>,
    #[serde(borrow, default)]
    encrypted_content: Text<'a>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
}

impl<'a> Kept<'a> {
    pub(super) fn read(data: &'a str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(data)
    }

    /// The item in this block, if it came from there.
    pub(super) fn of_block(block: &'a ContentBlock, origin: &str) -> Option<Self> {
        let ContentBlock::ProviderData(data) = block else { return None };
        let kept = (data.api == origin).then(|| Self::read(&data.data).ok())??;
        (!kept.kind.0.is_empty()).then_some(kept)
    }

    pub(super) fn is_thought(&self) -> bool {
        self.kind.0 == "reasoning"
    }

    pub(super) fn is_encrypted(&self) -> bool {
        !self.encrypted_content.0.is_empty()
    }

    /// Whether a thought lies open, and not in a summary only.
    pub(super) fn is_open(&self) -> bool {
        self.content.is_some_and(|parts| parts.get() != "[]")
    }

    /// Whether the item needs no other item, or that item is there: a call of a tool that the
    /// provider did not run itself is refused without its outcome.
    pub(super) fn is_whole_among(&self, blocks: &[ContentBlock], origin: &str) -> bool {
        let (kind, id) = (&self.kind.0, &self.call_id.0);
        id.is_empty()
            || blocks
                .iter()
                .filter_map(|block| Kept::of_block(block, origin))
                .any(|other| other.call_id.0 == *id && other.kind.0 != *kind)
    }
}
