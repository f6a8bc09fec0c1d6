//! [`System`] and [`write_messages`]: the written form of instructions and conversation.

use serde::Serialize;
use serde::ser::{SerializeMap, SerializeSeq, Serializer};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use toolloop_core::{ChatParams, ImageSource, ToolCall, ToolResult};

use super::members::Members;
use super::turns::{Block, Said, Speaker, Turns};
use crate::codec::body::Body;
use crate::codec::ids::IdRule;

/// Instructions: the caller's, those at the beginning of the conversation, and a schema that the
/// API cannot be given otherwise.
pub(super) struct System<'a> {
    texts: Vec<&'a str>,
    schema: Option<String>,
    caching: bool,
}

impl<'a> System<'a> {
    pub(super) fn new(
        params: &'a ChatParams,
        turns: &Turns<'a>,
        schema: Option<&Value>,
        caching: bool,
    ) -> Self {
        let own = params.system.as_deref().filter(|text| !text.trim().is_empty());
        let texts = own.into_iter().chain(turns.system.iter().copied()).collect();
        let schema = schema.map(|schema| format!("{SCHEMA_WANTED}\n{schema}"));
        Self { texts, schema, caching }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.texts.is_empty() && self.schema.is_none()
    }
}

impl Serialize for System<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(None)?;
        let mut texts = self.texts.iter().copied().chain(self.schema.as_deref()).peekable();
        while let Some(text) = texts.next() {
            let cached = self.caching && texts.peek().is_none();
            let block = Block::Text { text, citations: None };
            list.serialize_element(&Written { block: &block, cached })?;
        }
        list.end()
    }
}

/// Writes the conversation behind what is settled of it.
pub(super) fn write_messages(
    turns: &Turns<'_>,
    caching: bool,
    body: &mut Body<'_>,
) -> serde_json::Result<()> {
    let is_user = |message: &&[Said<'_>]| message[0].speaker == Speaker::User;
    // The first message must be the user's.
    if body.is_empty() && !turns.messages().next().as_ref().is_some_and(is_user) {
        body.push(&json!({"role": "user", "content": OPENING}))?;
    }
    // The provider looks for what it has cached some blocks back from a mark. With one at
    // the end of the request before, it finds that even behind many results.
    let users = turns.messages().filter(is_user).count();
    let mut user = 0;
    let settled = turns.settle();
    for (at, message) in turns.messages().enumerate() {
        if let Some((_, settled)) = settled.filter(|(place, _)| *place == at) {
            settled.note_in(body);
        }
        let speaker = message[0].speaker;
        user += usize::from(speaker == Speaker::User);
        let cached = caching && speaker == Speaker::User && user + 2 > users;
        body.push(&Message { speaker, blocks: message, cached })?;
    }
    Ok(())
}

struct Message<'a> {
    speaker: Speaker,
    blocks: &'a [Said<'a>],
    cached: bool,
}

impl Serialize for Message<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut message = serializer.serialize_map(Some(2))?;
        message.serialize_entry(
            "role",
            match self.speaker {
                Speaker::User => "user",
                Speaker::Assistant => "assistant",
            },
        )?;
        message.serialize_entry("content", &Content(self))?;
        message.end()
    }
}

struct Content<'a>(&'a Message<'a>);

impl Serialize for Content<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Message { blocks, cached, .. } = self.0;
        let last = blocks.len().saturating_sub(1);
        serializer.collect_seq(
            blocks
                .iter()
                .enumerate()
                .map(|(at, said)| Written { block: &said.block, cached: *cached && at == last }),
        )
    }
}

struct Written<'a> {
    block: &'a Block<'a>,
    /// Whether the provider shall cache the request up to here.
    cached: bool,
}

