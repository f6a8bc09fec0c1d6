//! [`Usage`]: the tokens of a model call, and how sure we are of them.

use std::fmt;
use std::ops::{Add, AddAssign};

use serde::{Deserialize, Serialize};

use crate::params::ChatParams;
use crate::policy::window::request_tokens;

/// Tokens of one model call, or the sum over several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Tokens the model read, those from a cache included.
    pub input_tokens: u64,
    /// Tokens the model wrote, reasoning included.
    pub output_tokens: u64,
    /// The part of `output_tokens` that was reasoning, where the provider says so.
    pub reasoning_tokens: Option<u64>,
    /// The part of `input_tokens` that came from a cache.
    pub cache_read_tokens: Option<u64>,
    /// The part of `input_tokens` that was written to a cache.
    pub cache_write_tokens: Option<u64>,
    /// How the figures are known; a sum is as sure as its weakest part.
    pub source: UsageSource,
}

/// How the figures of a [`Usage`] are known, from surest to weakest.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum UsageSource {
    /// The provider reported them.
    #[default]
    Reported,
    /// At least one part is an estimate.
    Estimated,
    /// At least one part is not known; the figures are a lower bound.
    Unknown,
}

impl Usage {
    /// A call whose tokens nobody reported.
    pub fn unknown() -> Self {
        Self { source: UsageSource::Unknown, ..Self::default() }
    }

    /// A reply that was cut: what was reported stands, the rest is estimated.
    ///
    /// `reported` is what the provider told before the cut, mostly the tokens it read. `request`
    /// stands in where it told nothing; without it they stay unknown. `said` is the length of
    /// the text, thought and arguments that came, in bytes.
    ///
    /// ```
    /// use toolloop_core::{Usage, UsageSource};
    ///
    /// let told = Usage { input_tokens: 25, output_tokens: 1, ..Usage::default() };
    /// let cut = Usage::of_cut(Some(told), None, "one two three".len());
    /// assert_eq!((cut.input_tokens, cut.output_tokens), (25, 4));
    /// assert_eq!(cut.source, UsageSource::Estimated);
    /// ```
    pub fn of_cut(reported: Option<Self>, request: Option<&ChatParams>, said: usize) -> Self {
        let mut usage = match (reported, request) {
            (Some(reported), _) => reported,
            (None, Some(request)) => {
                Self { input_tokens: request_tokens(request).into(), ..Self::default() }
            }
            (None, None) => Self::unknown(),
        };
        usage.output_tokens = usage.output_tokens.max(said.div_ceil(4) as u64);
        usage.source = usage.source.max(UsageSource::Estimated);
        usage
    }

    /// Tokens in and out together.
    pub fn total(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }

    /// The same as [`total`](Self::total).
    pub fn total_tokens(&self) -> u64 {
        self.total()
    }
}

impl Add for Usage {
    type Output = Self;

    fn add(mut self, rhs: Self) -> Self {
        self += rhs;
        self
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, rhs: Self) {
        // A server may report any number.
        self.input_tokens = self.input_tokens.saturating_add(rhs.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(rhs.output_tokens);
        self.reasoning_tokens = sum(self.reasoning_tokens, rhs.reasoning_tokens);
        self.cache_read_tokens = sum(self.cache_read_tokens, rhs.cache_read_tokens);
        self.cache_write_tokens = sum(self.cache_write_tokens, rhs.cache_write_tokens);
        self.source = self.source.max(rhs.source);
    }
}

impl AddAssign<&Usage> for Usage {
    fn add_assign(&mut self, rhs: &Usage) {
        *self += *rhs;
    }
}

impl std::iter::Sum for Usage {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::default(), Add::add)
    }
}

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.source == UsageSource::Unknown && self.total() == 0 {
            return f.write_str("usage unknown");
        }
        let mark = match self.source {
            UsageSource::Reported => "",
            UsageSource::Estimated => "~",
            UsageSource::Unknown => "at least ",
        };
        write!(f, "{mark}{} in · {mark}{} out", self.input_tokens, self.output_tokens)
    }
}

fn sum(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (None, None) => None,
        (a, b) => Some(a.unwrap_or(0).saturating_add(b.unwrap_or(0))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_is_as_sure_as_its_weakest_part() {
        let known = Usage { input_tokens: 3, output_tokens: 2, ..Usage::default() };
        let estimated = Usage { source: UsageSource::Estimated, ..known };
        assert_eq!((known + known).source, UsageSource::Reported);
        assert_eq!((known + estimated).source, UsageSource::Estimated);
        assert_eq!((Usage::unknown() + estimated).source, UsageSource::Unknown);
        assert_eq!((known + Usage::unknown()).total(), 5);
    }

    #[test]
    fn optional_parts_are_kept_when_one_side_has_them() {
        let cached = Usage { cache_read_tokens: Some(7), ..Usage::default() };
        assert_eq!((cached + Usage::default()).cache_read_tokens, Some(7));
        assert_eq!((Usage::default() + Usage::default()).cache_read_tokens, None);
    }

    #[test]
    fn absurd_numbers_do_not_overflow() {
        let absurd = Usage {
            input_tokens: u64::MAX,
            output_tokens: u64::MAX,
            reasoning_tokens: Some(u64::MAX),
            ..Usage::default()
        };
        assert_eq!((absurd + absurd), absurd);
        assert_eq!(absurd.total(), u64::MAX);
    }

    #[test]
    fn unknown_never_reads_as_zero() {
        assert_eq!(Usage::unknown().to_string(), "usage unknown");
    }
}
