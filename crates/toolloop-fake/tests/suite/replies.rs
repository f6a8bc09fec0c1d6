use std::io;
use std::net::TcpStream;

use serde_json::{Value, json};
use toolloop_fake::{Chunk, End, FakeServer, Reply, Script};

use crate::client::{Client, streamed, whole};

#[test]
fn every_byte_of_a_stream_is_as_expected() {
    let server = FakeServer::start(Script::new([Reply::text("Hi you")]));
    let mut client = Client::connect(&server);
    client.send("POST", "/v1/chat/completions", &[("connection", "close")], &streamed());
    let event = |choice: &str| {
        let data = format!(
            "data: {{\"id\":\"chatcmpl-fake-1\",\"object\":\"chat.completion.chunk\",\
             \"created\":1700000000,\"model\":\"m\",\"service_tier\":\"default\",\
             \"system_fingerprint\":\"fp_fake\",\"choices\":[{{\"index\":0,{choice}}}]}}\n\n"
        );
        format!("{:x}\r\n{data}\r\n", data.len())
    };
    let open = |delta: &str| {
        event(&format!("\"delta\":{{{delta}}},\"logprobs\":null,\"finish_reason\":null"))
    };
    let expected = [
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n\
         x-request-id: req_fake_1\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n",
        &open("\"role\":\"assistant\",\"content\":\"\""),
        &open("\"content\":\"Hi\""),
        &open("\"content\":\" you\""),
        &event("\"delta\":{},\"logprobs\":null,\"finish_reason\":\"stop\""),
        "e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n",
    ];
    assert_eq!(String::from_utf8(client.rest()).unwrap(), expected.concat());
}

#[test]
fn one_object_comes_where_no_stream_is_asked_for() {
    let server = FakeServer::start(Script::new([Reply::text("Hi").usage(3, 1)]));
    let response = Client::connect(&server).ask(&whole());
    let body = response.json();
    assert_eq!(response.header("content-type"), Some("application/json"));
    assert_eq!(body["choices"][0]["message"]["content"], "Hi");
    assert_eq!(body["usage"]["total_tokens"], 4);
}

#[tokio::test]
async fn a_connection_is_used_again() {
    let server = FakeServer::start(Script::from_fn(|request| {
        Reply::text(format!("reply {}", request.number)).header("x-ratelimit-limit-requests", "9")
    }));
    let mut client = Client::connect(&server);
    assert_eq!(client.ask(&streamed()).text(), "reply 1");
    assert_eq!(client.ask(&whole()).json()["choices"][0]["message"]["content"], "reply 2");
    let third = client.ask(&streamed());
    assert_eq!(third.header("x-ratelimit-limit-requests"), Some("9"));
    assert_eq!(server.connections(), 1);
    assert_eq!(Client::connect(&server).ask(&streamed()).text(), "reply 4");
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn the_log_has_what_was_asked_and_written() {
    let server = FakeServer::start(Script::new([Reply::text("Hi"), Reply::error(500, "Oops")]));
    let mut client = Client::connect(&server);
    let headers = [("Authorization", "Bearer sk-0123456789"), ("X-Trace", "7")];
    client.send("POST", "/v1/chat/completions", &headers, &streamed());
    let first = client.response();
    let second = client.ask(&whole());
    server.idle().await;

    let requests = server.requests();
    assert_eq!(requests[0].header("authorization"), Some("Bearer ****6789"));
    assert_eq!(requests[0].header("x-trace"), Some("7"));
    assert_eq!((requests[0].number, &requests[0].body), (1, &streamed()));
    assert_eq!((requests[1].path.as_str(), &requests[1].body), ("/v1/chat/completions", &whole()));

    let log = server.log();
    assert_eq!((log[0].status, log[0].events, log[0].end), (Some(200), 4, End::Complete));
    assert_eq!((log[0].body_text(), log[0].bytes), (first.body.clone(), first.body.len() as u64));
    assert_eq!((log[1].status, log[1].body_text()), (Some(500), second.body.clone()));
    let error = json!({"message": "Oops", "type": "server_error", "param": null, "code": null});
    assert_eq!(second.json(), json!({ "error": error }));
}

#[test]
fn a_recorded_stream_is_played_in_any_pieces() {
    let recorded = "data: {\"a\":\"é\"}\n\ndata: [DONE]\n\n";
    let raw = || Reply::raw(200, "text/event-stream", recorded);
    let script = Script::new([raw().chunk(Chunk::Bytes(1)), raw().chunk(Chunk::Bytes(7)), raw()]);
    let server = FakeServer::start(script);
    let mut client = Client::connect(&server);
    for _ in 0..3 {
        assert_eq!(client.ask(&streamed()).body, recorded);
    }
}

#[test]
fn the_models_are_listed() {
    let server = FakeServer::start(Script::new([]).models(["a", "b"]));
    let mut client = Client::connect(&server);
    client.send("GET", "/v1/models", &[], &Value::Null);
    let model = |id: &str| json!({"id": id, "object": "model", "created": 1_700_000_000, "owned_by": "fake"});
    let expected = json!({"object": "list", "data": [model("a"), model("b")]});
    assert_eq!(client.response().json(), expected);
}

#[test]
fn a_script_that_panics_does_not_end_the_server() {
    let server = FakeServer::start(Script::from_fn(|request| match request.number {
        1 => panic!("the script of this test panics on purpose"),
        _ => Reply::text("still here"),
    }));
    let mut client = Client::connect(&server);
    client.send("POST", "/v1/chat/completions", &[], &streamed());
    assert_eq!(client.rest(), b"");
    assert_eq!(server.log()[0].end, End::Stopped);
    assert_eq!(Client::connect(&server).ask(&streamed()).text(), "still here");
}

#[test]
fn drop_closes() {
    let server = FakeServer::start(Script::new([]));
    let address = server.address();
    let mut client = Client::connect_to(address);
    client.ask(&json!({}));
    drop(server);
    assert_eq!(client.end(), None);
    let refused = TcpStream::connect(address).unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
}
