//! A server that never ends: a clear error, in memory that does not grow with what it sends.

use std::num::NonZeroUsize;

use toolloop_core::Provider;

use super::connection::hello;
use crate::support::child;
use crate::support::server::{Act, Server, delta};

const STREAM: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
const DOCUMENT: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n";

#[tokio::test]
async fn a_stream_of_small_events_has_an_end() {
    let events = delta("Hi").repeat(1000).into_bytes();
    let server =
        Server::start([vec![Act::Send(STREAM.into()), Act::Repeat(events, 1 << 20), Act::Hang]]);
    let server = server.await;
    let limit = NonZeroUsize::new(100_000).unwrap();
    let provider = server.builder().max_event_bytes(limit).build().unwrap();
    let error = provider.generate(&hello()).await.unwrap_err();
    let expected = "unreadable answer: the stream is larger than 800000 bytes";
    assert_eq!(error.to_string(), expected);
    // The rest is not read.
    server.hung_up().await;
}

#[tokio::test]
async fn a_gigabyte_takes_constant_memory() {
    let run = || child::run("suite::large_bodies::in_its_memory", &[]);
    let told = tokio::task::spawn_blocking(run).await.unwrap();
    println!("{told}");
    let lines: Vec<_> =
        told.lines().filter_map(|line| line.split_once("> ")).map(|l| l.1).collect();
    let event = "unreadable answer: one event of the stream is larger than 33554432 bytes";
    let document = "unreadable answer: the answer is larger than the limit";
    let stream = "unreadable answer: the stream is larger than 268435456 bytes";
    assert_eq!(lines, [event, document, stream, "HTTP 500: xxxx", "within 150 MB"], "{told}");
}

#[tokio::test]
#[ignore = "runs in a process of its own"]
async fn in_its_memory() {
    let megabyte = || Act::Repeat(vec![b'x'; 1 << 20], 1 << 10);
    let comment = [vec![b':'; (1 << 20) - 1], vec![b'\n']].concat();
    let refusal = b"HTTP/1.1 500 Oops\r\ncontent-type: text/plain\r\n\r\n";
    for script in [
        vec![Act::Send([STREAM, b"data: "].concat()), megabyte()],
        vec![Act::Send(DOCUMENT.into()), megabyte()],
        vec![Act::Send(STREAM.into()), Act::Repeat(comment, 1 << 10)],
        vec![Act::Send(refusal.into()), megabyte()],
    ] {
        let server = Server::start([script]).await;
        let provider = server.builder().max_retries(0).build().unwrap();
        let error = provider.generate(&hello()).await.unwrap_err().to_string();
        println!("> {}", error.split_once("xxxxx").map_or(&*error, |_| "HTTP 500: xxxx"));
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = peak.and_then(|text| text.trim().trim_end_matches(" kB").parse::<u64>().ok());
    // Elsewhere than on Linux nobody says.
    match peak {
        Some(kilobytes) if kilobytes > 150_000 => println!("> {kilobytes} kB"),
        _ => println!("> within 150 MB"),
    }
}
