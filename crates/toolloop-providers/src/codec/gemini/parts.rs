//! [`Part`]: a piece of a turn, as the API takes it.

use std::borrow::Cow;

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;
use toolloop_core::{ContentBlock, ImageSource, ToolCall, ToolResult};

use super::wire;
use crate::codec::ids::IdRule;

/// A piece of a turn.
pub(super) enum Part<'a> {
    Text(&'a str),
    /// Says which call the pictures after it belong to.
    Caption(&'a str),
    Picture {
        media_type: &'a str,
        source: &'a ImageSource,
    },
    Call {
        call: &'a ToolCall,
        signature: Option<Cow<'a, str>>,
    },
    Result {
        name: &'a str,
        result: &'a ToolResult,
    },
    /// What the API gave for safe-keeping, byte for byte.
    Kept(&'a RawValue),
}

impl<'a> Part<'a> {
    pub(super) fn call(&self) -> Option<&'a ToolCall> {
        match self {
            Self::Call { call, .. } => Some(call),
            _ => None,
        }
    }
}

impl Serialize for Part<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let Self::Kept(whole) = self {
            return whole.serialize(serializer);
        }
        let mut part = serializer.serialize_map(None)?;
        match self {
            Self::Text(text) => part.serialize_entry("text", text)?,
            Self::Caption(id) => {
                let caption = format!("Pictures of the result of {id}:");
                part.serialize_entry("text", &caption)?;
            }
            Self::Picture { media_type: mime_type, source } => match source {
                ImageSource::Base64(data) => {
                    part.serialize_entry("inlineData", &InlineData { mime_type, data })?;
                }
                ImageSource::Url(file_uri) => {
                    part.serialize_entry("fileData", &FileData { mime_type, file_uri })?;
                }
            },
            Self::Call { call: ToolCall { id, name, arguments }, signature } => {
                let call = FunctionCall { id, name: &NAMES.legal(name), args: Args(arguments) };
                part.serialize_entry("functionCall", &call)?;
                if let Some(signature) = signature {
                    part.serialize_entry("thoughtSignature", signature)?;
                }
            }
            Self::Result { name, result } => {
                let id = &result.tool_call_id;
                let name = NAMES.legal(name);
                let response = FunctionResponse { id, name: &name, response: Outcome(result) };
                part.serialize_entry("functionResponse", &response)?;
            }
            Self::Kept(_) => {}
        }
        part.end()
    }
}

/// Adds the parts of what the model said. Its thoughts go back only where that API gave them with
/// a signature.
pub(super) fn push_model_parts<'a>(
    blocks: &'a [ContentBlock],
    origin: &str,
    parts: &mut Vec<Part<'a>>,
) {
    let kept = |block| kept(block, origin);
    for (at, block) in blocks.iter().enumerate() {
        match block {
            ContentBlock::Text(text) => {
                // The end of a text that has a signature is a part of its own.
                let end = kept(blocks.get(at + 1)).filter(|part| !part.thought);
                let end = end.and_then(|part| part.text).unwrap_or_default();
                let unsigned = text.strip_suffix(&*end.0).unwrap_or(text);
                if !unsigned.is_empty() {
                    parts.push(Part::Text(unsigned));
                }
            }
            ContentBlock::Image { media_type, data } => {
                parts.push(Part::Picture { media_type, source: data });
            }
            ContentBlock::ToolCall(call) => {
                let behind = kept(blocks.get(at + 1)).filter(is_signature_alone);
                parts.push(Part::Call { call, signature: behind.map(|part| part.signature.0) });
            }
            ContentBlock::ProviderData(data) => {
                let before = at.checked_sub(1).and_then(|before| blocks.get(before));
                if kept(Some(block)).is_some_and(|part| is_whole_behind(before, &part))
                    && let Ok(whole) = serde_json::from_str(&data.data)
                {
                    parts.push(Part::Kept(whole));
                }
            }
            _ => {}
        }
    }
}

/// What came from there for safe-keeping.
fn kept<'a>(block: Option<&'a ContentBlock>, origin: &str) -> Option<wire::Part<'a>> {
    match block {
        Some(ContentBlock::ProviderData(data)) if data.api == origin => {
            serde_json::from_str(&data.data).ok()
        }
        _ => None,
    }
}

/// Whether it belongs into the part of a call.
fn is_signature_alone(part: &wire::Part<'_>) -> bool {
    part.text.is_none() && part.others.is_empty() && !part.signature.0.is_empty()
}

/// Whether it is a part of its own. A signature is worth nothing once its text was changed.
fn is_whole_behind(before: Option<&ContentBlock>, part: &wire::Part<'_>) -> bool {
    let Some(text) = &part.text else { return !part.others.is_empty() };
    match before {
        _ if text.0.is_empty() => true,
        Some(ContentBlock::Reasoning { content }) if part.thought => content.ends_with(&*text.0),
        Some(ContentBlock::Text(content)) if !part.thought => content.ends_with(&*text.0),
        _ => false,
    }
}

#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct InlineData<'a> {
    mime_type: &'a str,
    data: &'a str,
}

#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct FileData<'a> {
    mime_type: &'a str,
    file_uri: &'a str,
}

#[derive(serde::Serialize)]
struct FunctionCall<'a> {
    id: &'a str,
    name: &'a str,
    args: Args<'a>,
}

#[derive(serde::Serialize)]
struct FunctionResponse<'a> {
    id: &'a str,
    name: &'a str,
    response: Outcome<'a>,
}

/// Names of functions; in the history there may be any that a model has made up.
pub(super) const NAMES: IdRule = IdRule {
    max: 64,
    allows: |byte| byte.is_ascii_alphanumeric() || b"_.:-".contains(&byte),
    begins: |byte| byte.is_ascii_alphabetic() || byte == b'_',
};

/// Arguments as the object the API wants; what the model said otherwise becomes a member of one.
struct Args<'a>(&'a Value);

impl Serialize for Args<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Object(arguments) => arguments.serialize(serializer),
            Value::Null => serializer.serialize_map(Some(0))?.end(),
            other => serializer.collect_map([("unreadable_arguments", other)]),
        }
    }
}

/// What a tool gave, as the object the API wants.
struct Outcome<'a>(&'a ToolResult);

impl Serialize for Outcome<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ToolResult { content, is_error, .. } = self.0;
        let key = if *is_error { "error" } else { "result" };
        match (content.as_str(), &content.structured) {
            ("", Some(data)) => serializer.collect_map([(key, data)]),
            ("", None) if !content.images.is_empty() => {
                serializer.collect_map([(key, "(pictures follow)")])
            }
            (text, _) => serializer.collect_map([(key, text)]),
        }
    }
}
