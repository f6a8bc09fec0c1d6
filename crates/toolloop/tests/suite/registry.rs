//! `ToolRegistry`, `tool_fn`, retries and time limits.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use insta::assert_snapshot;
use serde_json::{Value, json};
use toolloop::tool::{
    CallContext, EffectClass, ToolContent, ToolError, ToolFuture, ToolHandler, ToolOutput,
    ToolRegistry, ToolRetryConfig, tool_fn, tool_fn_with_ctx,
};
use toolloop::{JsonSchema, ToolCall, ToolDefinition, ToolResult};

use super::support::{Sim, act, call, reply, says};

#[tokio::test(start_paused = true)]
async fn a_call_is_looked_up_validated_and_run() {
    let mut tools: ToolRegistry = ToolRegistry::new();
    tools
        .register(tool_fn(greets(), |args: Value| async move {
            Ok(format!("Hello {}", args["name"].as_str().unwrap()))
        }))
        .register(tool_fn(named("fails"), |_| async { Err::<&str, _>(ToolError::new("broken")) }));
    let mut said = Vec::new();
    for (name, arguments) in [
        ("greet", json!({"name": "Ada"})),
        ("greet", json!({})),
        ("greet", json!({"name": 7, "loud": true})),
        ("greet", json!("{\"name\"")),
        ("fails", json!({})),
        ("nothing", json!({})),
    ] {
        let call = ToolCall { id: "a".into(), name: name.into(), arguments };
        let ToolResult { tool_call_id, content, is_error } = tools.execute(&call, &()).await;
        assert_eq!(tool_call_id, "a");
        said.push(format!("{call} {}: {content}", if is_error { "failed" } else { "ok" }));
    }
    assert_snapshot!(said.join("\n"), @r#"
    greet({"name":"Ada"}) ok: Hello Ada
    greet({}) failed: The arguments do not fit the schema of 'greet': "name" is a required property.
    greet({"name":7,"loud":true}) failed: The arguments do not fit the schema of 'greet': /name: 7 is not of type "string"; Additional properties are not allowed ('loud' was unexpected).
    greet("{\"name\"") failed: The arguments do not fit the schema of 'greet': "{\"name\"" is not of type "object".
    fails({}) failed: broken
    nothing({}) failed: Unknown tool 'nothing'. Available tools: greet, fails.
    "#);
    let call = ToolCall { id: "a".into(), name: "greet".into(), arguments: json!({}) };
    let nothing: ToolRegistry = ToolRegistry::default();
    assert_snapshot!(nothing.execute(&call, &()).await.content.as_str(), @"Unknown tool 'greet': no tools are available.");
}

#[tokio::test(start_paused = true)]
async fn tools_give_text_or_more_and_may_use_the_context() {
    let mut tools: ToolRegistry<Arc<Mutex<u32>>> = ToolRegistry::new();
    let content = ToolContent { structured: Some(json!(1)), ..ToolContent::from("rich") };
    let rich = content.clone();
    tools
        .register(tool_fn(named("str"), |_| async { Ok("text") }))
        .register(tool_fn(named("string"), |_| async { Ok(String::from("text")) }))
        .register(tool_fn(named("rich"), move |_| {
            let rich = rich.clone();
            async { Ok(ToolOutput::new(rich)) }
        }))
        .register(tool_fn_with_ctx(named("count"), |_, ctx: &Arc<Mutex<u32>>| {
            let ctx = Arc::clone(ctx);
            async move {
                *ctx.lock().unwrap() += 1;
                Ok(ctx.lock().unwrap().to_string())
            }
        }));
    let ctx = Arc::new(Mutex::new(6));
    let mut outputs = Vec::new();
    for name in ["str", "string", "rich", "count"] {
        let call = ToolCall { id: "a".into(), name: name.into(), arguments: json!({}) };
        outputs.push(tools.execute(&call, &ctx).await.content);
    }
    assert_eq!(outputs, ["text".into(), "text".into(), content, ToolContent::from("7")]);
}

#[test]
fn tools_stay_in_order_and_a_later_one_takes_the_place_of_its_name() {
    let mut tools: ToolRegistry = ToolRegistry::new();
    for name in ["b", "a", "c"] {
        tools.register(tool_fn(named(name), |_| async { Ok("first") }));
    }
    let later = ToolDefinition { description: "The later one.".into(), ..named("a") };
    tools.register(tool_fn(later.clone(), |_| async { Ok("second") }));
    assert_eq!(tools.definitions(), [named("b"), later, named("c")]);
    assert_eq!(format!("{tools:?}"), r#"["b", "a", "c"]"#);
    assert_eq!(format!("{:?}", tools.without(["a", "x"])), r#"["b", "c"]"#);
    assert_eq!(format!("{:?}", tools.only(["c", "b", "x"])), r#"["b", "c"]"#);
    assert_eq!((tools.len(), tools.contains("a"), tools.contains("x")), (3, true, false));
    assert_eq!(tools.get("a").unwrap().effect_class(), EffectClass::Once);
}

#[tokio::test(start_paused = true)]
async fn an_unusable_schema_is_an_error_before_anyone_is_asked() {
    for (schema, word) in [
        (json!({"type": "objekt"}), "objekt"),
        (json!({"$ref": "https://example.com/schema.json"}), "example.com"),
        (json!({"$ref": "file:///etc/passwd"}), "passwd"),
    ] {
        let mut sim = Sim::new([says("never")]);
        let definition = ToolDefinition { parameters: JsonSchema::new(schema), ..named("odd") };
        sim.tools.register(tool_fn(definition, |_| async { Ok("never") }));
        let told = sim.run().await;
        let error = told.ended.unwrap_err().to_string();
        assert!(error.contains("tool 'odd'") && error.contains(word), "{error}");
        assert!(told.model.recorded_calls().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_tool_is_tried_again_with_growing_pauses() {
    let retry = ToolRetryConfig {
        max_retries: 4,
        initial_backoff: Duration::from_millis(100),
        max_backoff: Duration::from_millis(500),
        backoff_multiplier: 2.0,
        jitter: 0.0,
        retry_if: None,
    };
    let told = flaky(retry, 10, "busy").run().await;
    assert_snapshot!(told.timed_story(), @r#"
       0 iteration 1, messages 1
       0 call 0: a flaky({})
       0 usage 10 in · 1 out
       0 start a flaky({})
    1200 end a failed: busy in 1.2s
    1200 iteration 2, messages 3
    1200 text "done"
    1200 usage 10 in · 1 out
         done: Complete, iterations 2, 20 in · 2 out
    "#);
    assert_snapshot!(told.ledger.lines().join("\n"), @r"
    0 failed
    100 failed
    300 failed
    700 failed
    1200 failed
    ");
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_recovers_gives_its_result() {
    let retry = ToolRetryConfig { jitter: 0.0, ..ToolRetryConfig::default() };
    let told = flaky(retry, 2, "busy").run().await;
    assert_snapshot!(told.timed_story(), @r#"
      0 iteration 1, messages 1
      0 call 0: a flaky({})
      0 usage 10 in · 1 out
      0 start a flaky({})
    300 end a ok: recovered in 300ms
    300 iteration 2, messages 3
    300 text "done"
    300 usage 10 in · 1 out
        done: Complete, iterations 2, 20 in · 2 out
    "#);
}

#[tokio::test(start_paused = true)]
async fn only_errors_worth_it_are_tried_again() {
    let worth = |message: &str| message == "busy";
    let retry = || ToolRetryConfig { retry_if: Some(Arc::new(worth)), ..Default::default() };
    let told = flaky(retry(), 1, "no such file").run().await;
    assert_eq!(told.ledger.lines().len(), 1);
    let told = flaky(retry(), 1, "busy").run().await;
    assert_eq!(told.ledger.lines().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn pauses_are_random_within_their_bounds() {
    let (mut least, mut most) = (Duration::MAX, Duration::ZERO);
    for _ in 0..200 {
        let retry = ToolRetryConfig {
            max_retries: 1,
            initial_backoff: Duration::from_millis(1000),
            max_backoff: Duration::from_millis(1000),
            ..ToolRetryConfig::default()
        };
        let pause = flaky(retry, 1, "busy").run().await.took;
        (least, most) = (least.min(pause), most.max(pause));
    }
    // Half of the pause is random, and the longest pause is the longest.
    assert!(least >= Duration::from_millis(500), "{least:?}");
    assert!(most <= Duration::from_millis(1001), "{most:?}");
    assert!(most - least > Duration::from_millis(200), "{least:?} to {most:?}");
}

#[tokio::test(start_paused = true)]
async fn every_try_of_a_call_has_its_idempotency_key_and_no_other_call_has_it() {
    struct Keys(Arc<Mutex<Vec<(String, String)>>>);
    impl ToolHandler for Keys {
        fn definition(&self) -> ToolDefinition {
            ToolDefinition { retry: Some(ToolRetryConfig::default()), ..named("pay") }
        }
        fn execute<'a>(&'a self, _: Value, (): &'a ()) -> ToolFuture<'a> {
            unreachable!("the loop uses `call`")
        }
        fn call<'a>(&'a self, _: Value, call: &'a CallContext, (): &'a ()) -> ToolFuture<'a> {
            let mut keys = self.0.lock().unwrap();
            keys.push((call.call_id().to_owned(), call.idempotency_key().to_owned()));
            let fails = keys.len().is_multiple_of(2);
            Box::pin(async move { if fails { Err("busy".into()) } else { Ok("paid".into()) } })
        }
    }
    let keys = Arc::default();
    for _ in 0..2 {
        let mut sim = Sim::new([
            reply([call("a", "pay", json!({})), call("b", "pay", json!({}))]),
            reply([call("c", "pay", json!({}))]),
            says("done"),
        ]);
        sim.tools.register(Keys(Arc::clone(&keys)));
        sim.run().await;
    }
    let keys = keys.lock().unwrap();
    assert!(keys.len() > 6);
    for (id, key) in keys.iter() {
        for (other_id, other_key) in keys.iter() {
            assert!(id == other_id || key != other_key, "{keys:?}");
        }
    }
    let distinct: std::collections::BTreeSet<_> = keys.iter().map(|(_, key)| key).collect();
    assert_eq!(distinct.len(), 6, "three calls in each of two runs: {keys:?}");
}

#[tokio::test(start_paused = true)]
async fn a_tool_is_cut_at_its_own_time_limit_and_the_loop_goes_on() {
    let mut sim = Sim::new([
        reply([call("a", "slow", json!({"hang": true})), call("b", "slow", json!({"ms": 29}))]),
        says("done"),
    ]);
    let mut slow = act("slow", &sim.ledger);
    slow.time_limit = Some(Duration::from_millis(30));
    sim.tools.register(slow);
    let told = sim.run().await;
    assert_snapshot!(told.timed_story(), @r#"
     0 iteration 1, messages 1
     0 call 0: a slow({"hang":true})
     0 call 1: b slow({"ms":29})
     0 usage 10 in · 1 out
     0 start a slow({"hang":true})
     0 start b slow({"ms":29})
    29 end b ok: b ran in 29ms
    30 end a failed: Tool 'slow' was cut off at its time limit of 30ms. It may have taken effect in part; check before repeating it. in 30ms
    30 iteration 2, messages 4
    30 text "done"
    30 usage 10 in · 1 out
       done: Complete, iterations 2, 20 in · 2 out
    "#);
    assert_snapshot!(told.ledger.lines().join("\n"), @r"
    0 a started
    0 b started
    29 b finished
    30 a cut
    ");
}

#[tokio::test(start_paused = true)]
async fn each_try_has_the_time_limit_to_itself() {
    let mut sim = Sim::new([reply([call("a", "slow", json!({"hang": true}))]), says("done")]);
    let mut slow = act("slow", &sim.ledger);
    slow.time_limit = Some(Duration::from_millis(30));
    slow.definition.retry =
        Some(ToolRetryConfig { max_retries: 1, jitter: 0.0, ..ToolRetryConfig::default() });
    sim.tools.register(slow);
    assert_snapshot!(sim.run().await.ledger.lines().join("\n"), @r"
    0 a started
    30 a cut
    130 a started
    160 a cut
    ");
}

/// A run with one call to a tool that fails so many times with these words.
fn flaky(retry: ToolRetryConfig, failures: u32, words: &'static str) -> Sim {
    let mut sim = Sim::new([reply([call("a", "flaky", json!({}))]), says("done")]);
    let (tries, ledger) = (AtomicU32::new(0), sim.ledger.clone());
    let definition = ToolDefinition { retry: Some(retry), ..named("flaky") };
    sim.tools.register(tool_fn(definition, move |_| {
        let fails = tries.fetch_add(1, Ordering::Relaxed) < failures;
        ledger.note(if fails { "failed" } else { "finished" });
        async move { if fails { Err(ToolError::new(words)) } else { Ok("recovered") } }
    }));
    sim
}

fn named(name: &str) -> ToolDefinition {
    let parameters = JsonSchema::new(json!({"type": "object"}));
    ToolDefinition { name: name.into(), description: String::new(), parameters, retry: None }
}

fn greets() -> ToolDefinition {
    let parameters = JsonSchema::new(json!({
        "type": "object",
        "properties": { "name": { "type": "string" } },
        "required": ["name"],
        "additionalProperties": false,
    }));
    ToolDefinition { parameters, ..named("greet") }
}
