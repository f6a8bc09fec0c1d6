//! The Gemini API: answers of every kind, wherever the bytes are cut, and the provider over a
//! connection.

use std::time::Duration;

use serde_json::{Value, json};
use toolloop_core::{
    ChatMessage, ChatParams, ChatRole, LlmError, Provider, ReplyAssembler, StopReason, StreamEvent,
    Usage,
};
use toolloop_fake::{Call, FakeServer, Reply, Script};
use toolloop_providers::GeminiProvider;
use toolloop_providers::codec::gemini::{GeminiDecoder, encode};
use toolloop_providers::codec::{ApiError, DecodeError, Decoder, Events};

use crate::support::decode::{decode_as, text_of};
use crate::support::server::{Server, answer, json as json_answer};

fn decode(body: &str) -> (Vec<StreamEvent>, Option<DecodeError>) {
    let whole = decode_as::<GeminiDecoder>([body.as_bytes()]);
    for cut in 0..=body.len() {
        let (first, second) = body.as_bytes().split_at(cut);
        assert_eq!(decode_as::<GeminiDecoder>([first, second]), whole, "cut at {cut}");
    }
    whole
}

/// A stream of candidates, as the API frames it.
fn stream(candidates: &[Value]) -> String {
    let event = |candidate: &Value| format!("data: {}\r\n\r\n", json!({"candidates": [candidate]}));
    candidates.iter().map(event).collect()
}

fn parts(parts: Value) -> Value {
    json!({"content": {"role": "model", "parts": parts}})
}

fn finish(reason: &str) -> Value {
    json!({"finishReason": reason})
}

fn stop_of(candidates: &[Value]) -> Option<StopReason> {
    match decode(&stream(candidates)) {
        (events, None) => events.last().and_then(|event| match event {
            StreamEvent::Done { stop_reason } => Some(*stop_reason),
            _ => None,
        }),
        (_, Some(error)) => panic!("{error}"),
    }
}

#[test]
fn a_reply_comes_back_as_the_next_request_says_it() {
    let body = format!(
        "data: {}\r\n\r\n{}",
        json!({"modelVersion": "gemini-3", "responseId": "r1",
            "usageMetadata": {"promptTokenCount": 9, "toolUsePromptTokenCount": 1,
                "candidatesTokenCount": 2, "thoughtsTokenCount": 3, "cachedContentTokenCount": 4}}),
        stream(&[
            parts(json!([{"text": "Hm.", "thought": true, "thoughtSignature": "c2ln"}])),
            parts(json!([{"text": "Hel"}])),
            parts(json!([{"text": "lo", "thoughtSignature": "dGV4dA=="}])),
            parts(
                json!([{"functionCall": {"name": "add", "args": {"x": 1}}, "thoughtSignature": "YQ=="}])
            ),
            parts(json!([{"functionCall": {"name": "add", "id": "own"}}])),
            finish("STOP"),
        ])
    );
    let (events, error) = decode(&body);
    assert_eq!(error, None);
    let usage = Usage {
        input_tokens: 10,
        output_tokens: 5,
        reasoning_tokens: Some(3),
        cache_read_tokens: Some(4),
        ..Usage::default()
    };
    assert!(events.contains(&StreamEvent::Usage(usage)), "{events:?}");
    assert!(events.contains(&StreamEvent::RequestId("r1".into())), "{events:?}");
    let mut assembler = ReplyAssembler::detached();
    for event in events {
        assembler.push(event).unwrap();
    }
    let reply = assembler.into_response().unwrap();
    assert_eq!((reply.model.as_str(), reply.stop_reason), ("gemini-3", StopReason::ToolUse));
    let messages = vec![
        ChatMessage::user("Hi"),
        ChatMessage { role: ChatRole::Assistant, content: reply.content },
        ChatMessage::tool_result("r1_0", "1"),
        ChatMessage::tool_result("own", "2"),
    ];
    let params = ChatParams { messages, ..ChatParams::default() };
    let next: Value =
        serde_json::from_slice(&encode("gemini-3-pro-preview", &params).unwrap()).unwrap();
    let expected = json!([
        {"text": "Hm.", "thought": true, "thoughtSignature": "c2ln"},
        {"text": "Hel"},
        {"text": "lo", "thoughtSignature": "dGV4dA=="},
        {"functionCall": {"id": "r1_0", "name": "add", "args": {"x": 1}}, "thoughtSignature": "YQ=="},
        {"functionCall": {"id": "own", "name": "add", "args": {}}},
    ]);
    assert_eq!(next["contents"][1]["parts"], expected);
}

#[test]
fn what_stands_beside_a_text_does_not_hide_it() {
    let part = json!({"text": "Hi", "partMetadata": {"a": 1}, "inlineData": null});
    let (events, error) = decode(&stream(&[parts(json!([part])), finish("STOP")]));
    assert_eq!((text_of(&events).as_str(), events.len(), error), ("Hi", 2, None));
}

