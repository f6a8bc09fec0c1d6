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

/// The turns of a conversation.
pub(super) struct Contents<'a>(Vec<Content<'a>>);

#[derive(serde::Serialize)]
struct Content<'a> {
    role: Speaker,
    parts: Vec<Part<'a>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Speaker {
    User,
    Model,
    Tools,
}

impl<'a> Contents<'a> {
    /// What was kept goes back where it came from `origin`. With `stand_in`, a turn whose first
    /// call has no signature gets that one.
    pub(super) fn new(
        messages: &'a [ChatMessage],
        origin: &str,
        stand_in: Option<&'a str>,
    ) -> Self {
        let mut contents = Self(Vec::new());
        let mut rest = messages;
        while let Some(message) = rest.first() {
            let is_results = |message: &ChatMessage| message.tool_results().next().is_some();
            let results = rest.iter().take_while(|message| is_results(message)).count();
            if results > 0 {
                contents.push_results(&rest[..results]);
                rest = &rest[results..];
            } else {
                contents.push_message(message, origin);
                rest = &rest[1..];
            }
        }
        contents.keep_ends();
        if let Some(stand_in) = stand_in {
            contents.sign(stand_in);
        }
        contents
    }

    fn push_message(&mut self, message: &'a ChatMessage, origin: &str) {
        if message.role == ChatRole::Assistant {
            let mut parts = Vec::new();
            push_model_parts(&message.content, origin, &mut parts);
            self.extend(Speaker::Model, parts);
        } else {
            self.extend(Speaker::User, user_parts(message));
        }
    }

    /// The results of one turn, which may come in any order.
    fn push_results(&mut self, messages: &'a [ChatMessage]) {
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
        self.extend(Speaker::Tools, parts.collect());
        for result in results.iter().filter(|result| !result.content.images.is_empty()) {
            let pictures = result
                .content
                .images
                .iter()
                .map(|image| Part::Picture { media_type: &image.media_type, source: &image.data });
            let caption = Part::Caption(&result.tool_call_id);
            self.extend(Speaker::User, std::iter::once(caption).chain(pictures).collect());
        }
        for message in messages {
            self.extend(Speaker::User, user_parts(message));
        }
    }

    /// Adds to the turn that is under way, or begins another.
    fn extend(&mut self, role: Speaker, mut parts: Vec<Part<'a>>) {
        match self.0.last_mut() {
            _ if parts.is_empty() => {}
            Some(content) if content.role == role => content.parts.append(&mut parts),
            _ => self.0.push(Content { role, parts }),
        }
    }

    /// A conversation that was cut may begin or end with the model.
    fn keep_ends(&mut self) {
        if self.0.first().is_none_or(|content| content.role != Speaker::User) {
            let begin = Content { role: Speaker::User, parts: vec![Part::Text(BEGIN)] };
            self.0.insert(0, begin);
        }
        if self.0.last().is_some_and(|content| content.role == Speaker::Model) {
            self.extend(Speaker::User, vec![Part::Text(CONTINUE)]);
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

impl Serialize for Contents<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
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
