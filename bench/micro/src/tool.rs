//! `ToolRegistry`: what running one call costs, its validation included.

use divan::{Bencher, black_box};
use futures::FutureExt;
use serde_json::{Value, json};
use toolloop::tool::{ToolError, ToolRegistry, tool_fn};
use toolloop::{JsonSchema, ToolCall, ToolDefinition};

#[divan::bench]
fn call(bencher: Bencher) {
    let parameters = JsonSchema::new(json!({
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"]
    }));
    let definition = ToolDefinition {
        name: "add".into(),
        description: "Add two integers.".into(),
        parameters,
        retry: None,
    };
    let mut registry: ToolRegistry = ToolRegistry::new();
    registry.register(tool_fn(definition, |args: Value| async move {
        Ok::<_, ToolError>(args["b"].to_string())
    }));
    let arguments = json!({"a": 1, "b": 2});
    let call = ToolCall { id: "call_1_0".into(), name: "add".into(), arguments };
    bencher.bench(|| registry.execute(black_box(&call), &()).now_or_never());
}
