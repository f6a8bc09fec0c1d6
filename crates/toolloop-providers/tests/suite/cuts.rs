//! Recorded streams of every API, cut anywhere: how a body comes in pieces changes nothing.

use std::path::Path;

use serde_json::Value;
use toolloop_core::StreamEvent;
use toolloop_providers::codec::DecodeError;
use toolloop_providers::codec::anthropic::MessagesDecoder;
use toolloop_providers::codec::gemini::GeminiDecoder;
use toolloop_providers::codec::ollama::OllamaDecoder;
use toolloop_providers::codec::openai_chat::ChatDecoder;
use toolloop_providers::codec::openai_responses::ResponsesDecoder;

use crate::support::corpus::{folder, random_pieces, read, seed};
use crate::support::decode::decode_as;

type Decode = fn(&[&[u8]]) -> (Vec<StreamEvent>, Option<DecodeError>);

#[test]
fn a_stream_may_be_cut_at_random_bytes() {
    let Some(folder) = folder() else { return };
    let mut seed = seed();
    let streams = streams(&folder);
    for Recording { name, body, decode } in &streams {
        let whole = decode(&[body]);
        for _ in 0..3 {
            assert_eq!(decode(&random_pieces(body, &mut seed)), whole, "{name}");
        }
    }
    println!("{} streams", streams.len());
}

#[test]
fn the_smallest_streams_may_be_cut_at_any_byte() {
    let Some(folder) = folder() else { return };
    for Recording { name, body, decode } in &streams(&folder)[..50] {
        let whole = decode(&[body]);
        for cut in 0..=body.len() {
            let (first, second) = body.split_at(cut);
            assert_eq!(decode(&[first, second]), whole, "{name} cut at {cut}");
        }
        let bytes: Vec<_> = body.chunks(1).collect();
        assert_eq!(decode(&bytes), whole, "{name} byte by byte");
    }
}

struct Recording {
    name: String,
    body: Vec<u8>,
    decode: Decode,
}

/// All streams of APIs that are spoken here, the smallest first.
fn streams(folder: &Path) -> Vec<Recording> {
    let manifest = read(&folder.join("manifest.json"));
    let mut streams: Vec<_> = manifest["streams"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|stream| {
            let name = stream["file"].as_str().unwrap().to_owned();
            let body = std::fs::read(folder.join(&name)).unwrap();
            Some(Recording { name, body, decode: decoder(&stream["api"])? })
        })
        .collect();
    assert!(streams.len() >= 305, "only {} streams found", streams.len());
    streams.sort_by_key(|stream| stream.body.len());
    streams
}

fn decoder(api: &Value) -> Option<Decode> {
    Some(match api.as_str().unwrap() {
        "openai-chat" => |pieces| decode_as::<ChatDecoder>(pieces.iter().copied()),
        "openai-responses" => |pieces| decode_as::<ResponsesDecoder>(pieces.iter().copied()),
        "anthropic-messages" => |pieces| decode_as::<MessagesDecoder>(pieces.iter().copied()),
        "gemini" => |pieces| decode_as::<GeminiDecoder>(pieces.iter().copied()),
        "ollama" => |pieces| decode_as::<OllamaDecoder>(pieces.iter().copied()),
        _ => return None,
    })
}
