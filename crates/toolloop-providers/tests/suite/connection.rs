//! Connections: reused when a reply is whole, closed when it is dropped, quick to say no.

use futures_util::StreamExt;
use tokio::io::AsyncWriteExt;
use toolloop_core::{
    ChatMessage, ChatParams, ChatResponse, ContentBlock, LlmError, Provider, StopReason,
    StreamEvent, Usage, UsageSource,
};
use toolloop_fake::{FakeServer, Reply, Script};
use toolloop_providers::OpenAiProvider;

use crate::support::server::{Act, KEY, STOP, Server, delta, end, head, json, piece, says};

pub(super) fn hello() -> ChatParams {
    ChatParams { messages: vec![ChatMessage::user("Hello")], ..ChatParams::default() }
}

#[tokio::test]
async fn whole_replies_leave_one_connection() {
    let server = Server::start([says("one"), says("two"), says("three")]).await;
    let provider = server.provider();
    for expected in ["one", "two", "three"] {
        let response = provider.generate(&hello()).await.unwrap();
        assert_eq!(response.text(), Some(expected));
    }
    assert_eq!((server.requests().len(), server.connections()), (3, 1));
}

#[tokio::test]
async fn a_request_right_behind_a_reply_goes_over_its_connection() {
    let fake = FakeServer::start(Script::from_fn(|_| Reply::text("Hi")));
    let builder = OpenAiProvider::builder("m").base_url(fake.base_url()).api_key(KEY);
    let provider = builder.build().unwrap();
    for _ in 0..200 {
        provider.generate(&hello()).await.unwrap();
    }
    assert_eq!(fake.connections(), 1);
}

/// A task takes its turn among those that put the connection back.
#[tokio::test]
async fn a_task_asks_again_over_the_connection_of_its_last_reply() {
    let fake = FakeServer::start(Script::from_fn(|_| Reply::text("Hi")));
    let builder = OpenAiProvider::builder("m").base_url(fake.base_url()).api_key(KEY);
    let provider = builder.build().unwrap();
    let task = tokio::spawn(async move {
        for _ in 0..100 {
            provider.generate(&hello()).await.unwrap();
        }
    });
    task.await.unwrap();
    assert_eq!(fake.connections(), 1);
}

