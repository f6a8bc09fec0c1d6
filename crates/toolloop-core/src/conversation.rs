//! [`Conversation`]: the messages of a run, in the form in which they are sent.
//!
//! The request is kept ready in an `Arc` that a model call shares and the run edits in place
//! once the call is over. Masking replaces results in it, pruning and compaction hide messages;
//! the originals stand beside.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::chat::{ChatMessage, ChatRole, ContentBlock, ToolResult};
use crate::counted::Counted;
use crate::encoded::EncodedMessages;
use crate::gap::{self, Gap};
use crate::params::{ChatParams, ToolChoice, ToolDefinition};
use crate::tool_content::ToolContent;
use crate::transcript;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Conversation {
    params: Arc<ChatParams>,
    /// Ids of all calls of the run, also of those that were edited away.
    ids: Arc<BTreeSet<String>>,
    /// Results that may yet be masked, oldest first.
    whole: VecDeque<WholeResult>,
    /// What masked results held, by call id.
    masked: BTreeMap<String, ToolContent>,
    /// What the request does not show, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    gaps: Vec<Gap>,
    /// The tokens of the request.
    #[serde(skip)]
    counted: Counted,
}

/// A result that stands whole in the request and may be masked later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WholeResult {
    pub(crate) call_id: String,
    pub(crate) tool_name: String,
    pub(crate) iteration: u32,
    pub(crate) tokens: u32,
    message: usize,
}

impl Conversation {
    /// Takes the first request; says what was repaired in its messages.
    pub(crate) fn new(mut params: ChatParams) -> (Self, Vec<String>) {
        let repairs = transcript::repair(&mut params.messages);
        params.encoded = EncodedMessages::default();
        let ids = params.messages.iter().flat_map(ChatMessage::tool_calls);
        let ids = Arc::new(ids.map(|call| call.id.clone()).collect());
        let (whole, masked, gaps) = (VecDeque::new(), BTreeMap::new(), Vec::new());
        let (params, counted) = (Arc::new(params), Counted::default());
        (Self { params, ids, whole, masked, gaps, counted }, repairs)
    }

    pub(crate) fn params(&self) -> &Arc<ChatParams> {
        &self.params
    }

    /// Estimated tokens of the request.
    pub(crate) fn tokens(&mut self) -> u32 {
        self.counted.tokens(&self.params)
    }

    pub(crate) fn ids(&self) -> Arc<BTreeSet<String>> {
        Arc::clone(&self.ids)
    }

    pub(crate) fn has_call(&self, id: &str) -> bool {
        self.ids.contains(id)
    }

    pub(crate) fn len(&self) -> usize {
        self.params.messages.len()
    }

    pub(crate) fn message(&self, at: usize) -> Option<&ChatMessage> {
        self.params.messages.get(at)
    }

    pub(crate) fn last_role(&self) -> Option<ChatRole> {
        self.params.messages.last().map(|message| message.role)
    }

    pub(crate) fn last_user_query(&self) -> String {
        self.said_by_user().next_back().map(text_of).unwrap_or_default()
    }

    /// What the user said first.
    pub(crate) fn task(&self) -> String {
        self.said_by_user().next().map(text_of).unwrap_or_default()
    }

    /// Where in the request messages stand that stand for others.
    pub(crate) fn notes(&self) -> BTreeSet<usize> {
        self.gaps.iter().filter_map(Gap::note).collect()
    }

    fn said_by_user(&self) -> impl DoubleEndedIterator<Item = &ChatMessage> {
        let is_note = |at| self.gaps.iter().any(|gap| gap.note() == Some(at));
        let messages = self.params.messages.iter().enumerate();
        messages
            .filter(move |(at, message)| message.role == ChatRole::User && !is_note(*at))
            .map(|(_, message)| message)
    }

