//! Claude behind SAP AI Core: the token, the address, the body, and what no error shows.

use std::time::Duration;

use serde_json::{Value, json};
use toolloop_core::{ChatMessage, ChatParams, LlmError, Provider};
use toolloop_providers::AiCoreProvider;

use crate::support::server::{Act, Server, answer, json as json_answer};

const SECRET: &str = "client-secret-0123456789";

fn provider(server: &Server) -> AiCoreProvider {
    AiCoreProvider::builder("anthropic--claude-4.5-sonnet", "d1")
        .credentials("sb-client", SECRET)
        .auth_url(&server.url)
        .base_url(format!("{}/v2/", server.url))
        .resource_group("team")
        .max_retries(0)
        .build()
        .unwrap()
}

fn hello() -> ChatParams {
    ChatParams { messages: vec![ChatMessage::user("Hi")], ..ChatParams::default() }
}

fn token(token: &str, seconds: u64) -> Vec<Act> {
    let body = json!({"access_token": token, "token_type": "bearer", "expires_in": seconds});
    json_answer("200 OK", &body.to_string())
}

fn says_hi() -> Vec<Act> {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/fixtures/anthropic-messages/data-lines-alone.sse"
    );
    answer(
        "200 OK",
        &[("content-type", "text/event-stream")],
        &std::fs::read_to_string(path).unwrap(),
    )
}

fn expired() -> Vec<Act> {
    json_answer("401 Unauthorized", r#"{"error":{"message":"Jwt is expired"}}"#)
}

async fn ask(provider: &AiCoreProvider) -> Result<String, LlmError> {
    Ok(provider.generate(&hello()).await?.text().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn a_token_is_fetched_once_and_sent_with_every_request() {
    let server = Server::start([token("token-0123456789", 3600), says_hi(), says_hi()]).await;
    let provider = provider(&server);
    assert_eq!(ask(&provider).await.unwrap(), "Hi");
    assert_eq!(ask(&provider).await.unwrap(), "Hi");

    let requests = server.requests();
    assert_eq!(requests.len(), 3);
    let (head, form) = requests[0].split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("POST /oauth/token HTTP/1.1\r\n"), "{head}");
    assert!(head.contains("content-type: application/x-www-form-urlencoded\r\n"), "{head}");
    let expected =
        format!("grant_type=client_credentials&client_id=sb-client&client_secret={SECRET}");
    assert_eq!(form, expected);

    let (head, body) = requests[1].split_once("\r\n\r\n").unwrap();
    let address = "/v2/inference/deployments/d1/invoke-with-response-stream";
    assert!(head.starts_with(&format!("POST {address} HTTP/1.1\r\n")), "{head}");
    for header in ["ai-resource-group: team", "authorization: Bearer token-0123456789"] {
        assert!(head.contains(&format!("{header}\r\n")), "{head}");
    }
    let body: Value = serde_json::from_str(body).unwrap();
    let content = json!([{"type": "text", "text": "Hi", "cache_control": {"type": "ephemeral"}}]);
    let expected = json!({
        "anthropic_version": "bedrock-2023-05-31", "max_tokens": 32_000,
        "messages": [{"role": "user", "content": content}],
    });
    assert_eq!(body, expected);
}

#[tokio::test(start_paused = true)]
async fn a_token_is_replaced_before_it_expires() {
    let server =
        Server::start([token("first", 100), says_hi(), says_hi(), token("second", 100), says_hi()])
            .await;
    let provider = provider(&server);
    ask(&provider).await.unwrap();
    tokio::time::advance(Duration::from_secs(30)).await;
    ask(&provider).await.unwrap();
    tokio::time::advance(Duration::from_secs(15)).await;
    ask(&provider).await.unwrap();
    let sent: Vec<_> =
        server.requests().iter().filter_map(|r| bearer(r).map(str::to_owned)).collect();
    assert_eq!(sent, ["first", "first", "second"]);
}

fn bearer(request: &str) -> Option<&str> {
    request.lines().find_map(|line| line.strip_prefix("authorization: Bearer "))
}

#[tokio::test]
async fn a_refused_token_is_replaced_once() {
    let server = Server::start([
        token("first", 3600),
        expired(),
        token("second", 3600),
        says_hi(),
        expired(),
        token("third", 3600),
        expired(),
    ])
    .await;
    let provider = provider(&server);
    assert_eq!(ask(&provider).await.unwrap(), "Hi");
    let error = ask(&provider).await.unwrap_err();
    assert!(matches!(&error, LlmError::Auth(m) if &**m == "Jwt is expired"), "{error}");
    assert_eq!(server.requests().len(), 7);
}

#[tokio::test]
async fn calls_at_once_share_a_token() {
    let server = Server::start([token("one", 3600), says_hi(), says_hi(), says_hi()]).await;
    let provider = provider(&server);
    let calls = futures_util::future::join_all((0..3).map(|_| ask(&provider)));
    assert!(calls.await.into_iter().all(|reply| reply.unwrap() == "Hi"));
    assert_eq!(server.requests().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_token_service_that_cannot_now_is_asked_again() {
    let busy = json_answer("503 Service Unavailable", "{}");
    let server = Server::start([busy.clone(), busy, token("t", 3600), says_hi()]).await;
    assert_eq!(ask(&provider(&server)).await.unwrap(), "Hi");
}

/// The patience of a call is for its token, too.
#[tokio::test(start_paused = true)]
async fn a_token_that_never_comes_ends_with_the_call() {
    let slow = || [vec![Act::Pause(Duration::from_secs(3))], token("t", 3600)].concat();
    let params = ChatParams { timeout: Some(Duration::from_secs(5)), ..hello() };
    for scripts in
        [vec![vec![Act::Hang]], vec![slow(), vec![Act::Hang]], vec![slow(), expired(), slow()]]
    {
        let server = Server::start(scripts).await;
        let before = tokio::time::Instant::now();
        let error = provider(&server).generate(&params).await.unwrap_err();
        assert!(matches!(error, LlmError::Timeout { .. }), "{error}");
        assert_eq!(before.elapsed().as_secs(), 5, "{error}");
    }
}

#[tokio::test]
async fn a_wrong_address_of_the_token_service_is_named() {
    let server = Server::start([json_answer("404 Not Found", "{}")]).await;
    let error = ask(&provider(&server)).await.unwrap_err().to_string();
    assert!(error.contains("gave no token") && error.contains("AICORE_AUTH_URL"), "{error}");
}

#[tokio::test]
async fn no_error_shows_a_secret() {
    let echo = format!(r#"{{"error":"invalid_client","error_description":"{SECRET}"}}"#);
    let server = Server::start([json_answer("401 Unauthorized", &echo)]).await;
    let error = ask(&provider(&server)).await.unwrap_err().to_string();
    assert!(error.contains("AICORE_CLIENT_SECRET") && !error.contains(SECRET), "{error}");

    let unreadable = r#"{"accessToken":"token-0123456789"}"#;
    let server = Server::start([json_answer("200 OK", unreadable)]).await;
    let error = format!("{:?}", ask(&provider(&server)).await.unwrap_err());
    assert!(error.contains("AICORE_AUTH_URL") && !error.contains("token-0123"), "{error}");

    let echo = r#"{"error":{"message":"no route for token-0123456789"}}"#;
    let refused = json_answer("404 Not Found", echo);
    let server = Server::start([token("token-0123456789", 3600), refused]).await;
    let error = ask(&provider(&server)).await.unwrap_err().to_string();
    assert_eq!(error, "invalid request: no route for …6789");

    let shown = format!("{:?}", provider(&server));
    assert!(!shown.contains(SECRET), "{shown}");
}
