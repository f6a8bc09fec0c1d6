//! [`Price`]: what tokens cost, from a dated table of list prices.
//!
//! The table holds models with one price, as their makers list it; where a price depends on the
//! length of the prompt or the time of day, none is given. What is not known has no price: a wrong
//! figure is worse than none.

use toolloop_core::{Usage, UsageSource};

/// What a model's tokens cost, in US dollars for a million.
///
/// ```
/// use toolloop_core::Usage;
/// use toolloop_providers::Price;
///
/// let usage = Usage { input_tokens: 10_000, output_tokens: 1_000, ..Usage::default() };
/// let price = Price::listed("openai", "gpt-5-mini").expect("a price of the table");
/// assert_eq!(price.cost(&usage), Some(0.0045));
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Price {
    /// Of tokens that the model reads.
    pub input: f64,
    /// Of those among them that come from a cache.
    pub cached: f64,
    /// Of those among them that are written to a cache.
    pub cache_write: f64,
    /// Of tokens that the model writes, reasoning included.
    pub output: f64,
}

impl Price {
    /// The month of which the prices of [`listed`](Self::listed) are.
    pub const LISTED_IN: &'static str = "2026-10";

    /// The list price of a provider's model, a dated version included; `None`: not known.
    pub fn listed(provider: &str, model: &str) -> Option<Self> {
        let provider = if provider == "responses" { "openai" } else { provider };
        let row = LIST.iter().find(|row| row.provider == provider && is_of(model, row.model))?;
        let [input, cached, cache_write, output] = row.usd;
        Some(Self { input, cached, cache_write, output })
    }

    /// What these tokens cost in US dollars; `None` where some of them are not known. It is as
    /// sure as the tokens are.
    pub fn cost(&self, usage: &Usage) -> Option<f64> {
        if usage.source == UsageSource::Unknown {
            return None;
        }
        let cached = usage.cache_read_tokens.unwrap_or(0).min(usage.input_tokens);
        let written = usage.cache_write_tokens.unwrap_or(0).min(usage.input_tokens - cached);
        let plain = usage.input_tokens - cached - written;
        let parts = [
            (plain, self.input),
            (cached, self.cached),
            (written, self.cache_write),
            (usage.output_tokens, self.output),
        ];
        Some(parts.iter().map(|(tokens, price)| *tokens as f64 * price).sum::<f64>() / 1e6)
    }
}

/// Whether a name is that of the model or of one of its dated versions: `gpt-5-2025-08-07`. Any
/// other ending makes another model, with a price of its own.
fn is_of(name: &str, model: &str) -> bool {
    let Some(version) = name.strip_prefix(model) else { return false };
    let is_date = |text: &str| {
        text.len() >= 8 && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
    };
    matches!(version, "" | "-latest") || version.strip_prefix('-').is_some_and(is_date)
}

struct Listed {
    provider: &'static str,
    model: &'static str,
    /// Input, cached, written to a cache, output.
    usd: [f64; 4],
}

const fn openai(model: &'static str, input: f64, cached: f64, output: f64) -> Listed {
    // Nothing is charged for writing to the cache.
    Listed { provider: "openai", model, usd: [input, cached, input, output] }
}

const fn anthropic(model: &'static str, input: f64, cached: f64, output: f64) -> Listed {
    // The cache of five minutes, which the codec asks for.
    Listed { provider: "anthropic", model, usd: [input, cached, input * 1.25, output] }
}

const fn gemini(model: &'static str, input: f64, cached: f64, output: f64) -> Listed {
    Listed { provider: "gemini", model, usd: [input, cached, input, output] }
}

