//! Schemas of which a provider was told less than they say: each is told of once in a run.

use serde_json::json;
use toolloop_core::{LoopEvent, ReducedSchema, StopReason, StreamEvent};

use super::sim::Sim;
use super::world::{Said, World, call_events, output};

fn reduced(tool: &str, dropped: &str) -> ReducedSchema {
    ReducedSchema { tool: Some(tool.into()), dropped: vec![dropped.into()] }
}

/// A model that is told less with every request, and of one schema more with the second.
fn world() -> World {
    let first = StreamEvent::SchemasReduced(vec![reduced("add", "a")]);
    let both = StreamEvent::SchemasReduced(vec![reduced("add", "a"), reduced("write", "w")]);
    let calls = |events: Vec<StreamEvent>, id| {
        let call = call_events(0, id, "add", &json!({"x": 1}).to_string());
        Said::stream(events.into_iter().chain(call).collect(), StopReason::ToolUse)
    };
    World::new("go")
        .says("m/1", calls(vec![first], "a"))
        .tool("t/1/0", output("1"))
        .says("m/2", calls(vec![both.clone()], "b"))
        .tool("t/2/0", output("2"))
        .says("m/3", Said::stream(vec![both], StopReason::EndTurn))
}

fn told(sim: &Sim) -> Vec<Vec<ReducedSchema>> {
    let events = sim.seen.iter().filter_map(|seen| match &seen.event {
        LoopEvent::SchemasReduced { schemas } => Some(schemas.clone()),
        _ => None,
    });
    events.collect()
}

#[test]
fn each_is_told_once() {
    let sim = Sim::new(world()).into_end();
    assert_eq!(told(&sim), [vec![reduced("add", "a")], vec![reduced("write", "w")]]);
}

#[test]
fn a_run_that_is_continued_knows_what_it_has_told() {
    let whole = Sim::new(world()).into_end();
    let second_request = whole.entries.len() - 4;
    for inputs in second_request..whole.entries.len() {
        let resumed = whole.resumed(inputs).into_end();
        assert!(!told(&resumed).concat().contains(&reduced("add", "a")), "after input {inputs}");
    }
    let stored = Sim::new(world()).reloading().into_end();
    assert_eq!(stored.run, whole.run);
}
