//! The order of messages: every call has its result, right behind it, and only there.

use serde_json::Value;

use super::form::{Check, refused};
use crate::refusal::Refusal;

/// Checks messages whose form is right.
pub(super) fn check(messages: &[Value]) -> Check {
    let mut open: Option<Calls<'_>> = None;
    for (index, message) in messages.iter().enumerate() {
        if message["role"] == "tool" {
            let Some(calls) = &mut open else { return Err(without_call(index)) };
            calls.answer(message["tool_call_id"].as_str().unwrap_or_default(), index)?;
            continue;
        }
        if let Some(calls) = open.take() {
            calls.all_answered(index)?;
        }
        if let Value::Array(calls) = &message["tool_calls"] {
            open = Some(Calls::new(calls, index)?);
        }
    }
    match open {
        Some(calls) => calls.all_answered(messages.len() - 1),
        None => Ok(()),
    }
}

/// The calls of one message and where their results are.
struct Calls<'a>(Vec<(&'a str, Option<usize>)>);

impl<'a> Calls<'a> {
    fn new(calls: &'a [Value], index: usize) -> Check<Self> {
        let mut ids: Vec<(&str, Option<usize>)> = Vec::with_capacity(calls.len());
        for call in calls {
            let id = call["id"].as_str().unwrap_or_default();
            if ids.iter().any(|(known, _)| *known == id) {
                let message =
                    format!("Duplicate value for 'tool_call_id' of {id} in message[{index}]");
                return Err(refused(message, &format!("messages.[{index}].tool_calls"), None));
            }
            ids.push((id, None));
        }
        Ok(Self(ids))
    }

    fn answer(&mut self, id: &str, index: usize) -> Check {
        let param = format!("messages.[{index}].tool_call_id");
        match self.0.iter_mut().find(|(known, _)| *known == id) {
            None => {
                let message = format!(
                    "Invalid parameter: 'tool_call_id' of '{id}' not found in 'tool_calls' of \
                     previous message."
                );
                Err(refused(message, &param, None))
            }
            Some((_, Some(first))) => {
                let message = format!(
                    "Invalid parameter: Duplicate value for 'tool_call_id' of '{id}', in \
                     messages[{first}] and messages[{index}]."
                );
                Err(refused(message, &param, None))
            }
            Some((_, result)) => {
                *result = Some(index);
                Ok(())
            }
        }
    }

    /// `index` is the message that stands where a result is due.
    fn all_answered(&self, index: usize) -> Check {
        let open = self.0.iter().filter(|(_, result)| result.is_none());
        let open: Vec<&str> = open.map(|(id, _)| *id).collect();
        if open.is_empty() {
            return Ok(());
        }
        let message = format!(
            "An assistant message with 'tool_calls' must be followed by tool messages responding \
             to each 'tool_call_id'. The following tool_call_ids did not have response messages: \
             {}",
            open.join(", ")
        );
        Err(refused(message, &format!("messages.[{index}].role"), None))
    }
}

fn without_call(index: usize) -> Refusal {
    let message = "Invalid parameter: messages with role 'tool' must be a response to a \
        preceeding message with 'tool_calls'.";
    refused(message, &format!("messages.[{index}].role"), None)
}