/// The makers' list prices in October 2026.
const LIST: [Listed; 34] = [
    openai("gpt-5", 1.25, 0.125, 10.0),
    openai("gpt-5-mini", 0.25, 0.025, 2.0),
    openai("gpt-5-nano", 0.05, 0.005, 0.4),
    openai("gpt-5.1", 1.25, 0.125, 10.0),
    openai("gpt-5.2", 1.75, 0.175, 14.0),
    openai("gpt-5.3-codex", 1.75, 0.175, 14.0),
    openai("gpt-5.4-mini", 0.75, 0.075, 4.5),
    openai("gpt-5.4-nano", 0.2, 0.02, 1.25),
    openai("gpt-4.1", 2.0, 0.5, 8.0),
    openai("gpt-4.1-mini", 0.4, 0.1, 1.6),
    openai("gpt-4.1-nano", 0.1, 0.025, 0.4),
    openai("gpt-4o", 2.5, 1.25, 10.0),
    openai("gpt-4o-mini", 0.15, 0.075, 0.6),
    openai("o3", 2.0, 0.5, 8.0),
    openai("o3-mini", 1.1, 0.55, 4.4),
    openai("o4-mini", 1.1, 0.275, 4.4),
    anthropic("claude-fable-5", 10.0, 1.0, 50.0),
    anthropic("claude-fable-5-1", 10.0, 0.25, 50.0),
    anthropic("claude-opus-5-5", 4.0, 0.2, 20.0),
    anthropic("claude-opus-5", 5.0, 0.5, 25.0),
    anthropic("claude-opus-4-8", 5.0, 0.5, 25.0),
    anthropic("claude-opus-4-7", 5.0, 0.5, 25.0),
    anthropic("claude-opus-4-6", 5.0, 0.5, 25.0),
    anthropic("claude-opus-4-5", 5.0, 0.5, 25.0),
    anthropic("claude-opus-4-1", 15.0, 1.5, 75.0),
    anthropic("claude-sonnet-5-5", 2.0, 0.1, 10.0),
    anthropic("claude-sonnet-5", 2.0, 0.2, 10.0),
    anthropic("claude-sonnet-4-6", 3.0, 0.3, 15.0),
    anthropic("claude-sonnet-4-5", 3.0, 0.3, 15.0),
    anthropic("claude-sonnet-4", 3.0, 0.3, 15.0),
    anthropic("claude-haiku-4-5", 1.0, 0.1, 5.0),
    gemini("gemini-2.5-flash", 0.3, 0.03, 2.5),
    gemini("gemini-2.5-flash-lite", 0.1, 0.01, 0.4),
    gemini("gemini-3.5-flash", 1.5, 0.15, 9.0),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn input(provider: &str, model: &str) -> Option<f64> {
        Price::listed(provider, model).map(|price| price.input)
    }

    #[test]
    fn a_dated_version_costs_what_its_model_costs() {
        assert_eq!(input("openai", "gpt-5"), Some(1.25));
        assert_eq!(input("responses", "gpt-5-mini-2025-08-07"), Some(0.25));
        assert_eq!(input("anthropic", "claude-sonnet-4-20250514"), Some(3.0));
        assert_eq!(input("anthropic", "claude-haiku-4-5-20251001"), Some(1.0));
    }

    #[test]
    fn another_model_has_no_price_of_its_relative() {
        for (provider, model) in [
            ("openai", "gpt-5-pro"),
            ("openai", "gpt-5.6-sol"),
            ("openai", "gpt-50"),
            ("anthropic", "claude-sonnet-4-9"),
            ("openrouter", "gpt-5"),
            ("openai", ""),
        ] {
            assert_eq!(input(provider, model), None, "{provider}/{model}");
        }
    }

    #[test]
    fn every_part_of_the_input_has_its_price() {
        let price = Price { input: 4.0, cached: 1.0, cache_write: 5.0, output: 8.0 };
        let usage = Usage {
            input_tokens: 1_000_000,
            output_tokens: 500_000,
            cache_read_tokens: Some(200_000),
            cache_write_tokens: Some(100_000),
            ..Usage::default()
        };
        assert_eq!(price.cost(&usage), Some(0.7 * 4.0 + 0.2 + 0.5 + 4.0));
        // More than all cannot be cached, whatever a server says.
        let absurd = Usage { input_tokens: 10, cache_read_tokens: Some(u64::MAX), ..usage };
        assert!(price.cost(&absurd).is_some());
    }

    #[test]
    fn unknown_tokens_cost_an_unknown_amount() {
        let price = Price::listed("openai", "gpt-5").unwrap();
        assert_eq!(price.cost(&Usage::unknown()), None);
        let estimated =
            Usage { output_tokens: 10, source: UsageSource::Estimated, ..Usage::default() };
        assert_eq!(price.cost(&estimated), Some(0.0001));
    }
}
