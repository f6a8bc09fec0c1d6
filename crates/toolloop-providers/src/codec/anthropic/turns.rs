//! [`Turns`]: a conversation as the API wants it, every block borrowed.
//!
//! The API knows two speakers who alternate. Results are said by the user, first in the message
//! behind their calls and in the order of these; so are instructions in mid-conversation. Those
//! at its beginning are the system's. Text without a word is refused and never sent.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use serde::Deserialize;
use serde_json::value::RawValue;
use toolloop_core::{ChatMessage, ChatRole, ContentBlock, ImageSource, ToolCall, ToolResult};

use super::opaque::Kept;
use crate::codec::body::Body;
use crate::codec::forgiving::Text;

/// A conversation in blocks, as far as it is not settled; those of one speaker in a row are one
/// message.
pub(super) struct Turns<'a> {
    /// Instructions before the first message.
    pub(super) system: Vec<&'a str>,
    blocks: Vec<Said<'a>>,
    settled: Settled,
    /// Whether somebody has spoken: instructions are then the user's.
    is_begun: bool,
    /// The messages from the use of a tool of the provider to its result, where that stands in a
    /// later one or may yet come.
    uses: Vec<Range<usize>>,
}

/// What stands before the blocks, written for good.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Settled {
    pub(super) messages: usize,
    /// Whether the calls under way there began with a thought; `None` where none are.
    pub(super) thought: Option<bool>,
}

impl Settled {
    pub(super) fn of(body: &Body<'_>) -> Self {
        let thought = match body.notes().last() {
            Some(&WITHOUT_THOUGHT) => Some(false),
            Some(&WITH_THOUGHT) => Some(true),
            _ => None,
        };
        Self { messages: body.settled(), thought }
    }

    pub(super) fn note_in(self, body: &mut Body<'_>) {
        let note = match self.thought {
            None => NOT_UNDER_WAY,
            Some(false) => WITHOUT_THOUGHT,
            Some(true) => WITH_THOUGHT,
        };
        body.settle(self.messages, [note]);
    }
}

/// A block, who says it, and the message of the conversation it stands in.
pub(super) struct Said<'a> {
    pub(super) speaker: Speaker,
    pub(super) block: Block<'a>,
    message: usize,
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

/// Takes what is not settled of the messages, and what a paused reply said so far, apart. Of what
/// was kept, that from `origin` goes back.
pub(super) fn flatten<'a>(
    messages: &'a [ChatMessage],
    paused: &'a [ContentBlock],
    origin: &str,
    settled: Settled,
) -> Turns<'a> {
    let (system, blocks) = (Vec::new(), Vec::new());
    let mut turns = Turns { system, blocks, settled, is_begun: false, uses: Vec::new() };
    let first = settled.messages.min(messages.len());
    if first > 0 {
        // Only for the instructions, which end with the first block.
        let mut before = messages[..first].iter();
        while let (false, Some(message)) = (turns.is_begun, before.next()) {
            turns.message(0, message, origin);
        }
        turns.blocks.clear();
    }
    for (at, message) in messages.iter().enumerate().skip(first) {
        turns.message(at, message, origin);
    }
    turns.assistant(ADDED, paused, origin);
    turns
}

impl<'a> Turns<'a> {
    /// The messages.
    pub(super) fn messages(&self) -> impl DoubleEndedIterator<Item = &[Said<'a>]> {
        self.blocks.chunk_by(|a, b| a.speaker == b.speaker)
    }

