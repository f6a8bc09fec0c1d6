//! What holds for every provider: headers and patience of a call, and secrets that stay secret.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::json;
use tokio::time::Instant;
use toolloop_core::dialect::Dialect;
use toolloop_core::{ChatParams, DynProvider, LlmError};
use toolloop_providers::{
    AiCoreProvider, AnthropicProvider, DialectProvider, Fallback, GeminiProvider, OllamaProvider,
    OpenAiProvider, ResponsesProvider,
};

use super::connection::hello;
use crate::support::server::{Act, KEY, Server, json as json_answer};

type Built = fn(&Server) -> Arc<dyn DynProvider>;

/// Every provider at this server; none tries twice.
const PROVIDERS: [(&str, Built); 8] = [
    ("chat", |server| Arc::new(chat(server))),
    ("responses", |server| {
        let builder = ResponsesProvider::builder("m").base_url(&server.url).api_key(KEY);
        Arc::new(builder.max_retries(0).build().unwrap())
    }),
    ("anthropic", |server| {
        let builder = AnthropicProvider::builder("m").base_url(&server.url).api_key(KEY);
        let searching = builder.server_tool(json!({"type": "x", "name": "y"}));
        Arc::new(searching.max_retries(0).build().unwrap())
    }),
    ("aicore", |server| {
        let builder = AiCoreProvider::builder("m", "d1").credentials("me", SECRET);
        let builder = builder.auth_url(&server.url).base_url(&server.url);
        Arc::new(builder.max_retries(0).build().unwrap())
    }),
    ("gemini", |server| {
        let builder = GeminiProvider::builder("m").base_url(&server.url).api_key(KEY);
        Arc::new(builder.max_retries(0).build().unwrap())
    }),
    ("ollama", |server| {
        let builder = OllamaProvider::builder("m").base_url(&server.url).api_key(KEY);
        Arc::new(builder.max_retries(0).build().unwrap())
    }),
    ("dialect", |server| Arc::new(DialectProvider::new(Arc::new(chat(server)), Dialect::Xml))),
    ("fallback", |server| Arc::new(Fallback::new(Arc::new(chat(server))))),
];

fn chat(server: &Server) -> OpenAiProvider {
    server.builder().max_retries(0).build().unwrap()
}

/// What answers before the model does.
fn before(name: &str) -> Vec<Vec<Act>> {
    let token = json!({"access_token": KEY, "expires_in": 3600}).to_string();
    if name == "aicore" { vec![json_answer("200 OK", &token)] } else { Vec::new() }
}

#[tokio::test(start_paused = true)]
async fn headers_and_patience_of_a_call_are_kept() {
    for (name, built) in PROVIDERS {
        let scripts = [before(name), vec![vec![Act::Hang]]].concat();
        let server = Server::start(scripts).await;
        let mut headers = HeaderMap::new();
        headers.insert(HeaderName::from_static("x-mine"), HeaderValue::from_static("one"));
        headers.append(HeaderName::from_static("x-mine"), HeaderValue::from_static("two"));
        let params = ChatParams {
            extra_headers: Some(headers),
            timeout: Some(Duration::from_secs(5)),
            ..hello()
        };
        let started = Instant::now();
        let error = built(&server).generate_boxed(&params).await.unwrap_err();
        assert!(matches!(error, LlmError::Timeout { .. }), "{name}: {error}");
        assert_eq!(started.elapsed().as_secs(), 5, "{name}");
        let requests = server.requests();
        let request = requests.last().unwrap();
        assert!(request.contains("x-mine: one\r\nx-mine: two\r\n"), "{name}: {request}");
    }
}

#[tokio::test]
async fn no_error_shows_a_key() {
    let echo = json!({"error": {"message": format!("Bad key {KEY} in x={KEY}.")}}).to_string();
    let html = format!("<html>{KEY}</html>");
    for (name, built) in PROVIDERS {
        for answer in [
            json_answer("401 Unauthorized", &echo),
            json_answer("400 Bad Request", &echo),
            json_answer("500 Oops", &echo),
            json_answer("200 OK", &echo),
            json_answer("200 OK", &format!("{{\"x\": {KEY}")),
            json_answer("502 Bad Gateway", &html),
        ] {
            // The token of AI Core is asked for again when it is refused.
            let scripts = [before(name), vec![answer.clone()], before(name), vec![answer]].concat();
            let server = Server::start(scripts).await;
            let provider = built(&server);
            let error = provider.generate_boxed(&hello()).await.unwrap_err();
            let raw = match &error {
                LlmError::ResponseFormat { raw, .. } => raw,
                _ => "",
            };
            let metadata = provider.metadata();
            let shown = format!("{error} {error:?} {raw} {metadata:?}");
            assert!(!shown.contains("0123456789"), "{name}: {shown}");
            assert!(shown.contains("…abcd") || shown.contains("HTML"), "{name}: {shown}");
        }
    }
}

const SECRET: &str = "client-0123456789-secret";
