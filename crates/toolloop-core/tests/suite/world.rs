//! [`World`]: all that happens around a run, written down beforehand.
//!
//! It is plain data, so a failing property prints the whole of it. Every answer depends on the
//! effect's key and nothing else: a run that is reloaded meets the same world again.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde_json::{Value, json};
use toolloop_core::effect::{
    ApprovalOutcome, EffectKey, EffectKind, LoopVerdict, PipelineOutcome, StageReport, ToolOutcome,
};
use toolloop_core::run::{Input, RunConfig, ToolSpec};
use toolloop_core::{
    ChatMessage, ChatParams, EffectClass, Failure, StopDecision, StopReason, StreamEvent, ToolCall,
    ToolContent, ToolDefinition, Usage, estimate_tokens,
};

#[derive(Clone, Default)]
pub(crate) struct World {
    pub(crate) config: RunConfig,
    pub(crate) params: ChatParams,
    pub(crate) model: Script<Said>,
    pub(crate) tools: Script<ToolOutcome>,
    pub(crate) approvals: Script<ApprovalOutcome>,
    pub(crate) stops: Script<StopDecision>,
    pub(crate) verdicts: Script<LoopVerdict>,
    pub(crate) pipelines: Script<PipelineOutcome>,
    pub(crate) force_masks: Script<Vec<u32>>,
    /// How long an effect takes; `None`: until it is cut.
    pub(crate) takes: Script<Option<Duration>>,
    /// What the caller does, in order.
    pub(crate) caller: Vec<(When, Input)>,
    /// Effects that are over when they are cut answer with what they did.
    pub(crate) too_late: Script<bool>,
    /// Whether what takes no time is answered before the other outputs are taken.
    pub(crate) is_eager: bool,
    /// Shuffles the decks.
    pub(crate) seed: u64,
    /// Shuffles how long effects take, and what happens first at the same instant.
    pub(crate) order: u64,
}

/// One line a field: a failing property prints it.
impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World")
            .field("config", &format_args!("{:?}", self.config))
            .field("params", &format_args!("{:?}", self.params))
            .field("model", &format_args!("{:?}", self.model))
            .field("tools", &format_args!("{:?}", self.tools))
            .field("approvals", &format_args!("{:?}", self.approvals))
            .field("stops", &format_args!("{:?}", self.stops))
            .field("verdicts", &format_args!("{:?}", self.verdicts))
            .field("pipelines", &format_args!("{:?}", self.pipelines))
            .field("force_masks", &format_args!("{:?}", self.force_masks))
            .field("takes", &format_args!("{:?}", self.takes))
            .field("caller", &format_args!("{:?}", self.caller))
            .field("too_late", &format_args!("{:?}", self.too_late))
            .field("is_eager", &self.is_eager)
            .field("seed", &self.seed)
            .field("order", &self.order)
            .finish()
    }
}

/// Answers by key; where there is none, one of a deck, chosen by key and seed.
#[derive(Debug, Clone)]
pub(crate) struct Script<T> {
    pub(crate) at: BTreeMap<EffectKey, T>,
    pub(crate) deck: Vec<T>,
}

impl<T> Default for Script<T> {
    fn default() -> Self {
        Self { at: BTreeMap::new(), deck: Vec::new() }
    }
}

impl<T> Script<T> {
    pub(crate) fn pick(&self, key: EffectKey, seed: u64) -> Option<&T> {
        let chosen = |len: usize| (mix(key, seed) % len as u64) as usize;
        self.at.get(&key).or_else(|| match self.deck.len() {
            0 => None,
            len => self.deck.get(chosen(len)),
        })
    }
}

/// When the caller acts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum When {
    /// At this time.
    At(Duration),
    /// When the run next waits for its caller.
    Yielded,
}

/// What a model call gives.
#[derive(Debug, Clone, Default)]
pub(crate) struct Said {
    pub(crate) events: Vec<StreamEvent>,
    /// It breaks off with this after the events.
    pub(crate) failure: Option<Failure>,
}

impl Said {
    pub(crate) fn text(text: &str) -> Self {
        Self::stream(vec![StreamEvent::TextDelta(text.into())], StopReason::EndTurn)
    }

    /// Calls by id, name and arguments.
    pub(crate) fn calls(calls: &[(&str, &str, Value)]) -> Self {
        let events = (0..).zip(calls).flat_map(|(index, (id, name, arguments))| {
            call_events(index, id, name, &arguments.to_string())
        });
        Self::stream(events.collect(), StopReason::ToolUse)
    }

    /// A whole reply: 10 tokens in, 5 out.
    pub(crate) fn stream(mut events: Vec<StreamEvent>, stop_reason: StopReason) -> Self {
        events.push(StreamEvent::Usage(usage(10, 5)));
        events.push(StreamEvent::Done { stop_reason });
        Self { events, failure: None }
    }

    pub(crate) fn broken(events: Vec<StreamEvent>) -> Self {
        let message = "connection reset".into();
        Self { events, failure: Some(Failure::StreamInterrupted { message }) }
    }
}

pub(crate) fn call_events(index: u32, id: &str, name: &str, arguments: &str) -> Vec<StreamEvent> {
    let (id, name) = (id.to_owned(), name.to_owned());
    let json_chunk = arguments.to_owned();
    vec![
        StreamEvent::ToolCallStart { index, id, name },
        StreamEvent::ToolCallDelta { index, json_chunk },
    ]
}

pub(crate) fn usage(input_tokens: u64, output_tokens: u64) -> Usage {
    Usage { input_tokens, output_tokens, ..Usage::default() }
}

pub(crate) fn output(content: impl Into<ToolContent>) -> ToolOutcome {
    let content = content.into();
    ToolOutcome { content, is_error: false, duration: Duration::ZERO, usage: None }
}