    /// Adds the model's message; gives where it stands.
    pub(crate) fn push_assistant(&mut self, content: Vec<ContentBlock>) -> usize {
        let ids = content.iter().filter_map(|block| match block {
            ContentBlock::ToolCall(call) => Some(call.id.clone()),
            _ => None,
        });
        let mut ids = ids.peekable();
        if ids.peek().is_some() {
            Arc::make_mut(&mut self.ids).extend(ids);
        }
        self.push(ChatMessage { role: ChatRole::Assistant, content })
    }

    /// Adds a tool's result; gives where it stands.
    pub(crate) fn push_result(&mut self, result: ToolResult) -> usize {
        self.push(result.into())
    }

    /// Notes that the result at `message` may be masked later.
    pub(crate) fn may_be_masked(
        &mut self,
        message: usize,
        call_id: String,
        tool_name: String,
        iteration: u32,
        tokens: u32,
    ) {
        self.whole.push_back(WholeResult { call_id, tool_name, iteration, tokens, message });
    }

    /// Replaces the whole results that `choose` picks by the text it gives for them.
    pub(crate) fn mask(&mut self, mut choose: impl FnMut(&WholeResult) -> Option<String>) {
        let mut kept = VecDeque::with_capacity(self.whole.len());
        for whole in std::mem::take(&mut self.whole) {
            let Some(text) = choose(&whole) else {
                kept.push_back(whole);
                continue;
            };
            let params = self.edit(whole.message);
            let content = &mut params.messages[whole.message].content;
            if let Some(ContentBlock::ToolResult(result)) = content.first_mut() {
                let original = std::mem::replace(&mut result.content, text.into());
                self.masked.insert(whole.call_id, original);
            }
        }
        self.whole = kept;
    }

    /// Hides these messages of the request, and has the note stand for them.
    pub(crate) fn hide(&mut self, range: Range<usize>, note: Option<ChatMessage>) {
        let removed = range.len() - usize::from(note.is_some());
        let has_note = note.is_some();
        let messages = &mut self.edit(range.start).messages;
        let shown = messages.splice(range.clone(), note).collect();
        gap::insert(&mut self.gaps, range.clone(), has_note, shown);
        self.whole.retain_mut(|whole| {
            if whole.message >= range.end {
                whole.message -= removed;
                return true;
            }
            whole.message < range.start
        });
    }

    /// Adds messages of the caller, and says what was repaired in them. What stands before them
    /// stays where it is.
    pub(crate) fn extend(&mut self, mut messages: Vec<ChatMessage>) -> Vec<String> {
        if messages.is_empty() {
            return Vec::new();
        }
        let repairs = transcript::repair_behind(&self.ids, &mut messages);
        let calls = messages.iter().flat_map(ChatMessage::tool_calls);
        let ids: Vec<String> = calls.map(|call| call.id.clone()).collect();
        if !ids.is_empty() {
            Arc::make_mut(&mut self.ids).extend(ids);
        }
        self.edit(usize::MAX).messages.extend(messages);
        repairs
    }

    /// Takes the caller's edit of the whole conversation, nothing masked or hidden; says what was
    /// repaired in it.
    pub(crate) fn replace(&mut self, mut messages: Vec<ChatMessage>) -> Vec<String> {
        let repairs = transcript::repair(&mut messages);
        let untouched = match self.gaps.is_empty() {
            true => 0,
            false => {
                let before = self.clone().into_messages();
                before.iter().zip(&messages).take_while(|(old, new)| old == new).count()
            }
        };
        let gaps = std::mem::take(&mut self.gaps);
        let places = gap::places(&gaps, &self.params.messages, untouched);
        let originals = std::mem::take(&mut self.masked);
        let hidden = gaps.iter().flat_map(Gap::messages);
        let results = self.params.messages.iter().chain(hidden).flat_map(ChatMessage::tool_results);
        let mut masks: BTreeMap<&str, &ToolContent> = results
            .filter(|result| originals.contains_key(&result.tool_call_id))
            .map(|result| (result.tool_call_id.as_str(), &result.content))
            .collect();
        // What is masked once stays masked, unless the caller changed that very result.
        for block in messages.iter_mut().flat_map(|m| &mut m.content) {
            let ContentBlock::ToolResult(result) = block else { continue };
            if originals.get(&result.tool_call_id) != Some(&result.content) {
                continue;
            }
            if let Some(mask) = masks.remove(result.tool_call_id.as_str()) {
                let original = std::mem::replace(&mut result.content, mask.clone());
                self.masked.insert(result.tool_call_id.clone(), original);
            }
        }
        self.edit(0).messages = messages;
        self.reindex();
        // What was hidden stays hidden, unless the caller changed it or something before it. From
        // behind, so that places before stay right.
        for (place, note) in places.into_iter().rev() {
            self.hide(place, note);
        }
        repairs
    }