#[tokio::test]
async fn a_refusal_leaves_its_connection_too() {
    let refused = json("404 Not Found", r#"{"error":{"message":"no such model"}}"#);
    let server = Server::start([refused, says("ok")]).await;
    let provider = server.provider();
    provider.generate(&hello()).await.unwrap_err();
    provider.generate(&hello()).await.unwrap();
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn the_stream_tells_everything_in_order() {
    let usage = "data: {\"model\":\"m-1\",\"choices\":[],\"usage\":{\"prompt_tokens\":3,\
                 \"completion_tokens\":2,\"prompt_tokens_details\":{\"cached_tokens\":1}}}\n\n";
    let script = vec![
        Act::Send(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n\
              transfer-encoding: chunked\r\nx-request-id: req_9\r\n\
              x-ratelimit-remaining-requests: 7\r\n\r\n"
                .to_vec(),
        ),
        piece(&delta("Hi")),
        piece(STOP),
        piece(usage),
        piece("data: [DONE]\n\n"),
        end(),
    ];
    let server = Server::start([script]).await;
    let events: Vec<_> = server.provider().stream(&hello()).await.unwrap().collect().await;
    let events: Vec<_> = events.into_iter().map(Result::unwrap).collect();
    let expected = [
        StreamEvent::RequestId("req_9".into()),
        StreamEvent::RateLimits(toolloop_core::RateLimits {
            remaining_requests: Some(7),
            ..Default::default()
        }),
        StreamEvent::TextDelta("Hi".into()),
        StreamEvent::Model("m-1".into()),
        StreamEvent::Usage(Usage {
            input_tokens: 3,
            output_tokens: 2,
            cache_read_tokens: Some(1),
            ..Usage::default()
        }),
        StreamEvent::Done { stop_reason: StopReason::EndTurn },
    ];
    assert_eq!(events, expected);
}

#[tokio::test]
async fn generate_gives_the_whole_reply() {
    let server = Server::start([says("Hi")]).await;
    let response = server.provider().generate(&hello()).await.unwrap();
    let expected = ChatResponse {
        content: vec![ContentBlock::Text("Hi".into())],
        usage: Usage { source: UsageSource::Unknown, ..Usage::default() },
        stop_reason: StopReason::EndTurn,
        model: String::new(),
        metadata: [("request_id".to_owned(), "req_1".into())].into(),
    };
    assert_eq!(response, expected);
}

#[tokio::test]
async fn dropping_the_stream_closes_the_request() {
    let server = Server::start([vec![head(), piece(&delta("Hi")), Act::Hang]]).await;
    let mut stream = server.provider().stream(&hello()).await.unwrap();
    while !matches!(stream.next().await, Some(Ok(StreamEvent::TextDelta(_)))) {}
    drop(stream);
    server.hung_up().await;
}

#[tokio::test(start_paused = true)]
async fn a_body_that_goes_on_after_the_end_does_not_hold_the_reply() {
    let mut script = says("Hi");
    script.pop();
    script.push(Act::Hang);
    let server = Server::start([script]).await;
    let before = tokio::time::Instant::now();
    let response = server.provider().generate(&hello()).await.unwrap();
    assert_eq!(response.text(), Some("Hi"));
    assert!(before.elapsed().as_millis() < 1000, "{:?}", before.elapsed());
    server.hung_up().await;
}

#[tokio::test]
async fn a_refused_port_on_this_machine_is_told_at_once() {
    // Bound and dropped: nobody listens there.
    let port = {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        listener.local_addr().unwrap().port()
    };
    let base_url = format!("http://user:secret@127.0.0.1:{port}/v1?token=hidden");
    let provider = OpenAiProvider::builder("m").base_url(base_url).api_key(KEY).build().unwrap();
    let events: Vec<_> = provider.stream(&hello()).await.unwrap().collect().await;
    let [Err(error)] = &events[..] else { panic!("{events:?}") };
    let line = format!("nothing answers at http://127.0.0.1:{port} (connection refused)");
    assert_eq!(error.to_string(), line);
    assert!(matches!(error, LlmError::Http { status: None, retryable: true, .. }));
}

#[tokio::test]
async fn a_server_without_tls_is_named_once() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let _ = socket.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        }
    });
    let base_url = format!("https://127.0.0.1:{port}/v1");
    let provider = OpenAiProvider::builder("m").base_url(base_url).build().unwrap();
    let events: Vec<_> = provider.stream(&hello()).await.unwrap().collect().await;
    let [Err(error)] = &events[..] else { panic!("{events:?}") };
    let line = format!(
        "no secure connection to https://127.0.0.1:{port}: received corrupt message of type \
         InvalidContentType (does it speak https?)"
    );
    assert_eq!(error.to_string(), line);
}

#[tokio::test]
async fn models_are_listed() {
    let list = r#"{"object":"list","data":[{"id":"a","object":"model"},{"id":"b"}]}"#;
    let server = Server::start([json("200 OK", list), json("200 OK", "{}")]).await;
    let provider = server.provider();
    assert_eq!(provider.list_models().await.unwrap(), ["a", "b"]);
    assert!(server.requests()[0].starts_with("GET /v1/models HTTP/1.1\r\n"));
    let error = provider.list_models().await.unwrap_err();
    assert!(matches!(error, LlmError::ResponseFormat { .. }), "{error}");
}

#[tokio::test]
async fn a_client_of_ones_own_is_used() {
    let server = Server::start([says("Hi")]).await;
    let client = reqwest::Client::builder()
        .tls_backend_preconfigured(
            rustls::ClientConfig::builder_with_provider(
                rustls::crypto::ring::default_provider().into(),
            )
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(rustls::RootCertStore::empty())
            .with_no_client_auth(),
        )
        .user_agent("mine/1")
        .build()
        .unwrap();
    let provider = server.builder().http_client(client).build().unwrap();
    provider.generate(&hello()).await.unwrap();
    assert!(server.requests()[0].contains("user-agent: mine/1\r\n"), "{}", server.requests()[0]);
}
