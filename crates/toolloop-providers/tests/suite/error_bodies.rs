//! Recorded error bodies, from all servers that speak an API: the kind of the error, its sentence,
//! status, and whether to come again.

use serde_json::Value;
use toolloop_core::{ChatMessage, ChatParams, ErrorMessage, LlmError, Provider};
use toolloop_providers::{AnthropicProvider, GeminiProvider, ResponsesProvider};

use crate::support::corpus::{folder, read};
use crate::support::server::{Act, KEY, Server, answer};

#[tokio::test]
async fn recorded_errors_are_of_the_right_kind() {
    let Some(folder) = folder() else { return };
    let mut compared = 0;
    for error in read(&folder.join("errors.json")).as_array().unwrap() {
        let api = error["api"].as_str().unwrap();
        if api == "cohere" {
            // An API that is not spoken here.
            continue;
        }
        let (status, body) = (error["status"].as_u64().unwrap() as u16, &error["body"]);
        let body = body.as_str().unwrap();
        let kind = error["content_type"].as_str().unwrap();
        let headers = [("content-type", kind), ("x-request-id", "req_9"), ("retry-after", "7")];
        let script = answer(&format!("{status} Refused"), &headers, body);
        let found = ask(api, script).await;
        assert_eq!(found.status(), Some(status), "{body}");
        assert_eq!(found.request_id(), Some("req_9"), "{body}");
        assert_eq!(found.retry_after().map(|time| time.as_secs()), Some(7), "{body}");
        assert_eq!(found.is_retryable(), status >= 500 || status == 429, "{body}");
        let said = match (&found, status) {
            (LlmError::Auth(said), 401 | 403) => said,
            (LlmError::Auth(said), 400) if body.contains("API_KEY_INVALID") => said,
            (LlmError::InvalidRequest(said), 400 | 404 | 422) => said,
            (LlmError::Http { message, .. }, 429 | 500..) => message,
            _ => panic!("{status} became {found:?}: {body}"),
        };
        assert_says(said, &serde_json::from_str(body).unwrap());
        compared += 1;
    }
    println!("{compared} errors");
    assert!(compared >= 43, "only {compared} errors found");
}

/// What OpenAI answers when it cannot now, as its documents have it.
#[tokio::test]
async fn limits_and_quota_are_told_apart() {
    let limited = |code: &str, kind: &str| {
        let body = format!(
            r#"{{"error":{{"message":"Slow down.","type":"{kind}","param":null,"code":"{code}"}}}}"#
        );
        let headers = [("content-type", "application/json"), ("retry-after-ms", "1500")];
        answer("429 Too Many Requests", &headers, &body)
    };
    let error = ask("openai-responses", limited("rate_limit_exceeded", "tokens")).await;
    assert!(error.is_retryable());
    assert_eq!(error.retry_after().map(|time| time.as_millis()), Some(1500));
    let error = ask("openai-responses", limited("insufficient_quota", "insufficient_quota")).await;
    assert!(!error.is_retryable());
    assert_eq!(error.to_string(), "HTTP 429: Slow down.");
}

async fn ask(api: &str, script: Vec<Act>) -> LlmError {
    let server = Server::start([script]).await;
    let params = ChatParams { messages: vec![ChatMessage::user("Hi")], ..ChatParams::default() };
    let base_url = format!("{}/v1", server.url);
    let reply = match api {
        "openai-chat" => server.builder().max_retries(0).build().unwrap().generate(&params).await,
        "anthropic-messages" => {
            let builder = AnthropicProvider::builder("m").base_url(&server.url).api_key(KEY);
            builder.max_retries(0).build().unwrap().generate(&params).await
        }
        "gemini" => {
            let builder = GeminiProvider::builder("m").base_url(&server.url).api_key(KEY);
            builder.max_retries(0).build().unwrap().generate(&params).await
        }
        _ => {
            let builder = ResponsesProvider::builder("m").base_url(base_url).api_key(KEY);
            builder.max_retries(0).build().unwrap().generate(&params).await
        }
    };
    reply.unwrap_err()
}

/// The error says what the body says, in one line.
fn assert_says(said: &ErrorMessage, body: &Value) {
    let sentences = ["/error/message", "/error", "/message", "/detail"];
    let sentence = sentences.iter().find_map(|at| body.pointer(at)?.as_str()).unwrap();
    let sentence = sentence.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.starts_with(&sentence), "{said:?} does not begin with {sentence:?}");
}