pub(crate) fn failure(content: &str) -> ToolOutcome {
    ToolOutcome { is_error: true, ..output(content) }
}

/// Tools that take any object.
pub(crate) fn definitions(names: &[&str]) -> Vec<ToolDefinition> {
    let definition = |name: &&str| ToolDefinition {
        name: (*name).to_owned(),
        description: String::new(),
        parameters: json!({"type": "object"}).into(),
        retry: None,
    };
    names.iter().map(definition).collect()
}

pub(crate) fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

pub(crate) fn key(text: &str) -> EffectKey {
    text.parse().unwrap()
}

// ---- writing a world down -------------------------------------------------------------------

impl World {
    /// A user asks; the tools are `add`, `search` and `write`.
    pub(crate) fn new(question: &str) -> Self {
        let names = ["add", "search", "write"];
        let spec = |name: &&str| ToolSpec {
            name: (*name).to_owned(),
            effect_class: EffectClass::default(),
        };
        Self {
            config: RunConfig { tools: names.iter().map(spec).collect(), ..RunConfig::default() },
            params: ChatParams {
                messages: vec![ChatMessage::user(question)],
                tools: Some(definitions(&names)),
                ..ChatParams::default()
            },
            ..Self::default()
        }
    }

    pub(crate) fn config(mut self, change: impl FnOnce(&mut RunConfig)) -> Self {
        change(&mut self.config);
        self
    }

    pub(crate) fn says(mut self, at: &str, said: Said) -> Self {
        self.model.at.insert(key(at), said);
        self
    }

    pub(crate) fn tool(mut self, at: &str, outcome: ToolOutcome) -> Self {
        self.tools.at.insert(key(at), outcome);
        self
    }

    pub(crate) fn approval(mut self, at: &str, outcome: ApprovalOutcome) -> Self {
        self.config.has_approval = true;
        self.approvals.at.insert(key(at), outcome);
        self
    }

    pub(crate) fn takes(mut self, at: &str, millis: u64) -> Self {
        self.takes.at.insert(key(at), Some(ms(millis)));
        self
    }

    pub(crate) fn hangs(mut self, at: &str) -> Self {
        self.takes.at.insert(key(at), None);
        self
    }

    pub(crate) fn caller(mut self, when: When, input: Input) -> Self {
        self.caller.push((when, input));
        self
    }
}

// ---- what the world answers -----------------------------------------------------------------

impl World {
    pub(crate) fn said(&self, key: EffectKey) -> Said {
        self.model.pick(key, self.seed).cloned().unwrap_or_else(|| Said::text("Done."))
    }

    pub(crate) fn approve(&self, key: EffectKey) -> ApprovalOutcome {
        self.approvals.pick(key, self.seed).cloned().unwrap_or(ApprovalOutcome::Approved)
    }

    pub(crate) fn decide_stop(&self, key: EffectKey) -> StopDecision {
        self.stops.pick(key, self.seed).cloned().unwrap_or(StopDecision::Continue)
    }

    pub(crate) fn judge(&self, key: EffectKey) -> LoopVerdict {
        self.verdicts.pick(key, self.seed).copied().unwrap_or(LoopVerdict::GoOn)
    }

    pub(crate) fn run_tool(&self, key: EffectKey, call: &ToolCall) -> ToolOutcome {
        let scripted = self.tools.pick(key, self.seed).cloned();
        let mut outcome = scripted.unwrap_or_else(|| output(format!("{call} gave {key}")));
        outcome.duration = self.duration(key).unwrap_or_default();
        outcome
    }

    /// Without script a long result is cut to its first words.
    pub(crate) fn process(&self, key: EffectKey, text: &str) -> PipelineOutcome {
        if let Some(scripted) = self.pipelines.pick(key, self.seed) {
            return scripted.clone();
        }
        if text.len() <= 40 {
            return PipelineOutcome::default();
        }
        let short: String = text.chars().take(20).collect();
        let (original, now) = (estimate_tokens(text), estimate_tokens(&short));
        PipelineOutcome {
            text: Some(short),
            stages: vec![StageReport::Processed { original, now }],
            usage: None,
        }
    }

    pub(crate) fn force_mask(&self, key: EffectKey) -> Vec<u32> {
        self.force_masks.pick(key, self.seed).cloned().unwrap_or_default()
    }

    pub(crate) fn duration(&self, key: EffectKey) -> Option<Duration> {
        let usual = match key.kind {
            EffectKind::Model | EffectKind::Tool | EffectKind::Compaction => ms(10),
            EffectKind::Approval => ms(5),
            EffectKind::ForceMask | EffectKind::Stop | EffectKind::Loop | EffectKind::Pipeline => {
                Duration::ZERO
            }
        };
        self.takes.pick(key, self.order).copied().unwrap_or(Some(usual))
    }

    pub(crate) fn is_too_late(&self, key: EffectKey) -> bool {
        self.duration(key).is_some() && self.too_late.pick(key, self.seed) == Some(&true)
    }

    /// What the schema says of a call: the argument `bad` fits none.
    pub(crate) fn fault(call: &ToolCall) -> Option<String> {
        call.arguments.get("bad").map(|_| "'bad' is not an argument.".to_owned())
    }
}

/// A number for a key and a seed, the same for ever (splitmix64).
pub(crate) fn mix(key: EffectKey, seed: u64) -> u64 {
    let kind = match key.kind {
        EffectKind::ForceMask => 0,
        // It came later; the numbers of the others stay.
        EffectKind::Compaction => 6,
        kind => kind as u64 - 1,
    };
    let mut n = seed ^ (u64::from(key.iteration) << 40) ^ (kind << 32) ^ u64::from(key.index);
    n = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
    n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ (n >> 31)
}
