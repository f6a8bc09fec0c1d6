//! [`write_messages`]: a conversation in the words of the API.
//!
//! The order the API insists on: a message with calls is followed at once by one `tool` message
//! for each result. Pictures of results have no place there, so they follow the last result in a
//! message of the user. Empty text is refused by many servers and never sent.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::value::RawValue;
use toolloop_core::{
    ChatMessage, ChatParams, ChatRole, ContentBlock, ImageSource, ProviderData, ToolCall,
    ToolResult,
};

use super::{Quirks, details};
use crate::codec::arguments::ArgumentsText;
use crate::codec::body::Body;
use crate::codec::ids::IdRule;
use crate::codec::picture::PictureUrl;

/// Writes the system prompt and the messages. All are settled: each turn is whole when it is sent.
pub(super) fn write_messages(
    params: &ChatParams,
    quirks: &Quirks,
    body: &mut Body<'_>,
) -> serde_json::Result<()> {
    let first = body.settled();
    let system = params.system.as_deref().filter(|text| !text.is_empty());
    if let Some(system) = system.filter(|_| first == 0) {
        body.push(&Message { role: "system", content: system })?;
    }
    let messages = params.messages.get(first..).unwrap_or_default();
    let mut results_from = None;
    for (at, message) in messages.iter().enumerate() {
        if message.tool_results().next().is_some() {
            results_from.get_or_insert(at);
        } else if let Some(from) = results_from.take() {
            pictures_of_results(&messages[from..at], body)?;
        }
        write_message(message, quirks, body)?;
    }
    if let Some(from) = results_from {
        pictures_of_results(&messages[from..], body)?;
    }
    body.settle(params.messages.len(), []);
    if body.is_empty() {
        body.push(&Message { role: "user", content: OPENING })?;
    }
    Ok(())
}

fn write_message(
    message: &ChatMessage,
    quirks: &Quirks,
    body: &mut Body<'_>,
) -> serde_json::Result<()> {
    let blocks = message.content.as_slice();
    let texts = Texts(blocks);
    let assistant = message.role == ChatRole::Assistant;
    if assistant && (!texts.is_empty() || message.tool_calls().next().is_some()) {
        body.push(&Assistant { blocks, quirks })?;
    }
    for result in message.tool_results() {
        body.push(&Tool { result, quirks })?;
    }
    let has_picture = blocks.iter().any(|block| matches!(block, ContentBlock::Image { .. }));
    match message.role {
        ChatRole::Assistant => Ok(()),
        ChatRole::System if texts.is_empty() => Ok(()),
        ChatRole::System => body.push(&Message { role: "system", content: texts }),
        _ if has_picture => body.push(&Message { role: "user", content: Parts(blocks) }),
        _ if texts.is_empty() => Ok(()),
        _ => body.push(&Message { role: "user", content: texts }),
    }
}

/// Names of functions; in the history there may be any that a model has made up.
pub(super) const NAMES: IdRule =
    IdRule::new(64, |byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));

/// The message of the user in a request that would have none at all.
const OPENING: &str = "(The conversation begins with you.)";

fn pictures_of_results(messages: &[ChatMessage], body: &mut Body<'_>) -> serde_json::Result<()> {
    let results = || messages.iter().flat_map(ChatMessage::tool_results);
    if results().all(|result| result.content.images.is_empty()) {
        return Ok(());
    }
    let mut parts = Vec::new();
    for result in results().filter(|result| !result.content.images.is_empty()) {
        parts.push(Part::Caption(&result.tool_call_id));
        let pictures = result.content.images.iter();
        parts.extend(pictures.map(|image| Part::Picture(&image.media_type, &image.data)));
    }
    body.push(&Message { role: "user", content: parts })
}

#[derive(serde::Serialize)]
struct Message<T> {
    role: &'static str,
    content: T,
}

struct Assistant<'a> {
    blocks: &'a [ContentBlock],
    quirks: &'a Quirks,
}

