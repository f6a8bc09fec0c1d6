//! `max_iterations`, `final_answer`, `parallel_tool_execution`, `params.tools`.

use insta::assert_snapshot;
use serde_json::json;
use toolloop::ToolChoice;
use toolloop::tool::ToolLoopConfig;

use super::support::{Sim, call, reply, requests, says, text};

#[tokio::test(start_paused = true)]
async fn a_run_asks_runs_and_asks_again() {
    let told = Sim::new([
        reply([text("Let me see."), call("a", "read", json!({"ms": 20, "say": "42"}))]),
        says("It is 42."),
    ])
    .run()
    .await;
    assert_snapshot!(told.timed_story(), @r#"
     0 iteration 1, messages 1
     0 text "Let me see."
     0 call 0: a read({"ms":20,"say":"42"})
     0 usage 10 in · 1 out
     0 start a read({"ms":20,"say":"42"})
    20 end a ok: 42 in 20ms
    20 iteration 2, messages 3
    20 text "It is 42."
    20 usage 10 in · 1 out
       done: Complete, iterations 2, 20 in · 2 out
    "#);
    assert_snapshot!(told.transcript(), @r#"
    user: Go
    assistant: Let me see. | a read({"ms":20,"say":"42"})
    tool: a ok: 42
    assistant: It is 42.
    "#);
    assert_eq!(told.result().response.text(), Some("It is 42."));
}

#[tokio::test(start_paused = true)]
async fn tools_of_the_last_allowed_reply_run_and_then_the_run_ends() {
    let told = Sim::new([
        reply([call("a", "read", json!({}))]),
        reply([text("Once more."), call("b", "write", json!({}))]),
        says("never asked for"),
    ])
    .config(ToolLoopConfig { max_iterations: 2, ..ToolLoopConfig::default() })
    .run()
    .await;
    assert_snapshot!(told.story(), @r#"
    iteration 1, messages 1
    call 0: a read({})
    usage 10 in · 1 out
    start a read({})
    end a ok: a ran
    iteration 2, messages 3
    text "Once more."
    call 0: b write({})
    usage 10 in · 1 out
    start b write({})
    end b ok: b ran
    done: MaxIterations { limit: 2 }, iterations 2, 20 in · 2 out
    "#);
    assert_eq!(told.result().iterations, 2);
    assert_eq!(told.result().response.text(), Some("Once more."));
    assert_eq!(told.result().response.tool_calls()[0].id, "b");
    assert_snapshot!(told.transcript(), @r"
    user: Go
    assistant: a read({})
    tool: a ok: a ran
    assistant: Once more. | b write({})
    tool: b ok: b ran
    ");
    assert_eq!(told.model.recorded_calls().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_answer_in_the_last_allowed_iteration_is_complete() {
    let config = ToolLoopConfig { max_iterations: 1, ..ToolLoopConfig::default() };
    let told = Sim::new([says("42")]).config(config).run().await;
    assert_snapshot!(told.story(), @r#"
    iteration 1, messages 1
    text "42"
    usage 10 in · 1 out
    done: Complete, iterations 1, 10 in · 1 out
    "#);
}

#[tokio::test(start_paused = true)]
async fn no_iteration_at_all_is_a_clear_error() {
    let config = ToolLoopConfig { max_iterations: 0, ..ToolLoopConfig::default() };
    let told = Sim::new([says("42")]).config(config).run().await;
    assert_snapshot!(told.story(), @"error: invalid request: max_iterations is 0, so no model can be asked: set it to 1 or more");
    assert!(told.model.recorded_calls().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_final_answer_is_asked_for_with_tools_off_and_not_counted() {
    let told = Sim::new([reply([call("a", "read", json!({}))]), says("As far as I got: a.")])
        .config(ToolLoopConfig { max_iterations: 1, final_answer: true, ..Default::default() })
        .run()
        .await;
    assert_snapshot!(told.story(), @r#"
    iteration 1, messages 1
    call 0: a read({})
    usage 10 in · 1 out
    start a read({})
    end a ok: a ran
    text "As far as I got: a."
    usage 10 in · 1 out
    done: MaxIterations { limit: 1 }, iterations 1, 20 in · 2 out
    "#);
    assert_snapshot!(told.transcript(), @r"
    user: Go
    assistant: a read({})
    tool: a ok: a ran
    assistant: As far as I got: a.
    ");
    assert_eq!(told.result().response.text(), Some("As far as I got: a."));
    let choices: Vec<_> =
        told.model.recorded_calls().into_iter().map(|params| params.tool_choice).collect();
    assert_eq!(choices, [None, Some(ToolChoice::None)]);
}

#[tokio::test(start_paused = true)]
async fn calls_of_a_final_answer_are_not_run() {
    let told = Sim::new([
        reply([call("a", "read", json!({}))]),
        reply([text("But"), call("b", "write", json!({}))]),
    ])
    .config(ToolLoopConfig { max_iterations: 1, final_answer: true, ..Default::default() })
    .run()
    .await;
    assert_snapshot!(told.transcript(), @r"
    user: Go
    assistant: a read({})
    tool: a ok: a ran
    assistant: But | b write({})
    tool: b failed: This call was not run: the run reached its limit of 1 iterations.
    ");
    assert_eq!(told.ledger.lines(), ["0 a started", "0 a finished"]);
}

#[tokio::test(start_paused = true)]
async fn calls_of_one_reply_run_at_the_same_time() {
    let told = Sim::new([two_calls(), says("done")]).run().await;
    assert_snapshot!(told.timed_story(), @r#"
     0 iteration 1, messages 1
     0 call 0: a read({"ms":30})
     0 call 1: b write({"ms":10})
     0 usage 10 in · 1 out
     0 start a read({"ms":30})
     0 start b write({"ms":10})
    10 end b ok: b ran in 10ms
    30 end a ok: a ran in 30ms
    30 iteration 2, messages 4
    30 text "done"
    30 usage 10 in · 1 out
       done: Complete, iterations 2, 20 in · 2 out
    "#);
    assert_snapshot!(told.transcript(), @r#"
    user: Go
    assistant: a read({"ms":30}) | b write({"ms":10})
    tool: a ok: a ran
    tool: b ok: b ran
    assistant: done
    "#);
}

#[tokio::test(start_paused = true)]
async fn calls_run_in_turn_where_that_is_asked_for() {
    let told = Sim::new([two_calls(), says("done")])
        .config(ToolLoopConfig { parallel_tool_execution: false, ..Default::default() })
        .run()
        .await;
    assert_snapshot!(told.timed_story(), @r#"
     0 iteration 1, messages 1
     0 call 0: a read({"ms":30})
     0 call 1: b write({"ms":10})
     0 usage 10 in · 1 out
     0 start a read({"ms":30})
    30 end a ok: a ran in 30ms
    30 start b write({"ms":10})
    40 end b ok: b ran in 10ms
    40 iteration 2, messages 4
    40 text "done"
    40 usage 10 in · 1 out
       done: Complete, iterations 2, 20 in · 2 out
    "#);
    let expected = ["0 a started", "30 a finished", "30 b started", "40 b finished"];
    assert_eq!(told.ledger.lines(), expected);
}

#[tokio::test(start_paused = true)]
async fn the_registry_is_offered_in_order_of_registration() {
    let told = Sim::new([says("done")]).run().await;
    assert_eq!(offered(&told.model), [["read", "write"]]);
}

#[tokio::test(start_paused = true)]
async fn a_list_of_tools_is_all_the_model_sees_and_may_call() {
    let mut sim = Sim::new([reply([call("a", "write", json!({}))]), says("done")]);
    sim.params.tools = Some(sim.tools.only(["read"]).definitions());
    let told = sim.run().await;
    assert_eq!(offered(&told.model), [["read"], ["read"]]);
    assert_snapshot!(requests(&told.model), @r"
    -- request 1
    user: Go
    -- request 2
    user: Go
    assistant: a write({})
    tool: a failed: Unknown tool 'write'. Available tools: read.
    ");
    assert!(told.ledger.lines().is_empty());
}

fn two_calls() -> Vec<toolloop::StreamEvent> {
    reply([call("a", "read", json!({"ms": 30})), call("b", "write", json!({"ms": 10}))])
}

fn offered(model: &toolloop::mock::MockProvider) -> Vec<Vec<String>> {
    let names = |params: toolloop::ChatParams| {
        params.tools.iter().flatten().map(|tool| tool.name.clone()).collect()
    };
    model.recorded_calls().into_iter().map(names).collect()
}
