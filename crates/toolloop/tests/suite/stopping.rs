//! `stop_when`: what it sees, and how a run ends by its word.

use std::sync::{Arc, Mutex};

use insta::assert_snapshot;
use serde_json::json;
use toolloop::tool::{LoopAction, LoopDetectionConfig, StopContext, StopDecision};

use super::support::{Sim, call, reply, says, text};

#[tokio::test(start_paused = true)]
async fn it_sees_every_reply_before_its_tools_run() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let mut sim = Sim::new([
        reply([
            call("a", "read", json!({"ms": 9, "say": "slow"})),
            call("b", "delete", json!({})),
            call("c", "write", json!({"say": "quick"})),
        ]),
        reply([text("More."), call("d", "read", json!({"fail": "no"}))]),
        says("done"),
    ]);
    let noted = Arc::clone(&seen);
    sim.config.stop_when = Some(Arc::new(move |context| {
        noted.lock().unwrap().push(in_words(context));
        StopDecision::Continue
    }));
    let told = sim.run().await;
    assert_snapshot!(seen.lock().unwrap().join("\n"), @r#"
    1: text None, calls ["a", "b", "c"], 10 in · 1 out, executed 0, results []
    2: text Some("More."), calls ["d"], 20 in · 2 out, executed 2, results ["a: slow", "b: Unknown tool 'delete'. Available tools: read, write.", "c: quick"]
    3: text Some("done"), calls [], 30 in · 3 out, executed 3, results ["d: no"]
    "#);
    assert_snapshot!(told.story(), @r#"
    iteration 1, messages 1
    call 0: a read({"ms":9,"say":"slow"})
    call 1: b delete({})
    call 2: c write({"say":"quick"})
    usage 10 in · 1 out
    refused b delete: Unknown tool 'delete'. Available tools: read, write.
    start a read({"ms":9,"say":"slow"})
    start c write({"say":"quick"})
    end c ok: quick
    end a ok: slow in 9ms
    iteration 2, messages 5
    text "More."
    call 0: d read({"fail":"no"})
    usage 10 in · 1 out
    start d read({"fail":"no"})
    end d failed: no
    iteration 3, messages 7
    text "done"
    usage 10 in · 1 out
    done: Complete, iterations 3, 30 in · 3 out
    "#);
}

#[tokio::test(start_paused = true)]
async fn a_stop_leaves_the_calls_of_its_reply_alone() {
    let told = stopped_at(2, StopDecision::Stop).run().await;
    assert_snapshot!(told.story(), @r#"
    iteration 1, messages 1
    call 0: a read({})
    usage 10 in · 1 out
    start a read({})
    end a ok: a ran
    iteration 2, messages 3
    text "Again."
    call 0: b read({})
    usage 10 in · 1 out
    done: StopCondition { reason: None }, iterations 2, 20 in · 2 out
    "#);
    assert_snapshot!(told.transcript(), @r"
    user: Go
    assistant: a read({})
    tool: a ok: a ran
    assistant: Again. | b read({})
    tool: b failed: This call was not run: the run was stopped.
    ");
    assert_eq!(told.result().response.tool_calls()[0].id, "b");
    assert_eq!(told.ledger.lines(), ["0 a started", "0 a finished"]);
}

#[tokio::test(start_paused = true)]
async fn a_stop_may_say_why() {
    let told = stopped_at(1, StopDecision::StopWithReason("budget".into())).run().await;
    assert_snapshot!(told.story(), @r#"
    iteration 1, messages 1
    call 0: a read({})
    usage 10 in · 1 out
    done: StopCondition { reason: Some("budget") }, iterations 1, 10 in · 1 out
    "#);
    assert_snapshot!(told.transcript(), @r"
    user: Go
    assistant: a read({})
    tool: a failed: This call was not run: the run was stopped (budget).
    ");
}

#[tokio::test(start_paused = true)]
async fn a_reply_without_calls_can_be_stopped_at_as_well() {
    let told = stopped_at(3, StopDecision::StopWithReason("seen".into())).run().await;
    assert_snapshot!(told.story(), @r#"
    iteration 1, messages 1
    call 0: a read({})
    usage 10 in · 1 out
    start a read({})
    end a ok: a ran
    iteration 2, messages 3
    text "Again."
    call 0: b read({})
    usage 10 in · 1 out
    start b read({})
    end b ok: b ran
    iteration 3, messages 5
    text "done"
    usage 10 in · 1 out
    done: StopCondition { reason: Some("seen") }, iterations 3, 30 in · 3 out
    "#);
    assert_eq!(told.result().response.text(), Some("done"));
}

#[tokio::test(start_paused = true)]
async fn it_is_asked_before_repetition_and_approval() {
    let mut sim = stopped_at(2, StopDecision::Stop);
    let ledger = sim.ledger.clone();
    sim.config.on_tool_call = Some(Arc::new(move |call| {
        ledger.note(format_args!("{} asked", call.id));
        toolloop::tool::ToolApproval::Approve
    }));
    sim.config.loop_detection =
        Some(LoopDetectionConfig { threshold: 2, action: LoopAction::Stop });
    let told = sim.run().await;
    assert_snapshot!(told.story(), @r#"
    iteration 1, messages 1
    call 0: a read({})
    usage 10 in · 1 out
    start a read({})
    end a ok: a ran
    iteration 2, messages 3
    text "Again."
    call 0: b read({})
    usage 10 in · 1 out
    done: StopCondition { reason: None }, iterations 2, 20 in · 2 out
    "#);
    assert_eq!(told.ledger.lines(), ["0 a asked", "0 a started", "0 a finished"]);
}

/// Three replies: a call, the same with text, an answer.
fn stopped_at(iteration: u32, decision: StopDecision) -> Sim {
    let mut sim = Sim::new([
        reply([call("a", "read", json!({}))]),
        reply([text("Again."), call("b", "read", json!({}))]),
        says("done"),
    ]);
    sim.config.stop_when = Some(Arc::new(move |context| match context.iteration == iteration {
        true => decision.clone(),
        false => StopDecision::Continue,
    }));
    sim
}

fn in_words(context: &StopContext<'_>) -> String {
    let StopContext { iteration, response, total_usage, tool_calls_executed, last_tool_results } =
        context;
    let calls: Vec<_> = response.tool_calls_iter().map(|call| call.id.as_str()).collect();
    let results: Vec<_> = last_tool_results
        .iter()
        .map(|result| format!("{}: {}", result.tool_call_id, result.content))
        .collect();
    format!(
        "{iteration}: text {:?}, calls {calls:?}, {total_usage}, executed {tool_calls_executed}, \
         results {results:?}",
        response.text()
    )
}
