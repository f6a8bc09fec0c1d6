//! Masking: which old results the next request shows only as a note.

use serde::{Deserialize, Serialize};

/// When a tool's result is masked in later requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObservationMaskingConfig {
    /// Iterations whose results stay whole.
    pub max_iterations_to_keep: u32,
    /// Results up to this many tokens always stay whole.
    pub min_tokens_to_mask: u32,
}

impl Default for ObservationMaskingConfig {
    fn default() -> Self {
        Self { max_iterations_to_keep: 2, min_tokens_to_mask: 500 }
    }
}

impl ObservationMaskingConfig {
    /// Whether a result of iteration `made` is old before model call `next`.
    pub(crate) fn is_old(self, made: u32, next: u32) -> bool {
        made.saturating_add(self.max_iterations_to_keep) < next
    }
}

/// Tokens of a text, estimated: bytes / 4, rounded up.
pub fn estimate_tokens(text: &str) -> u32 {
    u32::try_from(text.len().div_ceil(4)).unwrap_or(u32::MAX)
}

/// What stands in a request in the place of a masked result.
pub(crate) fn mask(tool_name: &str, iteration: u32, tokens: u32) -> String {
    format!(
        "[Masked — {tool_name} result from iteration {iteration}, {tokens} tokens. \
         Use result_cache tool if available, or re-invoke tool.]"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keep_two_masks_one_and_two_before_call_five() {
        let config = ObservationMaskingConfig::default();
        let old: Vec<u32> = (1..5).filter(|n| config.is_old(*n, 5)).collect();
        assert_eq!(old, [1, 2]);
    }

    #[test]
    fn tokens_are_rounded_up() {
        assert_eq!([0, 1, 4, 5].map(|n| estimate_tokens(&"x".repeat(n))), [0, 1, 1, 2]);
    }
}
