//! Ways to build the next request from a history of 600 messages, some 630 KB.

use bytes::{BufMut, Bytes, BytesMut};
use divan::{Bencher, black_box};
use serde::Serialize;

#[derive(Clone, Serialize)]
struct Message {
    role: &'static str,
    content: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<String>,
}

#[derive(Serialize)]
struct Request<'a> {
    model: &'a str,
    messages: &'a [Message],
}

fn history() -> Vec<Message> {
    let reply =
        Message { role: "assistant", content: "I add them. ".repeat(2), tool_call_id: None };
    let result = |i| Message {
        role: "tool",
        content: "result data, ".repeat(157),
        tool_call_id: Some(format!("call_{i}")),
    };
    (0..300).flat_map(|i| [reply.clone(), result(i)]).collect()
}

fn body(messages: &[Message]) -> Vec<u8> {
    serde_json::to_vec(&Request { model: "m", messages }).expect("messages serialise")
}

#[divan::bench]
fn clone_into_values_and_serialise(bencher: Bencher) {
    let history = history();
    bencher.bench(|| {
        let messages = serde_json::to_value(history.clone()).expect("messages serialise");
        serde_json::to_vec(&serde_json::json!({"model": "m", "messages": messages}))
    });
}

#[divan::bench]
fn serialise_borrowed(bencher: Bencher) {
    let history = history();
    bencher.bench(|| body(black_box(&history)));
}

#[divan::bench]
fn join_messages_serialised_once(bencher: Bencher) {
    let json: Vec<Vec<u8>> =
        history().iter().map(|m| serde_json::to_vec(m).expect("a message serialises")).collect();
    bencher.bench(|| {
        let mut body = Vec::with_capacity(json.iter().map(|m| m.len() + 1).sum::<usize>() + 64);
        body.extend_from_slice(b"{\"model\":\"m\",\"messages\":[");
        for message in &json {
            body.extend_from_slice(message);
            body.push(b',');
        }
        body.extend_from_slice(b"]}");
        body
    });
}

/// The body is lent to the request and taken back when it is sent.
#[divan::bench]
fn append_to_the_last_body_in_place(bencher: Bencher) {
    let history = history();
    let mut sent = Bytes::from(body(&history));
    let len = sent.len() - 2;
    bencher.bench_local(|| {
        let mut body = std::mem::take(&mut sent).try_into_mut().expect("nobody else has it");
        body.truncate(len);
        for message in &history[..2] {
            body.put_u8(b',');
            serde_json::to_writer((&mut body).writer(), message).expect("a message serialises");
        }
        body.put_slice(b"]}");
        sent = BytesMut::freeze(body);
    });
}
