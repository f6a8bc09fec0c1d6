//! What items demand of each other: a call its output, an output its call, a thought the item it
//! led to, that item its thought.

use std::collections::BTreeSet;

use serde_json::Value;

use super::refused_input;
use crate::openai_chat::validate::form::Check;
use crate::refusal::Refusal;

/// Checks items whose form is right. `stored`: the server keeps what it answers; `continues`:
/// there are items before these, which only the server knows.
pub(super) fn check(items: &[Value], stored: bool, continues: bool) -> Check {
    check_ids(items, stored)?;
    if !continues {
        check_calls(items)?;
    }
    check_thoughts(items)
}

fn check_ids(items: &[Value], stored: bool) -> Check {
    let mut ids = BTreeSet::new();
    for item in items {
        let Some(id) = item["id"].as_str() else { continue };
        if !ids.insert(id) {
            return refused_input(format!(
                "Duplicate item found with id {id}. Remove duplicate items from your input and \
                 try again."
            ));
        }
        if !stored && is_thought(item) && item["encrypted_content"].is_null() {
            let message = format!(
                "Item with id '{id}' not found. Items are not persisted when `store` is set to \
                 false. Try again with `store` set to true, or remove this item from your input."
            );
            return Err(Refusal::openai(404, message, Some("input"), None));
        }
    }
    Ok(())
}

fn check_calls(items: &[Value]) -> Check {
    let id = |item: &Value| item["call_id"].as_str().unwrap_or_default().to_owned();
    let is = |item: &Value, kind: &str| item["type"] == kind;
    let outputs: BTreeSet<_> =
        items.iter().filter(|item| is(item, "function_call_output")).map(id).collect();
    let mut calls = BTreeSet::new();
    for item in items {
        if is(item, "function_call") {
            let id = id(item);
            if !outputs.contains(&id) {
                return refused_input(format!("No tool output found for function call {id}."));
            }
            calls.insert(id);
        } else if is(item, "function_call_output") && !calls.contains(&id(item)) {
            let id = id(item);
            return refused_input(format!(
                "No tool call found for function call output with call_id {id}."
            ));
        }
    }
    Ok(())
}

fn check_thoughts(items: &[Value]) -> Check {
    let mut thoughts = BTreeSet::new();
    for (at, item) in items.iter().enumerate() {
        let Some(id) = item["id"].as_str() else { continue };
        if is_thought(item) {
            let next = items[at + 1..].iter().find(|item| !is_thought(item));
            if !next.is_some_and(is_models) {
                return refused_input(format!(
                    "Item '{id}' of type 'reasoning' was provided without its required following \
                     item."
                ));
            }
            thoughts.insert(id);
        } else if let Some(thought) = thought_of(id)
            && !thoughts.contains(thought)
        {
            let kind = item["type"].as_str().unwrap_or("message");
            return refused_input(format!(
                "Item '{id}' of type '{kind}' was provided without its required 'reasoning' item: \
                 '{thought}'."
            ));
        }
    }
    Ok(())
}

fn is_thought(item: &Value) -> bool {
    item["type"] == "reasoning"
}

/// Whether the item is something that the model said.
fn is_models(item: &Value) -> bool {
    let kind = item["type"].as_str().unwrap_or("message");
    match kind {
        "message" => item["role"] == "assistant",
        _ => !kind.ends_with("_output"),
    }
}

/// The thought that an item of this server is tied to: its id ends in the thought's.
fn thought_of(id: &str) -> Option<&str> {
    id.find("rs_fake_").filter(|at| *at > 0).map(|at| &id[at..])
}
