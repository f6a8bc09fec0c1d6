//! [`Ended`]: what became of a run, and what it means: reason, exit code, what people are told.

use std::time::Duration;

use toolloop_core::{
    ChatResponse, ContentBlock, LlmError, StopReason, TerminationReason, ToolCall, Usage,
};

use crate::errors::{explain, is_unknown_model, suggest_models};
use crate::exit::Exit;
use crate::follow::{End, Tally};
use crate::model::Target;
use crate::origin::Sourced;
use crate::report::Report;
use crate::settings::{Environment, Settings};
use crate::summary::{Cost, Ending, Reason};
use crate::terminal::text::truncate;
use crate::terminal::tool_line::subject;
use crate::units::{counted, duration_flag};

/// How a run ended, with all that bears on what it means.
pub(crate) struct Ended<'a> {
    pub(crate) end: End,
    pub(crate) tally: Tally,
    /// The call nobody could be asked about.
    pub(crate) unanswered: Option<ToolCall>,
    pub(crate) target: &'a Target,
    pub(crate) settings: &'a Settings,
    /// The models of a server that does not have the wanted one.
    pub(crate) models: Vec<String>,
    pub(crate) elapsed: Duration,
}

impl Ended<'_> {
    /// What it means.
    pub(crate) fn ending(self, environment: &Environment<'_>) -> Ending {
        let (reason, exit, report) = match &self.end {
            End::Result(result) => match &result.termination_reason {
                TerminationReason::StopCondition { reason: Some(reason) }
                    if reason == "cancelled" =>
                {
                    self.cancelled()
                }
                reason => self.by_result(reason, result.response.stop_reason),
            },
            End::Error(error) => self.failed(error, environment),
            End::Abandoned => self.cancelled(),
        };
        let (text, iterations, usage) = match self.end {
            End::Result(result) => {
                let text = text_of(&result.response);
                let text = if text.is_empty() { self.tally.text } else { text };
                (text, result.iterations, result.total_usage)
            }
            end => {
                let told = self.tally.usage.unwrap_or_default();
                let untold = match end {
                    // Its last model call has told nothing of its tokens.
                    End::Abandoned => Usage::unknown(),
                    _ => Usage::default(),
                };
                (self.tally.text, self.tally.iterations, told + untold)
            }
        };
        Ending {
            reason,
            exit,
            text,
            iterations,
            tools: self.tally.tools,
            usage,
            elapsed: self.elapsed,
            cost: Cost::of(self.target, self.settings, &usage),
            report,
        }
    }

    /// Ended by a signal, or because nobody could be asked.
    fn cancelled(&self) -> (Reason, Exit, Option<Report>) {
        match (&self.unanswered, self.tally.signal) {
            (Some(call), None) => (Reason::Approval, Exit::Approval, Some(needed(call))),
            (_, signal) => (Reason::Cancelled, signal.unwrap_or(Exit::Interrupted), None),
        }
    }

    fn failed(
        &self,
        error: &LlmError,
        environment: &Environment<'_>,
    ) -> (Reason, Exit, Option<Report>) {
        let mut report = explain(error, self.target, environment);
        if is_unknown_model(error) {
            report = suggest_models(report, &self.target.model, &self.models);
        }
        (Reason::Error, report.exit, Some(report))
    }

    fn by_result(
        &self,
        reason: &TerminationReason,
        stop: StopReason,
    ) -> (Reason, Exit, Option<Report>) {
        let limit = |reason, report| (reason, Exit::Limit, Some(report));
        match reason {
            TerminationReason::Complete if stop == StopReason::MaxTokens => limit(
                Reason::Stop,
                limit_report("the answer was cut: the model's limit of output tokens was reached")
                    .advice("Ask for less at once."),
            ),
            TerminationReason::Complete => (Reason::Complete, Exit::Answered, None),
            TerminationReason::StopCondition { reason: Some(reason) } if reason == "refusal" => {
                let report = Report::new(Exit::Failed, "refusal", "the model declined to answer");
                (Reason::Stop, Exit::Failed, Some(report))
            }
            TerminationReason::StopCondition { .. } => (Reason::Stop, Exit::Answered, None),
            TerminationReason::MaxIterations { limit: reached } => limit(
                Reason::MaxIterations,
                with_origin(
                    limit_report(format!(
                        "{} made, as many as allowed; the answer is what was found by then",
                        counted(*reached as usize, "model call")
                    )),
                    self.settings.max_iterations.as_ref(),
                )
                .advice(format!("For more: --max-iterations {}", reached.saturating_mul(2))),
            ),
            TerminationReason::Timeout { limit: reached } => limit(
                Reason::Timeout,
                with_origin(
                    limit_report(format!("the time of {} is over", duration_flag(*reached))),
                    self.settings.timeout.as_ref(),
                )
                .advice(format!("For more: --timeout {}", duration_flag(*reached * 2))),
            ),
            TerminationReason::LoopDetected { tool_name, count } => limit(
                Reason::Loop,
                limit_report(format!(
                    "the model went in circles: {tool_name}, {count} times without progress, \
                     though it was warned"
                ))
                .advice("Say the task in other words, or choose another model: --model."),
            ),
        }
    }
}

impl Ending {
    /// Of a run that never began.
    pub(crate) fn before_the_run(report: Report) -> Self {
        Self {
            reason: Reason::Error,
            exit: report.exit,
            text: String::new(),
            iterations: 0,
            tools: 0,
            usage: Usage::default(),
            elapsed: Duration::ZERO,
            cost: Cost::Unknown,
            report: Some(report),
        }
    }
}

