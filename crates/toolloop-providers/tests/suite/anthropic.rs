//! The Anthropic provider over a connection: headers, errors, and replies that pause.

use std::time::Duration;

use futures_util::StreamExt;
use serde_json::{Value, json};
use toolloop_core::{
    ChatMessage, ChatParams, ChatRole, ContentBlock, LlmError, Provider, RateLimits,
    ReplyAssembler, StopReason, StreamEvent, Usage, UsageSource,
};
use toolloop_providers::{AnthropicProvider, AnthropicProviderBuilder};

use crate::support::server::{Act, KEY, Server, answer, json as json_answer};

fn builder(server: &Server) -> AnthropicProviderBuilder {
    AnthropicProvider::builder("claude-sonnet-4-5")
        .base_url(&server.url)
        .api_key(KEY)
        .max_retries(0)
}

fn hello() -> ChatParams {
    ChatParams { messages: vec![ChatMessage::user("Hi")], ..ChatParams::default() }
}

fn stream(name: &str) -> Vec<Act> {
    let path =
        format!("{}/tests/fixtures/anthropic-messages/{name}.sse", env!("CARGO_MANIFEST_DIR"));
    replies(&std::fs::read_to_string(path).unwrap())
}

fn replies(body: &str) -> Vec<Act> {
    let headers = [
        ("content-type", "text/event-stream; charset=utf-8"),
        ("request-id", "req_1"),
        ("anthropic-ratelimit-requests-remaining", "49"),
    ];
    answer("200 OK", &headers, body)
}

fn body_of(request: &str) -> Value {
    serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap()
}

#[tokio::test]
async fn a_request_has_the_headers_of_the_api() {
    let server = Server::start([stream("text")]).await;
    let provider = builder(&server).build().unwrap();
    let events: Vec<_> = provider.stream(&hello()).await.unwrap().collect().await;
    let events: Vec<_> = events.into_iter().map(Result::unwrap).collect();
    assert_eq!(events[0], StreamEvent::RequestId("req_1".into()));
    let limits = RateLimits { remaining_requests: Some(49), ..RateLimits::default() };
    assert_eq!(events[1], StreamEvent::RateLimits(limits));
    assert_eq!(events.last(), Some(&StreamEvent::Done { stop_reason: StopReason::EndTurn }));
    let request = &server.requests()[0];
    assert!(request.starts_with("POST /v1/messages HTTP/1.1\r\n"), "{request}");
    for header in [format!("x-api-key: {KEY}"), "anthropic-version: 2023-06-01".into()] {
        assert!(request.contains(&format!("{header}\r\n")), "{request}");
    }
}

async fn refused(status: &str, headers: &[(&str, &str)], body: &str) -> LlmError {
    let mut all = vec![("content-type", "application/json"), ("request-id", "req_9")];
    all.extend_from_slice(headers);
    let server = Server::start([answer(status, &all, body)]).await;
    builder(&server).build().unwrap().generate(&hello()).await.unwrap_err()
}

fn error(kind: &str, message: &str) -> String {
    json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_9"})
        .to_string()
}

#[tokio::test]
async fn a_refusal_is_told_in_the_words_of_the_api() {
    let wrong_key = error("authentication_error", "invalid x-api-key");
    let denied = refused("401 Unauthorized", &[], &wrong_key).await;
    assert!(matches!(&denied, LlmError::Auth(m) if &**m == "invalid x-api-key"), "{denied}");
    assert_eq!(denied.request_id(), Some("req_9"));

    let long = "prompt is too long: 3333404 tokens > 200000 maximum";
    let wrong = refused("400 Bad Request", &[], &error("invalid_request_error", long)).await;
    assert!(matches!(&wrong, LlmError::InvalidRequest(m) if &**m == long), "{wrong}");

    let gone = refused("404 Not Found", &[], &error("not_found_error", "model: x")).await;
    assert!(matches!(gone, LlmError::InvalidRequest(_)), "{gone}");

    let after = [("retry-after", "7")];
    let busy = refused("429 Too Many Requests", &after, &error("rate_limit_error", "Slow")).await;
    assert_eq!((busy.is_retryable(), busy.retry_after()), (true, Some(Duration::from_secs(7))));

    let full = refused("529 Overloaded", &[], &error("overloaded_error", "Overloaded")).await;
    assert_eq!((full.is_retryable(), full.status()), (true, Some(529)), "{full}");
}

