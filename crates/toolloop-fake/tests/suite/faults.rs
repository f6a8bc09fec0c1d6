use std::io::ErrorKind;
use std::time::Duration;

use serde_json::{Value, json};
use toolloop_fake::{Call, End, Exchange, FakeServer, Fault, Reply, Script};

use crate::client::{Client, Response, streamed, whole};

/// Has one reply played; gives what the client saw and the log has.
async fn play(reply: Reply) -> (Response, Exchange) {
    let server = FakeServer::start(Script::new([reply]));
    let response = Client::connect(&server).ask(&streamed());
    server.idle().await;
    (response, server.log().remove(0))
}

/// The body of the reply "one two three" without any fault.
async fn undisturbed() -> String {
    play(reply()).await.0.body
}

fn reply() -> Reply {
    Reply::text("one two three")
}

#[tokio::test]
async fn a_stream_is_cut_at_any_byte() {
    let body = undisturbed().await;
    for at in [0, 1, 100, body.len() - 1, body.len()] {
        let (response, exchange) = play(reply().fault(Fault::CutAtByte(at as u64))).await;
        assert_eq!((response.body.as_str(), response.whole), (&body[..at], false));
        assert_eq!((exchange.bytes, exchange.end), (at as u64, End::Cut));
    }
}

#[tokio::test]
async fn one_object_is_cut_short_of_its_length() {
    let server = FakeServer::start(Script::new([reply().fault(Fault::CutAtByte(9))]));
    let response = Client::connect(&server).ask(&whole());
    assert_eq!((response.body.as_str(), response.whole), ("{\"id\":\"ch", false));
    assert_ne!(response.header("content-length"), Some("9"));
}

#[tokio::test]
async fn a_stream_is_cut_at_an_event() {
    let (response, exchange) = play(reply().fault(Fault::CutAtEvent(2))).await;
    assert_eq!((response.text().as_str(), response.whole), ("one", false));
    assert_eq!((exchange.events, exchange.end), (2, End::Cut));
}

#[tokio::test]
async fn a_stalled_stream_stays_open_until_the_client_goes() {
    let fault = Fault::StallAtEvent { event: 3, ping_every: None };
    let server = FakeServer::start(Script::new([reply().fault(fault)]));
    let mut client = Client::connect(&server);
    client.send("POST", "/v1/chat/completions", &[], &streamed());
    client.read_until(b" two").unwrap();
    assert_eq!(server.log()[0].end, End::Open);
    drop(client);
    server.idle().await;
    let exchange = server.log().remove(0);
    assert_eq!((exchange.events, exchange.end), (3, End::ClientClosed));
}

#[tokio::test]
async fn pings_keep_a_stalled_stream_alive() {
    let fault = Fault::StallAtEvent { event: 1, ping_every: Some(Duration::from_millis(1)) };
    let server = FakeServer::start(Script::new([reply().fault(fault)]));
    let mut client = Client::connect(&server);
    client.send("POST", "/v1/chat/completions", &[], &streamed());
    for _ in 0..3 {
        client.read_until(b": ping\n\n").unwrap();
    }
    drop(client);
    server.idle().await;
    let exchange = server.log().remove(0);
    assert_eq!((exchange.events, exchange.end), (1, End::ClientClosed));
}

#[tokio::test]
async fn a_client_that_leaves_a_long_reply_is_noticed() {
    let reply = Reply::text("x").fault(Fault::HugeEvent { event: 1, bytes: 1 << 40 });
    let server = FakeServer::start(Script::new([reply]));
    let mut client = Client::connect(&server);
    client.send("POST", "/v1/chat/completions", &[], &streamed());
    client.read_until(b"aaaa").unwrap();
    drop(client);
    server.idle().await;
    assert_eq!(server.log()[0].end, End::ClientClosed);
}

#[tokio::test]
async fn a_server_may_never_answer() {
    let server = FakeServer::start(Script::new([reply().fault(Fault::Mute)]));
    let mut client = Client::connect(&server);
    client.send("POST", "/v1/chat/completions", &[], &streamed());
    client.hang_up();
    assert_eq!(client.rest(), b"");
    let exchange = server.log().remove(0);
    assert_eq!((exchange.status, exchange.end), (None, End::ClientClosed));
    assert_eq!(server.requests()[0].body, streamed());
}

