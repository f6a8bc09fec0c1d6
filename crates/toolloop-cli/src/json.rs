//! [`JsonFace`]: a run as one JSON object a line, for programs.
//!
//! The first line is `run`, the last always `done`; deltas are said once. The form is described
//! in `schema/run-events.schema.json`, and a test holds every line against it.

use std::io::{self, Write};
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use toolloop_core::{
    CompactionMethod, LoopAction, LoopEvent, RateLimits, ReducedSchema, ToolCall, Usage,
};

use crate::args::JsonOutput;
use crate::face::{Face, Header};
use crate::report::Report;
use crate::run_id::RunId;
use crate::summary::{Ending, Reason};

/// Writes the lines.
pub(crate) struct JsonFace<W> {
    out: W,
    output: JsonOutput,
    run: String,
}

impl<W: Write> JsonFace<W> {
    pub(crate) fn new(out: W, output: JsonOutput, run: RunId) -> Self {
        Self { out, output, run: run.to_string() }
    }

    fn line(&mut self, line: &Line<'_>) -> io::Result<()> {
        if self.output == JsonOutput::Final && !matches!(line, Line::Done { .. }) {
            return Ok(());
        }
        let json = serde_json::to_string(line)?;
        // The version stands first on every line, so that readers can decide by it.
        writeln!(self.out, "{{\"v\":1,{}", &json[1..])?;
        self.out.flush()
    }
}

impl<W: Write> Face for JsonFace<W> {
    fn begin(&mut self, header: &Header<'_>) -> io::Result<()> {
        let run = self.run.clone();
        let model = header.target.map(|target| target.name());
        let cwd = header.folder.to_string_lossy();
        self.line(&Line::Run { run: &run, model: model.as_deref(), cwd: &cwd })
    }

    fn event(&mut self, event: &LoopEvent, _: Duration) -> io::Result<()> {
        match Line::of(event) {
            Some(line) => self.line(&line),
            None => Ok(()),
        }
    }

    fn approval_needed(&mut self, call: &ToolCall) -> io::Result<()> {
        self.line(&Line::ApprovalNeeded {
            call_id: &call.id,
            tool_name: &call.name,
            arguments: &call.arguments,
        })
    }

    fn warn(&mut self, report: &Report, _: Duration) -> io::Result<()> {
        self.line(&Line::Warning { text: &report.to_string() })
    }

    fn end(&mut self, ending: &Ending, _: Duration) -> io::Result<()> {
        if let Some(report) = ending.report.as_ref().filter(|_| ending.reason == Reason::Error) {
            self.line(&Line::error(report))?;
        }
        let run = self.run.clone();
        self.line(&Line::Done {
            reason: ending.reason,
            text: &ending.text,
            iterations: ending.iterations,
            usage: &ending.usage,
            cost_usd: ending.cost.usd(),
            run: &run,
            exit_code: ending.exit.code(),
        })
    }
}

/// A line, without its version.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Line<'a> {
    Run {
        run: &'a str,
        model: Option<&'a str>,
        cwd: &'a str,
    },
    TextDelta {
        text: &'a str,
    },
    ReasoningDelta {
        text: &'a str,
    },
    ToolCallStart {
        index: u32,
        id: &'a str,
        name: &'a str,
    },
    ToolCallDelta {
        index: u32,
        json_chunk: &'a str,
    },
    ToolCallComplete {
        index: u32,
        call: &'a ToolCall,
    },
    ToolCallRescued {
        index: u32,
        text: &'a str,
    },
    Usage {
        #[serde(flatten)]
        usage: &'a Usage,
    },
    IterationStart {
        iteration: u32,
        message_count: usize,
    },
    MessagesInjected {
        count: usize,
    },
    MessagesRepaired {
        repairs: &'a [String],
    },
    SchemasReduced {
        schemas: &'a [ReducedSchema],
    },
    Compacted {
        method: CompactionMethod,
        hidden_count: usize,
        tokens_before: u32,
        tokens_after: u32,
        #[serde(skip_serializing_if = "Option::is_none")]
        fault: Option<&'a str>,
    },
    ToolExecutionStart {
        call_id: &'a str,
        tool_name: &'a str,
        arguments: &'a Value,
    },
    ToolExecutionEnd {
        call_id: &'a str,
        tool_name: &'a str,
        content: &'a str,
        is_error: bool,
        duration_ms: u64,
    },
    ToolCallRefused {
        call_id: &'a str,
        tool_name: &'a str,
        reason: &'a str,
    },
    ToolCallAnswered {
        call_id: &'a str,
        tool_name: &'a str,
        content: &'a str,
    },
    ToolProgress {
        call_id: &'a str,
        text: &'a str,
    },
    Warning {
        text: &'a str,
    },
    ToolResultProcessed {
        tool_name: &'a str,
        original_tokens: u32,
        processed_tokens: u32,
    },
    ToolResultExtracted {
        tool_name: &'a str,
        original_tokens: u32,
        extracted_tokens: u32,
    },
    ToolResultCached {
        tool_name: &'a str,
        original_tokens: u32,
        summary_tokens: u32,
    },
    ObservationsMasked {
        masked_count: usize,
        tokens_saved: u32,
    },
    LoopDetected {
        tool_name: &'a str,
        consecutive_count: u32,
        action: LoopAction,
    },
    AttemptDiscarded {
        attempt: u32,
    },
    RetryScheduled {
        attempt: u32,
        max_attempts: u32,
        delay_ms: u64,
        reason: &'a str,
    },
    RequestId {
        id: &'a str,
    },
    RateLimits {
        remaining_requests: Option<u64>,
        remaining_tokens: Option<u64>,
        reset_requests_ms: Option<u64>,
        reset_tokens_ms: Option<u64>,
    },
    ApprovalNeeded {
        call_id: &'a str,
        tool_name: &'a str,
        arguments: &'a Value,
    },
    Error {
        kind: &'a str,
        status: Option<u16>,
        message: String,
        cure: String,
        retryable: bool,
        request_id: Option<&'a str>,
    },
    Done {
        reason: Reason,
        text: &'a str,
        iterations: u32,
        usage: &'a Usage,
        cost_usd: Option<f64>,
        run: &'a str,
        exit_code: u8,
    },
}