#[tokio::test]
async fn an_error_in_mid_stream_is_the_apis_and_keeps_what_came() {
    let server = Server::start([stream("error-event")]).await;
    let provider = builder(&server).build().unwrap();
    let events: Vec<_> = provider.stream(&hello()).await.unwrap().collect().await;
    let said = events.iter().flatten().find(|e| matches!(e, StreamEvent::TextDelta(_)));
    assert_eq!(said, Some(&StreamEvent::TextDelta("Hal".into())));
    let error = events.last().unwrap().as_ref().unwrap_err();
    assert!(
        matches!(error, LlmError::Provider { code, retryable: true, .. } if code == "overloaded_error"),
        "{error}"
    );
    for (name, code) in [("error-without-wrapper", "api_error"), ("error-bare", "rate_limit_error")]
    {
        let server = Server::start([stream(name)]).await;
        let error = builder(&server).build().unwrap().generate(&hello()).await.unwrap_err();
        assert!(
            matches!(&error, LlmError::Provider { code: c, retryable: true, .. } if c == code),
            "{error}"
        );
    }
}

#[tokio::test]
async fn a_reply_without_its_end_is_an_error() {
    let server = Server::start([stream("no-end")]).await;
    let error = builder(&server).build().unwrap().generate(&hello()).await.unwrap_err();
    assert!(matches!(error, LlmError::StreamInterrupted { .. }), "{error}");
}

#[tokio::test]
async fn an_overloaded_server_is_asked_again() {
    tokio::time::pause();
    let busy = json_answer("529 Overloaded", &error("overloaded_error", "Overloaded"));
    let server = Server::start([busy, stream("text")]).await;
    let provider = builder(&server).max_retries(1).build().unwrap();
    let response = provider.generate(&hello()).await.unwrap();
    assert_eq!(response.text(), Some("Hi ü\"\n😀"));
}

