//! Streams of Chat Completions written by hand: the same events, wherever the bytes are cut.

use toolloop_providers::codec::openai_chat::ChatDecoder;

use crate::support::fixtures::{assert_cuts_change_nothing, assert_events};

#[test]
fn each_fixture_gives_its_events() {
    assert_events::<ChatDecoder>("openai-chat", 20);
}

#[test]
fn a_cut_at_any_byte_changes_nothing() {
    assert_cuts_change_nothing::<ChatDecoder>("openai-chat", 20);
}
