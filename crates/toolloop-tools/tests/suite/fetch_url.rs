//! `fetch_url`: texts of the Internet, and nothing of this machine or its network.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use toolloop_tools::{FetchUrl, ResultStore};

use super::support::call;

/// A server that gives each path its answer; how many requests came.
async fn serve(answers: &'static [(&'static str, &'static str)]) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            counted.fetch_add(1, Ordering::Relaxed);
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await.unwrap());
            }
            let head = String::from_utf8(head).unwrap();
            let path = head.split(' ').nth(1).unwrap().to_owned();
            let known = answers.iter().find(|(known, _)| *known == path);
            let answer = known.map_or("HTTP/1.1 404 Not Found\r\n\r\nNo such page.", |(_, a)| a);
            let answer = answer
                .replace("HERE", &address.to_string())
                .replace("PORT", &address.port().to_string())
                .replace("BIG", &"0123456789\n".repeat(10_000))
                .replacen("\r\n", "\r\nConnection: close\r\n", 1);
            // Who has read enough closes early.
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    (address, count)
}

fn local() -> FetchUrl {
    FetchUrl::new().allow_private_host("127.0.0.1")
}

#[tokio::test]
async fn texts_come_as_they_are_and_pages_as_markdown() {
    let (server, _) = serve(&[
        ("/a.json", "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{\"a\": 1}"),
        (
            "/p",
            "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n\
                <title>T</title><p>ä <a href='q'>q</a>",
        ),
        ("/guess", "HTTP/1.1 200 OK\r\n\r\n<!doctype html><h1>Guessed</h1>"),
        ("/png", "HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n\r\n\u{89}PNG"),
        ("/moved", "HTTP/1.1 302 Found\r\nLocation: a.json\r\n\r\n"),
    ])
    .await;
    let fetch = async |path: &str| {
        let text = call(&local(), json!({"url": format!("http://{server}{path}")})).await;
        let neutral = |text: String| text.replace(&server.to_string(), "SERVER");
        text.map(neutral).map_err(neutral)
    };
    assert_eq!(fetch("/a.json").await, Ok("{\"a\": 1}".into()));
    assert_eq!(fetch("/p").await, Ok("T\n\nä [q](http://SERVER/q)\n".into()));
    assert_eq!(fetch("/guess").await, Ok("# Guessed\n".into()));
    assert_eq!(fetch("/png").await, Ok("[no text but image/png, 5 B]".into()));
    assert_eq!(fetch("/moved").await, Ok("[from http://SERVER/a.json]\n{\"a\": 1}".into()));
    let gone = "http://SERVER/x answered 404 Not Found. No such page.";
    assert_eq!(fetch("/x").await, Err(gone.into()));
}

#[tokio::test]
async fn private_addresses_are_refused_before_anything_is_sent() {
    let (server, count) = serve(&[("/", "HTTP/1.1 200 OK\r\n\r\nsecret")]).await;
    let port = server.port();
    let refused = "is not fetched: it leads to this machine or a private network.";
    for host in [
        format!("127.0.0.1:{port}"),
        format!("localhost:{port}"),
        format!("LOCALHOST.:{port}"),
        format!("[::1]:{port}"),
        format!("[::ffff:127.0.0.1]:{port}"),
        format!("0.0.0.0:{port}"),
        format!("2130706433:{port}"),
        format!("0x7f.1:{port}"),
        "169.254.169.254".into(),
        "10.0.0.1".into(),
        "[fd00::1]".into(),
    ] {
        let fault = call(&FetchUrl::new(), json!({"url": format!("http://{host}/")})).await;
        let fault = fault.unwrap_err();
        // A name that this machine does not know has no address at all.
        assert!(fault.ends_with(refused) || host.starts_with("LOCAL"), "{host}: {fault}");
    }
    assert_eq!(count.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn redirects_lead_to_no_private_address_and_have_an_end() {
    let (server, count) = serve(&[
        ("/name", "HTTP/1.1 302 Found\r\nLocation: http://localhost:PORT/secret\r\n\r\n"),
        ("/address", "HTTP/1.1 307 Moved\r\nLocation: http://[::1]:PORT/secret\r\n\r\n"),
        ("/cloud", "HTTP/1.1 301 Moved\r\nLocation: http://169.254.169.254/latest/\r\n\r\n"),
        ("/file", "HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\n\r\n"),
        ("/round", "HTTP/1.1 302 Found\r\nLocation: /round\r\n\r\n"),
        ("/secret", "HTTP/1.1 200 OK\r\n\r\nsecret"),
    ])
    .await;
    let mut faults = Vec::new();
    for path in ["/name", "/address", "/cloud", "/file", "/round"] {
        let fault = call(&local(), json!({"url": format!("http://{server}{path}")})).await;
        let fault = fault.unwrap_err();
        faults.push(fault.replace(&server.port().to_string(), "PORT"));
    }
    assert_eq!(
        faults,
        [
            "http://localhost:PORT/secret is not fetched: it leads to this machine or a private \
             network.",
            "http://[::1]:PORT/secret is not fetched: it leads to this machine or a private \
             network.",
            "http://169.254.169.254/latest/ is not fetched: it leads to this machine or a private \
             network.",
            "file:///etc/passwd is not fetched: only http and https are.",
            "There were more than 5 redirects, up to http://127.0.0.1:PORT/round.",
        ]
    );
    assert_eq!(count.load(Ordering::Relaxed), 4 + 6);
}

#[tokio::test]
async fn a_long_text_is_stored_and_an_endless_one_cut() {
    let (server, _) =
        serve(&[("/big", "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nBIG")]).await;
    let store = ResultStore::temporary();
    let tool = local().with_results(store.clone());
    let text = call(&tool, json!({"url": format!("http://{server}/big")})).await.unwrap();
    assert!(text.len() < 50 * 1024 && text.contains("read_result shows them: {\"handle\":\"r1\""));
    assert!(store.path().join("r1").exists());

    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.read_u8().await.unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n").await.unwrap();
        while stream.write_all(&[b'x'; 65_536]).await.is_ok() {}
    });
    let text = call(&tool, json!({"url": format!("http://{address}/")})).await.unwrap();
    assert!(text.ends_with("x\n[the page goes on; only 4.0 MiB were read]"));
}

#[tokio::test]
async fn errors_say_what_is_wrong() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let fault = async |url: &str| {
        let fault = call(&local(), json!({"url": url})).await.unwrap_err();
        fault.replace(&address.to_string(), "CLOSED")
    };
    let closed = fault(&format!("http://{address}/")).await;
    assert_eq!(closed, "http://CLOSED/ cannot be fetched: Connection refused (os error 111).");
    let example =
        "`docs.rs` is no address (relative URL without a base). Example: https://docs.rs/.";
    assert_eq!(fault("docs.rs").await, example);
    let password = fault("https://a:b@example.com/").await;
    assert!(password.ends_with("is not fetched: it has a name or password in it."));
}