#[tokio::test]
async fn a_paused_reply_goes_on_in_the_same_stream() {
    let server = Server::start([replies(PAUSED), stream("parallel-calls"), stream("text")]).await;
    let search = json!({"type": "web_search_20250305", "name": "web_search"});
    let provider = builder(&server).caching(false).server_tool(search.clone()).build().unwrap();
    let response = provider.generate(&hello()).await.unwrap();

    let ids: Vec<_> = response.tool_calls_iter().map(|call| call.id.as_str()).collect();
    assert_eq!(ids, ["a", "toolu_1", "toolu_2"]);
    assert_eq!(response.stop_reason, StopReason::ToolUse);
    let usage = Usage { input_tokens: 20, output_tokens: 10, ..Usage::default() };
    assert_eq!(response.usage, usage);

    let block = json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search",
        "input": {"query": "x"}});
    let requests: Vec<_> = server.requests().iter().map(|request| body_of(request)).collect();
    let said = json!([
        {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
        {"role": "assistant", "content": [
            {"type": "text", "text": "Looking."},
            {"type": "tool_use", "id": "a", "name": "add", "input": {}},
            block,
        ]},
    ]);
    assert_eq!(requests.len(), 2);
    assert_eq!(requests[1]["messages"], said);
    assert_eq!(requests[1]["tools"], json!([search]));

    // In the history, both answers are one message.
    let ContentBlock::Text(first_text) = &response.content[0] else { panic!() };
    assert_eq!(first_text, "Looking.");
    let history = vec![
        ChatMessage::user("Hi"),
        ChatMessage { role: ChatRole::Assistant, content: response.content },
    ];
    let params = ChatParams { messages: history, ..ChatParams::default() };
    builder(&server).caching(false).build().unwrap().generate(&params).await.unwrap();
    let sent = body_of(&server.requests()[2]);
    let kinds = sent["messages"][1]["content"].as_array().unwrap().iter();
    let kinds: Vec<_> = kinds.map(|block| block["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["text", "tool_use", "server_tool_use", "text", "tool_use", "tool_use"]);
}

/// What is given up in the middle of a continuation costs what it read, once, and leaves the
/// answers before it counted once.
#[tokio::test(start_paused = true)]
async fn a_cut_try_of_a_paused_reply_is_counted_once() {
    let begun = PAUSED.split_inclusive("\n\n").next().unwrap();
    let busy = format!("{begun}data: {}\n\n", error("overloaded_error", "Overloaded"));
    let paused = Usage { input_tokens: 10, output_tokens: 5, ..Usage::default() };
    let cut = Usage { output_tokens: 1, source: UsageSource::Estimated, ..paused };
    let text = builder(&Server::start([stream("text")]).await).build().unwrap();
    let text = text.generate(&hello()).await.unwrap().usage;
    for (answers, expected) in [
        (vec![replies(&busy), replies(PAUSED), stream("text")], cut + paused + text),
        (vec![replies(PAUSED), replies(&busy), stream("text")], paused + cut + text),
        (
            vec![replies(PAUSED), replies(&busy), replies(PAUSED), stream("text")],
            paused + cut + paused + text,
        ),
    ] {
        let server = Server::start(answers).await;
        let search = json!({"type": "web_search_20250305", "name": "web_search"});
        let provider = builder(&server).max_retries(1).server_tool(search).build().unwrap();
        let response = provider.generate(&hello()).await.unwrap();
        assert_eq!(response.usage, expected);
    }
}

/// Nobody tells what a request cost that was never answered; it is estimated.
#[tokio::test(start_paused = true)]
async fn a_continuation_that_never_comes_is_not_free() {
    let server = Server::start([replies(PAUSED), vec![Act::Hang]]).await;
    let provider = builder(&server).server_tool(json!({"name": "x"})).build().unwrap();
    let mut assembler = ReplyAssembler::detached();
    let mut stream = provider.stream(&hello()).await.unwrap();
    let error = loop {
        match stream.next().await.unwrap() {
            Ok(event) => drop(assembler.push(event).unwrap()),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, LlmError::Timeout { .. }), "{error}");
    let partial = assembler.into_partial();
    assert_eq!(partial.text(), Some("Looking."));
    let usage = Usage {
        input_tokens: 10 + 1,
        output_tokens: 5,
        source: UsageSource::Estimated,
        ..Usage::default()
    };
    assert_eq!(partial.usage, usage);
}

#[tokio::test(start_paused = true)]
async fn the_limit_of_the_call_holds_across_pauses() {
    let slow = || [vec![Act::Pause(Duration::from_secs(4))], replies(PAUSED)].concat();
    let server = Server::start([slow(), slow(), slow(), slow()]).await;
    let provider = builder(&server).server_tool(json!({"name": "x"})).build().unwrap();
    let params = ChatParams { timeout: Some(Duration::from_secs(10)), ..hello() };
    let before = tokio::time::Instant::now();
    let error = provider.generate(&params).await.unwrap_err();
    assert!(matches!(error, LlmError::Timeout { .. }), "{error}");
    assert_eq!(before.elapsed().as_secs(), 10);
}

#[tokio::test]
async fn a_reply_that_pauses_for_ever_ends() {
    let server = Server::start((0..20).map(|_| stream("pause"))).await;
    let provider = builder(&server).server_tool(json!({"name": "x"})).build().unwrap();
    let response = provider.generate(&hello()).await.unwrap();
    assert_eq!(response.stop_reason, StopReason::Other);
    assert_eq!(server.requests().len(), 17);
}

#[tokio::test]
async fn models_are_listed() {
    let list = r#"{"data":[{"type":"model","id":"claude-b"},{"type":"model","id":"claude-a"}],"has_more":false}"#;
    let server = Server::start([json_answer("200 OK", list)]).await;
    let models = builder(&server).build().unwrap().list_models().await.unwrap();
    assert_eq!(models, ["claude-b", "claude-a"]);
    assert!(server.requests()[0].starts_with("GET /v1/models?limit=1000 HTTP/1.1\r\n"));
}

/// An answer that pauses in the middle of a search.
const PAUSED: &str = "event: message_start
data: {\"type\":\"message_start\",\"message\":{\"model\":\"claude-test\",\"usage\":{\"input_tokens\":10,\"output_tokens\":1}}}

data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"Looking.\"}}

data: {\"type\":\"content_block_stop\",\"index\":0}

data: {\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"add\",\"input\":{}}}

data: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{}\"}}

data: {\"type\":\"content_block_stop\",\"index\":1}

data: {\"type\":\"content_block_start\",\"index\":2,\"content_block\":{\"type\":\"server_tool_use\",\"id\":\"srvtoolu_1\",\"name\":\"web_search\",\"input\":{\"query\":\"x\"}}}

data: {\"type\":\"content_block_stop\",\"index\":2}

data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"pause_turn\"},\"usage\":{\"output_tokens\":5}}

data: {\"type\":\"message_stop\"}

";