#[tokio::test]
async fn a_connection_is_reset() {
    let server = FakeServer::start(Script::new([reply().fault(Fault::Reset)]));
    let mut client = Client::connect(&server);
    client.send("POST", "/v1/chat/completions", &[], &streamed());
    assert_eq!(client.end(), Some(ErrorKind::ConnectionReset));
    assert_eq!((server.log()[0].status, server.log()[0].end), (None, End::Cut));
}

#[tokio::test]
async fn broken_events_come_between_whole_ones() {
    let reply = reply()
        .fault(Fault::MalformedJsonAtEvent(1))
        .fault(Fault::GarbageAtEvent { event: 2, bytes: b"\x00garbage\n\n".to_vec() })
        .fault(Fault::ErrorAtEvent { event: 3, error: json!({"message": "overloaded"}) });
    let (response, exchange) = play(reply).await;
    let events = response.events();
    assert!(serde_json::from_str::<Value>(events[1]).unwrap_err().is_eof(), "{}", events[1]);
    assert_eq!(events[3], "\0garbage");
    assert_eq!(events[5], r#"{"error":{"message":"overloaded"}}"#);
    assert_eq!((events.len(), response.whole), (9, true));
    assert_eq!((exchange.events, exchange.end), (9, End::Complete));
}

#[tokio::test]
async fn an_event_is_not_utf_8() {
    let (_, exchange) = play(reply().fault(Fault::InvalidUtf8AtEvent(1))).await;
    let error = std::str::from_utf8(&exchange.body).unwrap_err();
    assert!(exchange.body[..error.valid_up_to()].ends_with(b"\"content\":\""));
}

#[tokio::test]
async fn the_end_marker_is_missing() {
    let body = undisturbed().await;
    let (response, exchange) = play(reply().fault(Fault::NoEndMarker)).await;
    assert_eq!(response.body, body.strip_suffix("data: [DONE]\n\n").unwrap());
    assert_eq!((response.whole, exchange.end), (true, End::Complete));
}

#[tokio::test]
async fn one_event_is_huge() {
    let (response, exchange) =
        play(reply().fault(Fault::HugeEvent { event: 1, bytes: 5 << 20 })).await;
    let event = response.events()[1];
    assert_eq!(event.len() + "data: \n\n".len(), 5 << 20);
    let chunk: Value = serde_json::from_str(event).unwrap();
    assert!(chunk["choices"][0]["delta"]["content"].as_str().unwrap().starts_with("aaaa"));
    assert_eq!(exchange.bytes, response.body.len() as u64);
}

#[tokio::test]
async fn html_and_nothing_come_instead_of_json() {
    let (html, _) = play(Reply::html()).await;
    assert_eq!((html.status, html.header("content-type")), (200, Some("text/html; charset=utf-8")));
    assert!(html.body.starts_with("<!DOCTYPE html>"));
    let (empty, _) = play(Reply::empty()).await;
    assert_eq!((empty.status, empty.body.as_str(), empty.whole), (200, "", true));
}

#[tokio::test]
async fn a_limit_has_its_headers() {
    let reply = Reply::error(429, "Rate limit reached").header("Retry-After", "2");
    let (response, _) = play(reply).await;
    assert_eq!((response.status, response.header("retry-after")), (429, Some("2")));
}

#[tokio::test]
async fn calls_may_share_an_id() {
    let call = || Call::new("t", json!({})).id("same").in_one_delta();
    let (response, _) = play(Reply::calls([call(), call()])).await;
    let ids: Vec<Value> = response.events()[1..3]
        .iter()
        .map(|event| serde_json::from_str::<Value>(event).unwrap())
        .map(|chunk| chunk["choices"][0]["delta"]["tool_calls"][0]["id"].clone())
        .collect();
    assert_eq!(ids, ["same", "same"]);
}
