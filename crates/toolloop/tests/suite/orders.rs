//! In whatever order the tools of a reply finish, the history is the same.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::json;
use toolloop::ChatMessage;
use toolloop::tool::{ToolError, tool_fn};

use super::support::{Sim, act, call, reply, says};

#[derive(Debug, Clone)]
struct Work {
    ms: u64,
    fails: bool,
}

fn work() -> impl Strategy<Value = Work> {
    (0..40u64, any::<bool>()).prop_map(|(ms, fails)| Work { ms, fails })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn give_the_same_history(turns in vec(vec(work(), 1..6), 1..4)) {
        let at_once = history(&turns, true);
        let in_turn = history(&turns, false);
        prop_assert_eq!(at_once, in_turn);
    }
}

/// The conversation after these turns of calls.
fn history(turns: &[Vec<Work>], parallel: bool) -> Vec<ChatMessage> {
    let replies = turns.iter().enumerate().map(|(turn, work)| {
        reply(
            (0..work.len())
                .map(|n| call(&format!("c{turn}_{n}"), "work", json!({"turn": turn, "n": n}))),
        )
    });
    let mut sim = Sim::new(replies.chain([says("done")]));
    sim.config.parallel_tool_execution = parallel;
    let works = turns.to_vec();
    sim.tools.register(tool_fn(act("work", &sim.ledger).definition, move |args| {
        let at = |key: &str| usize::try_from(args[key].as_u64().unwrap()).unwrap();
        let work = works[at("turn")][at("n")].clone();
        async move {
            tokio::time::sleep(Duration::from_millis(work.ms)).await;
            match work.fails {
                true => Err(ToolError::new(format!("failed {args}"))),
                false => Ok(format!("done {args}")),
            }
        }
    }));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(sim.run()).result().messages.clone()
}
