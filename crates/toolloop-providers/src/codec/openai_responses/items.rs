//! [`write_items`]: a conversation as the items of the API.
//!
//! Thoughts and other items that the provider made go back whole, in their place, as far as
//! [`select`] chooses them. The id of a text or a call is tied to the thought before it: the API
//! refuses the one without the other. Results follow their calls as items of their own and carry
//! pictures themselves.

use std::borrow::Cow;

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::value::RawValue;
use toolloop_core::{
    ChatMessage, ChatRole, ContentBlock, ImageSource, ToolCall, ToolContent, ToolResult,
};

use super::Quirks;
use super::kept::{Kept, Members};
use super::selection::{WrittenIds, select};
use crate::codec::arguments::ArgumentsText;
use crate::codec::body::Body;
use crate::codec::ids::IdRule;
use crate::codec::picture::PictureUrl;

/// Writes the messages. All are settled; the ids of their items are noted.
pub(super) fn write_items(
    messages: &[ChatMessage],
    quirks: &Quirks,
    body: &mut Body<'_>,
) -> serde_json::Result<()> {
    let mut ids = WrittenIds::behind(body.notes());
    for message in messages.get(body.settled()..).unwrap_or_default() {
        let blocks = message.content.as_slice();
        for result in message.tool_results() {
            body.push(&Output(result))?;
        }
        match message.role {
            ChatRole::Assistant => write_reply(blocks, quirks, &mut ids, body)?,
            role => {
                let role = if role == ChatRole::System { "system" } else { "user" };
                let parts = Parts(blocks);
                if parts.iter().next().is_some() {
                    body.push(&Message { kind: "message", role, content: parts })?;
                }
            }
        }
    }
    body.settle(messages.len(), ids.into_new());
    Ok(())
}

fn write_reply(
    blocks: &[ContentBlock],
    quirks: &Quirks,
    ids: &mut WrittenIds,
    body: &mut Body<'_>,
) -> serde_json::Result<()> {
    let choices = select(blocks, quirks, ids);
    let mut thought = Cow::Borrowed("");
    for (at, (block, choice)) in blocks.iter().zip(choices).enumerate() {
        if !choice.goes_back {
            continue;
        }
        // A caller may have moved them behind another item, or taken their thought out.
        let mut members = |foreign: &str| {
            let mut members = Members::behind(&blocks[at + 1..], &quirks.origin);
            let is_tied =
                choice.is_tied && members.thought.as_ref().is_none_or(|id| *id == thought);
            members.id = members
                .id
                .filter(|id| is_tied && !id.get().starts_with(foreign) && ids.insert(id.get()));
            members
        };
        match block {
            ContentBlock::Text(text) => {
                body.push(&Said { text, members: members("\"fc_") })?;
            }
            ContentBlock::ToolCall(call) => {
                body.push(&Call { call, members: members("\"msg_") })?;
            }
            ContentBlock::ProviderData(data) => {
                let kept = Kept::of_block(block, &quirks.origin);
                if let Some(kept) = kept.filter(Kept::is_thought) {
                    thought = kept.id.0;
                }
                body.push(&serde_json::from_str::<&RawValue>(&data.data)?)?;
            }
            _ => {}
        }
    }
    Ok(())
}

#[derive(serde::Serialize)]
struct Message<T> {
    #[serde(rename = "type")]
    kind: &'static str,
    role: &'static str,
    content: T,
}

/// What the model said. With its id it is an item of the output; without, a message like any.
struct Said<'a> {
    text: &'a str,
    members: Members<'a>,
}

impl Serialize for Said<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { text, members } = self;
        let mut message = serializer.serialize_map(None)?;
        message.serialize_entry("type", "message")?;
        message.serialize_entry("role", "assistant")?;
        match members.id {
            Some(id) => {
                message.serialize_entry("id", id)?;
                message.serialize_entry("status", "completed")?;
                message.serialize_entry("content", &[OutputText::new(text)])?;
            }
            None => message.serialize_entry("content", text)?,
        }
        if let Some(phase) = members.phase {
            message.serialize_entry("phase", phase)?;
        }
        message.end()
    }
}

#[derive(serde::Serialize)]
struct OutputText<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    text: &'a str,
    annotations: [(); 0],
}

impl<'a> OutputText<'a> {
    fn new(text: &'a str) -> Self {
        Self { kind: "output_text", text, annotations: [] }
    }
}

struct Call<'a> {
    call: &'a ToolCall,
    members: Members<'a>,
}

impl Serialize for Call<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ToolCall { id, name, arguments } = self.call;
        let mut call = serializer.serialize_map(None)?;
        call.serialize_entry("type", "function_call")?;
        if let Some(id) = self.members.id {
            call.serialize_entry("id", id)?;
        }
        call.serialize_entry("call_id", &WORDS.legal(id))?;
        // A model may have made a name up that the API takes in no request.
        call.serialize_entry("name", &WORDS.legal(name))?;
        if let Some(namespace) = self.members.namespace {
            call.serialize_entry("namespace", namespace)?;
        }
        call.serialize_entry("arguments", &ArgumentsText(arguments))?;
        call.end()
    }
}

struct Output<'a>(&'a ToolResult);

impl Serialize for Output<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ToolResult { tool_call_id, content, .. } = self.0;
        let mut output = serializer.serialize_map(None)?;
        output.serialize_entry("type", "function_call_output")?;
        output.serialize_entry("call_id", &WORDS.legal(tool_call_id))?;
        match (content.as_str(), &content.structured) {
            _ if !content.images.is_empty() => {
                output.serialize_entry("output", &Pictures(content))?;
            }
            ("", Some(data)) => output.serialize_entry("output", &data.to_string())?,
            ("", None) => output.serialize_entry("output", "(no output)")?,
            (text, _) => output.serialize_entry("output", text)?,
        }
        output.end()
    }
}

/// A result with pictures.
struct Pictures<'a>(&'a ToolContent);

impl Serialize for Pictures<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = Some(self.0.as_str()).filter(|text| !text.is_empty()).map(Part::Text);
        let images = self.0.images.iter();
        let pictures = images.map(|image| Part::Picture(&image.media_type, &image.data));
        serializer.collect_seq(text.into_iter().chain(pictures))
    }
}

/// What a user or the program says: a string where it is one text, which every server takes.
struct Parts<'a>(&'a [ContentBlock]);

impl<'a> Parts<'a> {
    fn iter(&self) -> impl Iterator<Item = Part<'a>> {
        self.0.iter().filter_map(|block| match block {
            ContentBlock::Text(text) if !text.is_empty() => Some(Part::Text(text)),
            ContentBlock::Image { media_type, data } => Some(Part::Picture(media_type, data)),
            _ => None,
        })
    }
}

impl Serialize for Parts<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut parts = self.iter();
        match (parts.next(), parts.next()) {
            (Some(Part::Text(text)), None) => serializer.serialize_str(text),
            _ => serializer.collect_seq(self.iter()),
        }
    }
}

enum Part<'a> {
    Text(&'a str),
    Picture(&'a str, &'a ImageSource),
}

impl Serialize for Part<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut part = serializer.serialize_map(None)?;
        match self {
            Self::Text(text) => {
                part.serialize_entry("type", "input_text")?;
                part.serialize_entry("text", text)?;
            }
            Self::Picture(media_type, source) => {
                part.serialize_entry("type", "input_image")?;
                part.serialize_entry("detail", "auto")?;
                part.serialize_entry("image_url", &PictureUrl { media_type, source })?;
            }
        }
        part.end()
    }
}

/// Ids of calls, and names of functions.
pub(super) const WORDS: IdRule =
    IdRule::new(64, |byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
