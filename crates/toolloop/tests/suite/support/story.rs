//! A run as text: events, conversations and requests, a line each.

use std::fmt::Write as _;
use std::time::Duration;

use toolloop::mock::MockProvider;
use toolloop::{
    ChatMessage, ChatRole, ContentBlock, LlmError, LoopEvent, ToolLoopResult, ToolResult,
};

/// An event and when it came.
#[derive(Debug, Clone)]
pub(crate) struct Moment {
    pub(crate) at: Duration,
    pub(crate) event: LoopEvent,
}

pub(crate) fn story(moments: &[Moment], ended: &Result<ToolLoopResult, LlmError>) -> String {
    let mut lines: Vec<_> = moments.iter().map(|moment| one_event(&moment.event)).collect();
    lines.push(ending(ended));
    lines.join("\n")
}

pub(crate) fn timed_story(moments: &[Moment], ended: &Result<ToolLoopResult, LlmError>) -> String {
    let mut lines: Vec<_> = moments
        .iter()
        .map(|moment| format!("{:>4} {}", moment.at.as_millis(), one_event(&moment.event)))
        .collect();
    lines.push(format!("     {}", ending(ended)));
    lines.join("\n")
}

fn ending(ended: &Result<ToolLoopResult, LlmError>) -> String {
    match ended {
        Ok(result) => format!(
            "done: {:?}, iterations {}, {}",
            result.termination_reason, result.iterations, result.total_usage
        ),
        Err(error) => format!("error: {error}"),
    }
}

pub(crate) fn one_event(event: &LoopEvent) -> String {
    match event {
        LoopEvent::TextDelta(text) => format!("text {text:?}"),
        LoopEvent::ReasoningDelta(text) => format!("thought {text:?}"),
        LoopEvent::ToolCallStart { index, id, name } => format!("call {index} begins: {id} {name}"),
        LoopEvent::ToolCallDelta { index, json_chunk } => {
            format!("call {index} goes on: {}", abridged(json_chunk))
        }
        LoopEvent::ToolCallComplete { index, call } => {
            format!("call {index}: {} {}", call.id, abridged(&call.to_string()))
        }
        LoopEvent::Usage(usage) => format!("usage {usage}"),
        LoopEvent::IterationStart { iteration, message_count } => {
            format!("iteration {iteration}, messages {message_count}")
        }
        LoopEvent::ToolExecutionStart { call_id, tool_name, arguments } => {
            format!("start {call_id} {tool_name}({})", abridged(&arguments.to_string()))
        }
        LoopEvent::ToolExecutionEnd { call_id, result, duration, .. } => {
            assert_eq!(*call_id, result.tool_call_id);
            match duration.is_zero() {
                true => format!("end {}", outcome(result)),
                false => format!("end {} in {duration:?}", outcome(result)),
            }
        }
        LoopEvent::ToolResultProcessed { tool_name, original_tokens, processed_tokens } => {
            format!("processed {tool_name}: {original_tokens} to {processed_tokens}")
        }
        LoopEvent::ToolResultExtracted { tool_name, original_tokens, extracted_tokens } => {
            format!("extracted {tool_name}: {original_tokens} to {extracted_tokens}")
        }
        LoopEvent::ToolResultCached { tool_name, original_tokens, summary_tokens } => {
            format!("cached {tool_name}: {original_tokens} to {summary_tokens}")
        }
        LoopEvent::ObservationsMasked { masked_count, tokens_saved } => {
            format!("masked {masked_count}, saving {tokens_saved}")
        }
        LoopEvent::HistoryPruned { turns, tokens_saved } => {
            format!("pruned {turns} turns, saving {tokens_saved}")
        }
        LoopEvent::Compacted { method, hidden_count, tokens_before, tokens_after, fault } => {
            let fault = fault.as_ref().map(|fault| format!(" ({fault})")).unwrap_or_default();
            format!("{method:?} of {hidden_count}: {tokens_before} to {tokens_after}{fault}")
        }
        LoopEvent::LoopDetected { tool_name, consecutive_count, action } => {
            format!("loop {tool_name} x{consecutive_count}: {action:?}")
        }
        LoopEvent::ToolCallRefused { call_id, tool_name, reason } => {
            format!("refused {call_id} {tool_name}: {}", abridged(reason))
        }
        LoopEvent::ToolCallAnswered { call_id, tool_name, result } => {
            format!("answered {call_id} {tool_name}: {}", abridged(&result.content))
        }
        LoopEvent::ToolProgress { call_id, text } => format!("progress {call_id}: {text}"),
        LoopEvent::AttemptDiscarded { attempt } => format!("attempt {attempt} is void"),
        other => format!("{other:?}"),
    }
}

/// A conversation, a message a line.
pub(crate) fn transcript(messages: &[ChatMessage]) -> String {
    messages.iter().map(one_message).collect::<Vec<_>>().join("\n")
}

/// The conversations a model was sent, under a line that numbers them.
pub(crate) fn requests(model: &MockProvider) -> String {
    let mut out = String::new();
    for (number, params) in (1..).zip(model.recorded_calls()) {
        let _ = writeln!(out, "-- request {number}\n{}", transcript(&params.messages));
    }
    out
}

fn one_message(message: &ChatMessage) -> String {
    let role = match message.role {
        ChatRole::System => "system",
        ChatRole::User => "user",
        ChatRole::Assistant => "assistant",
        ChatRole::Tool => "tool",
        _ => "other",
    };
    let blocks: Vec<String> = message.content.iter().map(one_block).collect();
    format!("{role}: {}", blocks.join(" | "))
}

fn one_block(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => abridged(text),
        ContentBlock::Reasoning { content } => format!("<{content}>"),
        ContentBlock::ToolCall(call) => format!("{} {}", call.id, abridged(&call.to_string())),
        ContentBlock::ToolResult(result) => outcome(result),
        other => format!("{other:?}"),
    }
}

fn outcome(result: &ToolResult) -> String {
    let verdict = if result.is_error { "failed" } else { "ok" };
    format!("{} {verdict}: {}", result.tool_call_id, abridged(&result.content))
}

/// A long text by its beginning and its length.
pub(crate) fn abridged(text: &str) -> String {
    match text.char_indices().nth(400) {
        None => text.to_owned(),
        Some(_) => {
            format!("{}… ({} bytes)", text.chars().take(10).collect::<String>(), text.len())
        }
    }
}
