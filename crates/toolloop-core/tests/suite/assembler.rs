//! Replies from their stream events, in whatever pieces and order they come.

use std::collections::BTreeSet;

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::Value;
use toolloop_core::effect::{Outcome, Reply};
use toolloop_core::run::{Run, RunConfig};
use toolloop_core::{
    ChatMessage, ChatParams, ChatRole, ContentBlock, LoopEvent, ProviderData, ReplyAssembler,
    StopReason, StreamEvent, ToolCall, parse_arguments,
};

use super::plan::{arguments, cases, id, stop_reason, tokens};

/// The assembler of a run whose conversation has calls of these ids.
fn assembler(taken: &BTreeSet<String>) -> ReplyAssembler {
    let call = |id: &String| {
        let arguments = Value::Null;
        ContentBlock::ToolCall(ToolCall { id: id.clone(), name: "add".into(), arguments })
    };
    let content = taken.iter().map(call).collect();
    let messages = vec![ChatMessage { role: ChatRole::Assistant, content }];
    let params = ChatParams { messages, ..ChatParams::default() };
    Run::new(RunConfig::default(), params).assembler()
}

/// Pushes all events until one is refused; what followers see, and the outcome.
fn assemble(taken: &BTreeSet<String>, events: Vec<StreamEvent>) -> (Vec<LoopEvent>, Outcome) {
    let mut assembler = assembler(taken);
    let mut seen = Vec::new();
    for event in events {
        match assembler.push(event) {
            Ok(event) => seen.extend(event),
            Err(failure) => return (seen, assembler.fail(failure)),
        }
    }
    (seen, assembler.finish())
}

/// Any event, with no regard to those before it.
fn event() -> impl Strategy<Value = StreamEvent> {
    let index = || 0..3u32;
    let text = || prop::sample::select(vec!["", " ", "text", "ü{"]).prop_map(str::to_owned);
    let data = ProviderData { api: "any".into(), data: "x".into() };
    let call = (id(), arguments()).prop_map(|(id, arguments)| ToolCall {
        id,
        name: "add".into(),
        arguments: parse_arguments(&arguments),
    });
    prop_oneof![
        3 => text().prop_map(StreamEvent::TextDelta),
        2 => text().prop_map(StreamEvent::ReasoningDelta),
        4 => (index(), id()).prop_map(|(index, id)| {
            StreamEvent::ToolCallStart { index, id, name: "add".into() }
        }),
        4 => (index(), arguments()).prop_map(|(index, json_chunk)| {
            StreamEvent::ToolCallDelta { index, json_chunk }
        }),
        3 => (index(), call).prop_map(|(index, call)| {
            StreamEvent::ToolCallComplete { index, call }
        }),
        2 => prop::option::of(index()).prop_map(move |index| {
            StreamEvent::ProviderData { index, data: data.clone() }
        }),
        1 => tokens().prop_map(StreamEvent::Usage),
        1 => Just(StreamEvent::AttemptDiscarded { attempt: 1 }),
        1 => Just(StreamEvent::Model("m".into())),
        1 => stop_reason().prop_map(|stop_reason| StreamEvent::Done { stop_reason }),
    ]
}

proptest! {
    #![proptest_config(cases(800))]

    /// Events in any order: no panic, and the reply is one that a run takes.
    #[test]
    fn any_events_give_a_valid_outcome(
        events in vec(event(), 0..20),
        taken in proptest::collection::btree_set(id(), 0..4),
    ) {
        let (seen, outcome) = assemble(&taken, events);
        let (content, calls_allowed) = match &outcome {
            Outcome::Reply(reply) => (&reply.response.content, true),
            Outcome::ReplyFailed { partial, .. } => (&partial.content, false),
            other => panic!("neither reply nor failure: {other:?}"),
        };
        let mut ids = taken;
        for block in content {
            match block {
                ContentBlock::ToolCall(call) => {
                    prop_assert!(calls_allowed);
                    prop_assert!(!call.id.is_empty() && ids.insert(call.id.clone()), "{}", call.id);
                }
                ContentBlock::Text(text) | ContentBlock::Reasoning { content: text } => {
                    prop_assert!(!text.is_empty());
                }
                ContentBlock::ProviderData(_) => prop_assert!(calls_allowed),
                other => panic!("not from a stream: {other:?}"),
            }
        }
        if let Outcome::Reply(reply) = &outcome {
            prop_assert_eq!(ids_seen(&seen), ids_of(reply));
        }
    }

    /// However the texts are cut into deltas, the reply is the same, and nothing is lost.
    #[test]
    fn the_pieces_do_not_matter(
        parts in vec((any::<u8>(), "[a-zü{}\" ]{1,12}"), 1..6),
        cuts in vec(1..5usize, 1..8),
    ) {
        let whole = events(&parts, &[usize::MAX]);
        let pieces = events(&parts, &cuts);
        let taken = BTreeSet::new();
        let (_, expected) = assemble(&taken, whole);
        let (seen, found) = assemble(&taken, pieces);
        prop_assert_eq!(&found, &expected);
        let Outcome::Reply(reply) = found else { panic!("a whole stream") };
        let texts: Vec<&str> = reply.response.content.iter().filter_map(|block| match block {
            ContentBlock::Text(text) => Some(text.as_str()),
            _ => None,
        }).collect();
        let followed: String = seen.iter().filter_map(|event| match event {
            LoopEvent::TextDelta(text) => Some(text.as_str()),
            _ => None,
        }).collect();
        prop_assert_eq!(followed, texts.concat());
    }
}

/// Texts, thoughts and calls, each cut into pieces of so many characters.
fn events(parts: &[(u8, String)], cuts: &[usize]) -> Vec<StreamEvent> {
    let mut events = Vec::new();
    let mut cuts = cuts.iter().copied().cycle();
    for (index, (kind, text)) in (0..).zip(parts) {
        if kind % 3 == 2 {
            let (id, name) = (format!("c{index}"), "add".to_owned());
            events.push(StreamEvent::ToolCallStart { index, id, name });
        }
        let mut rest: Vec<char> = text.chars().collect();
        while !rest.is_empty() {
            let cut = cuts.next().unwrap_or(1).min(rest.len());
            let piece: String = rest.drain(..cut).collect();
            events.push(match kind % 3 {
                0 => StreamEvent::TextDelta(piece),
                1 => StreamEvent::ReasoningDelta(piece),
                _ => StreamEvent::ToolCallDelta { index, json_chunk: piece },
            });
        }
    }
    events.push(StreamEvent::Done { stop_reason: StopReason::EndTurn });
    events
}

/// The ids that followers were told of, since the last attempt began.
fn ids_seen(seen: &[LoopEvent]) -> BTreeSet<String> {
    let discarded = |event: &LoopEvent| matches!(event, LoopEvent::AttemptDiscarded { .. });
    let attempt = seen.rsplit(discarded).next().unwrap_or_default();
    let ids = attempt.iter().filter_map(|event| match event {
        LoopEvent::ToolCallStart { id, .. } => Some(id.clone()),
        LoopEvent::ToolCallComplete { call, .. } => Some(call.id.clone()),
        _ => None,
    });
    ids.collect()
}

fn ids_of(reply: &Reply) -> BTreeSet<String> {
    reply.response.tool_calls_iter().map(|call| call.id.clone()).collect()
}
