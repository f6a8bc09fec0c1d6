//! [`Shared`]: what stays of a run from step to step.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Output, RunConfig, ToolSpec};
use crate::chat::{ChatMessage, ChatResponse, ContentBlock, ToolResult};
use crate::conversation::Conversation;
use crate::effect::{Action, Effect, EffectKey, EffectKind};
use crate::event::LoopEvent;
use crate::params::ToolDefinition;
use crate::policy::detection::{LoopDetector, RepeatDetector};
use crate::schema::ReducedSchema;
use crate::transcript::is_empty_text;
use crate::usage::Usage;

/// What every state of a run reads and writes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Shared {
    pub(crate) config: RunConfig,
    pub(crate) conversation: Conversation,
    /// The current iteration, from 1.
    pub(crate) iteration: u32,
    pub(crate) total_usage: Usage,
    pub(crate) tools_started: usize,
    /// Results of the last turn; kept only where somebody may ask for them.
    pub(crate) last_results: Vec<ToolResult>,
    pub(crate) last_reply: LastReply,
    #[serde(default)]
    pub(crate) repeats: RepeatDetector,
    #[serde(default)]
    pub(crate) detector: LoopDetector,
    /// Messages that wait for the next model call.
    pub(crate) injected: Vec<ChatMessage>,
    /// Reduced schemas whoever follows the run knows of.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(super) reduced_schemas: Arc<BTreeSet<ReducedSchema>>,
    /// A summary has left a request too long: there is no other until one is short enough.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) truncates_only: bool,
    /// Tools that wait for the next model call.
    #[serde(default)]
    pub(crate) offered: Option<Vec<ToolDefinition>>,
    #[serde(skip)]
    pub(super) out: VecDeque<Output>,
}

/// The last reply, whose content stands in the conversation and is not kept twice.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct LastReply {
    /// All but the content.
    pub(crate) head: ChatResponse,
    /// The message that holds the content.
    pub(crate) message: Option<usize>,
}

impl Shared {
    pub(super) fn new(config: RunConfig, conversation: Conversation) -> Self {
        Self {
            config,
            conversation,
            iteration: 0,
            total_usage: Usage::default(),
            tools_started: 0,
            last_results: Vec::new(),
            last_reply: LastReply::default(),
            repeats: RepeatDetector::default(),
            detector: LoopDetector::default(),
            injected: Vec::new(),
            reduced_schemas: Arc::default(),
            truncates_only: false,
            offered: None,
            out: VecDeque::new(),
        }
    }

    pub(crate) fn event(&mut self, event: LoopEvent) {
        self.out.push_back(Output::Event(event));
    }

    pub(crate) fn perform(&mut self, kind: EffectKind, index: usize, action: Action) {
        let key = self.key(kind, index);
        self.out.push_back(Output::Perform(Effect { key, action }));
    }

    pub(crate) fn abort(&mut self, key: EffectKey) {
        self.out.push_back(Output::Abort(key));
    }

    /// Takes back the effects that were not handed out yet, and the word that they start.
    pub(crate) fn withdraw_effects(&mut self) -> BTreeSet<EffectKey> {
        let mut withdrawn = BTreeSet::new();
        let mut calls = BTreeSet::new();
        for output in &self.out {
            let Output::Perform(effect) = output else { continue };
            withdrawn.insert(effect.key);
            if let Action::RunTool(call) = &effect.action {
                calls.insert(call.id.clone());
            }
        }
        self.tools_started -= calls.len();
        self.out.retain(|output| match output {
            Output::Perform(_) => false,
            Output::Event(LoopEvent::ToolExecutionStart { call_id, .. }) => {
                !calls.contains(call_id)
            }
            _ => true,
        });
        withdrawn
    }

    /// Lets messages that waited for it into the conversation.
    pub(crate) fn admit_injected(&mut self) {
        let injected = std::mem::take(&mut self.injected);
        if !injected.is_empty() {
            self.event(LoopEvent::MessagesInjected { count: injected.len() });
            let repairs = self.conversation.extend(injected);
            self.tell_repairs(repairs);
        }
    }

    /// Whoever follows the run has seen them.
    pub(crate) fn told_of(&mut self, schemas: Vec<ReducedSchema>) {
        if !schemas.is_empty() {
            Arc::make_mut(&mut self.reduced_schemas).extend(schemas);
        }
    }

    /// Lets the model see the tools that waited for it.
    pub(crate) fn admit_tools(&mut self) {
        let Some(tools) = self.offered.take() else { return };
        let known = std::mem::take(&mut self.config.tools);
        let effect_class = |name: &str| known.iter().find(|spec| spec.name == name);
        self.config.tools = tools
            .iter()
            .map(|tool| ToolSpec {
                name: tool.name.clone(),
                effect_class: effect_class(&tool.name)
                    .map_or_else(Default::default, |spec| spec.effect_class),
            })
            .collect();
        self.conversation.offer(tools);
    }

    /// Tells what was repaired in messages of the caller.
    pub(crate) fn tell_repairs(&mut self, repairs: Vec<String>) {
        if !repairs.is_empty() {
            self.event(LoopEvent::MessagesRepaired { repairs });
        }
    }

    pub(crate) fn key(&self, kind: EffectKind, index: usize) -> EffectKey {
        EffectKey::new(kind, self.iteration, index)
    }

    /// The names a reply may call.
    pub(crate) fn tool_names(&self) -> BTreeSet<&str> {
        self.config.tools.iter().map(|tool| tool.name.as_str()).collect()
    }

    /// Keeps a reply as the last one; `message` is where its content stands.
    pub(crate) fn remember_reply(&mut self, mut response: ChatResponse, message: Option<usize>) {
        if message.is_some() {
            response.content = Vec::new();
        }
        self.last_reply = LastReply { head: response, message };
    }

    pub(crate) fn last_response(&self) -> ChatResponse {
        let mut response = self.last_reply.head.clone();
        if let Some(message) = self.last_reply.message.and_then(|at| self.conversation.message(at))
        {
            response.content.clone_from(&message.content);
        }
        response
    }

    /// Adds the text of a reply that broke off; it becomes the last reply.
    pub(crate) fn keep_partial(&mut self, mut partial: ChatResponse) {
        self.total_usage += partial.usage;
        partial.content.retain(|block| !is_empty_text(block));
        let says_something = partial
            .content
            .iter()
            .any(|b| matches!(b, ContentBlock::Text(t) if !t.trim().is_empty()));
        if says_something {
            let at = self.conversation.push_assistant(partial.content.clone());
            self.remember_reply(partial, Some(at));
        }
    }
}
