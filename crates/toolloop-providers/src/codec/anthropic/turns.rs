//! [`Turns`]: a conversation as the API wants it, every block borrowed.
//!
//! The API knows two speakers who alternate. Results are said by the user, first in the message
//! behind their calls and in the order of these; so are instructions in mid-conversation. Those
//! at its beginning are the system's. Text without a word is refused and never sent.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::value::RawValue;
use toolloop_core::{ChatMessage, ChatRole, ContentBlock, ImageSource, ToolCall, ToolResult};

use super::opaque::Kept;
use crate::codec::forgiving::Text;

/// A conversation in blocks; those of one speaker in a row are one message.
pub(super) struct Turns<'a> {
    /// Instructions before the first message.
    pub(super) system: Vec<&'a str>,
    blocks: Vec<(Speaker, Block<'a>)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Speaker {
    User,
    Assistant,
}

/// A block in the words of the API.
pub(super) enum Block<'a> {
    Text {
        text: &'a str,
        citations: Option<&'a RawValue>,
    },
    Image {
        media_type: &'a str,
        source: &'a ImageSource,
    },
    Call {
        call: &'a ToolCall,
        members: Option<&'a RawValue>,
    },
    Result(&'a ToolResult),
    Thinking {
        thought: &'a str,
        signature: Cow<'a, str>,
    },
    /// As it came from the API.
    Opaque(&'a RawValue),
}

/// Takes messages, and what a paused reply said so far, apart.
/// Of what was kept, that from `origin` goes back.
pub(super) fn flatten<'a>(
    messages: &'a [ChatMessage],
    paused: &'a [ContentBlock],
    origin: &str,
) -> Turns<'a> {
    let mut turns = Turns { system: Vec::new(), blocks: Vec::new() };
    for message in messages {
        match message.role {
            ChatRole::Assistant => turns.assistant(&message.content, origin),
            ChatRole::System if turns.blocks.is_empty() => {
                turns.system.extend(message.content.iter().filter_map(words));
            }
            _ => turns.user(&message.content),
        }
    }
    turns.assistant(paused, origin);
    turns
}

impl<'a> Turns<'a> {
    /// The messages: who speaks, and the blocks.
    pub(super) fn messages(&self) -> impl DoubleEndedIterator<Item = &[(Speaker, Block<'a>)]> {
        self.blocks.chunk_by(|a, b| a.0 == b.0)
    }

    pub(super) fn calls(&self) -> impl Iterator<Item = &'a ToolCall> {
        self.blocks.iter().filter_map(|(_, block)| match block {
            Block::Call { call, .. } => Some(*call),
            _ => None,
        })
    }

    /// Whether the API would let the model think now: calls that are under way must have begun
    /// with a thought.
    pub(super) fn may_think(&self) -> bool {
        let under_way = self.messages().rev().take_while(|message| {
            message[0].0 == Speaker::Assistant
                || message.iter().any(|(_, block)| matches!(block, Block::Result(_)))
        });
        match under_way.last().map(|message| &message[0]) {
            Some((_, block)) => block.is_thought(),
            None => true,
        }
    }

    /// Whether the end is the assistant's, and nothing that it paused at: a tool of the provider.
    pub(super) fn ends_with_assistant(&self) -> bool {
        let Some(last) = self.messages().next_back() else { return false };
        let (speaker, block) = &last[last.len() - 1];
        let is_use =
            |block: &Block<'_>| block.head().is_some_and(|head| head.kind.0.ends_with("_tool_use"));
        let is_paused =
            matches!(block, Block::Opaque(_)) && last.iter().any(|(_, block)| is_use(block));
        *speaker == Speaker::Assistant && !is_paused
    }

    /// Has the user say something last, where the API wants that.
    pub(super) fn go_on(&mut self) {
        self.push(Speaker::User, Block::Text { text: GO_ON, citations: None });
    }

    /// Puts results where the API wants them, and leaves out those without a use.
    pub(super) fn pair_results(&mut self) {
        self.drop_unpaired();
        self.order_results();
    }

    /// Makes an end that is the assistant's one that the API takes.
    pub(super) fn finish(&mut self, thinks: bool) {
        let last = self.messages().next_back().map_or(0, <[_]>::len);
        let mut end = self.blocks.split_off(self.blocks.len() - last);
        if let Some((Speaker::Assistant, _)) = end.last() {
            end.retain(|(_, block)| thinks || !block.is_thought());
            if let Some((_, Block::Text { text, .. })) = end.last_mut() {
                *text = text.trim_end();
            }
        }
        self.blocks.append(&mut end);
    }

    fn user(&mut self, content: &'a [ContentBlock]) {
        for block in content {
            self.push(
                Speaker::User,
                match block {
                    ContentBlock::ToolResult(result) => Block::Result(result),
                    ContentBlock::Image { media_type, data } => {
                        Block::Image { media_type, source: data }
                    }
                    block => match words(block) {
                        Some(text) => Block::Text { text, citations: None },
                        None => continue,
                    },
                },
            );
        }
    }

