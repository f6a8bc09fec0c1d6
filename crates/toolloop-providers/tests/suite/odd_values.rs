//! Any member of any event may be of another type than an API says: nothing panics, what comes
//! before is kept, and figures that are none cost no reply.

use serde_json::{Value, json};
use toolloop_core::{StopReason, StreamEvent, Usage, UsageSource};
use toolloop_providers::codec::anthropic::MessagesDecoder;
use toolloop_providers::codec::gemini::GeminiDecoder;
use toolloop_providers::codec::ollama::OllamaDecoder;
use toolloop_providers::codec::openai_chat::ChatDecoder;
use toolloop_providers::codec::openai_responses::ResponsesDecoder;
use toolloop_providers::codec::{DecodeError, Decoder, Events};

type Decoded = (Vec<StreamEvent>, Option<DecodeError>);

/// One API, and a reply of it with text, thought, a call and figures.
struct Api {
    name: &'static str,
    decode: fn(&[String]) -> Decoded,
    reply: Vec<Value>,
    /// Where its figures are: event and pointer.
    figures: Vec<(usize, &'static str)>,
}

fn decode<D: Decoder>(reply: &[String]) -> Decoded {
    let (mut decoder, mut events) = (D::default(), Events::new());
    for data in reply {
        if let Err(error) = decoder.handle_data(data, &mut events) {
            return (events.into(), Some(error));
        }
    }
    decoder.handle_end(&mut events);
    (events.into(), None)
}

fn texts(reply: &[Value]) -> Vec<String> {
    reply.iter().map(Value::to_string).collect()
}

#[test]
fn no_value_makes_a_decoder_panic() {
    let odd = [
        json!(null),
        json!(true),
        json!(-1),
        json!(u64::MAX),
        json!(1e300),
        json!(0.5),
        json!(""),
        json!("x"),
        json!([]),
        json!([null]),
        json!([{}]),
        json!({}),
        json!({"error": {}}),
    ];
    let mut tried = 0;
    for api in apis() {
        for (at, event) in api.reply.iter().enumerate() {
            for place in places(event) {
                for value in &odd {
                    let mut reply = api.reply.clone();
                    *reply[at].pointer_mut(&place).unwrap() = value.clone();
                    let (events, error) = (api.decode)(&texts(&reply));
                    let whole = matches!(events.last(), Some(StreamEvent::Done { .. }));
                    assert!(!whole || error.is_none(), "{}: {place} is {value}", api.name);
                    tried += 1;
                }
            }
        }
    }
    println!("{tried} odd values");
    assert!(tried > 2000, "only {tried} values tried");
}

#[test]
fn odd_figures_cost_no_reply() {
    for api in apis() {
        let (whole, error) = (api.decode)(&texts(&api.reply));
        assert_eq!(error, None, "{}", api.name);
        for (at, figure) in &api.figures {
            for value in [json!(null), json!(-1), json!("?"), json!([]), json!({}), json!(1e300)] {
                let mut reply = api.reply.clone();
                *reply[*at].pointer_mut(figure).unwrap() = value.clone();
                let (events, error) = (api.decode)(&texts(&reply));
                assert_eq!(error, None, "{}: {figure} is {value}", api.name);
                assert_eq!(said(&events), said(&whole), "{}: {figure} is {value}", api.name);
            }
        }
    }
}

/// A whole number is one in whatever form it is written.
#[test]
fn figures_may_be_floats_or_words() {
    let chunk = json!({"choices": [{"delta": {"content": "Hi"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 12.0, "completion_tokens": "7", "total_tokens": -1,
            "prompt_tokens_details": "none"}});
    let usage = Usage {
        input_tokens: 12,
        output_tokens: 7,
        source: UsageSource::Reported,
        ..Usage::default()
    };
    let expected = vec![
        StreamEvent::TextDelta("Hi".into()),
        StreamEvent::Usage(usage),
        StreamEvent::Done { stop_reason: StopReason::EndTurn },
    ];
    assert_eq!(decode::<ChatDecoder>(&texts(&[chunk])), (expected, None));
}

/// A member for errors may be there in every answer, and say nothing.
#[test]
fn an_error_that_says_nothing_is_none() {
    for nothing in
        [json!({}), json!({"message": "", "type": "", "code": null}), json!(""), json!(false)]
    {
        let choice = json!({"delta": {"content": "Hi"}, "finish_reason": "stop"});
        let chunk = json!({"choices": [choice], "error": nothing});
        let expected = vec![
            StreamEvent::TextDelta("Hi".into()),
            StreamEvent::Done { stop_reason: StopReason::EndTurn },
        ];
        assert_eq!(decode::<ChatDecoder>(&texts(&[chunk])), (expected.clone(), None));

        let text = json!({"type": "response.output_text.delta", "output_index": 0, "delta": "Hi"});
        let end = json!({"type": "response.completed",
            "response": {"status": "completed", "error": nothing, "output": []}});
        assert_eq!(decode::<ResponsesDecoder>(&texts(&[text, end])), (expected, None));
    }
    // Alone, it is one.
    let (_, error) = decode::<ChatDecoder>(&texts(&[json!({"error": {"message": ""}})]));
    assert!(matches!(error, Some(DecodeError::Api(_))), "{error:?}");
}

/// Everything but figures.
fn said(events: &[StreamEvent]) -> Vec<&StreamEvent> {
    events.iter().filter(|event| !matches!(event, StreamEvent::Usage(_))).collect()
}

/// Pointers to all members and elements.
fn places(value: &Value) -> Vec<String> {
    let inner: Vec<(String, &Value)> = match value {
        Value::Object(members) => members.iter().map(|(k, v)| (k.clone(), v)).collect(),
        Value::Array(list) => list.iter().enumerate().map(|(at, v)| (at.to_string(), v)).collect(),
        _ => Vec::new(),
    };
    let mut places = Vec::new();
    for (name, value) in inner {
        let place = format!("/{}", name.replace('~', "~0").replace('/', "~1"));
        places.extend(places_below(&place, value));
        places.push(place);
    }
    places
}

fn places_below(place: &str, value: &Value) -> Vec<String> {
    places(value).into_iter().map(|below| format!("{place}{below}")).collect()
}

fn apis() -> Vec<Api> {
    vec![
        Api {
            name: "chat",
            decode: decode::<ChatDecoder>,
            reply: vec![
                json!({"model": "m", "choices": [{"index": 0, "delta": {"role": "assistant",
                    "reasoning_content": "Hm", "reasoning_details": [{"type": "x", "index": 0}]}}]}),
                json!({"choices": [{"index": 0, "delta": {"content": "Hi", "refusal": null}}]}),
                json!({"choices": [{"index": 0, "delta": {"content": [{"type": "text", "text": "!"}]}}]}),
                json!({"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "id": "c1",
                    "function": {"name": "add", "arguments": "{\"x\":"},
                    "extra_content": {"google": {"thought_signature": "YQ=="}}}]}}]}),
                json!({"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0,
                    "function": {"arguments": "1}"}}]}}]}),
                json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}),
                json!({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4,
                    "total_tokens": 9, "prompt_cache_hit_tokens": 1,
                    "prompt_tokens_details": {"cached_tokens": 1, "cache_write_tokens": 0},
                    "completion_tokens_details": {"reasoning_tokens": 2}}}),
            ],
            figures: vec![
                (6, "/usage"),
                (6, "/usage/prompt_tokens"),
                (6, "/usage/completion_tokens"),
                (6, "/usage/total_tokens"),
                (6, "/usage/prompt_tokens_details"),
                (6, "/usage/completion_tokens_details"),
                (6, "/usage/completion_tokens_details/reasoning_tokens"),
            ],
        },
        Api {
            name: "responses",
            decode: decode::<ResponsesDecoder>,
            reply: vec![
                json!({"type": "response.created", "response": {"model": "m", "status": "in_progress",
                    "output": []}}),
                json!({"type": "response.output_item.added", "output_index": 0,
                    "item": {"type": "reasoning", "id": "rs_1", "summary": []}}),
                json!({"type": "response.reasoning_summary_text.delta", "output_index": 0,
                    "summary_index": 0, "delta": "Hm"}),
                json!({"type": "response.output_item.done", "output_index": 0,
                    "item": {"type": "reasoning", "id": "rs_1", "encrypted_content": "gAAA",
                        "summary": [{"type": "summary_text", "text": "Hm"}]}}),
                json!({"type": "response.output_text.delta", "output_index": 1, "delta": "Hi"}),
                json!({"type": "response.output_item.done", "output_index": 1, "item": {
                    "type": "message", "id": "msg_1",
                    "content": [{"type": "output_text", "text": "Hi"}]}}),
                json!({"type": "response.output_item.added", "output_index": 2, "item": {
                    "type": "function_call", "id": "fc_1", "call_id": "c1", "name": "add",
                    "arguments": ""}}),
                json!({"type": "response.function_call_arguments.delta", "output_index": 2,
                    "delta": "{\"x\":1}"}),
                json!({"type": "response.function_call_arguments.done", "output_index": 2,
                    "arguments": "{\"x\":1}"}),
                json!({"type": "response.output_item.done", "output_index": 2, "item": {
                    "type": "function_call", "id": "fc_1", "call_id": "c1", "name": "add",
                    "arguments": "{\"x\":1}", "status": "completed"}}),
                json!({"type": "response.completed", "response": {"model": "m", "status": "completed",
                    "incomplete_details": null, "error": null, "output": [],
                    "usage": {"input_tokens": 3, "output_tokens": 4,
                        "input_tokens_details": {"cached_tokens": 1},
                        "output_tokens_details": {"reasoning_tokens": 2}}}}),
            ],
            figures: vec![
                (10, "/response/usage"),
                (10, "/response/usage/input_tokens"),
                (10, "/response/usage/output_tokens"),
                (10, "/response/usage/input_tokens_details"),
                (10, "/response/usage/output_tokens_details/reasoning_tokens"),
            ],
        },
        Api {
            name: "anthropic",
            decode: decode::<MessagesDecoder>,
            reply: vec![
                json!({"type": "message_start", "message": {"model": "m", "content": [],
                    "stop_reason": null, "usage": {"input_tokens": 3, "output_tokens": 1,
                        "cache_read_input_tokens": 1, "cache_creation_input_tokens": 0}}}),
                json!({"type": "content_block_start", "index": 0,
                    "content_block": {"type": "thinking", "thinking": "", "signature": ""}}),
                json!({"type": "content_block_delta", "index": 0,
                    "delta": {"type": "thinking_delta", "thinking": "Hm"}}),
                json!({"type": "content_block_delta", "index": 0,
                    "delta": {"type": "signature_delta", "signature": "YQ=="}}),
                json!({"type": "content_block_stop", "index": 0}),
                json!({"type": "content_block_start", "index": 1,
                    "content_block": {"type": "text", "text": "", "citations": []}}),
                json!({"type": "content_block_delta", "index": 1,
                    "delta": {"type": "text_delta", "text": "Hi"}}),
                json!({"type": "content_block_delta", "index": 1,
                    "delta": {"type": "citations_delta", "citation": {"url": "u"}}}),
                json!({"type": "content_block_stop", "index": 1}),
                json!({"type": "content_block_start", "index": 2, "content_block": {
                    "type": "tool_use", "id": "c1", "name": "add", "input": {},
                    "caller": {"type": "direct"}}}),
                json!({"type": "content_block_delta", "index": 2,
                    "delta": {"type": "input_json_delta", "partial_json": "{\"x\":1}"}}),
                json!({"type": "content_block_stop", "index": 2}),
                json!({"type": "content_block_start", "index": 3, "content_block": {
                    "type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}}),
                json!({"type": "content_block_delta", "index": 3,
                    "delta": {"type": "input_json_delta", "partial_json": "{}"}}),
                json!({"type": "content_block_stop", "index": 3}),
                json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"},
                    "usage": {"input_tokens": 3, "output_tokens": 4,
                        "output_tokens_details": {"thinking_tokens": 2}}}),
                json!({"type": "message_stop"}),
            ],
            figures: vec![
                (0, "/message/usage"),
                (0, "/message/usage/input_tokens"),
                (0, "/message/usage/cache_read_input_tokens"),
                (0, "/message/content"),
                (15, "/usage"),
                (15, "/usage/output_tokens"),
                (15, "/usage/output_tokens_details"),
            ],
        },
        Api {
            name: "gemini",
            decode: decode::<GeminiDecoder>,
            reply: vec![
                json!({"modelVersion": "m", "responseId": "r1", "candidates": [{"index": 0,
                    "content": {"role": "model", "parts": [{"text": "Hm", "thought": true}]}}]}),
                json!({"candidates": [{"content": {"parts": [{"text": "Hi",
                    "thoughtSignature": "YQ=="}]}}]}),
                json!({"candidates": [{"content": {"parts": [{"functionCall": {"name": "add",
                    "id": "c1", "args": {"x": 1}}, "thoughtSignature": "YQ=="}]}}]}),
                json!({"candidates": [{"content": {"parts": [{"functionCall": {"name": "add",
                    "partialArgs": [{"jsonPath": "$.x", "numberValue": 1, "willContinue": false}],
                    "willContinue": true}}]}}]}),
                json!({"candidates": [{"content": {"parts": [{"functionCall": {}}]}}]}),
                json!({"candidates": [{"content": {"parts": [{"executableCode": {"code": "1"}},
                    {"codeExecutionResult": {"output": "1"}}]}}]}),
                json!({"candidates": [{"finishReason": "STOP", "finishMessage": ""}],
                    "promptFeedback": {"blockReason": ""},
                    "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 4,
                        "thoughtsTokenCount": 2, "cachedContentTokenCount": 1,
                        "toolUsePromptTokenCount": 1}}),
            ],
            figures: vec![
                (6, "/usageMetadata"),
                (6, "/usageMetadata/promptTokenCount"),
                (6, "/usageMetadata/candidatesTokenCount"),
                (6, "/usageMetadata/thoughtsTokenCount"),
            ],
        },
        Api {
            name: "ollama",
            decode: decode::<OllamaDecoder>,
            reply: vec![
                json!({"model": "m", "message": {"role": "assistant", "thinking": "Hm"}, "done": false}),
                json!({"model": "m", "message": {"content": "Hi"}, "done": false}),
                json!({"message": {"content": "", "tool_calls": [{"id": "c1",
                    "function": {"name": "add", "arguments": {"x": 1}}}]}, "done": false}),
                json!({"message": {"content": ""}, "done": true, "done_reason": "stop",
                    "prompt_eval_count": 3, "eval_count": 4}),
            ],
            figures: vec![(3, "/prompt_eval_count"), (3, "/eval_count")],
        },
    ]
}
