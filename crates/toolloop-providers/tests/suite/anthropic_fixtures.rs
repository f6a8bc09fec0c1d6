//! Answers of the Messages API written by hand, one peculiarity each: the same events, wherever
//! the bytes are cut.
//!
//! Beside `<name>.sse` lies `<name>.events`: one event a line, and `error: ..` where it ends so.

use std::path::{Path, PathBuf};

use toolloop_core::{StopReason, StreamEvent};
use toolloop_providers::codec::anthropic::MessagesDecoder;
use toolloop_providers::codec::{Decoder, Events};

use crate::support::decode::decode_as;

#[test]
fn each_fixture_gives_its_events() {
    let mut wrong = String::new();
    for path in fixtures() {
        let body = std::fs::read(&path).unwrap();
        let expected = std::fs::read_to_string(path.with_extension("events")).unwrap_or_default();
        let seen = lines(&[&body]);
        if seen != expected {
            wrong.push_str(&format!("--- {}\n{seen}", path.display()));
        }
    }
    assert!(wrong.is_empty(), "these give other events:\n{wrong}");
}

#[test]
fn a_cut_at_any_byte_changes_nothing() {
    for path in fixtures() {
        let body = std::fs::read(&path).unwrap();
        let whole = lines(&[&body]);
        for cut in 0..=body.len() {
            let (first, second) = body.split_at(cut);
            assert_eq!(lines(&[first, second]), whole, "{} cut at {cut}", path.display());
        }
    }
}

#[test]
fn an_answer_in_one_document_is_read_as_well() {
    let body = r#"{"id":"msg_1","type":"message","role":"assistant","model":"claude-test",
        "content":[
            {"type":"thinking","thinking":"Hm.","signature":"c2ln"},
            {"type":"text","text":"So:","citations":null},
            {"type":"tool_use","id":"a","name":"add","input":{"x":1}},
            {"type":"tool_use","id":"b","name":"add","input":{}}],
        "stop_reason":"tool_use","usage":{"input_tokens":3,"output_tokens":4}}"#;
    let mut events = Events::new();
    MessagesDecoder::default().handle_document(body, &mut events).unwrap();
    let lines: Vec<_> = events.iter().map(|event| serde_json::to_string(event).unwrap()).collect();
    let expected = [
        r#"{"model":"claude-test"}"#,
        r#"{"usage":{"input_tokens":3,"output_tokens":4,"reasoning_tokens":null,"cache_read_tokens":null,"cache_write_tokens":null,"source":"reported"}}"#,
        r#"{"reasoning_delta":"Hm."}"#,
        r#"{"provider_data":{"index":null,"data":{"api":"anthropic-messages","data":"{\"signature\":{\"value\":\"c2ln\",\"thought\":\"496e6e19cdb39040\"}}"}}}"#,
        r#"{"text_delta":"So:"}"#,
        r#"{"tool_call_start":{"index":0,"id":"a","name":"add"}}"#,
        r#"{"tool_call_delta":{"index":0,"json_chunk":"{\"x\":1}"}}"#,
        r#"{"tool_call_complete":{"index":0,"call":{"id":"a","name":"add","arguments":{"x":1}}}}"#,
        r#"{"tool_call_start":{"index":1,"id":"b","name":"add"}}"#,
        r#"{"tool_call_complete":{"index":1,"call":{"id":"b","name":"add","arguments":{}}}}"#,
        r#"{"done":{"stop_reason":"tool_use"}}"#,
    ];
    assert_eq!(lines, expected);
}

#[test]
fn only_a_pause_is_one() {
    for (reason, expected) in [("pause_turn", true), ("end_turn", false), ("new", false)] {
        let mut decoder = MessagesDecoder::default();
        let mut events = Events::new();
        let data = format!(r#"{{"type":"message_delta","delta":{{"stop_reason":"{reason}"}}}}"#);
        decoder.handle_data(&data, &mut events).unwrap();
        decoder.handle_data(r#"{"type":"message_stop"}"#, &mut events).unwrap();
        assert_eq!(decoder.is_paused(), expected, "{reason}");
        let stop_reason =
            if reason == "end_turn" { StopReason::EndTurn } else { StopReason::Other };
        assert_eq!(events, [StreamEvent::Done { stop_reason }]);
    }
}

fn fixtures() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/anthropic-messages");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut streams: Vec<_> = files.filter(|path| path.extension().unwrap() == "sse").collect();
    streams.sort();
    assert!(streams.len() > 30);
    streams
}

fn lines(pieces: &[&[u8]]) -> String {
    let (events, error) = decode_as::<MessagesDecoder>(pieces.iter().copied());
    let mut lines: Vec<_> =
        events.iter().map(|event| serde_json::to_string(event).unwrap()).collect();
    lines.extend(error.map(|error| format!("error: {error:?}")));
    lines.join("\n") + "\n"
}
