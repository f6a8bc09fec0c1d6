//! Does the model go in circles? Asked of the calls in step 3, and of their results after step 5.

use serde::{Deserialize, Serialize};

use super::approval::AwaitingApprovals;
use super::calls::{CallStatus, Settled, Turn};
use super::{State, ending, results};
use crate::chat::ContentBlock;
use crate::effect::{Action, EffectKey, EffectKind, LoopVerdict};
use crate::event::{LoopEvent, TerminationReason};
use crate::policy::detection::{CallEnd, DetectionAction, LoopAction, LoopDetection};
use crate::run::Shared;

/// Somebody is asked about what was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct AwaitingVerdict {
    pub(crate) turn: Turn,
    found: Vec<LoopDetection>,
    place: Place,
}

/// Where something was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Place {
    Calls,
    Results,
}

/// Shows the detector the calls of a turn before they run.
pub(crate) fn in_calls(shared: &mut Shared, turn: Turn) -> State {
    let Some(config) = shared.config.loop_detector else {
        return AwaitingApprovals::begin(shared, turn);
    };
    let text: String = turn.response.content.iter().filter_map(text).collect();
    let calls = turn.response.tool_calls_iter();
    let found = shared.detector.observe_calls(&config, shared.iteration, &text, calls);
    let awaiting = AwaitingVerdict { turn, found, place: Place::Calls };
    if shared.config.has_loop_decision {
        shared.detector.dismiss_suspects();
    } else if shared.detector.has_suspects() {
        // A warning stands in front of a result, which may yet refute it.
        return awaiting.go_on(shared);
    }
    awaiting.begin(shared)
}

/// Shows the detector what the calls of a turn gave.
pub(crate) fn in_results(shared: &mut Shared, turn: Turn) -> State {
    let Some(config) = shared.config.loop_detector else {
        return results::collect(shared, turn);
    };
    let settled = turn.calls.iter().enumerate().filter_map(|(index, call)| match &call.status {
        CallStatus::Settled(Settled { content, is_error, .. }) => {
            Some(CallEnd { call: turn.call(index), content, is_error: *is_error, took: call.took })
        }
        _ => None,
    });
    let found = shared.detector.observe_results(&config, shared.iteration, settled);
    AwaitingVerdict { turn, found, place: Place::Results }.begin(shared)
}

impl AwaitingVerdict {
    pub(crate) fn key(&self, shared: &Shared) -> EffectKey {
        shared.key(EffectKind::Loop, self.place as usize)
    }

    pub(crate) fn action(&self) -> Action {
        Action::DecideLoop(self.found.clone())
    }

    pub(crate) fn on_verdict(self, shared: &mut Shared, verdict: LoopVerdict) -> State {
        match verdict {
            LoopVerdict::GoOn => self.conclude(shared, DetectionAction::Continue),
            LoopVerdict::Terminate => self.conclude(shared, DetectionAction::Terminate),
        }
    }

    fn begin(self, shared: &mut Shared) -> State {
        // All that was found in one reply is on the same step of the escalation.
        let Some(action) = self.found.first().map(|first| first.action) else {
            return self.go_on(shared);
        };
        if shared.config.has_loop_decision {
            shared.perform(EffectKind::Loop, self.place as usize, self.action());
            return State::Circles(self);
        }
        self.conclude(shared, action)
    }

    fn conclude(mut self, shared: &mut Shared, action: DetectionAction) -> State {
        for detection in &self.found {
            shared.event(LoopEvent::LoopDetected {
                tool_name: detection.tools(),
                consecutive_count: detection.count,
                action: match action {
                    DetectionAction::Continue => LoopAction::Warn,
                    DetectionAction::Warn => LoopAction::InjectWarning,
                    DetectionAction::Terminate => LoopAction::Stop,
                },
            });
        }
        match (action, self.found.first()) {
            (DetectionAction::Terminate, Some(first)) => {
                self.turn.settle_open(&format!("the run was stopped because {first}"));
                let (tool_name, count) = (first.tools(), first.count);
                shared.detector.clear();
                let reason = TerminationReason::LoopDetected { tool_name, count };
                ending::finish(shared, Some(self.turn), reason)
            }
            (DetectionAction::Warn, _) => {
                for detection in std::mem::take(&mut self.found) {
                    self.turn.warn(&detection.call_id, detection.warning());
                }
                self.go_on(shared)
            }
            _ => self.go_on(shared),
        }
    }

    fn go_on(self, shared: &mut Shared) -> State {
        match self.place {
            Place::Calls => AwaitingApprovals::begin(shared, self.turn),
            Place::Results => results::collect(shared, self.turn),
        }
    }
}

impl Turn {
    /// Puts a warning in front of what the call's result will say.
    fn warn(&mut self, call_id: &str, warning: String) {
        let mut ids = self.response.tool_calls_iter().map(|call| call.id.as_str());
        if let Some(index) = ids.position(|id| id == call_id) {
            self.calls[index].warning = Some(warning);
        }
    }
}

fn text(block: &ContentBlock) -> Option<&str> {
    match block {
        ContentBlock::Text(text) => Some(text),
        _ => None,
    }
}
