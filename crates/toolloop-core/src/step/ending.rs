//! The end of a run: abort what is at work, and leave a conversation that says what happened.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::State;
use super::calls::{self, CallStatus, Turn};
use super::compaction::AwaitingSummary;
use super::results;
use crate::effect::{Effect, EffectKey, EffectKind, Outcome, Reply, ToolOutcome};
use crate::event::{LoopEvent, TerminationReason};
use crate::run::Shared;

/// The run is ending; effects that were aborted have yet to be answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Ending {
    reason: TerminationReason,
    pub(crate) turn: Option<Turn>,
    /// The summary that was asked for; what it has cost is estimated from its request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) summary: Option<AwaitingSummary>,
    /// Aborted effects without answer.
    #[serde(with = "awaited")]
    awaited: BTreeMap<EffectKey, Effect>,
}

/// Ends a run from any state.
pub(crate) fn begin(state: State, shared: &mut Shared, reason: TerminationReason) -> State {
    if matches!(state, State::Ending(_) | State::Finished(_)) {
        return state;
    }
    // What was asked for but not handed out has not begun, and needs no answer.
    let withdrawn = shared.withdraw_effects();
    let awaited: BTreeMap<EffectKey, Effect> = state
        .outstanding(shared)
        .into_iter()
        .filter(|effect| !withdrawn.contains(&effect.key))
        .map(|effect| (effect.key, effect))
        .collect();
    for key in awaited.keys() {
        shared.abort(*key);
    }
    let (mut turn, summary) = match state {
        State::Stop(awaiting) => (Some(awaiting.turn), None),
        State::Circles(awaiting) => (Some(awaiting.turn), None),
        State::Approvals(awaiting) => (Some(awaiting.turn), None),
        State::Tools(awaiting) => (Some(awaiting.turn), None),
        State::Summary(awaiting) => (None, Some(awaiting)),
        _ => (None, None),
    };
    for key in withdrawn.iter().filter(|key| key.kind == EffectKind::Tool) {
        if let Some(call) = turn.as_mut().and_then(|t| t.calls.get_mut(key.index as usize)) {
            call.status = CallStatus::Approved;
        }
    }
    Ending { reason, turn, summary, awaited }.go_on(shared)
}

impl Ending {
    pub(crate) fn awaits(&self, key: EffectKey) -> bool {
        self.awaited.contains_key(&key)
    }

    pub(crate) fn outstanding(&self) -> Vec<Effect> {
        self.awaited.values().cloned().collect()
    }

    pub(crate) fn on_outcome(
        mut self,
        shared: &mut Shared,
        key: EffectKey,
        outcome: Outcome,
    ) -> State {
        self.awaited.remove(&key);
        match outcome {
            // A summary belongs to the request that is not made any more; its tokens count.
            Outcome::Cut { partial: Some(summary), .. }
            | Outcome::ReplyFailed { partial: summary, .. }
            | Outcome::Reply(Reply { response: summary, .. })
                if key.kind == EffectKind::Compaction =>
            {
                shared.total_usage += summary.usage;
                shared.event(LoopEvent::Usage(summary.usage));
            }
            Outcome::Cut { partial, usage, duration } => {
                if let Some(partial) = partial {
                    shared.event(LoopEvent::Usage(partial.usage));
                    shared.keep_partial(partial);
                }
                match self.turn.as_mut().filter(|_| key.kind == EffectKind::Tool) {
                    Some(turn) => turn.tool_ended(
                        shared,
                        key.index as usize,
                        ToolOutcome {
                            content: calls::cut_off(&in_words(&self.reason)).into(),
                            is_error: true,
                            duration: duration.unwrap_or_default(),
                            usage,
                        },
                    ),
                    None => shared.total_usage += usage.unwrap_or_default(),
                }
            }
            Outcome::NotBegun => {
                if let Some(turn) = self.turn.as_mut().filter(|_| key.kind == EffectKind::Tool) {
                    // It was told as started, so its end is told as well.
                    turn.tool_ended(
                        shared,
                        key.index as usize,
                        ToolOutcome {
                            content: calls::not_run(&in_words(&self.reason)).into(),
                            is_error: true,
                            duration: Duration::ZERO,
                            usage: None,
                        },
                    );
                }
            }
            // What was finished at that very moment counts as finished.
            Outcome::ReplyFailed { partial, .. } => {
                shared.event(LoopEvent::Usage(partial.usage));
                shared.keep_partial(partial);
            }
            Outcome::Reply(reply) => {
                shared.total_usage += reply.response.usage;
                shared.event(LoopEvent::Usage(reply.response.usage));
                self.turn = Some(Turn::new(shared, reply));
            }
            Outcome::Tool(outcome) => {
                if let Some(turn) = &mut self.turn {
                    turn.tool_ended(shared, key.index as usize, outcome);
                }
            }
            Outcome::Pipeline(outcome) => {
                if let Some(turn) = &mut self.turn {
                    turn.pipeline_ended(shared, key.index as usize, outcome);
                }
            }
            Outcome::ForceMask(_) | Outcome::Stop(_) | Outcome::Loop(_) | Outcome::Approval(_) => {}
        }
        self.go_on(shared)
    }

    fn go_on(self, shared: &mut Shared) -> State {
        if self.awaited.is_empty() {
            return finish(shared, self.turn, self.reason);
        }
        State::Ending(self)
    }
}

/// Ends a run in which nothing is at work.
pub(crate) fn finish(shared: &mut Shared, turn: Option<Turn>, reason: TerminationReason) -> State {
    if let Some(mut turn) = turn {
        turn.settle_open(&in_words(&reason));
        results::append(shared, turn);
    }
    shared.admit_injected();
    State::Finished(Ok(reason))
}

/// Ends a run at its limit of iterations.
pub(crate) fn at_limit(shared: &mut Shared) -> State {
    let limit = shared.config.max_iterations;
    finish(shared, None, TerminationReason::MaxIterations { limit })
}

/// The reason of a cancelled run.
pub(crate) fn cancelled() -> TerminationReason {
    stopped(Some("cancelled".to_owned()))
}

/// The reason of a run its caller stopped.
pub(crate) fn stopped(reason: Option<String>) -> TerminationReason {
    TerminationReason::StopCondition { reason }
}

/// Why calls were not run, for the model.
fn in_words(reason: &TerminationReason) -> String {
    match reason {
        TerminationReason::Complete => "the run ended".to_owned(),
        TerminationReason::StopCondition { reason: Some(reason) } if reason == "cancelled" => {
            "the run was cancelled".to_owned()
        }
        TerminationReason::StopCondition { reason: Some(reason) } => {
            format!("the run was stopped ({reason})")
        }
        TerminationReason::StopCondition { reason: None } => "the run was stopped".to_owned(),
        TerminationReason::MaxIterations { limit } => {
            format!("the run reached its limit of {limit} iterations")
        }
        TerminationReason::LoopDetected { tool_name, count } => {
            format!("the run was stopped because {tool_name} was called {count} times in a row")
        }
        TerminationReason::Timeout { limit } => {
            format!("the run reached its time limit of {limit:?}")
        }
    }
}

/// JSON objects have no effect keys as names in every reader; a list of effects has them inside.
mod awaited {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::effect::{Effect, EffectKey};

    pub(super) fn serialize<S: Serializer>(
        map: &BTreeMap<EffectKey, Effect>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        map.values().collect::<Vec<_>>().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<BTreeMap<EffectKey, Effect>, D::Error> {
        let effects = Vec::<Effect>::deserialize(deserializer)?;
        Ok(effects.into_iter().map(|effect| (effect.key, effect)).collect())
    }
}
