//! Answers of the Messages API written by hand: the same events, wherever the bytes are cut.

use toolloop_core::{StopReason, StreamEvent};
use toolloop_providers::codec::anthropic::MessagesDecoder;
use toolloop_providers::codec::{Decoder, Events};

use crate::support::fixtures::{assert_cuts_change_nothing, assert_events};

#[test]
fn each_fixture_gives_its_events() {
    assert_events::<MessagesDecoder>("anthropic-messages", 30);
}

#[test]
fn a_cut_at_any_byte_changes_nothing() {
    assert_cuts_change_nothing::<MessagesDecoder>("anthropic-messages", 30);
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
