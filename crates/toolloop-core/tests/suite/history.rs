//! Whatever happens in whatever order: what every history has in common.
//!
//! That the conversation keeps the grammar after every input and in every request, that no
//! effect is asked for twice and no tool starts before all approvals, is checked by the [`Sim`].

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use toolloop_core::effect::{EffectKey, EffectKind, Outcome};
use toolloop_core::policy::window::message_tokens;
use toolloop_core::run::Input;
use toolloop_core::{ChatMessage, LoopEvent, ToolResult, Usage};

use super::plan::{ANSWER, cases, worlds};
use super::sim::Sim;
use super::world::{When, World};

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn all_tokens_are_counted_once(world in worlds()) {
        let sim = Sim::new(world).into_end();
        let spent: Usage = outcomes(&sim).map(|(_, outcome)| usage(outcome)).sum();
        prop_assert_eq!(*sim.run.total_usage(), spent);
    }

    /// Each call of each reply has the result of what became of it, and no other.
    #[test]
    fn results_say_what_happened(mut world in worlds()) {
        world.caller.retain(|(_, input)| !matches!(input, Input::ReplaceMessages(_)));
        let sim = Sim::new(world).into_end();
        let messages = sim.run.messages();
        let results: BTreeMap<&str, ToolResult> = messages
            .iter()
            .flat_map(|message| message.tool_results())
            .map(|result| (result.tool_call_id.as_str(), unwarned(result)))
            .collect();
        let outcomes: BTreeMap<EffectKey, &Outcome> = outcomes(&sim).collect();
        let replies = outcomes.iter().filter(|(key, _)| key.kind != EffectKind::Compaction);
        for call in replies.flat_map(|(_, outcome)| called(outcome)) {
            let result = &results[call.as_str()];
            let Some(key) = sim.started.get(&call) else {
                // Nothing but an answer in its place lets a call that never ran look well.
                let answered = result.content == ANSWER;
                prop_assert!(result.is_error != answered, "{call} never ran: {result}");
                continue;
            };
            match outcomes[key] {
                Outcome::Tool(tool) => {
                    let pipeline = EffectKey { kind: EffectKind::Pipeline, ..*key };
                    let mut content = tool.content.clone();
                    if let Some(Outcome::Pipeline(processed)) = outcomes.get(&pipeline) {
                        content.text = processed.text.clone().unwrap_or(content.text);
                    }
                    prop_assert_eq!(&result.content, &content);
                    prop_assert_eq!(result.is_error, tool.is_error);
                }
                Outcome::Cut { .. } => {
                    prop_assert!(result.is_error && result.content.contains("cut off while it ran"));
                }
                Outcome::NotBegun => {
                    prop_assert!(result.is_error && result.content.contains("was not run"));
                }
                other => prop_assert!(false, "no outcome of a tool: {other:?}"),
            }
        }
    }

    /// Followers hear of each tool that starts, and then of its end, once, as the model does.
    #[test]
    fn each_tool_that_starts_is_seen_to_end(world in worlds()) {
        let sim = Sim::new(world).into_end();
        let mut running = BTreeSet::new();
        for seen in &sim.seen {
            match &seen.event {
                LoopEvent::ToolExecutionStart { call_id, .. } => {
                    prop_assert!(running.insert(call_id), "{call_id} starts twice");
                }
                LoopEvent::ToolExecutionEnd { call_id, .. } => {
                    prop_assert!(running.remove(call_id), "{call_id} ends and does not run");
                }
                _ => {}
            }
        }
        prop_assert_eq!(running, BTreeSet::new());
    }

    /// Approvals, tools and pipelines may be done in any order.
    #[test]
    fn any_order_gives_the_same_history(world in worlds(), other_order: u64) {
        let mut world = world;
        world.config.timeout = None;
        world.takes.deck.retain(Option::is_some);
        world.caller.retain(|(when, _)| *when == When::Yielded);
        let one = Sim::new(world.clone()).into_end();
        let other = Sim::new(World { order: other_order, ..world }).into_end();
        prop_assert_eq!(one.run.messages(), other.run.messages());
        let end = |sim: &Sim| format!("{:?}", sim.run.result());
        prop_assert_eq!(end(&one), end(&other));
        let asked = |sim: &Sim| outcomes(sim).map(|(key, _)| key).collect::<BTreeSet<_>>();
        prop_assert_eq!(asked(&one), asked(&other));
    }

    /// Pruning and compaction are views: the run takes the same course and leaves the same
    /// conversation without them.
    #[test]
    fn what_a_request_leaves_out_is_not_lost(world in worlds()) {
        let mut world = world;
        world.config.timeout = None;
        world.takes.deck.retain(Option::is_some);
        world.caller.retain(|(when, _)| *when == When::Yielded);
        let shortened = Sim::new(world.clone()).into_end();
        world.config.max_tool_turns = None;
        world.config.compaction = None;
        let whole = Sim::new(world).into_end();
        prop_assert_eq!(shortened.run.messages(), whole.run.messages());
        let end = |sim: &Sim| {
            let ended = sim.run.result();
            ended.map(|end| end.termination_reason).map_err(|error| error.to_string())
        };
        prop_assert_eq!(end(&shortened), end(&whole));
        for ((key, shown), (_, all)) in shortened.requests.iter().zip(&whole.requests) {
            prop_assert!(tokens(shown) <= tokens(all), "{key} has grown");
        }
    }

    /// A request that is shortened gets shorter.
    #[test]
    fn compaction_never_makes_a_request_larger(world in worlds()) {
        let sim = Sim::new(world).into_end();
        for seen in &sim.seen {
            if let LoopEvent::Compacted { hidden_count, tokens_before, tokens_after, .. } = seen.event {
                let is_as_told = match hidden_count {
                    0 => tokens_after == tokens_before,
                    _ => tokens_after < tokens_before,
                };
                prop_assert!(is_as_told, "{:?}", seen.event);
            }
        }
    }
}

fn outcomes(sim: &Sim) -> impl Iterator<Item = (EffectKey, &Outcome)> {
    sim.entries.iter().filter_map(|entry| match &entry.input {
        Input::Outcome { key, outcome } => Some((*key, outcome)),
        _ => None,
    })
}

fn tokens(messages: &[ChatMessage]) -> u32 {
    messages.iter().map(message_tokens).sum()
}

fn usage(outcome: &Outcome) -> Usage {
    match outcome {
        Outcome::Reply(reply) => reply.response.usage,
        Outcome::ReplyFailed { partial, .. } => partial.usage,
        Outcome::Tool(tool) => tool.usage.unwrap_or_default(),
        Outcome::Cut { partial, usage, .. } => {
            partial.as_ref().map(|partial| partial.usage).into_iter().chain(*usage).sum()
        }
        _ => Usage::default(),
    }
}

/// A result without the warning in front of it.
fn unwarned(result: &ToolResult) -> ToolResult {
    let mut result = result.clone();
    let warned = result.content.text.strip_prefix("[Loop warning: ");
    if let Some((_, rest)) = warned.and_then(|rest| rest.split_once(']')) {
        result.content.text = rest.strip_prefix("\n\n").unwrap_or(rest).to_owned();
    }
    result
}

/// The ids of the calls of a reply.
fn called(outcome: &Outcome) -> Vec<String> {
    match outcome {
        Outcome::Reply(reply) => {
            reply.response.tool_calls_iter().map(|call| call.id.clone()).collect()
        }
        _ => Vec::new(),
    }
}
