//! Chunks that are read without a parser: the same events as with it.

use proptest::prelude::*;
use serde_json::{Value, json};
use toolloop_core::StreamEvent;
use toolloop_providers::codec::openai_chat::ChatDecoder;
use toolloop_providers::codec::{DecodeError, Decoder, Events};

type Decoded = (Vec<StreamEvent>, Option<DecodeError>);

fn decode<'a>(chunks: impl IntoIterator<Item = &'a str>) -> Decoded {
    let mut decoder = ChatDecoder::default();
    let mut events = Events::new();
    for chunk in chunks {
        if let Err(error) = decoder.handle_data(chunk, &mut events) {
            return (events.into(), Some(error));
        }
    }
    decoder.handle_end(&mut events);
    (events.into(), None)
}

/// The same chunks, each with another number of spaces in front: no two are alike, so that every
/// one is parsed.
fn decode_parsed(chunks: &[String]) -> Decoded {
    let padded: Vec<_> = (1..).zip(chunks).map(|(n, chunk)| " ".repeat(n) + chunk).collect();
    decode(padded.iter().map(String::as_str))
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-z ]{0,4}",
        1 => "[\"\\\\\n\u{7f}é🌍\u{0}/{}]{1,3}",
        1 => prop::sample::select(vec![
            "\",\"refusal\":\"no".to_owned(), "\\\"".to_owned(), "\"}}".to_owned(),
            "{".to_owned(), "}".to_owned(), "{}".to_owned(), String::new(),
        ]),
    ]
}

fn call() -> impl Strategy<Value = Value> {
    let index = prop_oneof![Just(json!(0)), Just(json!(1)), Just(Value::Null)];
    let word = |words: &[&'static str]| prop::sample::select(words.to_vec());
    (index, word(&["", "a", "b"]), word(&["", "f", "g"]), text()).prop_map(
        |(index, id, name, arguments)| {
            json!({"index": index, "id": id, "function": {"name": name, "arguments": arguments}})
        },
    )
}

fn chunk() -> impl Strategy<Value = String> {
    let delta = prop_oneof![
        4 => text().prop_map(|text| json!({"content": text})),
        2 => text().prop_map(|text| json!({"content": "", "reasoning": text})),
        1 => (text(), text())
            .prop_map(|(a, b)| json!({"reasoning_content": a, "reasoning": b})),
        1 => text().prop_map(|text| json!({"refusal": text})),
        1 => (text(), text()).prop_map(|(a, b)| json!({"content": a, "reasoning": b})),
        1 => text().prop_map(|text| json!([{"text": text}])).prop_map(|p| json!({"content": p})),
        4 => call().prop_map(|call| json!({"tool_calls": [call]})),
        1 => (call(), call()).prop_map(|(a, b)| json!({"tool_calls": [a, b]})),
        1 => (call(), text())
            .prop_map(|(call, text)| json!({"tool_calls": [call], "content": text})),
    ];
    let finish = prop_oneof![8 => Just(Value::Null), 1 => Just(json!("stop"))];
    let usage = prop_oneof![
        8 => Just(Value::Null),
        1 => (0..3u64).prop_map(|n| json!({"prompt_tokens": n, "completion_tokens": n})),
    ];
    let index = prop_oneof![8 => Just(0), 1 => Just(1)];
    let model = prop_oneof![8 => Just("m"), 1 => Just("n")];
    (delta, finish, usage, index, model).prop_map(|(delta, finish, usage, index, model)| {
        let choice = json!({"index": index, "delta": delta, "finish_reason": finish});
        json!({"model": model, "choices": [choice], "usage": usage}).to_string()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn the_shortcut_never_shows(chunks in prop::collection::vec(chunk(), 0..24)) {
        let shortcut = decode(chunks.iter().map(String::as_str));
        prop_assert_eq!(shortcut, decode_parsed(&chunks));
    }

    /// Runs of alike chunks, in which the shortcut is taken most.
    #[test]
    fn nor_in_long_runs(
        first in chunk(),
        runs in prop::collection::vec((chunk(), prop::collection::vec(text(), 1..8)), 1..6),
    ) {
        let mut chunks = vec![first];
        for (template, texts) in runs {
            let template: Value = serde_json::from_str(&template).unwrap();
            for text in texts {
                let mut chunk = template.clone();
                replace(&mut chunk["choices"][0]["delta"], &text);
                chunks.push(chunk.to_string());
            }
        }
        let shortcut = decode(chunks.iter().map(String::as_str));
        prop_assert_eq!(shortcut, decode_parsed(&chunks));
    }
}

/// Puts the text where the parser would find it first.
fn replace(delta: &mut Value, text: &str) {
    let pointers = [
        "/tool_calls/0/function/arguments",
        "/refusal",
        "/reasoning_content",
        "/reasoning",
        "/content",
    ];
    for pointer in pointers {
        if let Some(place) = delta.pointer_mut(pointer).filter(|place| place.is_string()) {
            *place = json!(text);
            return;
        }
    }
}
