//! Tries: repeated before the first delta, visible, bounded; never after it.

use std::time::Duration;

use futures_util::StreamExt;
use tokio::time::Instant;
use toolloop_core::{ChatParams, LlmError, Provider, StreamEvent};

use super::connection::hello;
use crate::support::server::{Act, Server, answer, delta, head, json, piece, says};

fn busy(headers: &[(&str, &str)]) -> Vec<Act> {
    answer("429 Too Many Requests", headers, r#"{"error":{"message":"Slow down."}}"#)
}

async fn events(server: &Server, params: &ChatParams) -> Vec<Result<StreamEvent, LlmError>> {
    server.provider().stream(params).await.unwrap().collect().await
}

#[tokio::test(start_paused = true)]
async fn a_busy_server_is_asked_again_when_it_says() {
    let server = Server::start([busy(&[("retry-after", "7")]), says("Hi")]).await;
    let before = Instant::now();
    let events = events(&server, &hello()).await;
    let Ok(StreamEvent::RetryScheduled(notice)) = &events[0] else { panic!("{events:?}") };
    assert_eq!((notice.attempt, notice.max_attempts), (1, 5));
    assert_eq!(notice.delay, Duration::from_secs(7));
    assert_eq!(notice.reason, "HTTP 429: Slow down.");
    assert!(matches!(events.last(), Some(Ok(StreamEvent::Done { .. }))), "{events:?}");
    assert!((7.0..8.0).contains(&before.elapsed().as_secs_f64()), "{:?}", before.elapsed());
    assert_eq!(server.requests()[0], server.requests()[1]);
}

/// A server that says no counts nothing; one that took the request and was lost may have.
#[tokio::test(start_paused = true)]
async fn each_try_says_whether_it_may_have_cost() {
    let began = || {
        let role =
            "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n";
        [head(), piece(role)]
    };
    let overloaded = piece("data: {\"error\":{\"message\":\"Busy.\",\"code\":529}}\n\n");
    let refused_at_once = vec![head(), overloaded.clone()];
    let refused_later = [began().to_vec(), vec![overloaded]].concat();
    for (script, may_have_cost) in [
        (busy(&[]), false),
        (refused_at_once, false),
        (refused_later, true),
        ([began().to_vec(), vec![Act::Close]].concat(), true),
        (vec![Act::Hang], true),
    ] {
        let server = Server::start([script, says("Hi")]).await;
        let events = events(&server, &hello()).await;
        let notices = events.iter().filter_map(|event| match event {
            Ok(StreamEvent::RetryScheduled(notice)) => Some(notice),
            _ => None,
        });
        let costs: Vec<_> = notices.map(|notice| (notice.may_have_cost, &*notice.reason)).collect();
        assert_eq!(costs.len(), 1, "{events:?}");
        assert_eq!(costs[0].0, may_have_cost, "{costs:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn five_tries_and_then_the_last_failure() {
    let failing = || json("503 Service Unavailable", r#"{"error":"overloaded"}"#);
    let server = Server::start((0..6).map(|_| failing())).await;
    let error = server.provider().generate(&hello()).await.unwrap_err();
    assert_eq!(error.to_string(), "gave up after 5 attempts: HTTP 503: overloaded");
    assert!(error.is_retryable());
    assert_eq!(server.requests().len(), 5);
}

#[tokio::test(start_paused = true)]
async fn delays_grow_and_jitter() {
    let server = Server::start((0..5).map(|_| busy(&[]))).await;
    let events = events(&server, &hello()).await;
    let delays = events.iter().filter_map(|event| match event {
        Ok(StreamEvent::RetryScheduled(notice)) => Some(notice.delay.as_secs_f64()),
        _ => None,
    });
    for (delay, at_least) in delays.zip([1.0, 2.0, 4.0, 8.0]) {
        assert!((at_least..=2.0 * at_least).contains(&delay), "{delay}");
    }
    assert_eq!(events.len(), 5);
}

#[tokio::test]
async fn what_will_fail_again_is_asked_once() {
    for (status, body) in [
        ("401 Unauthorized", r#"{"error":{"message":"Bad key."}}"#),
        ("403 Forbidden", ""),
        ("400 Bad Request", "{}"),
        ("404 Not Found", ""),
        ("422 Unprocessable Entity", ""),
        ("413 Payload Too Large", ""),
        ("501 Not Implemented", ""),
        ("429 Too Many Requests", r#"{"error":{"message":"Pay.","code":"insufficient_quota"}}"#),
    ] {
        let server = Server::start([json(status, body), says("Hi")]).await;
        let error = server.provider().generate(&hello()).await.unwrap_err();
        assert!(!error.is_retryable(), "{error}");
        assert_eq!(error.status(), status[..3].parse().ok(), "{error}");
        assert_eq!(server.requests().len(), 1, "{status}");
    }
}

#[tokio::test]
async fn a_server_that_wants_an_hour_gets_no_second_request() {
    let server = Server::start([busy(&[("retry-after", "3600")]), says("Hi")]).await;
    let error = server.provider().generate(&hello()).await.unwrap_err();
    assert_eq!(error.retry_after(), Some(Duration::from_secs(3600)));
    assert_eq!(error.to_string(), "HTTP 429: Slow down.");
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_connection_lost_before_content_is_tried_again() {
    let role = "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n";
    let server =
        Server::start([vec![Act::Close], vec![head(), piece(role), Act::Close], says("Hi")]).await;
    let response = server.provider().generate(&hello()).await.unwrap();
    assert_eq!(response.text(), Some("Hi"));
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test]
async fn nothing_is_tried_again_after_the_first_delta() {
    let server = Server::start([vec![head(), piece(&delta("Hi")), Act::Close], says("Ho")]).await;
    let events = events(&server, &hello()).await;
    let [_, Ok(StreamEvent::TextDelta(text)), Err(error)] = &events[..] else {
        panic!("{events:?}")
    };
    assert_eq!(text, "Hi");
    assert!(matches!(error, LlmError::StreamInterrupted { .. }), "{error}");
    assert_eq!(error.request_id(), Some("req_1"));
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_error_in_the_stream_counts_like_a_status() {
    let overloaded = "data: {\"error\":{\"code\":502,\"message\":\"Upstream is down.\"}}\n\n";
    let server = Server::start([vec![head(), piece(overloaded), Act::Close], says("Hi")]).await;
    let events = events(&server, &hello()).await;
    let notices: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            Ok(StreamEvent::RetryScheduled(notice)) => Some(notice.reason.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(notices, ["HTTP 502: Upstream is down."]);
    assert!(matches!(events.last(), Some(Ok(StreamEvent::Done { .. }))), "{events:?}");
}

#[tokio::test]
async fn tries_can_be_switched_off() {
    let server = Server::start([busy(&[]), says("Hi")]).await;
    let provider = server.builder().max_retries(0).build().unwrap();
    let error = provider.generate(&hello()).await.unwrap_err();
    assert_eq!(error.to_string(), "HTTP 429: Slow down.");
    assert!(error.is_retryable());
}

/// What the server says of another try counts more than its status.
#[tokio::test(start_paused = true)]
async fn a_server_may_say_whether_to_try_again() {
    let error = r#"{"error":{"message":"Hm."}}"#;
    for (status, wish, requests) in [
        ("500 Oops", "false", 1),
        ("429 Too Many Requests", "false", 1),
        ("402 Payment Required", "true", 5),
        ("402 Payment Required", "perhaps", 1),
        // The same again is as wrong.
        ("400 Bad Request", "true", 1),
    ] {
        let refused = || answer(status, &[("x-should-retry", wish)], error);
        let server = Server::start((0..9).map(|_| refused())).await;
        let error = server.provider().generate(&hello()).await.unwrap_err();
        assert_eq!(server.requests().len(), requests, "{status}, {wish}: {error}");
        assert_eq!(error.is_retryable(), requests > 1, "{status}, {wish}: {error}");
    }
}
