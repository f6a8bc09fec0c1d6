//! Servers that fall silent: every wait has its limit, and keep-alives do not move it.

use std::time::Duration;

use futures_util::StreamExt;
use tokio::time::Instant;
use toolloop_core::{ChatParams, LlmError, Provider, StreamEvent};

use super::connection::hello;
use crate::support::server::{Act, STOP, Server, delta, head, piece, says};

/// A ping every ten seconds, for longer than any limit.
fn pings() -> Vec<Act> {
    let empty = "data: {\"choices\":[{\"delta\":{\"content\":\"\"}}]}\n\n";
    let ping = |text| [Act::Pause(Duration::from_secs(10)), piece(text)];
    (0..100).flat_map(|n| ping(if n % 2 == 0 { ": ping\n\n" } else { empty })).collect()
}

async fn last(server: &Server, params: &ChatParams) -> (Result<StreamEvent, LlmError>, f64) {
    let before = Instant::now();
    let provider = server.provider();
    let mut events: Vec<_> = provider.stream(params).await.unwrap().collect().await;
    (events.pop().unwrap(), before.elapsed().as_secs_f64())
}

#[tokio::test(start_paused = true)]
async fn a_stall_with_pings_is_an_interruption() {
    let script = [vec![head(), piece(&delta("Hi"))], pings()].concat();
    let server = Server::start([script, says("no")]).await;
    let (last, seconds) = last(&server, &hello()).await;
    let error = last.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the reply broke off: no content for 60s (keep-alives are no content)"
    );
    assert!((60.0..61.0).contains(&seconds), "{seconds}");
    server.hung_up().await;
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn content_moves_the_limit() {
    let slow = (0..5).flat_map(|_| [Act::Pause(Duration::from_secs(50)), piece(&delta("x"))]);
    let script = [vec![head()], slow.collect(), says("!")[1..].to_vec()].concat();
    let server = Server::start([script]).await;
    let (last, seconds) = last(&server, &hello()).await;
    assert!(matches!(last, Ok(StreamEvent::Done { .. })), "{last:?}");
    assert!((250.0..251.0).contains(&seconds), "{seconds}");
}

#[tokio::test(start_paused = true)]
async fn a_reader_who_was_away_loses_nothing() {
    let server = Server::start([says("Hi")]).await;
    let mut stream = server.provider().stream(&hello()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert!(matches!(stream.next().await, Some(Ok(StreamEvent::RequestId(_)))));
    tokio::time::sleep(Duration::from_secs(600)).await;
    let rest: Vec<_> = stream.collect().await;
    assert!(matches!(rest.last(), Some(Ok(StreamEvent::Done { .. }))), "{rest:?}");
}

#[tokio::test(start_paused = true)]
async fn a_mute_server_is_given_up_after_three_tries() {
    let mute = [vec![head()], pings()].concat();
    let server = Server::start([mute, vec![Act::Hang], vec![Act::Hang], says("no")]).await;
    let (last, seconds) = last(&server, &hello()).await;
    assert_eq!(
        last.unwrap_err().to_string(),
        "gave up after 3 attempts: timed out after 120000 ms"
    );
    assert!((363.0..=367.0).contains(&seconds), "{seconds}");
}

#[tokio::test(start_paused = true)]
async fn the_limit_of_the_call_holds_everywhere() {
    let limit = Duration::from_secs(30);
    let params = ChatParams { timeout: Some(limit), ..hello() };
    let speaking = [vec![head(), piece(&delta("Hi"))], pings()].concat();
    let talking = (0..50).flat_map(|_| [piece(&delta("x")), Act::Pause(Duration::from_secs(1))]);
    let talking = [vec![head()], talking.collect()].concat();
    let busy =
        crate::support::server::answer("429 Too Many Requests", &[("retry-after", "40")], "");
    for script in [vec![Act::Hang], [vec![head()], pings()].concat(), speaking, talking, busy] {
        let server = Server::start([script, says("no")]).await;
        let (last, seconds) = last(&server, &params).await;
        assert_eq!(last.unwrap_err().to_string(), "timed out after 30000 ms");
        assert!((30.0..30.1).contains(&seconds), "{seconds}");
        assert_eq!(server.requests().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_finished_reply_does_not_wait_for_its_end_mark() {
    let script = vec![head(), piece(&delta("Hi")), piece(STOP), Act::Hang];
    let server = Server::start([script]).await;
    let (last, seconds) = last(&server, &hello()).await;
    assert!(matches!(last, Ok(StreamEvent::Done { .. })), "{last:?}");
    assert!(seconds < 6.0, "{seconds}");
}

#[tokio::test(start_paused = true)]
async fn a_refusal_without_its_body_is_still_a_refusal() {
    let head = "HTTP/1.1 401 Unauthorized\r\ncontent-length: 99\r\n\r\n{\"error\"";
    let server = Server::start([vec![Act::Send(head.into()), Act::Hang]]).await;
    let (last, seconds) = last(&server, &hello()).await;
    assert!(matches!(last, Err(LlmError::Auth(_))), "{last:?}");
    assert!(seconds < 6.0, "{seconds}");
}