    /// Lets the model see these tools. A choice of one that is gone is gone as well.
    pub(crate) fn offer(&mut self, tools: Vec<ToolDefinition>) {
        let params = self.edit(usize::MAX);
        if let Some(ToolChoice::Specific(name)) = &params.tool_choice
            && !tools.iter().any(|tool| tool.name == *name)
        {
            params.tool_choice = None;
        }
        params.tools = Some(tools);
        self.counted.forget_frame();
    }

    /// Lets the model see its tools but call none.
    pub(crate) fn turn_tools_off(&mut self) {
        if self.params.tools.as_ref().is_some_and(|tools| !tools.is_empty()) {
            self.edit(usize::MAX).tool_choice = Some(ToolChoice::None);
        }
    }

    /// The messages, nothing masked or hidden.
    pub(crate) fn into_messages(self) -> Vec<ChatMessage> {
        let mut masked = self.masked;
        let messages = match Arc::try_unwrap(self.params) {
            Ok(params) => params.messages,
            Err(shared) => shared.messages.clone(),
        };
        let mut messages = gap::fill(self.gaps, messages);
        if !masked.is_empty() {
            for block in messages.iter_mut().flat_map(|m| &mut m.content) {
                let ContentBlock::ToolResult(result) = block else { continue };
                if let Some(original) = masked.remove(&result.tool_call_id) {
                    result.content = original;
                }
            }
        }
        messages
    }

    pub(crate) fn push(&mut self, message: ChatMessage) -> usize {
        let params = self.edit(usize::MAX);
        params.messages.push(message);
        params.messages.len() - 1
    }

    /// The params, to change their messages from `first` on. What was encoded and counted of the
    /// messages before it is kept.
    fn edit(&mut self, first: usize) -> &mut ChatParams {
        self.counted.cut_back(first);
        let params = Arc::make_mut(&mut self.params);
        if params.messages.len() >= KEPT_FROM {
            params.encoded.keep();
        }
        params.encoded.cut_back(first);
        params
    }

    /// Finds ids and results again after messages have moved.
    fn reindex(&mut self) {
        let messages = &self.params.messages;
        let calls = messages.iter().flat_map(ChatMessage::tool_calls);
        Arc::make_mut(&mut self.ids).extend(calls.map(|call| call.id.clone()));
        let mut places = BTreeMap::new();
        for (at, message) in messages.iter().enumerate() {
            // Only results that stand alone in their message are masked; the run makes such.
            if let [ContentBlock::ToolResult(result)] = message.content.as_slice() {
                places.insert(result.tool_call_id.as_str(), at);
            }
        }
        self.whole.retain_mut(|whole| match places.get(whole.call_id.as_str()) {
            Some(at) => {
                whole.message = *at;
                true
            }
            None => false,
        });
    }
}

fn text_of(message: &ChatMessage) -> String {
    let texts = message.content.iter().filter_map(|block| match block {
        ContentBlock::Text(text) => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// Messages from which on their encoded bytes are kept. Below, encoding them anew costs little, and
/// many short runs at once would hold all they say twice.
const KEPT_FROM: usize = 16;
