//! [`Run`]: the machine. Inputs say what happened, outputs say what to do next.

mod config;
mod shared;

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::assembler::ReplyAssembler;
use crate::chat::{ChatMessage, ChatResponse, ToolResult};
use crate::conversation::Conversation;
use crate::effect::{Effect, EffectKey, Outcome};
use crate::error::{Failure, LlmError};
use crate::event::{LoopEvent, ToolLoopResult};
use crate::journal::FORMAT_VERSION;
use crate::params::{ChatParams, ToolDefinition};
use crate::policy::stop::StopContext;
use crate::step::{self, State};
use crate::usage::Usage;

pub use config::{RunConfig, ToolSpec};
pub(crate) use shared::Shared;

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
    /// End this effect now, and answer its key with [`Outcome::Cut`], with [`Outcome::NotBegun`]
    /// where that is certain, or with its outcome where that has come already.
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

impl Run {
    /// Starts a run. The conversation in `params` is repaired where no provider would take it.
    pub fn new(config: RunConfig, params: ChatParams) -> Self {
        let (conversation, repairs) = Conversation::new(params);
        let mut shared = Shared::new(config, conversation);
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

impl From<ApiMisuse> for Failure {
    fn from(misuse: ApiMisuse) -> Self {
        Self::Misuse { misuse }
    }
}