fn limit_report(what: impl Into<String>) -> Report {
    Report::new(Exit::Limit, "limit", what)
}

fn with_origin<T>(report: Report, setting: Option<&Sourced<T>>) -> Report {
    match setting {
        Some(setting) => report.advice(format!("The limit came from {}.", setting.origin)),
        None => report,
    }
}

fn needed(call: &ToolCall) -> Report {
    let subject = truncate(&subject(&call.arguments), 120);
    Report::new(Exit::Approval, "approval", format!("{}  {subject}", call.name))
        .advice("Nobody could be asked here, so it was not run, and the run ended.")
        .advice(format!("To allow it: --yes={} (or --yes for every tool)", call.name))
}

/// All the text of a reply.
fn text_of(response: &ChatResponse) -> String {
    let texts = response.content.iter().filter_map(|block| match block {
        ContentBlock::Text(text) => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolloop_core::ToolLoopResult;

    use super::*;
    use crate::origin::Origin;

    fn ending(reason: TerminationReason, stop: StopReason, settings: &Settings) -> Ending {
        let response = ChatResponse {
            content: vec![ContentBlock::Text("so far".into())],
            stop_reason: stop,
            ..ChatResponse::default()
        };
        let result = ToolLoopResult {
            response,
            iterations: 3,
            total_usage: Usage::default(),
            termination_reason: reason,
            messages: Vec::new(),
        };
        of(End::Result(Box::new(result)), Tally::default(), None, settings)
    }

    fn of(end: End, tally: Tally, unanswered: Option<ToolCall>, settings: &Settings) -> Ending {
        let target = Target::demo("http://127.0.0.1:1/v1".into());
        let elapsed = Duration::from_secs(1);
        Ended { end, tally, unanswered, target: &target, settings, models: vec![], elapsed }
            .ending(&Environment(&|_| None))
    }

    fn told(ending: &Ending) -> String {
        ending.report.as_ref().map(ToString::to_string).unwrap_or_default()
    }

    fn cancelled() -> TerminationReason {
        TerminationReason::StopCondition { reason: Some("cancelled".into()) }
    }

    #[test]
    fn a_limit_is_named_with_its_flag_and_where_it_came_from() {
        let settings = Settings {
            max_iterations: Some(Sourced::new(3, Origin::Flag("--max-iterations"))),
            ..Settings::default()
        };
        let reason = TerminationReason::MaxIterations { limit: 3 };
        let ended = ending(reason, StopReason::EndTurn, &settings);
        assert_eq!((ended.reason, ended.exit), (Reason::MaxIterations, Exit::Limit));
        assert_eq!(ended.text, "so far");
        assert_eq!(
            told(&ended),
            "3 model calls made, as many as allowed; the answer is what was found by then\n  The limit came from --max-iterations.\n  For more: --max-iterations 6"
        );
        let reason = TerminationReason::Timeout { limit: Duration::from_secs(90) };
        let ended = ending(reason, StopReason::EndTurn, &Settings::default());
        assert_eq!((ended.reason, ended.exit), (Reason::Timeout, Exit::Limit));
        assert_eq!(told(&ended), "the time of 90s is over\n  For more: --timeout 3m");
    }

    #[test]
    fn a_cut_answer_and_a_refusal_are_no_success() {
        let settings = Settings::default();
        let cut = ending(TerminationReason::Complete, StopReason::MaxTokens, &settings);
        assert_eq!((cut.reason, cut.exit), (Reason::Stop, Exit::Limit));
        let refusal = TerminationReason::StopCondition { reason: Some("refusal".into()) };
        let refused = ending(refusal, StopReason::Refusal, &settings);
        assert_eq!((refused.reason, refused.exit), (Reason::Stop, Exit::Failed));
        let whole = ending(TerminationReason::Complete, StopReason::EndTurn, &settings);
        assert_eq!(
            (whole.reason, whole.exit, whole.report),
            (Reason::Complete, Exit::Answered, None)
        );
    }

    #[test]
    fn an_approval_that_nobody_can_give_says_which_flag_does() {
        let settings = Settings::default();
        let call = ToolCall {
            id: "c".into(),
            name: "bash".into(),
            arguments: json!({"command": "wc -l *"}),
        };
        let ended = of(End::Abandoned, Tally::default(), Some(call.clone()), &settings);
        assert_eq!((ended.reason, ended.exit), (Reason::Approval, Exit::Approval));
        assert_eq!(
            told(&ended),
            "bash  wc -l *\n  Nobody could be asked here, so it was not run, and the run ended.\n  \
             To allow it: --yes=bash (or --yes for every tool)"
        );
        let signal = Tally { signal: Some(Exit::Terminated), ..Tally::default() };
        let ended = of(End::Abandoned, signal, Some(call), &settings);
        assert_eq!((ended.reason, ended.exit), (Reason::Cancelled, Exit::Terminated));
    }

    #[test]
    fn an_interrupted_run_keeps_what_came() {
        let settings = Settings::default();
        let tally = || Tally {
            signal: Some(Exit::Interrupted),
            text: "half".into(),
            iterations: 2,
            tools: 1,
            usage: Some(Usage { input_tokens: 7, ..Usage::default() }),
        };
        let ended = of(End::Abandoned, tally(), None, &settings);
        assert_eq!((ended.exit, ended.text.as_str()), (Exit::Interrupted, "half"));
        assert!(ended.line().starts_with("stopped · 2 steps · 1 tool · 1.0 s · at least 7 in"));
        assert_eq!(ending(cancelled(), StopReason::EndTurn, &settings).exit, Exit::Interrupted);
    }
}