    fn assistant(&mut self, content: &'a [ContentBlock], origin: &str) {
        let mut thought = None;
        for block in content {
            let before = thought.take();
            match block {
                ContentBlock::Text(text) => self.text(text, None),
                ContentBlock::ToolCall(call) => {
                    self.push(Speaker::Assistant, Block::Call { call, members: None });
                }
                ContentBlock::Reasoning { content } => thought = Some(content.as_str()),
                ContentBlock::ToolResult(result) => {
                    self.push(Speaker::User, Block::Result(result));
                }
                block => {
                    if let Some(kept) = Kept::read(block, origin) {
                        self.give_back(kept, before);
                    }
                }
            }
        }
    }

    /// Puts what was kept back where it was. Without its signature, a thought is not sent.
    fn give_back(&mut self, kept: Kept<'a>, thought: Option<&'a str>) {
        if let Some(block) = kept.block {
            self.push(Speaker::Assistant, Block::Opaque(block));
        }
        let thought = thought.unwrap_or_default();
        if let Some(signature) = kept.signature.and_then(|s| s.for_thought(thought)) {
            self.push(Speaker::Assistant, Block::Thinking { thought, signature });
        }
        match (self.blocks.last_mut(), kept.call, kept.texts) {
            (Some((_, Block::Call { members, .. })), Some(call), _) => *members = Some(call),
            (Some(&mut (Speaker::Assistant, Block::Text { text, .. })), _, Some(texts)) => {
                let bytes: usize = texts.iter().map(|(bytes, _)| bytes).sum();
                if bytes != text.len() {
                    return;
                }
                self.blocks.pop();
                let mut rest = text;
                for (bytes, citations) in texts {
                    let Some((text, behind)) = rest.split_at_checked(bytes) else { break };
                    self.text(text, citations);
                    rest = behind;
                }
            }
            _ => {}
        }
    }

    fn text(&mut self, text: &'a str, citations: Option<&'a RawValue>) {
        if !text.trim().is_empty() {
            self.push(Speaker::Assistant, Block::Text { text, citations });
        }
    }

    fn push(&mut self, speaker: Speaker, block: Block<'a>) {
        self.blocks.push((speaker, block));
    }

    /// Takes out what the API refuses of the provider's own tools: a result without its use, and
    /// a use without its result unless it is under way: at the end, or beside calls of its own.
    fn drop_unpaired(&mut self) {
        let mut dropped = BTreeSet::new();
        // Uses without result so far: where they stand, and whether they may stay so.
        let mut open: BTreeMap<String, (usize, bool)> = BTreeMap::new();
        let mut begin = 0;
        for message in self.messages() {
            let end = begin + message.len();
            let waits = end == self.blocks.len()
                || message.iter().any(|(_, block)| matches!(block, Block::Call { .. }));
            for (at, head) in (begin..).zip(message.iter().map(|(_, block)| block.head())) {
                let Some(head) = head else { continue };
                let (id, answers) = (head.id.0.into_owned(), &*head.tool_use_id.0);
                if head.kind.0.ends_with("_tool_use") {
                    dropped.extend(open.insert(id, (at, waits)).map(|(before, _)| before));
                } else if !answers.is_empty() && open.remove(answers).is_none() {
                    dropped.insert(at);
                }
            }
            open.retain(|_, (at, waits)| *waits || !dropped.insert(*at));
            begin = end;
        }
        for at in dropped.into_iter().rev() {
            self.blocks.remove(at);
        }
    }

    /// Results in the order of their calls, before all else that the user says.
    fn order_results(&mut self) {
        let mut calls: Vec<&str> = Vec::new();
        for message in self.blocks.chunk_by_mut(|a, b| a.0 == b.0) {
            if message[0].0 == Speaker::Assistant {
                calls.clear();
                calls.extend(message.iter().filter_map(|(_, block)| match block {
                    Block::Call { call, .. } => Some(call.id.as_str()),
                    _ => None,
                }));
                continue;
            }
            message.sort_by_key(|(_, block)| match block {
                Block::Result(result) => {
                    calls.iter().position(|id| *id == result.tool_call_id).unwrap_or(calls.len())
                }
                _ => usize::MAX,
            });
        }
    }
}

impl<'a> Block<'a> {
    fn is_thought(&self) -> bool {
        matches!(self, Self::Thinking { .. })
            || self.head().is_some_and(|head| head.kind.0 == "redacted_thinking")
    }

    /// What a block that came from the API says of itself.
    fn head(&self) -> Option<Head<'a>> {
        match self {
            Self::Opaque(block) => serde_json::from_str(block.get()).ok(),
            _ => None,
        }
    }
}

#[derive(Deserialize)]
struct Head<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Text<'a>,
    #[serde(borrow, default)]
    id: Text<'a>,
    #[serde(borrow, default)]
    tool_use_id: Text<'a>,
}

/// The text of a block that says something.
fn words(block: &ContentBlock) -> Option<&str> {
    match block {
        ContentBlock::Text(text) if !text.trim().is_empty() => Some(text),
        _ => None,
    }
}

/// What the user says where the assistant spoke last and the API wants it otherwise.
const GO_ON: &str = "(Go on.)";
