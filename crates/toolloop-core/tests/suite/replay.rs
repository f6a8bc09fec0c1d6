//! A run is a value: stored at any point and continued, it ends as if nothing had happened.

use proptest::prelude::*;
use serde_json::json;
use toolloop_core::{ChatMessage, ChatParams, ChatResponse, CompactionConfig, CompactionMethod};

use super::plan::{cases, worlds};
use super::sim::{Seen, Sim};
use super::world::{World, ms};

proptest! {
    #![proptest_config(cases(150))]

    /// Every prefix of a journal, read back from its lines and continued in the same world.
    #[test]
    fn every_prefix_of_a_journal_has_the_same_end(world in worlds()) {
        // A driver that answers before all outputs are taken sees the rest of them later.
        let whole = Sim::new(World { is_eager: false, ..world }).into_end();
        for inputs in 0..=whole.entries.len() {
            let resumed = whole.resumed(inputs).into_end();
            prop_assert_eq!(&resumed.entries, &whole.entries);
            prop_assert_eq!(resumed.run.messages(), whole.run.messages());
            prop_assert_eq!(end(&resumed), end(&whole));
            // What the run said after the last stored input is not said again; a model call
            // that was cut off by the reload is.
            let later = |seen: &&Seen| seen.after > inputs || seen.after == inputs && seen.is_delta;
            let expected: Vec<&Seen> = whole.seen.iter().filter(later).collect();
            prop_assert_eq!(resumed.seen.iter().collect::<Vec<_>>(), expected);
        }
    }

    /// A run that is stored and read back after every input.
    #[test]
    fn a_stored_run_goes_on_as_if_it_had_stayed(world in worlds()) {
        let stayed = Sim::new(world.clone()).into_end();
        let stored = Sim::new(world).reloading().into_end();
        prop_assert_eq!(stored.entries, stayed.entries);
        prop_assert_eq!(stored.run, stayed.run);
    }
}

/// What a summary that was cut has cost is told from its own request, also by a run that was
/// loaded between the cut and its outcome.
#[test]
fn a_summary_that_is_cut_costs_the_same_after_a_reload() {
    let compaction = CompactionConfig {
        threshold: 300,
        target: 100,
        method: CompactionMethod::Summary,
        max_summary_tokens: 30,
    };
    let mut world = World::new("go").hangs("c/1");
    world.config.compaction = Some(compaction);
    world.config.timeout = Some(ms(5));
    world.params.messages.push(ChatMessage::assistant("long ".repeat(600)));
    world.params.messages.push(ChatMessage::user("go on"));
    let whole = Sim::new(world).into_end();
    assert_eq!(whole.entries.len(), 2);
    for inputs in 0..=2 {
        let resumed = whole.resumed(inputs).into_end();
        assert_eq!(resumed.entries, whole.entries);
        assert_eq!(end(&resumed), end(&whole));
    }
}

fn end(sim: &Sim) -> String {
    format!("{:?}", sim.run.result())
}

/// Equal runs are stored in equal words.
#[test]
fn maps_are_stored_in_the_order_of_their_keys() {
    let keys: Vec<String> = (b'a'..=b'z').map(|key| char::from(key).to_string()).collect();
    let metadata = keys.iter().map(|key| (key.clone(), json!(1))).collect();
    let params = ChatParams { metadata, ..ChatParams::default() };
    let metadata = keys.iter().map(|key| (key.clone(), json!(1))).collect();
    let response = ChatResponse { metadata, ..ChatResponse::default() };
    for stored in [json!(params), json!(response)] {
        let stored: Vec<&String> = stored["metadata"].as_object().unwrap().keys().collect();
        assert_eq!(stored, keys.iter().collect::<Vec<_>>());
    }
}
