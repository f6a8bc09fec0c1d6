//! Errors: they say what happened, name the cure, stay small, and never show a key.

use toolloop_core::{LlmError, Provider};

use super::connection::hello;
use crate::support::server::{Act, KEY, STOP, Server, answer, delta, end, head, json, piece};

async fn error(script: Vec<Act>) -> (LlmError, String) {
    let server = Server::start([script]).await;
    let provider = server.builder().max_retries(0).build().unwrap();
    (provider.generate(&hello()).await.unwrap_err(), server.url.clone())
}

const STREAM: [(&str, &str); 1] = [("content-type", "text/event-stream")];

#[tokio::test]
async fn every_kind_of_body_gives_a_sentence() {
    let page = "<!DOCTYPE html><html><body>Welcome to nginx</body></html>";
    let html = [("content-type", "text/html")];
    for (script, expected) in [
        (
            json("401 Unauthorized", r#"{"error":{"message":"Incorrect API key provided."}}"#),
            "authentication failed: Incorrect API key provided.",
        ),
        (
            json("400 Bad Request", r#"{"error":"bad temperature"}"#),
            "invalid request: bad temperature",
        ),
        (
            json("422 Unprocessable", r#"{"detail":"no such field"}"#),
            "invalid request: no such field",
        ),
        (json("402 Payment Required", r#"{"message":"Pay."}"#), "HTTP 402: Pay."),
        (answer("500 Oops", &[], "it broke\n  badly\n"), "HTTP 500: it broke badly"),
        (
            answer("502 Bad Gateway", &html, page),
            "HTTP 502: the server answered with an HTML page, not JSON: is the base URL right? \
             (URL/v1/chat/completions, status 502)",
        ),
        (
            answer("200 OK", &html, page),
            "unreadable answer: the server answered with an HTML page, not JSON: is the base URL \
             right? (URL/v1/chat/completions, status 200)",
        ),
        (
            answer("404 Not Found", &[], ""),
            "invalid request: the server said nothing more \
             (URL/v1/chat/completions, 404 Not Found)",
        ),
        (
            answer("200 OK", &[], ""),
            "unreadable answer: the answer is empty: is the base URL right? \
             (URL/v1/chat/completions)",
        ),
        (
            json("200 OK", ""),
            "unreadable answer: the answer is empty: is the base URL right? \
             (URL/v1/chat/completions)",
        ),
        (
            answer("200 OK", &STREAM, "no route to the model"),
            "unreadable answer: the answer is no stream of events",
        ),
        (
            answer("200 OK", &STREAM, "{\n  \"error\": \"no\\nmodel\"\n}"),
            "provider error (error): no model",
        ),
        (json("200 OK", "{}"), "unreadable answer: the answer is JSON, but no chat completion"),
        (
            answer("301 Moved", &[("location", "https://other.example/v1")], ""),
            "HTTP 301: URL/v1/chat/completions has moved to https://other.example/v1: give that \
             server as the base URL",
        ),
    ] {
        let (error, url) = error(script).await;
        assert_eq!(error.to_string(), expected.replace("URL/", &format!("{url}/")));
    }
}

#[tokio::test]
async fn a_cut_stream_is_interrupted() {
    for (rest, expected) in [
        (vec![Act::Close], "the reply broke off: the connection was lost: "),
        (vec![end()], "the reply broke off: the stream ended without its end marker"),
    ] {
        let (error, _) = error([vec![head(), piece(&delta("Hi"))], rest].concat()).await;
        assert!(matches!(error, LlmError::StreamInterrupted { .. }));
        assert!(error.to_string().starts_with(expected), "{error}");
    }
}

#[tokio::test]
async fn a_reply_that_has_finished_survives_its_connection() {
    let server = Server::start([vec![head(), piece(&delta("Hi")), piece(STOP), Act::Close]]).await;
    let response = server.provider().generate(&hello()).await.unwrap();
    assert_eq!(response.text(), Some("Hi"));
}

#[tokio::test]
async fn malformed_json_is_named_and_quoted() {
    let (error, _) = error(vec![head(), piece("data: {\"choices\":[\n\n"), end()]).await;
    let LlmError::ResponseFormat { raw, .. } = &error else { panic!("{error}") };
    assert_eq!(raw, "{\"choices\":[");
}

#[tokio::test]
async fn a_completion_in_one_document_is_read_as_well() {
    let completion = r#"{"object":"chat.completion","model":"m","choices":[{"index":0,
        "message":{"role":"assistant","content":"Hi","tool_calls":[{"id":"c1","type":"function",
        "function":{"name":"add","arguments":"{\"a\":1}"}}]},"finish_reason":"tool_calls"}],
        "usage":{"prompt_tokens":5,"completion_tokens":7}}"#;
    let marked = format!("\u{feff}{completion}");
    // The last says that it is a stream, and is none.
    for script in
        [json("200 OK", completion), json("200 OK", &marked), answer("200 OK", &STREAM, completion)]
    {
        let server = Server::start([script]).await;
        let response = server.provider().generate(&hello()).await.unwrap();
        assert_eq!(response.text(), Some("Hi"));
        assert_eq!(response.tool_calls()[0].to_string(), r#"add({"a":1})"#);
        assert_eq!((response.usage.input_tokens, response.model.as_str()), (5, "m"));
    }
}

#[tokio::test]
async fn an_event_of_100_mb_ends_early_and_clearly() {
    let megabyte = "x".repeat(1 << 20);
    let script = vec![
        Act::Send(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: ".to_vec()),
        Act::Repeat(megabyte.into_bytes(), 100),
        Act::Hang,
    ];
    let server = Server::start([script]).await;
    let error = server.provider().generate(&hello()).await.unwrap_err();
    let expected = "unreadable answer: one event of the stream is larger than 33554432 bytes";
    assert_eq!(error.to_string(), expected);
    // The rest is not read.
    server.hung_up().await;
}

#[tokio::test]
async fn a_huge_error_body_is_read_in_part() {
    let script = vec![
        Act::Send(b"HTTP/1.1 500 Oops\r\ncontent-type: text/plain\r\n\r\n".to_vec()),
        Act::Repeat(vec![b'x'; 1 << 20], 100),
        Act::Hang,
    ];
    let (error, _) = error(script).await;
    assert!(error.to_string().len() < 3000, "{}", error.to_string().len());
}

#[tokio::test]
async fn the_key_is_never_shown() {
    let echo = format!("You sent {KEY}, really {KEY}!");
    let in_stream = format!("data: {{\"error\":{{\"message\":\"{echo}\"}}}}\n\n");
    let broken = format!("data: {{\"oops\": {KEY}\n\n");
    for script in [
        json("401 Unauthorized", &format!(r#"{{"error":{{"message":"{echo}"}}}}"#)),
        json("400 Bad Request", &format!(r#"{{"error":"{echo}"}}"#)),
        answer("500 Oops", &[], &echo),
        json("200 OK", &format!("{{ {KEY}")),
        answer("200 OK", &[("content-type", "text/html")], &echo),
        vec![head(), piece(&in_stream), end()],
        vec![head(), piece(&broken), end()],
    ] {
        let (error, _) = error(script).await;
        let raw = match &error {
            LlmError::ResponseFormat { raw, .. } => raw.as_str(),
            _ => "",
        };
        let shown = format!("{error} {error:?} {raw}");
        assert!(!shown.contains("sk-test"), "{shown}");
        assert!(shown.contains("…abcd") || shown.contains("HTML"), "{shown}");
    }
    let server = Server::start([]).await;
    let provider = server.provider();
    assert!(!format!("{provider:?}").contains("sk-test"), "{provider:?}");
}

#[tokio::test]
async fn keys_and_addresses_that_cannot_work_are_told_at_once() {
    let built = |url: &str, key: &str| {
        toolloop_providers::OpenAiProvider::builder("m").base_url(url).api_key(key).build()
    };
    let error = built("https://x/v1", "sk-\nsecret").unwrap_err();
    assert!(matches!(error, LlmError::Auth(_)) && !error.to_string().contains("secret"), "{error}");
    for url in ["", "api.openai.com/v1", "ftp://x/v1", "http://"] {
        let error = built(url, "k").unwrap_err();
        assert!(matches!(error, LlmError::InvalidRequest(_)), "{url}: {error}");
    }
    // What people paste and what files hold.
    built(" https://api.openai.com/v1/chat/completions/ ", "sk-abc\n").unwrap();
}
