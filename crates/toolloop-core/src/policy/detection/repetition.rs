//! [`LoopDetectionConfig`]: equal replies in a row.

use serde::{Deserialize, Serialize};

use super::fingerprint::Fingerprint;
use crate::chat::ToolCall;

/// When a model counts as repeating itself, and what is done then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoopDetectionConfig {
    /// Equal replies in a row at which the action is taken, and again at each multiple.
    pub threshold: u32,
    /// What is done.
    pub action: LoopAction,
}

impl Default for LoopDetectionConfig {
    fn default() -> Self {
        Self { threshold: 3, action: LoopAction::Warn }
    }
}

/// What is done about a model that repeats itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoopAction {
    /// Tell whoever follows the run, and go on.
    Warn,
    /// End the run without running the repeated calls.
    Stop,
    /// Run them, then ask the model for another approach.
    InjectWarning,
}

/// What was repeated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Repetition {
    /// The calls' names, joined by `+`.
    pub(crate) tool_name: String,
    /// Equal replies in a row.
    pub(crate) count: u32,
}

/// Counts replies whose calls are equal, in a row: names and arguments, in order. Results do not
/// matter here.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct RepeatDetector {
    /// The fingerprint of the last reply's calls.
    reply: u64,
    /// Equal replies so far; 0 after one without calls.
    in_a_row: u32,
}

impl RepeatDetector {
    /// Takes the calls of one reply; says so when a multiple of the threshold is reached.
    pub(crate) fn observe<'a>(
        &mut self,
        config: LoopDetectionConfig,
        calls: impl Iterator<Item = &'a ToolCall> + Clone,
    ) -> Option<Repetition> {
        let names: Vec<&str> = calls.clone().map(|call| call.name.as_str()).collect();
        if names.is_empty() {
            self.in_a_row = 0;
            return None;
        }
        let mut reply = Fingerprint::new();
        calls.for_each(|call| reply.call(call));
        let reply = reply.finish();
        let is_same = self.in_a_row > 0 && self.reply == reply;
        self.in_a_row = if is_same { self.in_a_row + 1 } else { 1 };
        self.reply = reply;
        // A threshold of 0 has no multiples: detection never fires.
        if config.threshold == 0 || !self.in_a_row.is_multiple_of(config.threshold) {
            return None;
        }
        Some(Repetition { tool_name: names.join("+"), count: self.in_a_row })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn call(name: &str, arguments: Value) -> ToolCall {
        ToolCall { id: "any".into(), name: name.into(), arguments }
    }

    fn counts(threshold: u32, replies: &[Vec<ToolCall>]) -> Vec<Option<(String, u32)>> {
        let config = LoopDetectionConfig { threshold, action: LoopAction::Warn };
        let mut detector = RepeatDetector::default();
        replies
            .iter()
            .map(|calls| detector.observe(config, calls.iter()).map(|r| (r.tool_name, r.count)))
            .collect()
    }

    #[test]
    fn fires_at_each_multiple() {
        let reply = vec![call("a", 1.into()), call("b", 2.into())];
        let seen = counts(3, &vec![reply; 7]);
        let hit = |n| Some(("a+b".to_owned(), n));
        assert_eq!(seen, [None, None, hit(3), None, None, hit(6), None]);
    }

    #[test]
    fn another_call_or_none_resets() {
        let a = vec![call("a", 1.into())];
        let other = vec![call("a", 2.into())];
        assert_eq!(counts(2, &[a.clone(), other, a.clone()]), [None, None, None]);
        assert_eq!(counts(2, &[a.clone(), vec![], a.clone()]), [None, None, None]);
    }

    #[test]
    fn order_matters_but_key_order_does_not() {
        let (a, b) = (call("a", 1.into()), call("b", 1.into()));
        assert_eq!(counts(2, &[vec![a.clone(), b.clone()], vec![b, a]]), [None, None]);
        let x: Value = serde_json::from_str(r#"{"p":1,"q":2}"#).unwrap();
        let y: Value = serde_json::from_str(r#"{"q":2,"p":1}"#).unwrap();
        let seen = counts(2, &[vec![call("a", x)], vec![call("a", y)]]);
        assert_eq!(seen, [None, Some(("a".to_owned(), 2))]);
    }
}
