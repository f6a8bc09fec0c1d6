//! Events that are read without a parser: the same as with it.

use proptest::prelude::*;
use serde_json::{Value, json};
use toolloop_core::StreamEvent;
use toolloop_providers::codec::anthropic::MessagesDecoder;
use toolloop_providers::codec::ollama::OllamaDecoder;
use toolloop_providers::codec::openai_chat::ChatDecoder;
use toolloop_providers::codec::openai_responses::ResponsesDecoder;
use toolloop_providers::codec::{DecodeError, Decoder, Events};

type Decoded = (Vec<StreamEvent>, Option<DecodeError>);

fn decode<'a, D: Decoder>(chunks: impl IntoIterator<Item = &'a str>) -> Decoded {
    let mut decoder = D::default();
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
fn decode_parsed<D: Decoder>(chunks: &[String]) -> Decoded {
    let padded: Vec<_> = (1..).zip(chunks).map(|(n, chunk)| " ".repeat(n) + chunk).collect();
    decode::<D>(padded.iter().map(String::as_str))
}

fn decode_alike<D: Decoder>(chunks: &[String]) -> Result<(), TestCaseError> {
    let shortcut = decode::<D>(chunks.iter().map(String::as_str));
    prop_assert_eq!(shortcut, decode_parsed::<D>(chunks));
    Ok(())
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
    let parts = (delta, finish, usage, index, model, unread());
    parts.prop_map(|(delta, finish, usage, index, model, created)| {
        let choice = json!({"index": index, "delta": delta, "finish_reason": finish});
        json!({"created": created, "model": model, "choices": [choice], "usage": usage}).to_string()
    })
}

/// The value of a member that is passed over.
fn unread() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => (0..1000u32).prop_map(|n| json!(n)),
        2 => "[0-9:]{0,5}".prop_map(|text| json!(text)),
        1 => text().prop_map(|text| json!(text)),
        1 => prop::sample::select(vec![json!(null), json!(1.5), json!(-1), json!({"created": 1})]),
    ]
}

/// Events in runs of alike ones, which differ in what is put into them.
fn runs(
    kinds: impl Strategy<Value = Value>,
    put: fn(&mut Value, (String, Value)),
) -> impl Strategy<Value = Vec<Value>> {
    let run = (kinds, prop::collection::vec((text(), unread()), 1..8));
    let alike = move |(kind, pieces): (Value, Vec<(String, Value)>)| {
        let put = move |piece| {
            let mut event = kind.clone();
            put(&mut event, piece);
            event
        };
        pieces.into_iter().map(put).collect::<Vec<_>>()
    };
    prop::collection::vec(run.prop_map(alike), 1..6).prop_map(|runs| runs.concat())
}

/// Deltas of the Messages API, for four blocks of different kinds.
fn block_delta() -> impl Strategy<Value = Value> {
    let member = prop::sample::select(vec![
        ("text_delta", "text"),
        ("thinking_delta", "thinking"),
        ("signature_delta", "signature"),
        ("input_json_delta", "partial_json"),
        ("new_delta", "text"),
    ]);
    let delta = (0..5, member).prop_map(|(index, (kind, member))| {
        let delta = json!({"type": kind, member: ""});
        json!({"type": "content_block_delta", "index": index, "delta": delta})
    });
    let stop = (0..4).prop_map(|index| json!({"type": "content_block_stop", "index": index}));
    prop_oneof![8 => delta, 1 => stop, 1 => Just(json!({"type": "ping"}))]
}

/// Events of the Responses API, for items of different kinds.
fn item_delta() -> impl Strategy<Value = Value> {
    let kind = prop::sample::select(vec![
        "output_text",
        "refusal",
        "reasoning_text",
        "reasoning_summary_text",
        "function_call_arguments",
        "code_interpreter_call_code",
    ]);
    (kind, 0..3, 0..2).prop_map(|(kind, index, part)| {
        json!({
            "type": format!("response.{kind}.delta"), "sequence_number": 0, "output_index": index,
            "summary_index": part, "delta": "", "logprobs": [],
        })
    })
}

/// Lines of Ollama.
fn line() -> impl Strategy<Value = Value> {
    let member = prop::sample::select(vec!["content", "thinking", "both", "call"]);
    let done = prop_oneof![20 => Just(false), 1 => Just(true)];
    (prop::sample::select(vec!["m", "n"]), member, done).prop_map(|(model, member, done)| {
        let call = json!([{"function": {"name": "f", "arguments": {}}}]);
        let message = match member {
            "content" => json!({"role": "assistant", "content": ""}),
            "thinking" => json!({"role": "assistant", "content": "", "thinking": ""}),
            "both" => json!({"role": "assistant", "thinking": "x", "content": ""}),
            _ => json!({"role": "assistant", "content": "", "tool_calls": call}),
        };
        json!({"model": model, "created_at": 0, "message": message, "done": done})
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn the_shortcut_never_shows(chunks in prop::collection::vec(chunk(), 0..24)) {
        decode_alike::<ChatDecoder>(&chunks)?;
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
        decode_alike::<ChatDecoder>(&chunks)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn blocks_of_anthropic_are_read_alike(
        deltas in runs(block_delta(), |event, (text, _)| {
            let member = event["delta"].as_object_mut().and_then(|delta| delta.values_mut().nth(1));
            member.into_iter().for_each(|member| *member = json!(text));
        }),
        spaces in prop::collection::vec(0..3usize, 40),
    ) {
        let kinds = [
            json!({"type": "text", "text": ""}),
            json!({"type": "thinking", "thinking": "", "signature": ""}),
            json!({"type": "tool_use", "id": "a", "name": "f", "input": {}}),
            json!({"type": "server_tool_use", "id": "b", "name": "g", "input": {}}),
        ];
        let start = |(index, block)| {
            json!({"type": "content_block_start", "index": index, "content_block": block})
        };
        let end = json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}});
        let events = (0..).zip(kinds).map(start).chain(deltas).chain([end]);
        let padded = events.zip(spaces).map(|(event, spaces)| {
            let event = event.to_string();
            format!("{}{}}}", &event[..event.len() - 1], " ".repeat(spaces))
        });
        decode_alike::<MessagesDecoder>(&padded.collect::<Vec<_>>())?;
    }

    #[test]
    fn items_of_responses_are_read_alike(
        deltas in runs(item_delta(), |event, (text, number)| {
            event["sequence_number"] = number;
            event["delta"] = json!(text);
        }),
    ) {
        let kinds = [
            json!({"type": "message", "id": "a", "content": []}),
            json!({"type": "reasoning", "id": "b", "summary": []}),
            json!({"type": "function_call", "id": "c", "call_id": "d", "name": "f"}),
        ];
        let added = |(index, item)| {
            json!({"type": "response.output_item.added", "output_index": index, "item": item})
        };
        let end = json!({"type": "response.completed", "response": {"status": "completed"}});
        let events = (0..).zip(kinds).map(added).chain(deltas).chain([end]);
        let events: Vec<_> = events.map(|event| event.to_string()).collect();
        decode_alike::<ResponsesDecoder>(&events)?;
    }

    #[test]
    fn lines_of_ollama_are_read_alike(
        lines in runs(line(), |line, (text, created_at)| {
            line["created_at"] = created_at;
            let member = line["message"].as_object_mut().and_then(|m| m.values_mut().last());
            member.into_iter().filter(|m| m.is_string()).for_each(|m| *m = json!(text));
        }),
    ) {
        let lines: Vec<_> = lines.iter().map(Value::to_string).collect();
        decode_alike::<OllamaDecoder>(&lines)?;
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