#[test]
fn finish_reasons_are_mapped() {
    let hi = parts(json!([{"text": "Hi"}]));
    for (word, stop) in [
        ("STOP", StopReason::EndTurn),
        ("MAX_TOKENS", StopReason::MaxTokens),
        ("SAFETY", StopReason::Refusal),
        ("RECITATION", StopReason::Refusal),
        ("PROHIBITED_CONTENT", StopReason::Refusal),
        ("OTHER", StopReason::Other),
        ("A_NEW_ONE", StopReason::Other),
    ] {
        assert_eq!(stop_of(&[hi.clone(), finish(word)]), Some(stop), "{word}");
    }
    assert_eq!(stop_of(std::slice::from_ref(&hi)), None);
    let blocked = "data: {\"promptFeedback\": {\"blockReason\": \"SAFETY\"}}\n\n";
    let refusal = StreamEvent::Done { stop_reason: StopReason::Refusal };
    assert_eq!(decode(blocked), (vec![refusal], None));
}

#[test]
fn failures_of_the_model_are_errors() {
    let candidate = json!({"finishReason": "MALFORMED_FUNCTION_CALL",
        "finishMessage": "Malformed function call: print(1)"});
    let (_, error) = decode(&stream(&[candidate]));
    let expected = ApiError {
        message: "the model wrote a function call that cannot be read (MALFORMED_FUNCTION_CALL): \
            Malformed function call: print(1)"
            .into(),
        code: Some("malformed_function_call".into()),
        ..ApiError::default()
    };
    assert_eq!(error, Some(DecodeError::Api(expected)));
    let body = "data: {\"error\": {\"code\": 503, \"message\": \"Busy.\", \"status\": \"UNAVAILABLE\"}}\n\n";
    let expected = ApiError {
        message: "Busy.".into(),
        code: Some("UNAVAILABLE".into()),
        status: Some(503),
        ..ApiError::default()
    };
    assert_eq!(decode(body).1, Some(DecodeError::Api(expected)));
    for foreign in ["data: {\"choices\": []}\n\n", "data: 3\n\n", "data: {\n\n"] {
        assert!(matches!(decode(foreign).1, Some(DecodeError::Malformed { .. })), "{foreign}");
    }
}

#[test]
fn a_call_that_the_limit_cuts_is_not_complete() {
    let pieces = [
        parts(json!([{"functionCall": {"name": "add", "willContinue": true}}])),
        parts(json!([{"functionCall": {"willContinue": true, "partialArgs": [
            {"jsonPath": "$.x", "stringValue": "lo", "willContinue": true}]}}])),
        finish("MAX_TOKENS"),
    ];
    let (events, _) = decode(&stream(&pieces));
    let expected = [
        StreamEvent::ToolCallStart { index: 0, id: String::new(), name: "add".into() },
        StreamEvent::ToolCallDelta { index: 0, json_chunk: "{\"x\":\"lo".into() },
        StreamEvent::Done { stop_reason: StopReason::MaxTokens },
    ];
    assert_eq!(events, expected);
}

#[test]
fn an_answer_goes_on_after_code_that_ran() {
    let mut decoder = GeminiDecoder::default();
    let mut events = Events::new();
    let mut handle = |candidate: Value| {
        let data = json!({"candidates": [candidate]}).to_string();
        decoder.handle_data(&data, &mut events).unwrap();
        decoder.is_finished()
    };
    let code = json!([{"executableCode": {"code": "1"}}]);
    assert!(!handle(json!({"content": {"parts": code}, "finishReason": "STOP"})));
    assert!(handle(parts(json!([{"codeExecutionResult": {"output": "1"}}]))));
    assert!(handle(json!({"content": {"parts": [{"text": "One."}]}, "finishReason": "STOP"})));
}