impl<'a> Line<'a> {
    /// `None` for what has a line of its own, and for events of a later core.
    fn of(event: &'a LoopEvent) -> Option<Self> {
        Some(match event {
            LoopEvent::TextDelta(text) => Self::TextDelta { text },
            LoopEvent::ReasoningDelta(text) => Self::ReasoningDelta { text },
            LoopEvent::ToolCallStart { index, id, name } => {
                Self::ToolCallStart { index: *index, id, name }
            }
            LoopEvent::ToolCallDelta { index, json_chunk } => {
                Self::ToolCallDelta { index: *index, json_chunk }
            }
            LoopEvent::ToolCallComplete { index, call } => {
                Self::ToolCallComplete { index: *index, call }
            }
            LoopEvent::ToolCallRescued { index, text } => {
                Self::ToolCallRescued { index: *index, text }
            }
            LoopEvent::Usage(usage) => Self::Usage { usage },
            LoopEvent::IterationStart { iteration, message_count } => {
                Self::IterationStart { iteration: *iteration, message_count: *message_count }
            }
            LoopEvent::MessagesInjected { count } => Self::MessagesInjected { count: *count },
            LoopEvent::MessagesRepaired { repairs } => Self::MessagesRepaired { repairs },
            LoopEvent::SchemasReduced { schemas } => Self::SchemasReduced { schemas },
            LoopEvent::Compacted { method, hidden_count, tokens_before, tokens_after, fault } => {
                Self::Compacted {
                    method: *method,
                    hidden_count: *hidden_count,
                    tokens_before: *tokens_before,
                    tokens_after: *tokens_after,
                    fault: fault.as_deref(),
                }
            }
            LoopEvent::ToolExecutionStart { call_id, tool_name, arguments } => {
                Self::ToolExecutionStart { call_id, tool_name, arguments }
            }
            LoopEvent::ToolExecutionEnd { call_id, tool_name, result, duration } => {
                Self::ToolExecutionEnd {
                    call_id,
                    tool_name,
                    content: &result.content,
                    is_error: result.is_error,
                    duration_ms: millis(*duration),
                }
            }
            LoopEvent::ToolCallRefused { call_id, tool_name, reason } => {
                Self::ToolCallRefused { call_id, tool_name, reason }
            }
            LoopEvent::ToolCallAnswered { call_id, tool_name, result } => {
                Self::ToolCallAnswered { call_id, tool_name, content: &result.content }
            }
            LoopEvent::ToolProgress { call_id, text } => Self::ToolProgress { call_id, text },
            LoopEvent::ToolResultProcessed { tool_name, original_tokens, processed_tokens } => {
                Self::ToolResultProcessed {
                    tool_name,
                    original_tokens: *original_tokens,
                    processed_tokens: *processed_tokens,
                }
            }
            LoopEvent::ToolResultExtracted { tool_name, original_tokens, extracted_tokens } => {
                Self::ToolResultExtracted {
                    tool_name,
                    original_tokens: *original_tokens,
                    extracted_tokens: *extracted_tokens,
                }
            }
            LoopEvent::ToolResultCached { tool_name, original_tokens, summary_tokens } => {
                Self::ToolResultCached {
                    tool_name,
                    original_tokens: *original_tokens,
                    summary_tokens: *summary_tokens,
                }
            }
            LoopEvent::ObservationsMasked { masked_count, tokens_saved } => {
                Self::ObservationsMasked {
                    masked_count: *masked_count,
                    tokens_saved: *tokens_saved,
                }
            }
            LoopEvent::LoopDetected { tool_name, consecutive_count, action } => {
                Self::LoopDetected {
                    tool_name,
                    consecutive_count: *consecutive_count,
                    action: *action,
                }
            }
            LoopEvent::AttemptDiscarded { attempt } => Self::AttemptDiscarded { attempt: *attempt },
            LoopEvent::RetryScheduled(notice) => Self::RetryScheduled {
                attempt: notice.attempt,
                max_attempts: notice.max_attempts,
                delay_ms: millis(notice.delay),
                reason: &notice.reason,
            },
            LoopEvent::RequestId(id) => Self::RequestId { id },
            LoopEvent::RateLimits(limits) => Self::rate_limits(*limits),
            _ => return None,
        })
    }

    fn rate_limits(limits: RateLimits) -> Self {
        Self::RateLimits {
            remaining_requests: limits.remaining_requests,
            remaining_tokens: limits.remaining_tokens,
            reset_requests_ms: limits.reset_requests.map(millis),
            reset_tokens_ms: limits.reset_tokens.map(millis),
        }
    }

    fn error(report: &'a Report) -> Self {
        let message = match &report.quote {
            Some(quote) => format!("{}: {quote}", report.what),
            None => report.what.clone(),
        };
        Self::Error {
            kind: report.kind,
            status: report.status,
            message,
            cure: report.advice.join(" "),
            retryable: report.retryable,
            request_id: report.request_id.as_deref(),
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
#[path = "json_tests.rs"]
mod tests;
