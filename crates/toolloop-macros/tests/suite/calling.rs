//! A tool is a value that loops take, and a function that programs call.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use toolloop_core::{
    BoxFuture, CallContext, CallHost, EffectClass, LoopContext, ToolHandler, ToolOutput,
};
use toolloop_macros::tool;

use super::support::run;

/// Current weather of a city.
///
/// Knows only today.
#[tool(crate = "crate")]
async fn get_weather(
    /// City name
    city: String,
) -> String {
    format!("18 degrees in {city}")
}

/// Doubles a number.
#[tool(crate = "crate", name = "double-it", read_only, timeout = "1500ms")]
pub(crate) fn double(
    /// The number
    mut n: i64,
) -> i64 {
    n += 1;
    // Inside, its name is free as in any function.
    let double = n * 2;
    double - 2
}

/// Counts down.
#[tool(crate = "crate", idempotent)]
fn r#loop(
    /// From where
    n: u32,
) -> u32 {
    match n {
        0 => 0,
        n => r#loop(n - 1),
    }
}

/// Greets in the name of the context.
#[tool(crate = "crate")]
async fn greet(
    context: &LoopContext<&'static str>,
    /// Whom
    context_name: String,
) -> String {
    format!("{} greets {context_name}", context.state)
}

/// Borrows from the context.
#[tool(crate = "crate")]
fn state(context: &LoopContext<&'static str>) -> &'static str {
    context.state
}

/// Names its call.
#[tool(crate = "crate")]
async fn who(context: &LoopContext<&'static str>, call: &CallContext) -> String {
    call.progress("looking");
    format!("{} {} {}", context.state, call.call_id(), call.idempotency_key())
}

/// Is not there.
#[tool(crate = "crate")]
#[cfg(any())]
fn absent(no: Such) -> Type {}

#[tokio::test]
async fn the_function_stays_callable() {
    assert_eq!(get_weather("Paris".into()).await, "18 degrees in Paris");
    assert_eq!(double(4), 8);
    assert_eq!(r#loop(3), 0);
    let context = LoopContext::new("Ann");
    assert_eq!(greet(&context, "Bob".into()).await, "Ann greets Bob");
    assert_eq!(state(&context), "Ann");
    assert_eq!(who(&context, &CallContext::detached("c1")).await, "Ann c1 c1");
    let all = [1, 2, 3].map(*double);
    assert_eq!(all, [2, 4, 6]);
}

#[tokio::test]
async fn a_tool_without_context_serves_loops_of_any() {
    let input = json!({"city": "Paris"});
    assert_eq!(run(&get_weather, input.clone(), &()).await.unwrap(), "18 degrees in Paris");
    assert_eq!(
        run(&get_weather, input, &LoopContext::new(7)).await.unwrap(),
        "18 degrees in Paris"
    );
}

#[tokio::test]
async fn a_tool_gets_the_context_it_names() {
    let context = LoopContext::new("Ann");
    let greeted = run(&greet, json!({"context_name": "Bob"}), &context).await;
    assert_eq!(greeted.unwrap(), "Ann greets Bob");
    assert_eq!(run(&state, json!({}), &context).await.unwrap(), "Ann");
}

#[tokio::test]
async fn a_tool_knows_its_call() {
    let host = Arc::new(Host::default());
    let call = CallContext::new("c1", "run/t/1/0", host.clone());
    let output = who.call(json!({}), &call, &LoopContext::new("Ann")).await;
    assert_eq!(output, Ok(ToolOutput::from("Ann c1 run/t/1/0")));
    assert_eq!(*host.0.lock().unwrap(), ["c1: looking"]);
    let detached = run(&who, json!({}), &LoopContext::new("Ann")).await;
    assert_eq!(detached.unwrap(), "Ann who who");
}

#[test]
fn the_model_sees_docs_and_types() {
    let definition = ToolHandler::<()>::definition(&get_weather);
    assert_eq!(definition.name, "get_weather");
    assert_eq!(definition.description, "Current weather of a city.\n\nKnows only today.");
    assert_eq!(
        definition.parameters.as_value(),
        &json!({
            "type": "object",
            "properties": { "city": { "description": "City name", "type": "string" } },
            "additionalProperties": false,
            "required": ["city"],
        })
    );
    assert_eq!(ToolHandler::<()>::definition(&double).name, "double-it");
    assert_eq!(ToolHandler::<()>::definition(&r#loop).name, "loop");
}

#[test]
fn options_reach_the_loop() {
    let known = |tool: &dyn ToolHandler| (tool.effect_class(), tool.time_limit());
    assert_eq!(known(&get_weather), (EffectClass::Once, None));
    assert_eq!(known(&double), (EffectClass::ReadOnly, Some(Duration::from_millis(1500))));
    assert_eq!(known(&r#loop), (EffectClass::Idempotent, None));
}

#[derive(Default)]
struct Host(Mutex<Vec<String>>);

impl CallHost for Host {
    fn progress(&self, call_id: &str, text: String) {
        self.0.lock().unwrap().push(format!("{call_id}: {text}"));
    }

    fn is_cancelled(&self) -> bool {
        false
    }

    fn cancelled(&self) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
}
