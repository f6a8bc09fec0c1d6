//! `loop_detection`: when a model counts as repeating itself, and what is done then.

use std::sync::Arc;

use insta::assert_snapshot;
use serde_json::{Value, json};
use toolloop::StreamEvent;
use toolloop::tool::{LoopAction, LoopDetectionConfig, ToolApproval, ToolLoopConfig};

use super::support::{Sim, Told, call, reply, says};

#[tokio::test(start_paused = true)]
async fn a_warning_at_each_multiple_goes_on() {
    let told = repeating(7, LoopAction::Warn).run().await;
    assert_snapshot!(detections(&told), @r"
    iteration 1, messages 1
    iteration 2, messages 3
    iteration 3, messages 5
    loop read x3: Warn
    iteration 4, messages 7
    iteration 5, messages 9
    iteration 6, messages 11
    loop read x6: Warn
    iteration 7, messages 13
    iteration 8, messages 15
    done: Complete, iterations 8, 80 in · 8 out
    ");
    assert_snapshot!(told.transcript(), @r#"
    user: Go
    assistant: c1 read({"say":"same"})
    tool: c1 ok: same
    assistant: c2 read({"say":"same"})
    tool: c2 ok: same
    assistant: c3 read({"say":"same"})
    tool: c3 ok: same
    assistant: c4 read({"say":"same"})
    tool: c4 ok: same
    assistant: c5 read({"say":"same"})
    tool: c5 ok: same
    assistant: c6 read({"say":"same"})
    tool: c6 ok: same
    assistant: c7 read({"say":"same"})
    tool: c7 ok: same
    assistant: done
    "#);
}

#[tokio::test(start_paused = true)]
async fn a_stop_ends_before_approval_without_running_the_calls() {
    let mut sim = repeating(7, LoopAction::Stop);
    let ledger = sim.ledger.clone();
    sim.config.on_tool_call = Some(Arc::new(move |call| {
        ledger.note(format_args!("{} asked", call.id));
        ToolApproval::Approve
    }));
    let told = sim.run().await;
    assert_snapshot!(told.story(), @r#"
    iteration 1, messages 1
    call 0: c1 read({"say":"same"})
    usage 10 in · 1 out
    start c1 read({"say":"same"})
    end c1 ok: same
    iteration 2, messages 3
    call 0: c2 read({"say":"same"})
    usage 10 in · 1 out
    start c2 read({"say":"same"})
    end c2 ok: same
    iteration 3, messages 5
    call 0: c3 read({"say":"same"})
    usage 10 in · 1 out
    loop read x3: Stop
    done: LoopDetected { tool_name: "read", count: 3 }, iterations 3, 30 in · 3 out
    "#);
    assert_snapshot!(told.transcript(), @r#"
    user: Go
    assistant: c1 read({"say":"same"})
    tool: c1 ok: same
    assistant: c2 read({"say":"same"})
    tool: c2 ok: same
    assistant: c3 read({"say":"same"})
    tool: c3 failed: This call was not run: the run was stopped because read was called 3 times in a row.
    "#);
    assert_snapshot!(told.ledger.lines().join("\n"), @r"
    0 c1 asked
    0 c1 started
    0 c1 finished
    0 c2 asked
    0 c2 started
    0 c2 finished
    ");
    assert_eq!(told.result().response.tool_calls()[0].id, "c3");
}

#[tokio::test(start_paused = true)]
async fn an_injected_warning_follows_the_results_at_3_6_and_9() {
    let told = repeating(10, LoopAction::InjectWarning).run().await;
    assert_snapshot!(detections(&told), @r"
    iteration 1, messages 1
    iteration 2, messages 3
    iteration 3, messages 5
    loop read x3: InjectWarning
    iteration 4, messages 8
    iteration 5, messages 10
    iteration 6, messages 12
    loop read x6: InjectWarning
    iteration 7, messages 15
    iteration 8, messages 17
    iteration 9, messages 19
    loop read x9: InjectWarning
    iteration 10, messages 22
    iteration 11, messages 24
    done: Complete, iterations 11, 110 in · 11 out
    ");
    assert_snapshot!(told.transcript(), @r#"
    user: Go
    assistant: c1 read({"say":"same"})
    tool: c1 ok: same
    assistant: c2 read({"say":"same"})
    tool: c2 ok: same
    assistant: c3 read({"say":"same"})
    tool: c3 ok: same
    system: You have called read 3 times in a row with the same arguments. Repeating it will not change the outcome. Try another approach: other arguments, another tool, or answer with what you know.
    assistant: c4 read({"say":"same"})
    tool: c4 ok: same
    assistant: c5 read({"say":"same"})
    tool: c5 ok: same
    assistant: c6 read({"say":"same"})
    tool: c6 ok: same
    system: You have called read 6 times in a row with the same arguments. Repeating it will not change the outcome. Try another approach: other arguments, another tool, or answer with what you know.
    assistant: c7 read({"say":"same"})
    tool: c7 ok: same
    assistant: c8 read({"say":"same"})
    tool: c8 ok: same
    assistant: c9 read({"say":"same"})
    tool: c9 ok: same
    system: You have called read 9 times in a row with the same arguments. Repeating it will not change the outcome. Try another approach: other arguments, another tool, or answer with what you know.
    assistant: c10 read({"say":"same"})
    tool: c10 ok: same
    assistant: done
    "#);
    // It is sent at once, and again with every later request.
    let warnings: Vec<_> = told
        .model
        .recorded_calls()
        .iter()
        .map(|sent| sent.messages.iter().filter(|m| m.role == toolloop::ChatRole::System).count())
        .collect();
    assert_eq!(warnings, [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3]);
}

#[tokio::test(start_paused = true)]
async fn the_unit_is_the_reply_and_refused_calls_count() {
    let pair = |n: u32, order: [&str; 2]| {
        reply(order.map(|name| call(&format!("{name}{n}"), name, json!({"say": "x"}))))
    };
    let told = detecting(
        [
            pair(1, ["read", "nothing"]),
            pair(2, ["read", "nothing"]),
            // Another order is another reply.
            pair(3, ["nothing", "read"]),
            pair(4, ["nothing", "read"]),
            // So is one with a call less.
            reply([call("x", "nothing", json!({"say": "x"}))]),
            reply([call("y", "nothing", json!({"say": "x"}))]),
            says("done"),
        ],
        2,
        LoopAction::Warn,
    )
    .run()
    .await;
    assert_snapshot!(detections(&told), @r"
    iteration 1, messages 1
    iteration 2, messages 4
    loop read+nothing x2: Warn
    iteration 3, messages 7
    iteration 4, messages 10
    loop nothing+read x2: Warn
    iteration 5, messages 13
    iteration 6, messages 15
    loop nothing x2: Warn
    iteration 7, messages 17
    done: Complete, iterations 7, 70 in · 7 out
    ");
}

#[tokio::test(start_paused = true)]
async fn arguments_are_compared_as_json_and_results_are_not() {
    let parsed = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let told = detecting(
        [
            reply([call("a", "read", parsed(r#"{"say": "x", "ms": 1}"#))]),
            reply([call("b", "read", parsed(r#"{"ms": 1, "say": "x"}"#))]),
            reply([call("c", "read", parsed(r#"{"ms": 2, "say": "x"}"#))]),
            says("done"),
        ],
        2,
        LoopAction::Warn,
    )
    .run()
    .await;
    assert_snapshot!(detections(&told), @r"
    iteration 1, messages 1
    iteration 2, messages 3
    loop read x2: Warn
    iteration 3, messages 5
    iteration 4, messages 7
    done: Complete, iterations 4, 40 in · 4 out
    ");
}

fn repeating(times: u32, action: LoopAction) -> Sim {
    let again = |n| reply([call(&format!("c{n}"), "read", json!({"say": "same"}))]);
    detecting((1..=times).map(again).chain([says("done")]), 3, action)
}

fn detecting(
    replies: impl IntoIterator<Item = Vec<StreamEvent>>,
    threshold: u32,
    action: LoopAction,
) -> Sim {
    Sim::new(replies).config(ToolLoopConfig {
        max_iterations: 20,
        loop_detection: Some(LoopDetectionConfig { threshold, action }),
        ..ToolLoopConfig::default()
    })
}

/// Iterations, detections and the end of the story.
fn detections(told: &Told) -> String {
    let story = told.story();
    let lines = story
        .lines()
        .filter(|line| ["iteration", "loop", "done"].iter().any(|start| line.starts_with(start)));
    lines.collect::<Vec<_>>().join("\n")
}
