//! [`Run`]: the machine. Inputs say what happened, outputs say what to do next.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::assembler::ReplyAssembler;
use crate::chat::{ChatMessage, ChatResponse, ContentBlock, ToolResult};
use crate::conversation::Conversation;
use crate::effect::{Action, Effect, EffectKey, EffectKind, Outcome};
use crate::error::{Failure, LlmError};
use crate::event::{LoopEvent, ToolLoopResult};
use crate::handler::EffectClass;
use crate::journal::FORMAT_VERSION;
use crate::params::{ChatParams, ToolDefinition};
use crate::policy::compaction::CompactionConfig;
use crate::policy::detection::{
    LoopDetectionConfig, LoopDetector, LoopDetectorConfig, RepeatDetector,
};
use crate::policy::masking::ObservationMaskingConfig;
use crate::policy::stop::StopContext;
use crate::schema::ReducedSchema;
use crate::step::{self, State};
use crate::transcript::is_empty_text;
use crate::usage::Usage;

/// One run of the loop, from the first model call to its end.
///
/// **The rule:** after each input, take outputs until [`Output::Wait`], [`Output::Yielded`] or
/// [`Output::Finished`], and answer every [`Output::Perform`] and [`Output::Abort`] with exactly
/// one outcome of its key. Breaking the rule gives an [`ApiMisuse`], then and ever after.
///
/// ```
/// use toolloop_core::run::{Input, Output, Run, RunConfig};
/// use toolloop_core::effect::{Action, Outcome, Reply};
/// use toolloop_core::{ChatMessage, ChatParams, ChatResponse, ContentBlock, TerminationReason};
///
/// let params = ChatParams { messages: vec![ChatMessage::user("Hi")], ..ChatParams::default() };
/// let mut run = Run::new(RunConfig::default(), params);
/// loop {
///     match run.poll_output() {
///         Output::Event(event) => println!("{event:?}"),
///         Output::Perform(effect) => {
///             assert_eq!(effect.action, Action::CallModel);
///             let content = vec![ContentBlock::Text("Hello!".into())];
///             let response = ChatResponse { content, ..ChatResponse::default() };
///             let outcome = Outcome::Reply(Reply { response, ..Reply::default() });
///             run.handle_input(Input::Outcome { key: effect.key, outcome })?;
///         }
///         Output::Finished => break,
///         other => unreachable!("nothing is waited for: {other:?}"),
///     }
/// }
/// let result = run.into_result().expect("the run has ended");
/// assert_eq!(result.termination_reason, TerminationReason::Complete);
/// assert_eq!(result.messages.len(), 2);
/// # Ok::<(), toolloop_core::run::ApiMisuse>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The stored form; a later one is not read.
    #[serde(deserialize_with = "crate::journal::supported_version")]
    version: u32,
    shared: Shared,
    state: State,
    misuse: Option<ApiMisuse>,
}

/// The part of a loop's configuration that decides; callbacks stay with the driver, and what
/// they decide comes back as outcomes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunConfig {
    /// Most iterations.
    pub max_iterations: u32,
    /// Whether the calls of one reply run at the same time.
    pub parallel_tool_execution: bool,
    /// Whether calls are asked about before they run.
    pub has_approval: bool,
    /// Whether a stop condition is asked after each reply.
    pub has_stop_when: bool,
    /// Whether results go through a pipeline.
    pub has_pipeline: bool,
    /// Whether a set of iterations to mask is read before each model call.
    pub has_force_mask: bool,
    /// When the model counts as repeating itself.
    pub loop_detection: Option<LoopDetectionConfig>,
    /// When it counts as going in circles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loop_detector: Option<LoopDetectorConfig>,
    /// Whether somebody is asked about circles, instead of doing what `loop_detector` says.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_loop_decision: bool,
    /// Wall clock of the run.
    pub timeout: Option<Duration>,
    /// When old results are masked.
    pub masking: Option<ObservationMaskingConfig>,
    /// Most tool turns that a request shows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tool_turns: Option<u32>,
    /// When the conversation of a request is shortened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compaction: Option<CompactionConfig>,
    /// Whether one more call, without tools, is made at the limit of iterations.
    pub final_answer: bool,
    /// Whether the run waits for the caller after each turn.
    pub yield_turns: bool,
    /// The tools that may be called.
    pub tools: Vec<ToolSpec>,
    /// Whether other names are called as well: whoever runs the tools refuses them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub runs_any_tool: bool,
}

impl Default for RunConfig {
    fn default() -> Self {
        Self {
            max_iterations: 10,
            parallel_tool_execution: true,
            has_approval: false,
            has_stop_when: false,
            has_pipeline: false,
            has_force_mask: false,
            loop_detection: None,
            loop_detector: None,
            has_loop_decision: false,
            timeout: None,
            masking: None,
            max_tool_turns: None,
            compaction: None,
            final_answer: false,
            yield_turns: false,
            tools: Vec::new(),
            runs_any_tool: false,
        }
    }
}

