//! [`RunConfig`]: what of a loop's configuration the machine needs to know.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::handler::EffectClass;
use crate::policy::compaction::CompactionConfig;
use crate::policy::detection::{LoopDetectionConfig, LoopDetectorConfig};
use crate::policy::masking::ObservationMaskingConfig;

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