impl Serialize for Assistant<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (texts, quirks) = (Texts(self.blocks), self.quirks);
        let mut message = serializer.serialize_map(None)?;
        message.serialize_entry("role", "assistant")?;
        message.serialize_entry("content", &(!texts.is_empty()).then_some(texts))?;
        let thoughts = Thoughts(self.blocks);
        if quirks.reasoning_back && !thoughts.is_empty() {
            message.serialize_entry("reasoning_content", &thoughts)?;
        }
        let details = details::of_message(self.blocks, &quirks.origin);
        if quirks.members_back.contains(&details::MEMBER) && !details.is_empty() {
            message.serialize_entry(details::MEMBER, &details)?;
        }
        let mut behind_call = false;
        for block in self.blocks {
            match block {
                ContentBlock::ProviderData(data) if !behind_call => {
                    members(data, quirks, &mut message)?;
                }
                ContentBlock::ProviderData(_) => {}
                block => behind_call = matches!(block, ContentBlock::ToolCall(_)),
            }
        }
        let calls = Calls { blocks: self.blocks, quirks };
        if !calls.is_empty() {
            message.serialize_entry("tool_calls", &calls)?;
        }
        message.end()
    }
}

struct Calls<'a> {
    blocks: &'a [ContentBlock],
    quirks: &'a Quirks,
}

impl Calls<'_> {
    fn is_empty(&self) -> bool {
        !self.blocks.iter().any(|block| matches!(block, ContentBlock::ToolCall(_)))
    }
}

impl Serialize for Calls<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(None)?;
        for (at, block) in self.blocks.iter().enumerate() {
            if let ContentBlock::ToolCall(call) = block {
                let behind = &self.blocks[at + 1..];
                list.serialize_element(&Call { call, behind, quirks: self.quirks })?;
            }
        }
        list.end()
    }
}

struct Call<'a> {
    call: &'a ToolCall,
    /// The blocks after it, which may begin with data that belongs to it.
    behind: &'a [ContentBlock],
    quirks: &'a Quirks,
}

impl Serialize for Call<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ToolCall { id, name, arguments } = self.call;
        let (name, arguments) = (NAMES.legal(name), ArgumentsText(arguments));
        let mut call = serializer.serialize_map(None)?;
        call.serialize_entry("id", &self.quirks.call_ids.legal(id))?;
        call.serialize_entry("type", "function")?;
        call.serialize_entry("function", &Function { name, arguments })?;
        for block in self.behind {
            let ContentBlock::ProviderData(data) = block else { break };
            members(data, self.quirks, &mut call)?;
        }
        call.end()
    }
}

#[derive(serde::Serialize)]
struct Function<'a> {
    name: Cow<'a, str>,
    arguments: ArgumentsText<'a>,
}

/// Puts what this API gave for safe-keeping back where it was, byte for byte. What it cannot have
/// given is left out.
fn members<M: SerializeMap>(
    data: &ProviderData,
    quirks: &Quirks,
    object: &mut M,
) -> Result<(), M::Error> {
    if data.api != quirks.origin {
        return Ok(());
    }
    let Ok(members) = serde_json::from_str::<BTreeMap<String, &RawValue>>(&data.data) else {
        return Ok(());
    };
    let back = |name: &str| name != details::MEMBER && quirks.members_back.contains(&name);
    members
        .iter()
        .filter(|(name, _)| back(name))
        .try_for_each(|(name, value)| object.serialize_entry(name, value))
}

struct Tool<'a> {
    result: &'a ToolResult,
    quirks: &'a Quirks,
}

impl Serialize for Tool<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ToolResult { tool_call_id, content, .. } = self.result;
        let mut message = serializer.serialize_map(None)?;
        message.serialize_entry("role", "tool")?;
        message.serialize_entry("tool_call_id", &self.quirks.call_ids.legal(tool_call_id))?;
        match (content.as_str(), &content.structured) {
            ("", Some(data)) => message.serialize_entry("content", &data.to_string())?,
            ("", None) if content.images.is_empty() => {
                message.serialize_entry("content", "(no output)")?;
            }
            ("", None) => message.serialize_entry("content", "(pictures follow)")?,
            (text, _) => message.serialize_entry("content", text)?,
        }
        message.end()
    }
}

/// The text blocks as one string, which every server takes; a list of parts not every one does.
struct Texts<'a>(&'a [ContentBlock]);

impl Texts<'_> {
    fn is_empty(&self) -> bool {
        texts(self.0).next().is_none()
    }
}

impl Serialize for Texts<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        joined(texts(self.0), serializer)
    }
}

/// The thoughts as one string.
struct Thoughts<'a>(&'a [ContentBlock]);

impl Thoughts<'_> {
    fn is_empty(&self) -> bool {
        thoughts(self.0).next().is_none()
    }
}

