//! `loop_detector`: a model that goes in circles, in the tool loop.

use std::sync::Arc;

use insta::assert_snapshot;
use serde_json::{Value, json};
use toolloop::StreamEvent;
use toolloop::tool::{DetectionAction, LoopDetectorConfig, ToolLoopConfig};

use super::support::{Sim, call, reply, says, text};

#[tokio::test(start_paused = true)]
async fn a_cycle_is_found_at_the_call_that_begins_its_third_round() {
    let arguments = || json!({"say": "same"});
    let told = Sim::new((1..=9).map(|n| {
        let name = if n % 2 == 1 { "read" } else { "write" };
        reply([call(&format!("c{n}"), name, arguments())])
    }))
    .config(detecting(LoopDetectorConfig::default()))
    .run()
    .await;
    assert_snapshot!(told.story().lines().filter(|line| line.starts_with("loop") || line.starts_with("done")).collect::<Vec<_>>().join("\n"), @r#"
    loop read+write x3: InjectWarning
    loop write+read x3: InjectWarning
    loop read x4: Stop
    done: LoopDetected { tool_name: "read", count: 4 }, iterations 7, 70 in · 7 out
    "#);
    assert_snapshot!(told.transcript(), @r#"
    user: Go
    assistant: c1 read({"say":"same"})
    tool: c1 ok: same
    assistant: c2 write({"say":"same"})
    tool: c2 ok: same
    assistant: c3 read({"say":"same"})
    tool: c3 ok: same
    assistant: c4 write({"say":"same"})
    tool: c4 ok: same
    assistant: c5 read({"say":"same"})
    tool: c5 ok: [Loop warning: the same calls (read, write) begin round 3. Going on like this will not change the outcome. Try other arguments or another tool, or answer with what you know.]

    same
    assistant: c6 write({"say":"same"})
    tool: c6 ok: [Loop warning: the same calls (write, read) begin round 3. Going on like this will not change the outcome. Try other arguments or another tool, or answer with what you know.]

    same
    assistant: c7 read({"say":"same"})
    tool: c7 failed: This call was not run: the run was stopped because read was called 4 times with the same arguments.
    "#);
}

#[tokio::test(start_paused = true)]
async fn the_same_error_under_different_arguments_is_no_progress() {
    let told = failing(["no disk"; 7]).run().await;
    assert_snapshot!(told.transcript(), @r#"
    user: Go
    assistant: c1 read({"ms":1,"fail":"no disk"})
    tool: c1 failed: no disk
    assistant: c2 read({"ms":2,"fail":"no disk"})
    tool: c2 failed: no disk
    assistant: c3 read({"ms":3,"fail":"no disk"})
    tool: c3 failed: no disk
    assistant: c4 read({"ms":4,"fail":"no disk"})
    tool: c4 failed: [Loop warning: read has failed 4 times with the same error. Find out why before the next try, or take another tool, or answer with what you know.]

    no disk
    assistant: c5 read({"ms":5,"fail":"no disk"})
    tool: c5 failed: [Loop warning: read has failed 5 times with the same error. Find out why before the next try, or take another tool, or answer with what you know.]

    no disk
    assistant: c6 read({"ms":6,"fail":"no disk"})
    tool: c6 failed: no disk
    "#);
    // Another error is another matter. (What a call quotes of its arguments is not compared, so
    // the errors differ by what they quote of nothing.)
    let told = failing(["no disk", "no disk", "no disk", "no", "no disk", "no disk"]).run().await;
    assert!(!told.transcript().contains("Loop warning"), "{}", told.transcript());
}

#[tokio::test(start_paused = true)]
async fn the_same_words_with_nothing_new_behind_them_are_no_progress() {
    // A longer cycle than is looked for, but always announced in the same words.
    let told = Sim::new((0..12).map(|n| {
        let arguments = json!({"ms": n % 5, "say": "same"});
        reply([text("Let me check."), call(&format!("c{n}"), "read", arguments)])
    }))
    .config(detecting(LoopDetectorConfig::default()))
    .run()
    .await;
    let transcript = told.transcript();
    let warned: Vec<_> = transcript.lines().filter(|line| line.contains("Loop warning")).collect();
    assert_eq!(warned.len(), 2, "{transcript}");
    assert!(warned[0].starts_with("tool: c7 ok: [Loop warning: the same was said 4 times"));
    assert_eq!(told.result().iterations, 10);
}

#[tokio::test(start_paused = true)]
async fn actions_are_what_the_settings_say() {
    let config = LoopDetectorConfig {
        first_detection_action: DetectionAction::Continue,
        second_detection_action: DetectionAction::Terminate,
        ..LoopDetectorConfig::default()
    };
    let told = Sim::new(again(7)).config(detecting(config)).run().await;
    assert_eq!(told.result().iterations, 5);
    assert!(!told.transcript().contains("Loop warning"));
    let loops: Vec<_> =
        told.story().lines().filter(|line| line.starts_with("loop")).map(str::to_owned).collect();
    assert_eq!(loops, ["loop read x4: Warn", "loop read x5: Stop"]);
}

#[tokio::test(start_paused = true)]
async fn a_callback_decides_instead_of_the_settings() {
    let config = ToolLoopConfig {
        on_loop_detected: Some(Arc::new(|found| found.count < 6)),
        ..detecting(LoopDetectorConfig::default())
    };
    let told = Sim::new(again(9)).config(config).run().await;
    assert_eq!(told.result().iterations, 6);
    assert!(!told.transcript().contains("Loop warning"));
}

/// A panic in the callback goes to the caller, and no tool of that reply has started.
#[tokio::test(start_paused = true)]
async fn a_panic_in_the_callback_starts_no_tool() {
    let sim = Sim::new(again(9)).config(ToolLoopConfig {
        on_loop_detected: Some(Arc::new(|_| panic!("no idea"))),
        ..detecting(LoopDetectorConfig::default())
    });
    let ledger = sim.ledger.clone();
    let panicked = tokio::spawn(async move { sim.run().await.took }).await.unwrap_err();
    assert!(panicked.is_panic());
    assert_eq!((ledger.fate("c3").as_deref(), ledger.fate("c4")), (Some("finished"), None));
}

fn again(replies: u32) -> impl Iterator<Item = Vec<StreamEvent>> {
    let round = |n| reply([call(&format!("c{n}"), "read", json!({"say": "same"}))]);
    (1..=replies).map(round).chain([says("done")])
}

/// Calls with other arguments each time, which fail with these words.
fn failing<const N: usize>(words: [&str; N]) -> Sim {
    let failing = (1..).zip(words).map(|(n, words)| {
        let arguments: Value = json!({"ms": n, "fail": words});
        reply([call(&format!("c{n}"), "read", arguments)])
    });
    Sim::new(failing.chain([says("done")])).config(detecting(LoopDetectorConfig::default()))
}

fn detecting(config: LoopDetectorConfig) -> ToolLoopConfig {
    ToolLoopConfig { max_iterations: 20, loop_detector: Some(config), ..ToolLoopConfig::default() }
}