impl Serialize for Written<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let Block::Opaque(raw) = self.block {
            return raw.serialize(serializer);
        }
        let mut block = serializer.serialize_map(None)?;
        match self.block {
            Block::Text { text, citations } => {
                block.serialize_entry("type", "text")?;
                block.serialize_entry("text", text)?;
                if let Some(citations) = citations {
                    block.serialize_entry("citations", citations)?;
                }
            }
            Block::Image { media_type, source } => {
                block.serialize_entry("type", "image")?;
                block.serialize_entry("source", &Source { media_type, source })?;
            }
            Block::Call { call, members } => write_call(call, *members, &mut block)?,
            Block::Result(result) => write_result(result, &mut block)?,
            Block::Thinking { thought, signature } => {
                block.serialize_entry("type", "thinking")?;
                block.serialize_entry("thinking", thought)?;
                block.serialize_entry("signature", signature)?;
            }
            Block::Opaque(_) => {}
        }
        if self.cached {
            block.serialize_entry("cache_control", &json!({"type": "ephemeral"}))?;
        }
        block.end()
    }
}

fn write_call<M: SerializeMap>(
    call: &ToolCall,
    members: Option<&RawValue>,
    block: &mut M,
) -> Result<(), M::Error> {
    block.serialize_entry("type", "tool_use")?;
    block.serialize_entry("id", &*IDS.legal(&call.id))?;
    // A model may have made a name up that the API takes in no request.
    block.serialize_entry("name", &*NAMES.legal(&call.name))?;
    match &call.arguments {
        Value::Object(arguments) => block.serialize_entry("input", arguments)?,
        Value::Null => block.serialize_entry("input", &json!({}))?,
        // The API takes objects only; the model shall see what it wrote.
        other => block.serialize_entry("input", &json!({"unreadable_arguments": other}))?,
    }
    if let Some(members) = members.and_then(|m| serde_json::from_str::<Members>(m.get()).ok()) {
        members.iter().try_for_each(|(name, value)| block.serialize_entry(name, value))?;
    }
    Ok(())
}

fn write_result<M: SerializeMap>(result: &ToolResult, block: &mut M) -> Result<(), M::Error> {
    let ToolResult { tool_call_id, content, is_error } = result;
    block.serialize_entry("type", "tool_result")?;
    block.serialize_entry("tool_use_id", &*IDS.legal(tool_call_id))?;
    let structured;
    let text = match (content.as_str(), &content.structured) {
        ("", Some(data)) => {
            structured = data.to_string();
            &structured
        }
        (text, _) => text,
    };
    match (text.trim(), content.images.as_slice()) {
        // An error without a word is refused.
        ("", []) => block.serialize_entry("content", "(no output)")?,
        (_, []) => block.serialize_entry("content", text)?,
        (words, images) => {
            let text = (!words.is_empty()).then_some(Block::Text { text, citations: None });
            let images = images
                .iter()
                .map(|image| Block::Image { media_type: &image.media_type, source: &image.data });
            let parts: Vec<_> = text.into_iter().chain(images).collect();
            let parts: Vec<_> =
                parts.iter().map(|block| Written { block, cached: false }).collect();
            block.serialize_entry("content", &parts)?;
        }
    }
    if *is_error {
        block.serialize_entry("is_error", &true)?;
    }
    Ok(())
}

struct Source<'a> {
    media_type: &'a str,
    source: &'a ImageSource,
}

impl Serialize for Source<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut source = serializer.serialize_map(None)?;
        match self.source {
            ImageSource::Url(url) => {
                source.serialize_entry("type", "url")?;
                source.serialize_entry("url", url)?;
            }
            ImageSource::Base64(data) => {
                source.serialize_entry("type", "base64")?;
                source.serialize_entry("media_type", self.media_type)?;
                source.serialize_entry("data", data)?;
            }
        }
        source.end()
    }
}

/// `^[a-zA-Z0-9_-]+$`; the platforms that serve the API besides Anthropic take 64.
const IDS: IdRule = IdRule::new(64, |byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));

/// Names of functions.
pub(super) const NAMES: IdRule = IdRule { max: 128, ..IDS };

/// Stands for the user where a conversation begins without.
const OPENING: &str = "(The conversation begins with you.)";

const SCHEMA_WANTED: &str = "Your final answer must be one JSON value and nothing else: no prose \
    around it, no code fence. It must fit this JSON Schema:";