impl Serialize for Thoughts<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        joined(thoughts(self.0), serializer)
    }
}

fn texts(blocks: &[ContentBlock]) -> impl Iterator<Item = &str> + Clone {
    blocks.iter().filter_map(|block| match block {
        ContentBlock::Text(text) if !text.is_empty() => Some(text.as_str()),
        _ => None,
    })
}

fn thoughts(blocks: &[ContentBlock]) -> impl Iterator<Item = &str> + Clone {
    blocks.iter().filter_map(|block| match block {
        ContentBlock::Reasoning { content } if !content.is_empty() => Some(content.as_str()),
        _ => None,
    })
}

/// Several texts as one string with blank lines between; a single one without a copy.
fn joined<'a, S: Serializer>(
    mut texts: impl Iterator<Item = &'a str> + Clone,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let all = texts.clone();
    match (texts.next(), texts.next()) {
        (Some(text), None) => serializer.serialize_str(text),
        _ => serializer.serialize_str(&all.collect::<Vec<_>>().join("\n\n")),
    }
}

/// The content of a message with pictures.
struct Parts<'a>(&'a [ContentBlock]);

impl Serialize for Parts<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().filter_map(|block| match block {
            ContentBlock::Text(text) if !text.is_empty() => Some(Part::Text(text)),
            ContentBlock::Image { media_type, data } => Some(Part::Picture(media_type, data)),
            _ => None,
        }))
    }
}

enum Part<'a> {
    Text(&'a str),
    /// Says which call the pictures after it belong to.
    Caption(&'a str),
    Picture(&'a str, &'a ImageSource),
}

impl Serialize for Part<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut part = serializer.serialize_map(Some(2))?;
        match self {
            Self::Text(text) => {
                part.serialize_entry("type", "text")?;
                part.serialize_entry("text", text)?;
            }
            Self::Caption(id) => {
                part.serialize_entry("type", "text")?;
                part.serialize_entry(
                    "text",
                    &Shown(format_args!("Pictures of the result of {id}:")),
                )?;
            }
            Self::Picture(media_type, source) => {
                part.serialize_entry("type", "image_url")?;
                let url = PictureUrl { media_type, source };
                part.serialize_entry("image_url", &ImageUrl { url })?;
            }
        }
        part.end()
    }
}

#[derive(serde::Serialize)]
struct ImageUrl<'a> {
    url: PictureUrl<'a>,
}

/// Writes what is shown as a string, without a string in between.
struct Shown<T>(T);

impl<T: fmt::Display> Serialize for Shown<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::API;
    use super::*;
    use serde_json::{Value, json};

    fn messages(params: &ChatParams) -> Value {
        let body = super::super::encode("m", params, &Quirks::openai()).unwrap();
        serde_json::from_slice::<Value>(&body).unwrap()["messages"].take()
    }

    fn called(name: &str) -> Value {
        let arguments = json!({});
        let call = ToolCall { id: "a".into(), name: name.into(), arguments };
        let content = vec![ContentBlock::ToolCall(call)];
        let messages = vec![ChatMessage { role: ChatRole::Assistant, content }];
        self::messages(&ChatParams { messages, ..ChatParams::default() })[0]["tool_calls"][0]["function"]["name"].take()
    }

    #[test]
    fn a_name_that_was_made_up_becomes_one_that_is_taken() {
        assert_eq!(called("no_such-tool"), "no_such-tool");
        assert_eq!(called("a.b c"), "abc068527b5133b29e5");
        assert_eq!(called(""), "cbf29ce484222325");
    }

    #[test]
    fn a_request_has_a_message() {
        let opening = json!([{"role": "user", "content": "(The conversation begins with you.)"}]);
        assert_eq!(messages(&ChatParams::default()), opening);
    }

    #[test]
    fn data_that_the_api_cannot_have_given_is_left_out() {
        for data in ["", "x", "null", "[]"] {
            let data = ProviderData { api: API.into(), data: data.into() };
            let content = vec![ContentBlock::Text("Hi".into()), ContentBlock::ProviderData(data)];
            let said = ChatMessage { role: ChatRole::Assistant, content };
            let params = ChatParams { messages: vec![said], ..ChatParams::default() };
            assert_eq!(messages(&params), json!([{"role": "assistant", "content": "Hi"}]));
        }
    }
}