/// Without `alt=sse`, which a gateway may lose, the API sends its events as one list.
#[tokio::test]
async fn a_list_in_place_of_a_stream_is_read_as_well() {
    let events = json!([
        {"candidates": [parts(json!([{"text": "Hel"}]))], "modelVersion": "m"},
        {"candidates": [parts(json!([{"text": "lo"}, {"functionCall": {"name": "add", "args": {}}}]))]},
        {"candidates": [finish("STOP")],
            "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 2}},
    ]);
    let failed =
        json!([{"error": {"code": 503, "message": "Overloaded", "status": "UNAVAILABLE"}}]);
    let server =
        Server::start([&events, &failed].map(|list| json_answer("200 OK", &list.to_string())))
            .await;
    let builder = GeminiProvider::builder("gemini-2.5-flash").base_url(&server.url).api_key("key");
    let provider = builder.max_retries(0).build().unwrap();
    let params = ChatParams { messages: vec![ChatMessage::user("Hi")], ..ChatParams::default() };
    let response = provider.generate(&params).await.unwrap();
    assert_eq!((response.text(), response.stop_reason), (Some("Hello"), StopReason::ToolUse));
    assert_eq!((response.tool_calls().len(), response.usage.output_tokens), (1, 2));
    let error = provider.generate(&params).await.unwrap_err();
    assert_eq!((error.status(), error.is_retryable()), (Some(503), true), "{error}");
}

#[tokio::test]
async fn the_provider_asks_with_the_key_in_a_header() {
    let script = Script::new([Reply::text("Hi").call(Call::new("add", json!({"x": 1})))]);
    let fake = FakeServer::start(script.require_key("right-0123456789").models(["gemini-2.5-pro"]));
    let provider = |key: &str| {
        GeminiProvider::builder("gemini-2.5-pro")
            .base_url(format!("http://{}", fake.address()))
            .api_key(key)
            .build()
            .unwrap()
    };
    let params = ChatParams { messages: vec![ChatMessage::user("Hi")], ..ChatParams::default() };
    let reply = provider("right-0123456789").generate(&params).await.unwrap();
    assert_eq!((reply.text(), reply.stop_reason), (Some("Hi"), StopReason::ToolUse));
    assert_eq!(reply.tool_calls()[0].arguments, json!({"x": 1}));
    let asked = &fake.requests()[0];
    assert_eq!(asked.path, "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse");
    assert_eq!(asked.header("x-goog-api-key"), Some("****6789"));
    let models = provider("right-0123456789").list_models().await.unwrap();
    assert_eq!(models, ["gemini-2.5-pro"]);
    assert_eq!(fake.requests()[1].path, "/v1beta/models?pageSize=1000");

    let error = provider("wrong-0123456789").generate(&params).await.unwrap_err();
    assert!(matches!(error, LlmError::Auth(_)), "{error}");
    assert_eq!(error.status(), Some(400));
}

#[tokio::test]
async fn gemini_3_gets_its_signatures_back() {
    let calls = [Call::new("add", json!({"x": 1})), Call::new("add", json!({"x": 2}))];
    let fake = FakeServer::start(Script::new([Reply::calls(calls), Reply::text("3")]));
    let url = format!("http://{}", fake.address());
    let provider = GeminiProvider::builder("gemini-3-pro-preview").base_url(url).build().unwrap();
    let mut params =
        ChatParams { messages: vec![ChatMessage::user("Add.")], ..ChatParams::default() };
    let reply = provider.generate(&params).await.unwrap();
    let ids: Vec<_> = reply.tool_calls_iter().map(|call| call.id.clone()).collect();
    assert_eq!(ids, ["fake1_0", "fake1_1"]);
    params.messages.push(ChatMessage { role: ChatRole::Assistant, content: reply.content });
    params.messages.extend(ids.iter().map(|id| ChatMessage::tool_result(id, "ok")));
    assert_eq!(provider.generate(&params).await.unwrap().text(), Some("3"));
    let sent = &fake.requests()[1].body["contents"][1]["parts"];
    assert_eq!(sent[0]["thoughtSignature"], "fakeSignature+000001/");
    assert_eq!(sent[1]["thoughtSignature"], Value::Null);
}

#[tokio::test(start_paused = true)]
async fn errors_have_their_kinds_and_waits() {
    let limited = r#"{"error": {"code": 429, "message": "Slow down.", "status": "RESOURCE_EXHAUSTED",
        "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "7.5s"}]}}"#;
    let key_in_it = r#"{"error": {"code": 400, "message": "Key test-key-0123456789 is bad.", "status": "INVALID_ARGUMENT"}}"#;
    let missing = r#"{"error": {"code": 404, "message": "No model.", "status": "NOT_FOUND"}}"#;
    let server = Server::start([
        json_answer("429 Too Many Requests", limited),
        json_answer("400 Bad Request", key_in_it),
        json_answer("404 Not Found", missing),
        answer(
            "200 OK",
            &[("content-type", "text/event-stream")],
            &stream(&[json!({
                "finishReason": "MALFORMED_FUNCTION_CALL",
            })]),
        ),
    ])
    .await;
    let provider = GeminiProvider::builder("m")
        .base_url(&server.url)
        .api_key("test-key-0123456789")
        .max_retries(0)
        .build()
        .unwrap();
    let params = ChatParams { messages: vec![ChatMessage::user("Hi")], ..ChatParams::default() };
    let limited = provider.generate(&params).await.unwrap_err();
    assert!(limited.is_retryable());
    assert_eq!(limited.retry_after(), Some(Duration::from_millis(7500)));
    let refused = provider.generate(&params).await.unwrap_err();
    assert!(matches!(refused, LlmError::InvalidRequest(_)));
    assert_eq!(refused.to_string(), "invalid request: Key …6789 is bad.");
    let missing = provider.generate(&params).await.unwrap_err();
    assert_eq!(missing.to_string(), "invalid request: No model.");
    let malformed = provider.generate(&params).await.unwrap_err();
    assert!(malformed.is_retryable(), "{malformed}");
    assert!(
        server.requests().iter().all(|request| !request
            .split("\r\n")
            .next()
            .unwrap()
            .contains("key"))
    );
}
