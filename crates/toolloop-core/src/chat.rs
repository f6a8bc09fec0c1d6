//! Messages and replies: [`ChatMessage`] is what a conversation is made of.

use std::collections::HashMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::tool_content::ToolContent;
use crate::usage::Usage;

/// Who speaks in a [`ChatMessage`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ChatRole {
    /// Instructions from the program.
    System,
    /// The person or program that asks.
    User,
    /// The model.
    Assistant,
    /// The outcome of tools the model called.
    Tool,
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChatMessage {
    /// Who speaks.
    pub role: ChatRole,
    /// What is said, in order.
    pub content: Vec<ContentBlock>,
}

impl ChatMessage {
    /// A message of one text block.
    pub fn text(role: ChatRole, text: impl Into<String>) -> Self {
        Self { role, content: vec![ContentBlock::Text(text.into())] }
    }

    /// What the user says.
    pub fn user(text: impl Into<String>) -> Self {
        Self::text(ChatRole::User, text)
    }

    /// What the model said.
    pub fn assistant(text: impl Into<String>) -> Self {
        Self::text(ChatRole::Assistant, text)
    }

    /// An instruction of the program.
    pub fn system(text: impl Into<String>) -> Self {
        Self::text(ChatRole::System, text)
    }

    /// The output of a tool, as the answer to the call of that id.
    pub fn tool_result(tool_call_id: impl Into<String>, content: impl Into<ToolContent>) -> Self {
        ToolResult { tool_call_id: tool_call_id.into(), content: content.into(), is_error: false }
            .into()
    }

    /// A tool's failure, as the answer to the call of that id.
    pub fn tool_error(tool_call_id: impl Into<String>, content: impl Into<ToolContent>) -> Self {
        ToolResult { tool_call_id: tool_call_id.into(), content: content.into(), is_error: true }
            .into()
    }

    /// The tool calls of this message, in order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        tool_calls_of(&self.content)
    }

    /// The tool results of this message, in order.
    pub fn tool_results(&self) -> impl Iterator<Item = &ToolResult> {
        self.content.iter().filter_map(|block| match block {
            ContentBlock::ToolResult(result) => Some(result),
            _ => None,
        })
    }

    /// Whether the message says nothing: no block, or only empty text.
    pub fn is_empty(&self) -> bool {
        self.content.iter().all(|block| matches!(block, ContentBlock::Text(t) if t.is_empty()))
    }
}

impl From<ToolResult> for ChatMessage {
    fn from(result: ToolResult) -> Self {
        Self { role: ChatRole::Tool, content: vec![ContentBlock::ToolResult(result)] }
    }
}

/// A piece of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ContentBlock {
    /// Plain text.
    Text(String),
    /// A picture.
    Image {
        /// For example `image/png`.
        media_type: String,
        /// The picture itself or where it is.
        data: ImageSource,
    },
    /// The model asks for a tool.
    ToolCall(ToolCall),
    /// What a tool gave back.
    ToolResult(ToolResult),
    /// What the model thought.
    Reasoning {
        /// The thought as far as the provider shows it.
        content: String,
    },
    /// What a provider wants back verbatim; belongs to the block before it.
    ProviderData(ProviderData),
}

/// Where the bytes of a picture are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImageSource {
    /// The bytes in standard Base64.
    Base64(String),
    /// An address the provider can fetch.
    Url(String),
}

/// Opaque data that one API wants back byte for byte: signatures, encrypted reasoning, item ids.
///
/// It rides behind the block it belongs to, goes back only to the API it came from, and only
/// while that block is unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderData {
    /// The API that made it, for example `anthropic-messages`.
    pub api: String,
    /// The data, in that API's own encoding.
    pub data: String,
}

/// A tool the model wants run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Unique in its conversation; the result names it.
    pub id: String,
    /// Name of the tool.
    pub name: String,
    /// The arguments as JSON; a `Value::String` holds text that is not readable as JSON.
    pub arguments: Value,
}

impl fmt::Display for ToolCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.name, self.arguments)
    }
}

/// What a tool gave back, or why it did not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The id of the [`ToolCall`] it answers.
    pub tool_call_id: String,
    /// What the model reads.
    pub content: ToolContent,
    /// Whether the tool failed, was refused or was cut off.
    #[serde(default)]
    pub is_error: bool,
}

impl ToolResult {
    /// Whether the tool was cut off by the end of its run, so that nobody knows how far it came.
    pub fn was_cut_off(&self) -> bool {
        self.is_error && self.content.starts_with(CUT_OFF)
    }
}

/// How the result of a tool begins that was cut off.
pub(crate) const CUT_OFF: &str = "This call was cut off while it ran: ";

impl fmt::Display for ToolResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.content.fmt(f)
    }
}

/// A whole reply of a model.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ChatResponse {
    /// What the model said, in order.
    pub content: Vec<ContentBlock>,
    /// The tokens of this model call.
    pub usage: Usage,
    /// Why the model stopped.
    pub stop_reason: StopReason,
    /// The model that answered, as the provider names it.
    pub model: String,
    /// What else the provider said of this reply, for example `request_id`.
    #[serde(
        default,
        skip_serializing_if = "HashMap::is_empty",
        serialize_with = "crate::journal::in_key_order"
    )]
    pub metadata: HashMap<String, Value>,
}

impl ChatResponse {
    /// A reply that says nothing.
    pub fn empty() -> Self {
        Self::default()
    }

    /// The first text block.
    pub fn text(&self) -> Option<&str> {
        self.content.iter().find_map(|block| match block {
            ContentBlock::Text(text) => Some(text.as_str()),
            _ => None,
        })
    }

    /// The tool calls, in order.
    pub fn tool_calls(&self) -> Vec<&ToolCall> {
        tool_calls_of(&self.content).collect()
    }

    /// The tool calls, in order, without a list.
    pub fn tool_calls_iter(&self) -> impl Iterator<Item = &ToolCall> + Clone {
        tool_calls_of(&self.content)
    }

    /// The tool calls, taken out of the reply.
    pub fn into_tool_calls(self) -> Vec<ToolCall> {
        self.content
            .into_iter()
            .filter_map(|block| match block {
                ContentBlock::ToolCall(call) => Some(call),
                _ => None,
            })
            .collect()
    }
}

/// Why a model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StopReason {
    /// It had said all.
    #[default]
    EndTurn,
    /// It waits for tools.
    ToolUse,
    /// The limit of output tokens was reached.
    MaxTokens,
    /// A stop sequence was met.
    StopSequence,
    /// It, or a filter of the provider, declined to answer.
    Refusal,
    /// The provider named a reason toolloop does not know.
    Other,
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::EndTurn => "end_turn",
            Self::ToolUse => "tool_use",
            Self::MaxTokens => "max_tokens",
            Self::StopSequence => "stop_sequence",
            Self::Refusal => "refusal",
            Self::Other => "other",
        })
    }
}

fn tool_calls_of(content: &[ContentBlock]) -> impl Iterator<Item = &ToolCall> + Clone {
    content.iter().filter_map(|block| match block {
        ContentBlock::ToolCall(call) => Some(call),
        _ => None,
    })
}
