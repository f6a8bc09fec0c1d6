//! The steps of a run, one file each, in the order in which a turn passes them:
//!
//! 1. [`request`]: mask old results, say how long the conversation is, ask the model;
//! 2. [`reply`]: count its tokens, ask again when it is empty;
//! 3. [`calls`]: tell the calls that can run from those that cannot; stop condition, repetition;
//!    [`circles`]: does the model go in circles? Asked here and, of the results, after 5.;
//! 4. [`approval`]: have each call approved, all before the first one starts;
//! 5. [`execution`]: run them, at once or in turn, each result through the pipeline;
//! 6. [`results`]: put them into the conversation in call order; limit, yield, or 1. again;
//! 7. [`masking`]: what the next request shows of old results;
//! 8. [`compaction`]: what it shows of a conversation that has become too long;
//!
//! and [`ending`], which any of them may be taken to. A state is named by what it waits for and
//! holds only what is valid then; a transition consumes it and returns the next.

pub(crate) mod approval;
pub(crate) mod calls;
pub(crate) mod circles;
pub(crate) mod compaction;
pub(crate) mod ending;
pub(crate) mod execution;
pub(crate) mod masking;
pub(crate) mod reply;
pub(crate) mod request;
pub(crate) mod results;

use serde::{Deserialize, Serialize};

use crate::conversation::Conversation;
use crate::effect::{Action, Effect, EffectKey, EffectKind, Outcome};
use crate::error::Failure;
use crate::event::TerminationReason;
use crate::run::{ApiMisuse, Input, Shared};

use approval::AwaitingApprovals;
use calls::{AwaitingStop, CallStatus, Turn};
use circles::AwaitingVerdict;
use compaction::AwaitingSummary;
use ending::Ending;
use execution::AwaitingTools;
use reply::AwaitingReply;

/// What a run waits for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum State {
    /// The set of iterations to mask, before a model call.
    ForceMask,
    /// The summary of what the request will no longer show.
    Summary(AwaitingSummary),
    /// The model's reply.
    Reply(AwaitingReply),
    /// The stop condition's decision.
    Stop(AwaitingStop),
    /// The decision about a model that goes in circles.
    Circles(AwaitingVerdict),
    /// Approvals of the reply's calls.
    Approvals(AwaitingApprovals),
    /// Tools and pipelines.
    Tools(AwaitingTools),
    /// The caller, after a turn.
    Yielded,
    /// The outcomes of effects that were aborted.
    Ending(Ending),
    /// Nothing any more.
    Finished(Result<TerminationReason, Failure>),
}

/// Stands in for the state that a transition has consumed.
impl Default for State {
    fn default() -> Self {
        Self::Yielded
    }
}

/// The first state of a run.
pub(crate) fn begin(shared: &mut Shared) -> State {
    if shared.config.max_iterations == 0 {
        let message = "max_iterations is 0, so no model can be asked: set it to 1 or more".into();
        return State::Finished(Err(Failure::InvalidRequest { message }));
    }
    request::begin(shared)
}

/// The transition for an input that [`State::check`] let pass.
pub(crate) fn advance(state: State, shared: &mut Shared, input: Input) -> State {
    match input {
        Input::Outcome { key, outcome } => answer(state, shared, key, outcome),
        Input::Inject(messages) => {
            shared.injected.extend(messages);
            state
        }
        Input::OfferTools(tools) => {
            shared.offered = Some(tools);
            state
        }
        Input::ReplaceMessages(messages) => {
            // The last reply's content may be edited away.
            let response = shared.last_response();
            shared.remember_reply(response, None);
            // The conversation that was edited had them in it.
            shared.injected.clear();
            shared.truncates_only = false;
            let repairs = shared.conversation.replace(messages);
            shared.tell_repairs(repairs);
            state
        }
        Input::Continue => request::begin(shared),
        Input::Stop { reason } => ending::begin(state, shared, ending::stopped(reason)),
        Input::Cancel => ending::begin(state, shared, ending::cancelled()),
        Input::Now(elapsed) => match shared.config.timeout {
            Some(limit) if elapsed >= limit => {
                ending::begin(state, shared, TerminationReason::Timeout { limit })
            }
            _ => state,
        },
    }
}

fn answer(state: State, shared: &mut Shared, key: EffectKey, outcome: Outcome) -> State {
    match (state, outcome) {
        (State::Ending(ending), outcome) => ending.on_outcome(shared, key, outcome),
        (State::ForceMask, Outcome::ForceMask(forced)) => request::ask(shared, &forced),
        (State::Summary(awaiting), Outcome::Reply(reply)) => {
            awaiting.on_summary(shared, reply.response, None)
        }
        (State::Summary(awaiting), Outcome::ReplyFailed { failure, partial }) => {
            awaiting.on_summary(shared, partial, Some(failure))
        }
        (State::Reply(awaiting), Outcome::Reply(reply)) => awaiting.on_reply(shared, reply),
        (State::Reply(awaiting), Outcome::ReplyFailed { failure, partial }) => {
            awaiting.on_failure(shared, failure, partial)
        }
        (State::Stop(awaiting), Outcome::Stop(decision)) => awaiting.on_decision(shared, decision),
        (State::Circles(awaiting), Outcome::Loop(verdict)) => awaiting.on_verdict(shared, verdict),
        (State::Approvals(awaiting), Outcome::Approval(outcome)) => {
            awaiting.on_approval(shared, key, outcome)
        }
        (State::Tools(awaiting), Outcome::Tool(outcome)) => awaiting.on_tool(shared, key, outcome),
        (State::Tools(awaiting), Outcome::Pipeline(outcome)) => {
            awaiting.on_pipeline(shared, key, outcome)
        }
        // `check` let only matching pairs pass.
        (state, _) => state,
    }
}