/// What the machine knows of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// Name the model calls it by.
    pub name: String,
    /// What running it twice would mean.
    pub effect_class: EffectClass,
}

/// What happened. A journal of a run is these, in order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
// An input lives for one call; a box would cost more than the copy.
#[allow(clippy::large_enum_variant)]
pub enum Input {
    /// An effect has its outcome.
    Outcome {
        /// The effect.
        key: EffectKey,
        /// What came of it.
        outcome: Outcome,
    },
    /// The caller adds messages; they go in before the next model call.
    Inject(Vec<ChatMessage>),
    /// The model sees these tools from the next model call on.
    OfferTools(Vec<ToolDefinition>),
    /// The caller has edited the conversation of a yielded run.
    ReplaceMessages(Vec<ChatMessage>),
    /// A yielded run goes on.
    Continue,
    /// The caller ends the run.
    Stop {
        /// Why, in words.
        reason: Option<String>,
    },
    /// The run is cancelled.
    Cancel,
    /// The time since the run's start; only the deadline of [`Output::Wait`] need be told.
    Now(Duration),
}

/// What to do next.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Output {
    /// Start this effect, and answer its key when it is done.
    Perform(Effect),
    /// End this effect now, and answer its key with [`Outcome::Cut`], or with its outcome where
    /// that has come already.
    Abort(EffectKey),
    /// Tell whoever follows the run.
    Event(LoopEvent),
    /// Nothing to do until the next input, or until the deadline (since the run's start).
    Wait {
        /// When [`Input::Now`] is due.
        deadline: Option<Duration>,
    },
    /// A turn has ended; the run waits for [`Input::Continue`] or [`Input::Stop`].
    Yielded,
    /// The run is over: [`Run::into_result`].
    Finished,
}

/// A rule of [`Run`] was broken by the code that drives it; never caused by a model or a tool.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ApiMisuse {
    /// The effect was never asked for, or has its outcome already.
    #[error("no outcome is awaited for {0}: it was never asked for or is answered already")]
    NotOutstanding(EffectKey),
    /// The outcome is not of the kind the effect asked for.
    #[error("the outcome for {0} is not of the kind it asked for")]
    WrongOutcome(EffectKey),
    /// The reply repeats the id of a call, or holds what a model cannot say.
    #[error(
        "the reply for {0} repeats a call's id, or holds a result, or was cut and holds a call: \
         assemble it with Run::assembler"
    )]
    MalformedReply(EffectKey),
    /// The input is only valid while the run is yielded.
    #[error("the run is not waiting for its caller: take outputs until Yielded first")]
    NotYielded,
    /// The run is over and takes no more input.
    #[error("the run is over: start a new one with its messages")]
    Finished,
    /// The run is not over, so there is no result yet.
    #[error("the run is not over: take outputs until Finished first")]
    NotFinished,
}

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
    reduced_schemas: Arc<BTreeSet<ReducedSchema>>,
    /// A summary has left a request too long: there is no other until one is short enough.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) truncates_only: bool,
    /// Tools that wait for the next model call.
    #[serde(default)]
    pub(crate) offered: Option<Vec<ToolDefinition>>,
    #[serde(skip)]
    out: VecDeque<Output>,
}

/// The last reply, whose content stands in the conversation and is not kept twice.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct LastReply {
    /// All but the content.
    pub(crate) head: ChatResponse,
    /// The message that holds the content.
    pub(crate) message: Option<usize>,
}

impl Run {
    /// Starts a run. The conversation in `params` is repaired where no provider would take it.
    pub fn new(config: RunConfig, params: ChatParams) -> Self {
        let (conversation, repairs) = Conversation::new(params);
        let mut shared = Shared {
            conversation,
            config,
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
        };
        shared.tell_repairs(repairs);
        let state = step::begin(&mut shared);
        Self { version: FORMAT_VERSION, shared, state, misuse: None }
    }

    // ---- in -----------------------------------------------------------------------------

    /// Takes what happened.
    ///
    /// # Errors
    /// When a rule of this type is broken; the same error then comes back for every input. Only
    /// [`ApiMisuse::Finished`] changes nothing.
    pub fn handle_input(&mut self, input: Input) -> Result<(), ApiMisuse> {
        if let Some(misuse) = &self.misuse {
            return Err(misuse.clone());
        }
        if let Err(misuse) = self.state.check(&input, &self.shared) {
            // Whoever speaks to a run may come too late; that spoils no result.
            if misuse != ApiMisuse::Finished {
                self.misuse = Some(misuse.clone());
            }
            return Err(misuse);
        }
        let state = std::mem::take(&mut self.state);
        self.state = step::advance(state, &mut self.shared, input);
        Ok(())
    }

    // ---- out ----------------------------------------------------------------------------

