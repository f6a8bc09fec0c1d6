//! [`write_messages`]: a conversation in the words of the API.
//!
//! A result names the tool it is of, which only the call knows; newer servers also take the id.
//! Pictures go along with their message as bytes; the server fetches none, so of a picture at an
//! address the model is told the address.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::Value;
use toolloop_core::{
    ChatMessage, ChatParams, ChatRole, ContentBlock, ImageSource, ToolCall, ToolResult,
};

use crate::codec::body::Body;

/// Writes the system prompt and the messages. All are settled: each turn is whole when it is sent,
/// so no result names a call before it.
pub(super) fn write_messages(params: &ChatParams, body: &mut Body<'_>) -> serde_json::Result<()> {
    let first = body.settled();
    let system = params.system.as_deref().filter(|text| !text.is_empty());
    if let Some(system) = system.filter(|_| first == 0) {
        body.push(&Message::says("system", Cow::Borrowed(system)))?;
    }
    let mut tools = HashMap::new();
    for message in params.messages.get(first..).unwrap_or_default() {
        for call in message.tool_calls() {
            tools.insert(call.id.as_str(), call.name.as_str());
        }
        for result in message.tool_results() {
            let tool = tools.get(result.tool_call_id.as_str()).copied();
            body.push(&result_message(result, tool))?;
        }
        let message = Message::from(message);
        if !message.is_empty() {
            body.push(&message)?;
        }
    }
    body.settle(params.messages.len(), []);
    Ok(())
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: Cow<'a, str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    thinking: Cow<'a, str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    images: Vec<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Call<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
}

impl<'a> Message<'a> {
    fn says(role: &'static str, content: Cow<'a, str>) -> Self {
        Self {
            role,
            content,
            thinking: Cow::Borrowed(""),
            images: Vec::new(),
            tool_calls: Vec::new(),
            tool_name: None,
            tool_call_id: None,
        }
    }

    fn is_empty(&self) -> bool {
        self.content.is_empty() && self.images.is_empty() && self.tool_calls.is_empty()
    }
}

/// The message without its results, which are messages of their own.
impl<'a> From<&'a ChatMessage> for Message<'a> {
    fn from(message: &'a ChatMessage) -> Self {
        let blocks = &message.content;
        let content = joined(blocks.iter().filter_map(|block| match block {
            ContentBlock::Text(text) => Some(Cow::Borrowed(text.as_str())),
            ContentBlock::Image { data: ImageSource::Url(url), .. } => Some(address(url)),
            _ => None,
        }));
        match message.role {
            ChatRole::System => Self::says("system", content),
            ChatRole::Assistant => Self {
                thinking: joined(blocks.iter().filter_map(|block| match block {
                    ContentBlock::Reasoning { content } => Some(Cow::Borrowed(content.as_str())),
                    _ => None,
                })),
                tool_calls: message.tool_calls().map(Call).collect(),
                ..Self::says("assistant", content)
            },
            _ => Self {
                images: blocks
                    .iter()
                    .filter_map(|block| match block {
                        ContentBlock::Image { data, .. } => bytes(data),
                        _ => None,
                    })
                    .collect(),
                ..Self::says("user", content)
            },
        }
    }
}

fn result_message<'a>(result: &'a ToolResult, tool: Option<&'a str>) -> Message<'a> {
    let ToolResult { tool_call_id, content, .. } = result;
    let text = match (content.as_str(), &content.structured) {
        ("", Some(data)) => Cow::Owned(data.to_string()),
        (text, _) => Cow::Borrowed(text),
    };
    let addresses = content.images.iter().filter_map(|image| match &image.data {
        ImageSource::Url(url) => Some(address(url)),
        ImageSource::Base64(_) => None,
    });
    let images: Vec<_> = content.images.iter().filter_map(|image| bytes(&image.data)).collect();
    let content = joined([text].into_iter().chain(addresses));
    let content = match content.is_empty() && images.is_empty() {
        true => Cow::Borrowed("(no output)"),
        false => content,
    };
    Message {
        images,
        tool_name: tool,
        tool_call_id: Some(tool_call_id),
        ..Message::says("tool", content)
    }
}

struct Call<'a>(&'a ToolCall);

impl Serialize for Call<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ToolCall { id, name, arguments } = self.0;
        let mut call = serializer.serialize_map(Some(3))?;
        call.serialize_entry("id", id)?;
        call.serialize_entry("type", "function")?;
        call.serialize_entry("function", &Function { name, arguments: Arguments(arguments) })?;
        call.end()
    }
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    arguments: Arguments<'a>,
}

/// An object, as the server demands; what the model said otherwise is kept as a member.
struct Arguments<'a>(&'a Value);

impl Serialize for Arguments<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Object(arguments) => arguments.serialize(serializer),
            Value::Null => serializer.serialize_map(Some(0))?.end(),
            other => {
                let mut object = serializer.serialize_map(Some(1))?;
                object.serialize_entry("unreadable_arguments", other)?;
                object.end()
            }
        }
    }
}

fn bytes(data: &ImageSource) -> Option<&str> {
    match data {
        ImageSource::Base64(bytes) => Some(bytes),
        ImageSource::Url(_) => None,
    }
}

fn address(url: &str) -> Cow<'_, str> {
    Cow::Owned(format!("(a picture at {url})"))
}

/// Several texts with blank lines between; a single one without a copy.
fn joined<'a>(texts: impl Iterator<Item = Cow<'a, str>>) -> Cow<'a, str> {
    let mut texts = texts.filter(|text| !text.is_empty());
    let mut all = texts.next().unwrap_or_default();
    for text in texts {
        let all = all.to_mut();
        all.push_str("\n\n");
        all.push_str(&text);
    }
    all
}
