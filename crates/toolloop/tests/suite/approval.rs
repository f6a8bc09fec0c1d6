//! `on_tool_call` and `on_approval`: which calls are asked about, when, and what comes of it.

use std::sync::Arc;
use std::time::Duration;

use insta::assert_snapshot;
use serde_json::json;
use toolloop::ToolCall;
use toolloop::tool::{CancellationToken, ToolApproval, ToolApprovalFuture, ToolLoopConfig};

use super::support::{Ledger, Sim, call, reply, requests, says};

#[tokio::test(start_paused = true)]
async fn each_call_is_approved_denied_or_modified_before_the_first_one_starts() {
    let sim = Sim::new([
        reply([
            call("a", "read", json!({"say": "one"})),
            call("b", "write", json!({"say": "two"})),
            call("c", "write", json!({"say": "three"})),
            call("d", "write", json!({"say": "four"})),
        ]),
        says("done"),
    ]);
    let told = decided(sim, |call| match call.id.as_str() {
        "a" => ToolApproval::Approve,
        "b" => ToolApproval::Deny("hands off".into()),
        "d" => ToolApproval::Answer("it says five already".into()),
        _ => ToolApproval::Modify(json!({"say": "3"})),
    })
    .run()
    .await;
    assert_snapshot!(told.story(), @r#"
    iteration 1, messages 1
    call 0: a read({"say":"one"})
    call 1: b write({"say":"two"})
    call 2: c write({"say":"three"})
    call 3: d write({"say":"four"})
    usage 10 in · 1 out
    refused b write: This call was denied: hands off
    answered d write: it says five already
    start a read({"say":"one"})
    start c write({"say":"3"})
    end a ok: one
    end c ok: 3
    iteration 2, messages 6
    text "done"
    usage 10 in · 1 out
    done: Complete, iterations 2, 20 in · 2 out
    "#);
    assert_snapshot!(told.ledger.lines().join("\n"), @r"
    0 a asked
    0 b asked
    0 c asked
    0 d asked
    0 a started
    0 a finished
    0 c started
    0 c finished
    ");
    // The history keeps what the model said.
    assert_snapshot!(told.transcript(), @r#"
    user: Go
    assistant: a read({"say":"one"}) | b write({"say":"two"}) | c write({"say":"three"}) | d write({"say":"four"})
    tool: a ok: one
    tool: b failed: This call was denied: hands off
    tool: c ok: 3
    tool: d ok: it says five already
    assistant: done
    "#);
}

#[tokio::test(start_paused = true)]
async fn decisions_of_a_run_in_turn_also_come_before_its_first_tool() {
    let calls = [call("a", "read", json!({"ms": 5})), call("b", "write", json!({"ms": 5}))];
    let mut sim = Sim::new([reply(calls), says("done")]);
    sim.config.parallel_tool_execution = false;
    let told = decided(sim, |_| ToolApproval::Approve).run().await;
    assert_snapshot!(told.ledger.lines().join("\n"), @r"
    0 a asked
    0 b asked
    0 a started
    5 a finished
    5 b started
    10 b finished
    ");
}

#[tokio::test(start_paused = true)]
async fn modified_arguments_are_validated_again() {
    let sim = Sim::new([
        reply([call("a", "read", json!({"ms": 1})), call("b", "read", json!({"ms": 2}))]),
        says("done"),
    ]);
    let told = decided(sim, |call| match call.id.as_str() {
        "a" => ToolApproval::Modify(json!({"ms": "soon"})),
        _ => ToolApproval::Modify(json!("no object")),
    })
    .run()
    .await;
    assert_snapshot!(told.story(), @r#"
    iteration 1, messages 1
    call 0: a read({"ms":1})
    call 1: b read({"ms":2})
    usage 10 in · 1 out
    refused a read: This call was approved with changed arguments, which do not fit the tool: The arguments do not fit the schema of 'read': /ms: "soon" is not of type "integer". It was not run.
    refused b read: This call was approved with changed arguments, which do not fit the tool: The arguments do not fit the schema of 'read': "no object" is not of type "object". It was not run.
    iteration 2, messages 4
    text "done"
    usage 10 in · 1 out
    done: Complete, iterations 2, 20 in · 2 out
    "#);
    assert_snapshot!(told.ledger.lines().join("\n"), @r"
    0 a asked
    0 b asked
    ");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_cannot_run_is_refused_first_and_not_asked_about() {
    let sim = Sim::new([
        reply([
            call("a", "delete", json!({})),
            call("b", "read", json!("{\"ms\": ")),
            call("c", "read", json!({"ms": "soon", "say": 1})),
            call("d", "read", json!([1])),
            call("e", "read", json!({"say": "fine"})),
        ]),
        says("done"),
    ]);
    let told = decided(sim, |_| ToolApproval::Approve).run().await;
    assert_snapshot!(told.story(), @r#"
    iteration 1, messages 1
    call 0: a delete({})
    call 1: b read("{\"ms\": ")
    call 2: c read({"ms":"soon","say":1})
    call 3: d read([1])
    call 4: e read({"say":"fine"})
    usage 10 in · 1 out
    refused a delete: Unknown tool 'delete'. Available tools: read, write.
    refused b read: The arguments are not readable as JSON: EOF while parsing a value at line 1 column 7. The call was not run. Call 'read' again with a JSON object that fits its schema.
    refused c read: The arguments do not fit the schema of 'read': /ms: "soon" is not of type "integer"; /say: 1 is not of type "string". The call was not run. Call 'read' again with a JSON object that fits its schema.
    refused d read: The arguments are JSON, but not an object. The call was not run. Call 'read' again with a JSON object that fits its schema.
    start e read({"say":"fine"})
    end e ok: fine
    iteration 2, messages 7
    text "done"
    usage 10 in · 1 out
    done: Complete, iterations 2, 20 in · 2 out
    "#);
    assert_snapshot!(told.ledger.lines().join("\n"), @r"
    0 e asked
    0 e started
    0 e finished
    ");
    assert_snapshot!(requests(&told.model), @r#"
    -- request 1
    user: Go
    -- request 2
    user: Go
    assistant: a delete({}) | b read("{\"ms\": ") | c read({"ms":"soon","say":1}) | d read([1]) | e read({"say":"fine"})
    tool: a failed: Unknown tool 'delete'. Available tools: read, write.
    tool: b failed: The arguments are not readable as JSON: EOF while parsing a value at line 1 column 7. The call was not run. Call 'read' again with a JSON object that fits its schema.
    tool: c failed: The arguments do not fit the schema of 'read': /ms: "soon" is not of type "integer"; /say: 1 is not of type "string". The call was not run. Call 'read' again with a JSON object that fits its schema.
    tool: d failed: The arguments are JSON, but not an object. The call was not run. Call 'read' again with a JSON object that fits its schema.
    tool: e ok: fine
    "#);
}

#[tokio::test(start_paused = true)]
async fn people_are_asked_while_everything_waits_for_them() {
    let mut sim = Sim::new([
        reply([call("a", "read", json!({})), call("b", "write", json!({}))]),
        says("done"),
    ]);
    sim.config.on_approval = Some(asked(&sim.ledger, |call| match call.id.as_str() {
        "a" => (3_600, ToolApproval::Approve),
        _ => (60, ToolApproval::Deny("not today".into())),
    }));
    let told = sim.run().await;
    assert_snapshot!(told.timed_story(), @r#"
       0 iteration 1, messages 1
       0 call 0: a read({})
       0 call 1: b write({})
       0 usage 10 in · 1 out
    60000 refused b write: This call was denied: not today
    3600000 start a read({})
    3600000 end a ok: a ran
    3600000 iteration 2, messages 4
    3600000 text "done"
    3600000 usage 10 in · 1 out
         done: Complete, iterations 2, 20 in · 2 out
    "#);
    assert_snapshot!(told.ledger.lines().join("\n"), @r"
    0 a shown
    0 b shown
    60000 b decided
    3600000 a decided
    3600000 a started
    3600000 a finished
    ");
}

#[tokio::test(start_paused = true)]
async fn with_both_set_people_are_asked_about_what_the_rule_approves() {
    let sim = Sim::new([
        reply([
            call("a", "read", json!({})),
            call("b", "write", json!({})),
            call("c", "write", json!({})),
        ]),
        says("done"),
    ]);
    let mut sim = decided(sim, |call| match call.id.as_str() {
        "a" => ToolApproval::Approve,
        "b" => ToolApproval::Deny("never".into()),
        _ => ToolApproval::Modify(json!({"say": "safe"})),
    });
    sim.config.on_approval =
        Some(asked(&sim.ledger, |_| (1, ToolApproval::Modify(json!({"say": "mine"})))));
    let told = sim.run().await;
    assert_snapshot!(told.ledger.lines().join("\n"), @r"
    0 a asked
    0 b asked
    0 c asked
    0 a shown
    1000 a decided
    1000 a started
    1000 a finished
    1000 c started
    1000 c finished
    ");
    assert_snapshot!(told.transcript(), @r"
    user: Go
    assistant: a read({}) | b write({}) | c write({})
    tool: a ok: mine
    tool: b failed: This call was denied: never
    tool: c ok: safe
    assistant: done
    ");
}

#[tokio::test(start_paused = true)]
async fn cancel_ends_a_run_that_waits_for_a_person() {
    let cancel = CancellationToken::new();
    let mut sim = Sim::new([reply([call("a", "read", json!({})), call("b", "write", json!({}))])]);
    sim.config = ToolLoopConfig { cancel: Some(cancel.clone()), ..Default::default() };
    sim.config.on_approval = Some(asked(&sim.ledger, |call| match call.id.as_str() {
        "a" => (0, ToolApproval::Approve),
        _ => (1_000_000, ToolApproval::Approve),
    }));
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(5)).await;
        cancel.cancel();
    });
    let told = sim.run().await;
    assert_eq!(told.took, Duration::from_secs(5));
    assert_snapshot!(told.transcript(), @r"
    user: Go
    assistant: a read({}) | b write({})
    tool: a failed: This call was not run: the run was cancelled.
    tool: b failed: This call was not run: the run was cancelled.
    ");
}

/// The same with a rule that notes what it was asked.
fn decided(mut sim: Sim, decide: fn(&ToolCall) -> ToolApproval) -> Sim {
    let ledger = sim.ledger.clone();
    sim.config.on_tool_call = Some(Arc::new(move |call| {
        ledger.note(format_args!("{} asked", call.id));
        decide(call)
    }));
    sim
}

/// A person who takes so many seconds for each answer.
fn asked(ledger: &Ledger, decide: fn(&ToolCall) -> (u64, ToolApproval)) -> ToolApprovalFuture {
    let ledger = ledger.clone();
    Arc::new(move |call| {
        let ledger = ledger.clone();
        Box::pin(async move {
            ledger.note(format_args!("{} shown", call.id));
            let (seconds, approval) = decide(&call);
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            ledger.note(format_args!("{} decided", call.id));
            approval
        })
    })
}
