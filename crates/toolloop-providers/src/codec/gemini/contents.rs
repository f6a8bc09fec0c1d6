//! [`Contents`]: a conversation in the words of the API.
//!
//! The order the API insists on: a turn with calls follows a turn of the user or of results, and
//! the next turn holds exactly its results, in the order of the calls and nothing beside them;
//! the first and the last turn are the user's. What the user says and what the program says in
//! mid-conversation are one thing here; pictures of results follow in a turn of the user.

use std::borrow::Cow;

use serde::ser::{Serialize, Serializer};
use toolloop_core::{ChatMessage, ChatRole, ContentBlock, ToolCall, ToolResult};

use super::parts::{Part, push_model_parts};
use crate::codec::body::Body;

/// The turns of a conversation.
pub(super) struct Contents<'a>(Vec<Content<'a>>);

#[derive(serde::Serialize)]
struct Content<'a> {
    role: Speaker,
    parts: Vec<Part<'a>>,
    /// The message it begins with.
    #[serde(skip)]
    message: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Speaker {
    User,
    Model,
    Tools,
}

impl<'a> Contents<'a> {
    /// Those of the messages from `first` on. What was kept goes back where it came from `origin`.
    /// With `stand_in`, a turn whose first call has no signature gets that one.
    pub(super) fn new(
        messages: &'a [ChatMessage],
        first: usize,
        origin: &str,
        stand_in: Option<&'a str>,
    ) -> Self {
        let mut contents = Self(Vec::new());
        let mut rest = messages.get(first..).unwrap_or_default();
        while let Some(message) = rest.first() {
            let at = messages.len() - rest.len();
            let is_results = |message: &ChatMessage| message.tool_results().next().is_some();
            let results = rest.iter().take_while(|message| is_results(message)).count();
            if results > 0 {
                contents.push_results(at, &rest[..results]);
                rest = &rest[results..];
            } else {
                contents.push_message(at, message, origin);
                rest = &rest[1..];
            }
        }
        if let Some(stand_in) = stand_in {
            contents.sign(stand_in);
        }
        contents
    }

    /// Whether the model speaks first, and in that message: then nothing of this belongs to a turn
    /// before it.
    pub(super) fn begin_with_a_reply(&self, message: usize) -> bool {
        let first = self.0.first();
        first.is_some_and(|first| first.role == Speaker::Model && first.message == message)
    }

    /// Writes them behind those that are settled. All before the last turn of the model are then:
    /// that may go on, and what the results behind it are called stands in it.
    pub(super) fn write(&self, body: &mut Body<'_>) -> serde_json::Result<()> {
        let is_model = |content: &Content<'_>| content.role == Speaker::Model;
        // A conversation that was cut may begin or end with the model.
        let begin = self.0.first().is_none_or(|content| content.role != Speaker::User);
        if begin && body.is_empty() {
            body.push(&Content::says(BEGIN))?;
        }
        let last_reply = self.0.iter().rposition(is_model);
        for (at, content) in self.0.iter().enumerate() {
            if Some(at) == last_reply {
                body.settle(content.message, []);
            }
            body.push(content)?;
        }
        if self.0.last().is_some_and(is_model) {
            body.push(&Content::says(CONTINUE))?;
        }
        Ok(())
    }

    fn push_message(&mut self, at: usize, message: &'a ChatMessage, origin: &str) {
        if message.role == ChatRole::Assistant {
            let mut parts = Vec::new();
            push_model_parts(&message.content, origin, &mut parts);
            self.extend(at, Speaker::Model, parts);
        } else {
            self.extend(at, Speaker::User, user_parts(message));
        }
    }

    /// The results of one turn, which may come in any order.
    fn push_results(&mut self, at: usize, messages: &'a [ChatMessage]) {
        let calls: Vec<&'a ToolCall> = match self.0.last() {
            Some(content) => content.parts.iter().filter_map(Part::call).collect(),
            None => Vec::new(),
        };
        let position = |result: &ToolResult| {
            let answered = calls.iter().position(|call| call.id == result.tool_call_id);
            answered.unwrap_or(calls.len())
        };
        let mut results: Vec<_> = messages.iter().flat_map(ChatMessage::tool_results).collect();
        results.sort_by_key(|result| position(result));
        let name = |result: &'a ToolResult| match calls.get(position(result)) {
            Some(call) => call.name.as_str(),
            None => &result.tool_call_id,
        };
        let parts = results.iter().map(|result| Part::Result { name: name(result), result });
        self.extend(at, Speaker::Tools, parts.collect());
        for result in results.iter().filter(|result| !result.content.images.is_empty()) {
            let pictures = result
                .content
                .images
                .iter()
                .map(|image| Part::Picture { media_type: &image.media_type, source: &image.data });
            let caption = Part::Caption(&result.tool_call_id);
            self.extend(at, Speaker::User, std::iter::once(caption).chain(pictures).collect());
        }
        for message in messages {
            self.extend(at, Speaker::User, user_parts(message));
        }
    }

    /// Adds to the turn that is under way, or begins another.
    fn extend(&mut self, message: usize, role: Speaker, mut parts: Vec<Part<'a>>) {
        match self.0.last_mut() {
            _ if parts.is_empty() => {}
            Some(content) if content.role == role => content.parts.append(&mut parts),
            _ => self.0.push(Content { role, parts, message }),
        }
    }

    fn sign(&mut self, stand_in: &'a str) {
        for content in &mut self.0 {
            let first = content.parts.iter_mut().find_map(|part| match part {
                Part::Call { signature, .. } => Some(signature),
                _ => None,
            });
            if let Some(signature @ None) = first {
                *signature = Some(Cow::Borrowed(stand_in));
            }
        }
    }
}

impl<'a> Content<'a> {
    fn says(text: &'a str) -> Self {
        Self { role: Speaker::User, parts: vec![Part::Text(text)], message: usize::MAX }
    }
}

impl Serialize for Speaker {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(match self {
            Self::Model => "model",
            Self::User | Self::Tools => "user",
        })
    }
}

fn user_parts(message: &ChatMessage) -> Vec<Part<'_>> {
    let parts = message.content.iter().filter_map(|block| match block {
        ContentBlock::Text(text) if !text.is_empty() => Some(Part::Text(text)),
        ContentBlock::Image { media_type, data } => {
            Some(Part::Picture { media_type, source: data })
        }
        _ => None,
    });
    parts.collect()
}

/// Stands for what was said before a conversation that does not begin with the user.
const BEGIN: &str = "(What was said before is left out.)";
/// What the user says where the model spoke last.
const CONTINUE: &str = "Continue.";