    /// What to do next.
    pub fn poll_output(&mut self) -> Output {
        if let Some(output) = self.shared.out.pop_front() {
            return output;
        }
        match &self.state {
            State::Finished(_) => Output::Finished,
            State::Yielded => Output::Yielded,
            State::Ending(_) => Output::Wait { deadline: None },
            _ => Output::Wait { deadline: self.shared.config.timeout },
        }
    }

    /// Asks again for every effect whose outcome is missing; for a run that was loaded. What an
    /// ending run had aborted is aborted again.
    pub fn repeat_outstanding(&mut self) {
        let is_ending = matches!(self.state, State::Ending(_));
        for effect in self.outstanding() {
            self.shared.out.push_back(match is_ending {
                true => Output::Abort(effect.key),
                false => Output::Perform(effect),
            });
        }
    }

    // ---- what a driver needs for an effect -----------------------------------------------

    /// The request of the current model call, masked and shortened as it is to be sent.
    pub fn params(&self) -> &Arc<ChatParams> {
        self.shared.conversation.params()
    }

    /// The request for the summary that is asked for, or was when the run began to end; `None`
    /// where none is.
    pub fn summary_params(&self) -> Option<ChatParams> {
        let awaiting = match &self.state {
            State::Summary(awaiting) => awaiting,
            State::Ending(ending) => ending.summary.as_ref()?,
            _ => return None,
        };
        awaiting.params(&self.shared)
    }

    /// A fresh assembler for the reply to the current model call, or for a summary.
    pub fn assembler(&self) -> ReplyAssembler {
        let Shared { iteration, conversation, reduced_schemas, .. } = &self.shared;
        let request =
            self.summary_params().map_or_else(|| Arc::clone(conversation.params()), Arc::new);
        let told = Arc::clone(reduced_schemas);
        ReplyAssembler::new(*iteration, conversation.ids(), told, Some(request))
    }

    /// What the stop condition sees; `None` where no stop decision is asked for.
    pub fn stop_context(&self) -> Option<StopContext<'_>> {
        let State::Stop(awaiting) = &self.state else { return None };
        Some(StopContext {
            iteration: self.shared.iteration,
            response: &awaiting.turn.response,
            total_usage: &self.shared.total_usage,
            tool_calls_executed: self.shared.tools_started,
            last_tool_results: &self.shared.last_results,
        })
    }

    /// The last user message's text, for a pipeline that extracts what matters to it.
    pub fn last_user_query(&self) -> String {
        self.shared.conversation.last_user_query()
    }

    // ---- getters ------------------------------------------------------------------------

    /// The effects whose outcome is missing.
    pub fn outstanding(&self) -> Vec<Effect> {
        self.state.outstanding(&self.shared)
    }

    /// The whole conversation, valid for a next request in every state: nothing is masked or left
    /// out, and a call without outcome has a result that says whether it ran.
    pub fn messages(&self) -> Vec<ChatMessage> {
        let mut conversation = self.shared.conversation.clone();
        self.state.append_interrupted(&mut conversation);
        conversation.extend(self.shared.injected.clone());
        conversation.into_messages()
    }

    /// The current iteration, from 1.
    pub fn iteration(&self) -> u32 {
        self.shared.iteration
    }

    /// Tokens of all model calls so far.
    pub fn total_usage(&self) -> &Usage {
        &self.shared.total_usage
    }

    /// The last reply; empty before the first.
    pub fn last_response(&self) -> ChatResponse {
        self.shared.last_response()
    }

    /// Results of the last turn, where turns are yielded or a stop condition is set.
    pub fn last_results(&self) -> &[ToolResult] {
        &self.shared.last_results
    }

    /// Whether a turn has ended and the run waits for its caller.
    pub fn is_yielded(&self) -> bool {
        matches!(self.state, State::Yielded)
    }

    /// Whether the run is over.
    pub fn is_finished(&self) -> bool {
        matches!(self.state, State::Finished(_))
    }

    /// The result of a run that is over, leaving the run in place.
    ///
    /// # Errors
    /// What ended the run, or misuse when it is not over.
    pub fn result(&self) -> Result<ToolLoopResult, LlmError> {
        self.clone().into_result()
    }

    /// The result of a run that is over.
    ///
    /// # Errors
    /// What ended the run, or misuse when it is not over.
    pub fn into_result(self) -> Result<ToolLoopResult, LlmError> {
        if let Some(misuse) = self.misuse {
            return Err(misuse.into());
        }
        let State::Finished(ended) = self.state else {
            return Err(ApiMisuse::NotFinished.into());
        };
        let termination_reason = ended?;
        Ok(ToolLoopResult {
            response: self.shared.last_response(),
            iterations: self.shared.iteration,
            total_usage: self.shared.total_usage,
            termination_reason,
            messages: self.shared.conversation.into_messages(),
        })
    }
}

impl Shared {
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

impl From<ApiMisuse> for Failure {
    fn from(misuse: ApiMisuse) -> Self {
        Self::Misuse { misuse }
    }
}