impl State {
    /// Whether an input is valid now.
    pub(crate) fn check(&self, input: &Input, shared: &Shared) -> Result<(), ApiMisuse> {
        match (self, input) {
            (_, Input::Outcome { key, outcome }) => self.check_outcome(*key, outcome, shared),
            // A cancel or a clock may always come late.
            (_, Input::Cancel | Input::Now(_)) => Ok(()),
            (Self::Finished(_), _) => Err(ApiMisuse::Finished),
            (Self::Yielded, _) => Ok(()),
            (_, Input::Inject(_) | Input::OfferTools(_) | Input::Stop { .. }) => Ok(()),
            (_, Input::Continue | Input::ReplaceMessages(_)) => Err(ApiMisuse::NotYielded),
        }
    }

    fn check_outcome(
        &self,
        key: EffectKey,
        outcome: &Outcome,
        shared: &Shared,
    ) -> Result<(), ApiMisuse> {
        let awaited = match self {
            Self::Ending(ending) => ending.awaits(key),
            _ => self.outstanding_keys(shared).any(|outstanding| outstanding == key),
        };
        if !awaited {
            return Err(ApiMisuse::NotOutstanding(key));
        }
        let fits = match outcome {
            Outcome::Cut { .. } | Outcome::NotBegun => matches!(self, Self::Ending(_)),
            Outcome::Reply(_) | Outcome::ReplyFailed { .. } => {
                matches!(key.kind, EffectKind::Model | EffectKind::Compaction)
            }
            Outcome::ForceMask(_) => key.kind == EffectKind::ForceMask,
            Outcome::Stop(_) => key.kind == EffectKind::Stop,
            Outcome::Loop(_) => key.kind == EffectKind::Loop,
            Outcome::Approval(_) => key.kind == EffectKind::Approval,
            Outcome::Tool(_) => key.kind == EffectKind::Tool,
            Outcome::Pipeline(_) => key.kind == EffectKind::Pipeline,
        };
        if !fits {
            return Err(ApiMisuse::WrongOutcome(key));
        }
        if reply::is_assembled(outcome, &shared.conversation) {
            Ok(())
        } else {
            Err(ApiMisuse::MalformedReply(key))
        }
    }

    /// The turn whose calls are open, if there is one.
    fn turn(&self) -> Option<&Turn> {
        match self {
            Self::Stop(awaiting) => Some(&awaiting.turn),
            Self::Circles(awaiting) => Some(&awaiting.turn),
            Self::Approvals(awaiting) => Some(&awaiting.turn),
            Self::Tools(awaiting) => Some(&awaiting.turn),
            Self::Ending(ending) => ending.turn.as_ref(),
            Self::ForceMask
            | Self::Summary(_)
            | Self::Reply(_)
            | Self::Yielded
            | Self::Finished(_) => None,
        }
    }

    /// The keys of the effects whose outcome is missing.
    fn outstanding_keys(&self, shared: &Shared) -> impl Iterator<Item = EffectKey> {
        let single = match self {
            Self::ForceMask => Some(shared.key(EffectKind::ForceMask, 0)),
            Self::Summary(awaiting) => Some(awaiting.key(shared)),
            Self::Reply(awaiting) => Some(awaiting.key(shared)),
            Self::Stop(_) => Some(shared.key(EffectKind::Stop, 0)),
            Self::Circles(awaiting) => Some(awaiting.key(shared)),
            _ => None,
        };
        let calls = match self {
            Self::Approvals(_) | Self::Tools(_) => self.turn(),
            _ => None,
        };
        let iteration = shared.iteration;
        let calls = calls.into_iter().flat_map(|turn| turn.calls.iter().enumerate());
        single.into_iter().chain(calls.filter_map(move |(index, call)| {
            let kind = match call.status {
                CallStatus::Asked => EffectKind::Approval,
                CallStatus::Running => EffectKind::Tool,
                CallStatus::Processing(_) => EffectKind::Pipeline,
                CallStatus::Waiting | CallStatus::Approved | CallStatus::Settled(_) => return None,
            };
            Some(EffectKey::new(kind, iteration, index))
        }))
    }

    /// The effects whose outcome is missing.
    pub(crate) fn outstanding(&self, shared: &Shared) -> Vec<Effect> {
        if let Self::Ending(ending) = self {
            // Nothing of an ending run is done again; its driver answers `Cut`.
            return ending.outstanding();
        }
        let action = |key: EffectKey| match key.kind {
            EffectKind::Model => Some(Action::CallModel),
            EffectKind::ForceMask => Some(Action::ReadForceMask),
            EffectKind::Compaction => Some(Action::Summarize),
            EffectKind::Stop => Some(Action::DecideStop),
            EffectKind::Loop => match self {
                Self::Circles(awaiting) => Some(awaiting.action()),
                _ => None,
            },
            EffectKind::Approval => Some(Action::Approve(self.turn()?.effective_call(key.index))),
            EffectKind::Tool => Some(Action::RunTool(self.turn()?.effective_call(key.index))),
            EffectKind::Pipeline => self.turn()?.processing(key.index),
        };
        self.outstanding_keys(shared)
            .filter_map(|key| Some(Effect { key, action: action(key)? }))
            .collect()
    }

    /// Adds what an open turn would leave behind if the run ended here without a word.
    pub(crate) fn append_interrupted(&self, conversation: &mut Conversation) {
        let Some(turn) = self.turn() else { return };
        let mut turn = turn.clone();
        turn.settle_open("the run was interrupted");
        let (response, results) = turn.into_parts();
        if !response.content.is_empty() {
            conversation.push_assistant(response.content);
        }
        for (_, result) in results {
            conversation.push_result(result);
        }
    }
}
