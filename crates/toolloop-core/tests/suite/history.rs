//! Whatever happens in whatever order: what every history has in common.
//!
//! That the conversation keeps the grammar after every input and in every request, that no
//! effect is asked for twice and no tool starts before all approvals, is checked by the [`Sim`].

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use toolloop_core::effect::{EffectKey, Outcome};
use toolloop_core::run::Input;
use toolloop_core::{ToolResult, Usage};

use super::plan::{cases, worlds};
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
        let results: BTreeMap<&str, &ToolResult> = messages
            .iter()
            .flat_map(|message| message.tool_results())
            .map(|result| (result.tool_call_id.as_str(), result))
            .collect();
        let outcomes: BTreeMap<EffectKey, &Outcome> = outcomes(&sim).collect();
        for call in outcomes.values().flat_map(|outcome| called(outcome)) {
            let result = results[call.as_str()];
            let Some(key) = sim.started.get(&call) else {
                prop_assert!(result.is_error, "{call} never ran: {result}");
                continue;
            };
            match outcomes[key] {
                Outcome::Tool(tool) => {
                    let pipeline = EffectKey { kind: toolloop_core::effect::EffectKind::Pipeline, ..*key };
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
                other => prop_assert!(false, "no outcome of a tool: {other:?}"),
            }
        }
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
}

fn outcomes(sim: &Sim) -> impl Iterator<Item = (EffectKey, &Outcome)> {
    sim.entries.iter().filter_map(|entry| match &entry.input {
        Input::Outcome { key, outcome } => Some((*key, outcome)),
        _ => None,
    })
}

fn usage(outcome: &Outcome) -> Usage {
    match outcome {
        Outcome::Reply(reply) => reply.response.usage,
        Outcome::ReplyFailed { partial, .. } => partial.usage,
        Outcome::Tool(tool) => tool.usage.unwrap_or_default(),
        Outcome::Cut { partial, usage } => {
            partial.as_ref().map(|partial| partial.usage).into_iter().chain(*usage).sum()
        }
        _ => Usage::default(),
    }
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
