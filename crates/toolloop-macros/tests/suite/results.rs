//! What a tool may return.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use serde_json::json;
use toolloop_core::{ToolContent, ToolError, ToolOutput};
use toolloop_macros::tool;

use super::support::run;

#[derive(Serialize)]
struct Place {
    name: &'static str,
    population: u32,
}

/// Writes itself in two forms, like errors that know their causes.
struct Chain;

impl fmt::Display for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if f.alternate() { "no answer: connection refused" } else { "no answer" })
    }
}

type Alias = Result<u8, Chain>;

/// Returns data.
#[tool(crate = "crate")]
fn place() -> Place {
    Place { name: "Paris", population: 2_100_000 }
}

/// Returns nothing.
#[tool(crate = "crate")]
fn silent() {}

/// Returns nothing or an error.
#[tool(crate = "crate")]
async fn silent_result() -> Result<(), String> {
    Ok(())
}

/// Returns what both Serialize and Result could mean.
#[tool(crate = "crate")]
fn both(
    /// Whether it fails
    fail: bool,
) -> Result<String, String> {
    if fail { Err("it failed; try false".into()) } else { Ok("fine".into()) }
}

/// Hides its Result behind another name.
#[tool(crate = "crate")]
fn aliased() -> Alias {
    Err(Chain)
}

/// Returns what the loop takes.
#[tool(crate = "crate")]
fn output() -> Result<ToolOutput, ToolError> {
    Ok("ready".into())
}

/// Returns content.
#[tool(crate = "crate")]
fn content() -> ToolContent {
    ToolContent { structured: Some(json!(1)), ..ToolContent::from("one") }
}

/// Returns what JSON cannot hold.
#[tool(crate = "crate")]
fn unwritable() -> BTreeMap<Vec<u8>, u8> {
    BTreeMap::from([(vec![1], 1)])
}

/// Returns an option.
#[tool(crate = "crate")]
fn maybe() -> Option<String> {
    None
}

#[tokio::test]
async fn strings_are_text_and_other_values_json() {
    let text = run(&both, json!({"fail": false}), &()).await.unwrap();
    assert_eq!(text, ToolContent::from("fine"));
    let data = run(&place, json!({}), &()).await.unwrap();
    let value = json!({"name": "Paris", "population": 2_100_000});
    assert_eq!(data.text, r#"{"name":"Paris","population":2100000}"#);
    assert_eq!(data.structured, Some(value));
    assert_eq!(run(&maybe, json!({}), &()).await.unwrap(), "null");
}

#[tokio::test]
async fn nothing_is_said_in_a_word() {
    assert_eq!(run(&silent, json!({}), &()).await, Ok("done".into()));
    assert_eq!(run(&silent_result, json!({}), &()).await, Ok("done".into()));
}

#[tokio::test]
async fn errors_are_errors_with_their_causes() {
    let failed = run(&both, json!({"fail": true}), &()).await;
    assert_eq!(failed, Err("it failed; try false".into()));
    let chain = run(&aliased, json!({}), &()).await;
    assert_eq!(chain, Err("no answer: connection refused".into()));
    let failed = run(&unwritable, json!({}), &()).await;
    let message = "The tool's result cannot be written as JSON: key must be a string.";
    assert_eq!(failed, Err(message.into()));
}

#[tokio::test]
async fn what_the_loop_takes_is_passed_on() {
    assert_eq!(run(&output, json!({}), &()).await, Ok("ready".into()));
    let given = run(&content, json!({}), &()).await.unwrap();
    assert_eq!((given.text, given.structured), ("one".into(), Some(json!(1))));
}
