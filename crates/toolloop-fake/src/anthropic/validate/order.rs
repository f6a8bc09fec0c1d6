//! The order of messages: every call has its result in the next message, at its beginning, and
//! only there; the end is one that a model can go on from.

use std::collections::BTreeSet;

use serde_json::Value;

use super::form::{Check, refused};
use super::model::Model;

/// Checks messages whose form is right.
pub(super) fn check(messages: &[Value], model: Model) -> Check {
    let turns = turns(messages);
    let (mut ids, mut used) = (BTreeSet::new(), BTreeSet::new());
    for (at, turn) in turns.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| &turns[before]);
        let is_last = at + 1 == turns.len();
        match turn.role {
            "user" => check_results(turn, before)?,
            _ => {
                check_calls(turn, turns.get(at + 1), &mut ids)?;
                check_server_tools(turn, is_last)?;
                check_server_results(turn, &mut used)?;
            }
        }
    }
    match turns.last() {
        Some(turn) if turn.role == "assistant" => check_end(turn, model),
        _ => Ok(()),
    }
}

/// Messages of one role in a row, which the API takes as one.
struct Turn<'a> {
    role: &'a str,
    /// Where the first of the messages stands.
    first: usize,
    blocks: Vec<Block<'a>>,
}

struct Block<'a> {
    message: usize,
    index: usize,
    value: &'a Value,
}

impl<'a> Block<'a> {
    fn kind(&self) -> &'a str {
        self.value["type"].as_str().unwrap_or("text")
    }

    fn text(&self, name: &str) -> &'a str {
        self.value[name].as_str().unwrap_or_default()
    }

    fn path(&self) -> String {
        format!("messages.{}.content.{}", self.message, self.index)
    }
}

fn turns(messages: &[Value]) -> Vec<Turn<'_>> {
    let mut turns: Vec<Turn<'_>> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap_or_default();
        let blocks: Vec<_> = match &message["content"] {
            Value::Array(blocks) => blocks.iter().collect(),
            text => vec![text],
        };
        let blocks = blocks.into_iter().enumerate().map(|(index, value)| Block {
            message: at,
            index,
            value,
        });
        match turns.last_mut() {
            Some(turn) if turn.role == role => turn.blocks.extend(blocks),
            _ => turns.push(Turn { role, first: at, blocks: blocks.collect() }),
        }
    }
    turns
}

fn check_calls<'a>(turn: &Turn<'a>, next: Option<&Turn<'a>>, ids: &mut BTreeSet<&'a str>) -> Check {
    let calls = || turn.blocks.iter().filter(|block| block.kind() == "tool_use");
    for call in calls() {
        if !ids.insert(call.text("id")) {
            return Err(refused(format!("{}: `tool_use` ids must be unique", call.path())));
        }
    }
    // Only results at the beginning count.
    let results: Vec<&str> = next
        .map(|next| &next.blocks[..])
        .unwrap_or_default()
        .iter()
        .take_while(|block| block.kind() == "tool_result")
        .map(|block| block.text("tool_use_id"))
        .collect();
    let open: Vec<&str> =
        calls().map(|call| call.text("id")).filter(|id| !results.contains(id)).collect();
    match open.is_empty() {
        true => Ok(()),
        false => Err(refused(format!(
            "messages.{}: `tool_use` ids were found without `tool_result` blocks immediately \
             after: {}. Each `tool_use` block must have a corresponding `tool_result` block in \
             the next message.",
            turn.first,
            open.join(", ")
        ))),
    }
}

fn check_results(turn: &Turn<'_>, before: Option<&Turn<'_>>) -> Check {
    let calls: Vec<&str> = before
        .map(|before| &before.blocks[..])
        .unwrap_or_default()
        .iter()
        .filter(|block| block.kind() == "tool_use")
        .map(|block| block.text("id"))
        .collect();
    let mut seen = Vec::new();
    for result in turn.blocks.iter().filter(|block| block.kind() == "tool_result") {
        let id = result.text("tool_use_id");
        if !calls.contains(&id) {
            return Err(refused(format!(
                "{}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each \
                 `tool_result` block must have a corresponding `tool_use` block in the previous \
                 message.",
                result.path()
            )));
        }
        if seen.contains(&id) {
            return Err(refused(format!(
                "{}: each tool_use must have a single result. Found multiple `tool_result` blocks \
                 with id: {id}",
                result.path()
            )));
        }
        seen.push(id);
    }
    Ok(())
}

/// A tool of the provider has its result in the same turn, unless that is still under way or
/// waits for calls of its own.
fn check_server_tools(turn: &Turn<'_>, is_last: bool) -> Check {
    if is_last || turn.blocks.iter().any(|block| block.kind() == "tool_use") {
        return Ok(());
    }
    let uses =
        turn.blocks.iter().filter(|b| ["server_tool_use", "mcp_tool_use"].contains(&b.kind()));
    for used in uses {
        let id = used.text("id");
        let is_result = |block: &Block<'_>| block.text("tool_use_id") == id;
        if !turn.blocks.iter().any(is_result) {
            let name = used.text("name");
            return Err(refused(format!(
                "{}: `{name}` tool use with id `{id}` was found without a corresponding \
                 `{name}_tool_result` block",
                used.path()
            )));
        }
    }
    Ok(())
}

/// A result of a tool of the provider stands behind its use; `used` are the uses so far.
fn check_server_results<'a>(turn: &Turn<'a>, used: &mut BTreeSet<&'a str>) -> Check {
    for block in &turn.blocks {
        let kind = block.kind();
        let id = block.text("tool_use_id");
        if kind.ends_with("_tool_use") {
            used.insert(block.text("id"));
        } else if kind.ends_with("_tool_result") && !used.contains(id) {
            return Err(refused(format!(
                "{}: unexpected `tool_use_id` found in `{kind}` blocks: {id}. Each `{kind}` block \
                 must have a corresponding `server_tool_use` block before it.",
                block.path()
            )));
        }
    }
    Ok(())
}

fn check_end(turn: &Turn<'_>, model: Model) -> Check {
    let Some(last) = turn.blocks.last() else { return Ok(()) };
    let text = match last.value {
        Value::String(text) => text,
        _ => last.text("text"),
    };
    if last.kind() == "text" && text.ends_with(char::is_whitespace) {
        return Err(refused(
            "messages: final assistant content cannot end with trailing whitespace",
        ));
    }
    let is_paused = turn.blocks.iter().any(|block| block.kind().ends_with("_tool_use"));
    match is_paused || model.takes_prefill() {
        true => Ok(()),
        false => Err(refused(
            "This model does not support assistant message prefill. The conversation must end \
             with a user message.",
        )),
    }
}
