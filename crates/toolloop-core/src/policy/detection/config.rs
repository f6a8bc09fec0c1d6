//! [`LoopDetectorConfig`]: when a model counts as going in circles, and what is done then.

use serde::{Deserialize, Serialize};

/// When a model counts as going in circles, and what is done the first time, the second time and
/// from the third time on.
///
/// After `pattern_window_size` calls without detection the next one is the first again. An answer
/// that stays the same for long, such as that of a slow job, needs larger numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LoopDetectorConfig {
    /// Equal calls that may stand in the window; one more is a detection.
    pub max_exact_duplicates: usize,
    /// Calls in which equal ones are looked for, the newest included.
    pub exact_window_size: usize,
    /// Whether cycles of different calls are looked for.
    pub enable_pattern_detection: bool,
    /// Calls in the shortest cycle.
    pub min_pattern_length: usize,
    /// Calls in the longest cycle.
    pub max_pattern_length: usize,
    /// Calls in which cycles and equal errors are looked for, the newest included.
    pub pattern_window_size: usize,
    /// What the first detection leads to.
    pub first_detection_action: DetectionAction,
    /// What the second detection leads to.
    pub second_detection_action: DetectionAction,
    /// What every later detection leads to.
    pub third_detection_action: DetectionAction,
    /// Whether results count: an equal call whose result changed is progress, as is a cycle with a
    /// pause in it; the same error under other arguments is none, nor are the same words with
    /// nothing new behind them. A warning is withheld where the very call that was to be warned of
    /// brings a change.
    pub result_aware: bool,
}

impl Default for LoopDetectorConfig {
    fn default() -> Self {
        Self {
            max_exact_duplicates: 3,
            exact_window_size: 10,
            enable_pattern_detection: true,
            min_pattern_length: 2,
            max_pattern_length: 3,
            pattern_window_size: 20,
            first_detection_action: DetectionAction::Warn,
            second_detection_action: DetectionAction::Warn,
            third_detection_action: DetectionAction::Terminate,
            result_aware: true,
        }
    }
}

impl LoopDetectorConfig {
    /// What detection number `number`, from 1, leads to.
    pub(crate) fn action(&self, number: u32) -> DetectionAction {
        match number {
            0 | 1 => self.first_detection_action,
            2 => self.second_detection_action,
            _ => self.third_detection_action,
        }
    }
}

/// What a detection leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DetectionAction {
    /// Nothing; whoever follows the run is told.
    Continue,
    /// The model is told, in front of the call's result.
    Warn,
    /// The run ends.
    Terminate,
}
