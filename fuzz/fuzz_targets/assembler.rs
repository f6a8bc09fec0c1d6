//! Any stream of events, one JSON value a line, gives a reply whose ids are unique, or a failure.

#![no_main]

use std::collections::BTreeSet;

use libfuzzer_sys::fuzz_target;
use toolloop_core::effect::Outcome;
use toolloop_core::{ReplyAssembler, StreamEvent};

fuzz_target!(|text: &str| {
    let events = text.lines().filter_map(|line| serde_json::from_str::<StreamEvent>(line).ok());
    let mut assembler = ReplyAssembler::detached();
    for event in events {
        if let Err(failure) = assembler.push(event) {
            assembler.fail(failure);
            return;
        }
    }
    if let Outcome::Reply(reply) = assembler.finish() {
        let mut ids = BTreeSet::new();
        for call in reply.response.tool_calls_iter() {
            assert!(!call.id.is_empty() && ids.insert(&call.id), "{}", call.id);
        }
    }
});
