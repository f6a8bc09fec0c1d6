//! The request body of a conversation: one buffer that only grows.

use benchkit::AddArgs;
use bytes::{BufMut, Bytes, BytesMut};

use crate::answer::Answer;
use crate::text;

/// Everything before the first answer, without the closing brackets.
pub(crate) fn open(model: &str) -> BytesMut {
    let tools = serde_json::json!([{"type": "function", "function": {
        "name": benchkit::TOOL_NAME,
        "description": benchkit::TOOL_DESCRIPTION,
        "parameters": benchkit::tool_schema(),
    }}]);
    let mut body = BytesMut::new();
    body.extend_from_slice(b"{\"model\":");
    push_json(&mut body, model);
    body.extend_from_slice(
        b",\"stream\":true,\"stream_options\":{\"include_usage\":true},\"tools\":",
    );
    body.extend_from_slice(tools.to_string().as_bytes());
    body.extend_from_slice(b",\"messages\":[{\"role\":\"system\",\"content\":");
    push_json(&mut body, benchkit::SYSTEM);
    body.extend_from_slice(b"},{\"role\":\"user\",\"content\":");
    push_json(&mut body, benchkit::PROMPT);
    body.extend_from_slice(b"}");
    body
}

/// The whole body, to be lent to a request.
pub(crate) fn close(mut body: BytesMut) -> Bytes {
    body.extend_from_slice(b"]}");
    body.freeze()
}

/// Takes a body back from its request, without copying where it can.
pub(crate) fn reopen(sent: Bytes) -> BytesMut {
    let mut body = sent.try_into_mut().unwrap_or_else(|shared| BytesMut::from(&shared[..]));
    body.truncate(body.len() - 2);
    body
}

/// Runs the calls of an answer; appends the answer and their results.
pub(crate) fn append(body: &mut BytesMut, answer: &Answer) -> Result<(), String> {
    body.extend_from_slice(b",{\"role\":\"assistant\",\"content\":");
    push_json(body, &answer.text);
    body.extend_from_slice(b",\"tool_calls\":[");
    for (i, call) in answer.calls.iter().enumerate() {
        body.extend_from_slice(if i > 0 { b",{\"id\":" } else { b"{\"id\":" });
        push_json(body, &call.id);
        body.extend_from_slice(b",\"type\":\"function\",\"function\":{\"name\":");
        push_json(body, &call.name);
        body.extend_from_slice(b",\"arguments\":");
        push_json(body, &call.arguments);
        body.extend_from_slice(b"}}");
    }
    body.extend_from_slice(b"]}");
    for call in &answer.calls {
        let args: AddArgs = serde_json::from_str(&call.arguments).map_err(text)?;
        let result = benchkit::add(&args);
        body.extend_from_slice(b",{\"role\":\"tool\",\"tool_call_id\":");
        push_json(body, &call.id);
        body.extend_from_slice(b",\"content\":");
        push_json(body, &result);
        body.extend_from_slice(b"}");
    }
    Ok(())
}

fn push_json(to: &mut BytesMut, s: &str) {
    serde_json::to_writer(to.writer(), s).expect("a string serialises");
}
