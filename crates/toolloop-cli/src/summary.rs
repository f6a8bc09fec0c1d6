//! [`Ending`]: how a run ended, and [`Ending::line`], the last line a person sees.

use std::time::Duration;

use toolloop_core::{Usage, UsageSource};
use toolloop_providers::Price;

use crate::exit::Exit;
use crate::model::Target;
use crate::report::Report;
use crate::settings::Settings;
use crate::units::{counted, dollars, elapsed, grouped};

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
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Cost {
    /// Nothing, and why.
    Free(&'static str),
    /// So many US dollars, as surely as the tokens are known.
    Usd { amount: f64, estimated: bool },
    /// No price is known, or not all tokens.
    Unknown,
}

impl Cost {
    /// Of a model's tokens: by the price in the settings, else by the list price.
    pub(crate) fn of(target: &Target, settings: &Settings, usage: &Usage) -> Self {
        let own = settings.prices.get(&target.name()).copied();
        if own.is_none()
            && let Some(why) = target.free_because()
        {
            return Self::Free(why);
        }
        let listed = || match target.is_custom() {
            // Somebody else's server has prices of its own.
            true => None,
            false => Price::listed(target.provider.name, &target.model),
        };
        match own.or_else(listed).and_then(|price| price.cost(usage)) {
            Some(amount) => Self::Usd { amount, estimated: usage.source == UsageSource::Estimated },
            None => Self::Unknown,
        }
    }

    /// In US dollars; `None` is unknown.
    pub(crate) fn usd(self) -> Option<f64> {
        match self {
            Self::Free(_) => Some(0.0),
            // The last digits of a sum of fractions say nothing.
            Self::Usd { amount, .. } => Some((amount * 1e9).round() / 1e9),
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
            Cost::Usd { amount, estimated } => {
                format!("{}{}", if estimated { "~" } else { "" }, dollars(amount))
            }
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
    use crate::origin::Origin;
    use crate::providers::provider;

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
    fn a_cost_is_as_sure_as_its_tokens() {
        let mut target = Target::demo("http://h/v1".into());
        let mut settings = Settings::default();
        let usage = Usage { input_tokens: 2000, output_tokens: 100, ..Usage::default() };
        let estimated = Usage { source: UsageSource::Estimated, ..usage };
        let of = |target: &Target, settings: &Settings, usage: &Usage| {
            ending(*usage, Cost::of(target, settings, usage))
                .line()
                .rsplit(" · ")
                .next()
                .map(str::to_owned)
        };
        assert_eq!(of(&target, &settings, &usage).unwrap(), "no cost (demo)");
        target.provider = provider("openai").unwrap();
        target.model = "gpt-5".into();
        assert_eq!(of(&target, &settings, &usage).unwrap(), "$0.0035");
        assert_eq!(of(&target, &settings, &estimated).unwrap(), "~$0.0035");
        assert_eq!(of(&target, &settings, &Usage::unknown()).unwrap(), "cost unknown");
        target.base_url.origin = Origin::Flag("--base-url");
        assert_eq!(of(&target, &settings, &usage).unwrap(), "cost unknown");
        let price = Price { input: 1000.0, cached: 0.0, cache_write: 0.0, output: 0.0 };
        settings.prices.insert("openai/gpt-5".into(), price);
        assert_eq!(of(&target, &settings, &usage).unwrap(), "$2.00");
        assert_eq!(Cost::of(&target, &settings, &usage).usd(), Some(2.0));
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