    /// Whether they begin where a turn does, and hold all that is written otherwise as long as it
    /// is new: the last two messages of the user.
    pub(super) fn join_on(&self) -> bool {
        let begins = |first: &Said<'_>| {
            first.speaker == Speaker::Assistant && first.message == self.settled.messages
        };
        self.settled.messages == 0
            || self.blocks.first().is_some_and(begins) && self.users().count() > 1
    }

    /// The place among the messages from which on later ones may change what is written, the
    /// message of the conversation that stands there, and what is to know of all before it: `None`
    /// where that is nothing.
    ///
    /// It is in front of a reply, because the results behind it are put in its order.
    pub(super) fn settle(&self) -> Option<(usize, Settled)> {
        let reply = self.users().nth_back(1)?.checked_sub(1)?;
        let before = || self.messages().take(reply);
        let here = self.messages().nth(reply)?[0].message;
        let is_split =
            before().last().is_some_and(|before| before[before.len() - 1].message == here);
        let is_first = reply == 0 && self.settled.messages == 0;
        let settled = Settled { messages: here, thought: self.thought_before(reply) };
        // A result is known by its use.
        let parts = self.uses.iter().any(|use_| use_.start < here && here <= use_.end);
        (!is_first && !is_split && !parts).then_some((reply, settled))
    }

    /// Where the user speaks, by the conversation.
    fn users(&self) -> impl DoubleEndedIterator<Item = usize> {
        let messages: Vec<_> = self.messages().map(|message| &message[0]).collect();
        let is_user = |first: &Said<'_>| first.speaker == Speaker::User && first.message != ADDED;
        let users = messages.into_iter().enumerate().filter(move |(_, first)| is_user(first));
        users.map(|(at, _)| at)
    }

    /// Whether the API would let the model think now: calls that are under way must have begun
    /// with a thought.
    pub(super) fn may_think(&self) -> bool {
        self.thought_before(self.messages().count()).unwrap_or(true)
    }

    /// Whether the calls that are under way before the message at this place began with a thought;
    /// `None` where none are.
    fn thought_before(&self, place: usize) -> Option<bool> {
        let messages: Vec<_> = self.messages().take(place).collect();
        let is_under_way = |message: &[Said<'_>]| {
            message[0].speaker == Speaker::Assistant
                || message.iter().any(|said| matches!(said.block, Block::Result(_)))
        };
        let end = messages.iter().rposition(|message| !is_under_way(message));
        let first = || messages.get(end.map_or(0, |end| end + 1));
        let here = || first().map(|message| message[0].block.is_thought());
        self.settled.thought.filter(|_| end.is_none()).or_else(here)
    }

    /// Whether the end is the assistant's, and nothing that it paused at: a tool of the provider.
    pub(super) fn ends_with_assistant(&self) -> bool {
        let Some(last) = self.messages().next_back() else { return false };
        let Said { speaker, block, .. } = &last[last.len() - 1];
        let is_use =
            |block: &Block<'_>| block.head().is_some_and(|head| head.kind.0.ends_with("_tool_use"));
        let is_paused =
            matches!(block, Block::Opaque(_)) && last.iter().any(|said| is_use(&said.block));
        *speaker == Speaker::Assistant && !is_paused
    }

    /// Has the user say something last, where the API wants that.
    pub(super) fn go_on(&mut self) {
        self.push(ADDED, Speaker::User, Block::Text { text: GO_ON, citations: None });
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
        if end.last().is_some_and(|said| said.speaker == Speaker::Assistant) {
            end.retain(|said| thinks || !said.block.is_thought());
            if let Some(Said { block: Block::Text { text, .. }, .. }) = end.last_mut() {
                *text = text.trim_end();
            }
        }
        self.blocks.append(&mut end);
    }

    fn message(&mut self, at: usize, message: &'a ChatMessage, origin: &str) {
        match message.role {
            ChatRole::Assistant => self.assistant(at, &message.content, origin),
            ChatRole::System if !self.is_begun => {
                self.system.extend(message.content.iter().filter_map(words));
            }
            _ => self.user(at, &message.content),
        }
    }

    fn user(&mut self, at: usize, content: &'a [ContentBlock]) {
        for block in content {
            self.push(
                at,
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

    fn assistant(&mut self, at: usize, content: &'a [ContentBlock], origin: &str) {
        let mut thought = None;
        for block in content {
            let before = thought.take();
            match block {
                ContentBlock::Text(text) => self.text(at, text, None),
                ContentBlock::ToolCall(call) => {
                    self.push(at, Speaker::Assistant, Block::Call { call, members: None });
                }
                ContentBlock::Reasoning { content } => thought = Some(content.as_str()),
                ContentBlock::ToolResult(result) => {
                    self.push(at, Speaker::User, Block::Result(result));
                }
                block => {
                    if let Some(kept) = Kept::read(block, origin) {
                        self.give_back(at, kept, before);
                    }
                }
            }
        }
    }

    /// Puts what was kept back where it was. Without its signature, a thought is not sent.
    fn give_back(&mut self, at: usize, kept: Kept<'a>, thought: Option<&'a str>) {
        if let Some(block) = kept.block {
            self.push(at, Speaker::Assistant, Block::Opaque(block));
        }
        let thought = thought.unwrap_or_default();
        if let Some(signature) = kept.signature.and_then(|s| s.for_thought(thought)) {
            self.push(at, Speaker::Assistant, Block::Thinking { thought, signature });
        }
        let last = self.blocks.last_mut().map(|said| (said.speaker, &mut said.block));
        match (last, kept.call, kept.texts) {
            (Some((_, Block::Call { members, .. })), Some(call), _) => *members = Some(call),
            (Some((Speaker::Assistant, &mut Block::Text { text, .. })), _, Some(texts)) => {
                let bytes: usize = texts.iter().map(|(bytes, _)| bytes).sum();
                if bytes != text.len() {
                    return;
                }
                self.blocks.pop();
                let mut rest = text;
                for (bytes, citations) in texts {
                    let Some((text, behind)) = rest.split_at_checked(bytes) else { break };
                    self.text(at, text, citations);
                    rest = behind;
                }
            }
            _ => {}
        }
    }

    fn text(&mut self, at: usize, text: &'a str, citations: Option<&'a RawValue>) {
        if !text.trim().is_empty() {
            self.push(at, Speaker::Assistant, Block::Text { text, citations });
        }
    }

    fn push(&mut self, message: usize, speaker: Speaker, block: Block<'a>) {
        self.is_begun = true;
        self.blocks.push(Said { speaker, block, message });
    }

    /// Takes out what the API refuses of the provider's own tools: a result without its use, and
    /// a use without its result unless it is under way: at the end, or beside calls of its own.
    fn drop_unpaired(&mut self) {
        let mut dropped = BTreeSet::new();
        // Uses without result so far: where they stand, and whether they may stay so.
        let mut open: BTreeMap<String, (usize, bool)> = BTreeMap::new();
        let mut uses: Vec<Range<usize>> = Vec::new();
        let mut begin = 0;
        for message in self.messages() {
            let end = begin + message.len();
            let waits = end == self.blocks.len()
                || message.iter().any(|said| matches!(said.block, Block::Call { .. }));
            for (at, head) in (begin..).zip(message.iter().map(|said| said.block.head())) {
                let Some(head) = head else { continue };
                let (id, answers) = (head.id.0.into_owned(), &*head.tool_use_id.0);
                if head.kind.0.ends_with("_tool_use") {
                    dropped.extend(open.insert(id, (at, waits)).map(|(before, _)| before));
                } else if !answers.is_empty() {
                    match open.remove(answers) {
                        Some((begun, _)) => uses.push(begun..at),
                        None => _ = dropped.insert(at),
                    }
                }
            }
            open.retain(|_, (at, waits)| *waits || !dropped.insert(*at));
            begin = end;
        }
        let closed = uses
            .into_iter()
            .map(|blocks| self.blocks[blocks.start].message..self.blocks[blocks.end].message);
        let open = open.into_values().map(|(at, _)| self.blocks[at].message..usize::MAX);
        self.uses = closed.chain(open).filter(|messages| !messages.is_empty()).collect();
        for at in dropped.into_iter().rev() {
            self.blocks.remove(at);
        }
    }

    /// Results in the order of their calls, before all else that the user says.
    fn order_results(&mut self) {
        let mut calls: Vec<&str> = Vec::new();
        for message in self.blocks.chunk_by_mut(|a, b| a.speaker == b.speaker) {
            if message[0].speaker == Speaker::Assistant {
                calls.clear();
                calls.extend(message.iter().filter_map(|said| match said.block {
                    Block::Call { call, .. } => Some(call.id.as_str()),
                    _ => None,
                }));
                continue;
            }
            message.sort_by_key(|said| match said.block {
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

/// Notes of [`Settled`].
const NOT_UNDER_WAY: u64 = 0;
const WITHOUT_THOUGHT: u64 = 1;
const WITH_THOUGHT: u64 = 2;

/// In place of a message of the conversation: what a request adds to it.
const ADDED: usize = usize::MAX;

/// What the user says where the assistant spoke last and the API wants it otherwise.
const GO_ON: &str = "(Go on.)";
