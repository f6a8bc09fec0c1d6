//! What is known of models by their names.

use std::collections::HashSet;

use toolloop_core::Capability;

/// What a model is and can, as far as its name tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct KnownModel {
    /// Tokens of a request and its reply; 0 where unknown.
    pub(crate) context_window: u64,
    pub(crate) reasons: bool,
    pub(crate) sees: bool,
}

impl KnownModel {
    /// Looks a model up; a gateway's `vendor/model` counts as the model.
    pub(crate) fn by_name(model: &str) -> Self {
        let name = model.rsplit('/').next().unwrap_or(model);
        TABLE
            .iter()
            .find(|(prefix, ..)| name.starts_with(prefix))
            .map(|&(_, context_window, reasons, sees)| Self { context_window, reasons, sees })
            .unwrap_or_default()
    }

    /// What it can, besides what its API can.
    pub(crate) fn capabilities<const N: usize>(self, api: [Capability; N]) -> HashSet<Capability> {
        let mut capabilities = HashSet::from(api);
        capabilities.extend(self.reasons.then_some(Capability::Reasoning));
        capabilities.extend(self.sees.then_some(Capability::Vision));
        capabilities
    }
}

/// Prefix, context window, whether it reasons, whether it sees; the first match counts.
const TABLE: &[(&str, u64, bool, bool)] = &[
    ("gpt-5-chat", 128_000, false, true),
    ("gpt-5", 400_000, true, true),
    ("gpt-4.1", 1_047_576, false, true),
    ("gpt-4o", 128_000, false, true),
    ("chatgpt-4o", 128_000, false, true),
    ("gpt-4-turbo", 128_000, false, true),
    ("gpt-4-32k", 32_768, false, false),
    ("gpt-4", 8_192, false, false),
    ("gpt-3.5-turbo", 16_385, false, false),
    ("gpt-oss", 131_072, true, false),
    ("o1-mini", 128_000, true, false),
    ("o1-preview", 128_000, true, false),
    ("o1", 200_000, true, true),
    ("o3-mini", 200_000, true, false),
    ("o3", 200_000, true, true),
    ("o4-mini", 200_000, true, true),
    ("deepseek-reasoner", 131_072, true, false),
    ("deepseek-chat", 131_072, false, false),
    ("grok-3-mini", 131_072, true, false),
    ("grok-4", 256_000, true, true),
    ("mistral-large", 131_072, false, false),
    ("mistral-small", 131_072, false, true),
    ("codestral", 262_144, false, false),
    ("gemini-2.0", 1_048_576, false, true),
    ("gemini-1.5-pro", 2_097_152, false, true),
    ("gemini-1.5", 1_048_576, false, true),
    ("gemini-", 1_048_576, true, true),
    ("gemma-3", 131_072, false, true),
    ("llama-3.3", 131_072, false, false),
    ("llama-3.1", 131_072, false, false),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_prefix_counts() {
        assert_eq!(KnownModel::by_name("gpt-4o-mini").context_window, 128_000);
        assert_eq!(KnownModel::by_name("gpt-4-0613").context_window, 8_192);
        assert_eq!(KnownModel::by_name("openai/gpt-5.1").context_window, 400_000);
        assert_eq!(KnownModel::by_name("my-model"), KnownModel::default());
        for (at, (prefix, ..)) in TABLE.iter().enumerate() {
            let hidden = TABLE[..at].iter().any(|(earlier, ..)| prefix.starts_with(earlier));
            assert!(!hidden, "{prefix} is never found");
        }
    }
}
