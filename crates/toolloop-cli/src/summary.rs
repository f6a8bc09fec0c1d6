//! [`Ending`]: how a run ended, and [`Ending::line`], the last line a person sees.

use std::time::Duration;

use toolloop_core::{Usage, UsageSource};

use crate::exit::Exit;
use crate::providers::ProviderEntry;
use crate::report::Report;
use crate::units::{counted, elapsed, grouped};

/// How a run ended and what it took.
#[derive(Debug)]
pub(crate) struct Ending {
    pub(crate) reason: Reason,
    pub(crate) exit: Exit,
    /// The answer, as far as there is one.
    pub(crate) text: String,
    pub(crate) iterations: u32,
    pub(crate) tools: usize,
    pub(crate) usage: Usage,
    pub(crate) elapsed: Duration,
    pub(crate) cost: Cost,
    /// What must be said besides: an error, a limit, a missing approval.
    pub(crate) report: Option<Report>,
}

/// Why a run ended, in the words of `--json`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Reason {
    Complete,
    Stop,
    MaxIterations,
    Loop,
    Timeout,
    Cancelled,
    Error,
    Approval,
}

/// What the tokens cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cost {
    /// Nothing, and why.
    Free(&'static str),
    /// No price is known.
    Unknown,
}

impl Cost {
    /// Of a provider's tokens.
    pub(crate) fn of(provider: &ProviderEntry) -> Self {
        provider.free_because().map_or(Self::Unknown, Self::Free)
    }

    /// In US dollars; `None` is unknown.
    pub(crate) fn usd(self) -> Option<f64> {
        match self {
            Self::Free(_) => Some(0.0),
            Self::Unknown => None,
        }
    }
}

impl Ending {
    /// `done · 4 steps · 3 tools · 2.9 s · 2,468 in · 112 out · no cost (demo)`.
    pub(crate) fn line(&self) -> String {
        let word = match self.reason {
            Reason::Complete if self.exit == Exit::Answered => "done",
            Reason::Error => "failed",
            _ => "stopped",
        };
        let mut parts = vec![
            word.to_owned(),
            counted(self.iterations as usize, "step"),
            counted(self.tools, "tool"),
            elapsed(self.elapsed),
        ];
        parts.extend(tokens(&self.usage));
        parts.push(match self.cost {
            Cost::Free(why) => format!("no cost ({why})"),
            Cost::Unknown => "cost unknown".to_owned(),
        });
        parts.join(" · ")
    }
}

/// Tokens in and out; `~` marks an estimate, and what nobody knows is no number.
fn tokens(usage: &Usage) -> Vec<String> {
    let mark = match usage.source {
        UsageSource::Reported => "",
        UsageSource::Estimated => "~",
        UsageSource::Unknown if usage.total() == 0 => return vec!["tokens unknown".to_owned()],
        UsageSource::Unknown => "at least ",
    };
    vec![
        format!("{mark}{} in", grouped(usage.input_tokens)),
        format!("{mark}{} out", grouped(usage.output_tokens)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ending(usage: Usage, cost: Cost) -> Ending {
        Ending {
            reason: Reason::Complete,
            exit: Exit::Answered,
            text: String::new(),
            iterations: 4,
            tools: 3,
            usage,
            elapsed: Duration::from_millis(2_940),
            cost,
            report: None,
        }
    }

    #[test]
    fn the_line_says_what_it_took() {
        let usage = Usage { input_tokens: 2468, output_tokens: 112, ..Usage::default() };
        let mut ending = ending(usage, Cost::Free("demo"));
        assert_eq!(
            ending.line(),
            "done · 4 steps · 3 tools · 2.9 s · 2,468 in · 112 out · no cost (demo)"
        );
        ending.iterations = 1;
        ending.tools = 0;
        ending.reason = Reason::Cancelled;
        ending.usage.source = UsageSource::Estimated;
        ending.cost = Cost::Unknown;
        assert_eq!(
            ending.line(),
            "stopped · 1 step · 0 tools · 2.9 s · ~2,468 in · ~112 out · cost unknown"
        );
    }

    #[test]
    fn what_nobody_knows_is_never_zero() {
        let line = ending(Usage::unknown(), Cost::Unknown).line();
        assert_eq!(line, "done · 4 steps · 3 tools · 2.9 s · tokens unknown · cost unknown");
        let usage = Usage { input_tokens: 5, ..Usage::unknown() };
        let line = ending(usage, Cost::Unknown).line();
        assert!(line.contains("at least 5 in · at least 0 out"), "{line}");
    }
}
