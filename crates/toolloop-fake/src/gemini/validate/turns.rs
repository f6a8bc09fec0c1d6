//! The turns of the conversation: their parts, their order, their signatures.

use serde_json::Value;

use super::form::PART_DATA;
use super::{field, list, refusal};
use crate::refusal::Refusal;

/// Whether every turn has parts, and every part is something.
pub(super) fn check_parts(body: &Value, faults: &mut Vec<String>) {
    let contents = list(body, "contents");
    if contents.is_empty() {
        faults.push("contents: contents is not specified".to_owned());
    }
    for (at, content) in contents.iter().enumerate() {
        let parts = list(content, "parts");
        if parts.is_empty() {
            faults.push(format!("contents[{at}].parts: contents.parts must not be empty."));
        }
        for (part_at, part) in parts.iter().enumerate() {
            let place = format!("contents[{at}].parts[{part_at}]");
            let kinds = PART_DATA.iter().filter(|kind| !field(part, kind).is_null());
            if kinds.count() != 1 {
                let text = "required oneof field 'data' must have one initialized field";
                faults.push(format!("{place}.data: {text}"));
            }
            for (kind, name) in [("function_call", "name"), ("function_response", "name")] {
                let value = field(part, kind);
                if !value.is_null() && field(value, name).as_str().is_none_or(str::is_empty) {
                    faults.push(format!("{place}.{kind}.name: Name cannot be empty."));
                }
            }
        }
    }
}

pub(super) fn check_order(body: &Value) -> Result<(), Refusal> {
    let turns = list(body, "contents");
    for turn in turns {
        let role = field(turn, "role").as_str().unwrap_or_default();
        if !(["user", "model"].contains(&role) || role.is_empty() && turns.len() == 1) {
            return Err(refusal(400, "Please use a valid role: user, model."));
        }
    }
    for (at, turn) in turns.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| &turns[before]);
        let calls = count(turn, "function_call");
        let results = count(turn, "function_response");
        if calls > 0 && before.is_none_or(|before| speaker(before) != "user") {
            return Err(refusal(400, CALLS_FIRST));
        }
        let answered = before.map_or(0, |before| count(before, "function_call"));
        if results > 0 && answered == 0 {
            return Err(refusal(400, RESULTS_ALONE));
        }
        if results != answered {
            return Err(refusal(400, NOT_AS_MANY));
        }
    }
    match turns.last() {
        Some(last) if count(last, "function_call") > 0 => Err(refusal(400, NOT_AS_MANY)),
        Some(last) if speaker(last) == "model" && turns.len() == 1 => {
            Err(refusal(400, SINGLE_BY_MODEL))
        }
        Some(last) if speaker(last) == "model" => Err(refusal(400, LAST_BY_MODEL)),
        _ => Ok(()),
    }
}

/// In the turn that is going on, the first call of each step has the signature of its thoughts.
pub(super) fn check_signatures(body: &Value) -> Result<(), Refusal> {
    let turns = list(body, "contents");
    let is_asked = |turn: &Value| {
        let said = |part: &Value| field(part, "function_response").is_null();
        speaker(turn) == "user" && list(turn, "parts").iter().any(said)
    };
    let since = turns.iter().rposition(is_asked).unwrap_or(0);
    for (at, turn) in turns.iter().enumerate().skip(since) {
        let calls = list(turn, "parts").iter();
        let first = calls.into_iter().find(|part| !field(part, "function_call").is_null());
        let Some(first) = first else { continue };
        if field(first, "thought_signature").as_str().is_none_or(str::is_empty) {
            let name = field(field(first, "function_call"), "name").as_str().unwrap_or_default();
            let message = format!(
                "Function call is missing a thought_signature in functionCall parts. This is \
                 required for tools to work correctly, and missing thought_signature may lead to \
                 degraded model performance. Additional data, function call `default_api:{name}` \
                 , position {}. Please refer to \
                 https://ai.google.dev/gemini-api/docs/thought-signatures for more details.",
                at + 1
            );
            return Err(refusal(400, message));
        }
    }
    Ok(())
}

fn speaker(turn: &Value) -> &str {
    match field(turn, "role").as_str() {
        Some("model") => "model",
        _ => "user",
    }
}

fn count(turn: &Value, kind: &str) -> usize {
    list(turn, "parts").iter().filter(|part| !field(part, kind).is_null()).count()
}

const CALLS_FIRST: &str = "Please ensure that function call turn comes immediately after a user \
    turn or after a function response turn.";
const RESULTS_ALONE: &str =
    "Please ensure that function response turn comes immediately after a function call turn.";
const NOT_AS_MANY: &str = "Please ensure that the number of function response parts is equal to \
    the number of function call parts of the function call turn.";
const SINGLE_BY_MODEL: &str =
    "Please ensure that single turn requests end with a user role or the role field is empty.";
const LAST_BY_MODEL: &str =
    "Please ensure that multiturn requests ends with a user role or a function response.";
