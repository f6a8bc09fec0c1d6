//! How a transcript shows things: one short line each.

use serde::Serialize;
use serde_json::Value;
use toolloop_core::effect::{Action, ApprovalOutcome, Effect, Outcome, Reply};
use toolloop_core::run::Input;
use toolloop_core::{ChatMessage, ContentBlock, LoopEvent, ToolLoopResult, ToolResult};

pub(crate) fn json<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).unwrap()
}

pub(crate) fn effect(effect: &Effect) -> String {
    let what = match &effect.action {
        Action::CallModel => "ask the model".to_owned(),
        Action::ReadForceMask => "read the force-mask set".to_owned(),
        Action::Summarize => "ask for a summary".to_owned(),
        Action::DecideStop => "decide whether to stop".to_owned(),
        Action::DecideLoop(found) => {
            let found = found.iter().map(|found| format!("{}: {found}", found.call_id));
            format!("go on? {}", found.collect::<Vec<_>>().join(" · "))
        }
        Action::Approve(call) => format!("approve {call}?"),
        Action::RunTool(call) => format!("run {call}"),
        Action::ProcessResult { tool_name, result } => {
            format!("process {tool_name}'s {}", quote(&result.content))
        }
        other => format!("{other:?}"),
    };
    format!("{} {what}", effect.key)
}

pub(crate) fn input(input: &Input) -> String {
    match input {
        Input::Outcome { key, outcome } => format!("{key} {}", self::outcome(outcome)),
        Input::Inject(messages) => format!("inject {}", list(messages, message)),
        Input::ReplaceMessages(messages) => format!("replace {}", list(messages, message)),
        other => tagged(other),
    }
}

fn outcome(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Reply(Reply { response, cut_calls, invalid_calls, reduced_schemas }) => {
            let mut line = format!("{} ({})", blocks(&response.content), response.stop_reason);
            if !cut_calls.is_empty() {
                line.push_str(&format!(", cut: {cut_calls:?}"));
            }
            if !invalid_calls.is_empty() {
                line.push_str(&format!(", invalid: {invalid_calls:?}"));
            }
            if !reduced_schemas.is_empty() {
                line.push_str(&format!(", reduced: {reduced_schemas:?}"));
            }
            line
        }
        Outcome::ReplyFailed { failure, partial } => {
            format!("failed: {failure:?}, after {}", blocks(&partial.content))
        }
        Outcome::Approval(ApprovalOutcome::Modified(arguments)) => format!("modified {arguments}"),
        Outcome::Tool(tool) => {
            let state = if tool.is_error { "failed" } else { "gave" };
            format!("{state} {}", quote(&tool.content))
        }
        Outcome::Cut { partial: Some(partial), .. } => {
            format!("cut after {}", blocks(&partial.content))
        }
        other => tagged(other),
    }
}

pub(crate) fn event(event: &LoopEvent) -> String {
    match event {
        LoopEvent::TextDelta(text) => quote(text),
        LoopEvent::Usage(usage) => format!("tokens: {usage}"),
        other => tagged(other),
    }
}

pub(crate) fn message(message: &ChatMessage) -> String {
    format!("{} {}", json(&message.role).trim_matches('"'), blocks(&message.content))
}

pub(crate) fn conversation(messages: &[ChatMessage]) -> String {
    messages.iter().map(message).collect::<Vec<_>>().join("\n")
}

pub(crate) fn result(result: &ToolLoopResult) -> String {
    format!(
        "{} after {} iterations, {}, response {}",
        tagged(&result.termination_reason),
        result.iterations,
        result.total_usage,
        blocks(&result.response.content),
    )
}

pub(crate) fn results(results: &[ToolResult]) -> String {
    list(results, |result| block(&ContentBlock::ToolResult(result.clone())))
}

fn blocks(content: &[ContentBlock]) -> String {
    list(content, block)
}

fn block(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => quote(text),
        ContentBlock::ToolCall(call) => format!("{}={call}", call.id),
        ContentBlock::ToolResult(result) => {
            let mark = if result.is_error { "!" } else { ":" };
            format!("{}{mark} {}", result.tool_call_id, quote(&result.content))
        }
        other => tagged(other),
    }
}

fn list<T>(items: &[T], show: impl Fn(&T) -> String) -> String {
    match items {
        [] => "nothing".to_owned(),
        items => items.iter().map(show).collect::<Vec<_>>().join(" · "),
    }
}

/// An enum by its stored form: the name, then the fields.
fn tagged<T: Serialize>(value: &T) -> String {
    let fields = |value: Value| match value {
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| format!("{name}={value}"));
            fields.collect::<Vec<_>>().join(" ")
        }
        value => value.to_string(),
    };
    match serde_json::to_value(value).unwrap() {
        Value::String(name) => name,
        Value::Object(map) if map.len() == 1 => {
            let (name, value) = map.into_iter().next().unwrap();
            format!("{name} {}", fields(value))
        }
        other => fields(other),
    }
}

/// Text in quotes; of a long one the beginning.
fn quote(text: &str) -> String {
    if text.len() <= 200 {
        return format!("{text:?}");
    }
    let beginning: String = text.chars().take(40).collect();
    format!("{beginning:?}.. ({} bytes)", text.len())
}
