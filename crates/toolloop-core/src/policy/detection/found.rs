//! [`LoopDetection`]: one circle that was found.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::config::DetectionAction;

/// One circle that a [`LoopDetector`](super::LoopDetector) has found. It displays as a clause,
/// such as "read was called 4 times with the same arguments".
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LoopDetection {
    /// Id of the call it was found at.
    pub call_id: String,
    /// Name of that call's tool.
    pub tool_name: String,
    /// What was found.
    pub kind: LoopKind,
    /// Equal calls, rounds of the cycle (the one that begins included), failures, or equal texts.
    pub count: u32,
    /// Which reply with a detection this is, from 1.
    pub number: u32,
    /// What the configuration says to do.
    pub action: DetectionAction,
}

/// How a model goes in circles.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LoopKind {
    /// The same call again.
    ExactDuplicate,
    /// Different calls in a cycle.
    Pattern {
        /// The names of the tools in one round, in order.
        tools: Vec<String>,
    },
    /// A tool fails with the same error whatever its arguments.
    SameError,
    /// The same text before calls that brought nothing new.
    RepeatedText,
}

impl LoopDetection {
    /// The tools concerned, joined by `+`.
    pub fn tools(&self) -> String {
        match &self.kind {
            LoopKind::Pattern { tools } => tools.join("+"),
            _ => self.tool_name.clone(),
        }
    }

    /// What the model is told in front of the call's result.
    pub fn warning(&self) -> String {
        let cure = match &self.kind {
            LoopKind::SameError => {
                "Find out why before the next try, or take another tool, or answer with what you \
                 know."
            }
            _ => {
                "Going on like this will not change the outcome. Try other arguments or another \
                 tool, or answer with what you know."
            }
        };
        format!("[Loop warning: {self}. {cure}]")
    }
}

impl fmt::Display for LoopDetection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tool_name, count, .. } = self;
        match &self.kind {
            LoopKind::ExactDuplicate => {
                write!(f, "{tool_name} was called {count} times with the same arguments")
            }
            LoopKind::Pattern { tools } => {
                write!(f, "the same calls ({}) begin round {count}", tools.join(", "))
            }
            LoopKind::SameError => {
                write!(f, "{tool_name} has failed {count} times with the same error")
            }
            LoopKind::RepeatedText => {
                write!(f, "the same was said {count} times and nothing new has come of it")
            }
        }
    }
}
