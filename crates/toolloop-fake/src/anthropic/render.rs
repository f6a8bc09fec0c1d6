//! The form of an answer: [`answer`] writes a [`Reply`] as a stream of events or as one object.

use serde_json::{Value, json};

use super::{json_answer, request_id, signature};
use crate::log::Request;
use crate::playback::{Answer, Filler};
use crate::reply::{Call, Chunk, Message, Reply};

/// Whether the client asked for a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Stream,
    Whole,
}

/// The answer to a request that was accepted.
pub(super) fn answer(request: &Request, form: Form, reply: Reply) -> Answer {
    let message = |message, chunk, end_marker| {
        let written = Written { request, message, chunk };
        match form {
            Form::Stream => written.stream(end_marker),
            Form::Whole => written.whole(),
        }
    };
    Answer::to(reply, message, |status, message| {
        let error = json!({"type": error_type(status), "message": message});
        let id = request_id(request);
        json_answer(status, &json!({"type": "error", "error": error, "request_id": id}))
    })
}

/// What the API calls a failure of this status.
fn error_type(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        504 => "timeout_error",
        529 => "overloaded_error",
        500.. => "api_error",
        _ => "invalid_request_error",
    }
}

struct Written<'a> {
    request: &'a Request,
    message: Message,
    chunk: Chunk,
}

impl Written<'_> {
    fn stream(&self, end_marker: bool) -> Answer {
        let usage = self.usage();
        let mut start = self.envelope();
        start["usage"] = match usage {
            Some((input, _)) => json!({
                "input_tokens": input, "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": 0, "output_tokens": 1,
            }),
            None => json!({}),
        };
        let mut events = vec![event(&json!({"type": "message_start", "message": start}))];
        for (index, (block, deltas)) in self.blocks().into_iter().enumerate() {
            events.push(event(&json!({
                "type": "content_block_start", "index": index, "content_block": block,
            })));
            if index == 0 {
                events.push(event(&json!({"type": "ping"})));
            }
            events.extend(deltas.into_iter().map(|delta| {
                event(&json!({"type": "content_block_delta", "index": index, "delta": delta}))
            }));
            events.push(event(&json!({"type": "content_block_stop", "index": index})));
        }
        let mut end = json!({
            "type": "message_delta",
            "delta": {"stop_reason": self.stop_reason(), "stop_sequence": null},
            "usage": {},
        });
        if let Some((_, output)) = usage {
            end["usage"]["output_tokens"] = json!(output);
        }
        events.push(event(&end));
        if end_marker {
            events.push(event(&json!({"type": "message_stop"})));
        }
        let filler = filler(usize::from(!self.message.reasoning.is_empty()));
        Answer::stream("text/event-stream; charset=utf-8", events, filler)
    }

    /// Each block as it begins, and its deltas.
    fn blocks(&self) -> Vec<(Value, Vec<Value>)> {
        let Message { reasoning, text, calls, .. } = &self.message;
        let mut blocks = Vec::new();
        if !reasoning.is_empty() {
            let thoughts = self.chunk.split(reasoning).into_iter();
            let mut deltas: Vec<_> = thoughts
                .map(|piece| json!({"type": "thinking_delta", "thinking": piece}))
                .collect();
            deltas.push(json!({"type": "signature_delta", "signature": signature(reasoning)}));
            let block = json!({"type": "thinking", "thinking": "", "signature": ""});
            blocks.push((block, deltas));
        }
        if !text.is_empty() {
            let pieces = self.chunk.split(text).into_iter();
            let deltas = pieces.map(|piece| json!({"type": "text_delta", "text": piece}));
            blocks.push((json!({"type": "text", "text": ""}), deltas.collect()));
        }
        for (at, call) in calls.iter().enumerate() {
            let pieces = call.chunk.split(&call.arguments).into_iter();
            // The real server begins with an empty piece.
            let pieces = std::iter::once("").chain(pieces);
            let deltas =
                pieces.map(|piece| json!({"type": "input_json_delta", "partial_json": piece}));
            blocks.push((self.call(at, call, json!({})), deltas.collect()));
        }
        blocks
    }

    fn whole(&self) -> Answer {
        let Message { reasoning, text, calls, .. } = &self.message;
        let mut content = Vec::new();
        if !reasoning.is_empty() {
            let signature = signature(reasoning);
            content
                .push(json!({"type": "thinking", "thinking": reasoning, "signature": signature}));
        }
        if !text.is_empty() {
            content.push(json!({"type": "text", "text": text}));
        }
        content.extend(calls.iter().enumerate().map(|(at, call)| {
            let input = serde_json::from_str(&call.arguments)
                .unwrap_or_else(|_| Value::String(call.arguments.clone()));
            self.call(at, call, input)
        }));
        let mut body = self.envelope();
        body["content"] = content.into();
        body["stop_reason"] = json!(self.stop_reason());
        if let Some((input, output)) = self.usage() {
            body["usage"] = json!({"input_tokens": input, "output_tokens": output});
        }
        json_answer(200, &body)
    }

    fn envelope(&self) -> Value {
        json!({
            "id": format!("msg_fake_{}", self.request.number),
            "type": "message",
            "role": "assistant",
            "model": self.request.body["model"],
            "content": [],
            "stop_reason": null,
            "stop_sequence": null,
        })
    }

    fn call(&self, at: usize, call: &Call, input: Value) -> Value {
        let id = || format!("toolu_fake_{}_{at}", self.request.number);
        let id = call.id.clone().unwrap_or_else(id);
        json!({"type": "tool_use", "id": id, "name": call.name, "input": input})
    }

    /// One script serves several APIs, so their words are known here.
    fn stop_reason(&self) -> &str {
        match self.message.finish_reason.as_deref() {
            Some("length") => "max_tokens",
            Some("stop") => "end_turn",
            Some("tool_calls") => "tool_use",
            Some("content_filter") => "refusal",
            Some(reason) => reason,
            None if self.message.calls.is_empty() => "end_turn",
            None => "tool_use",
        }
    }

    /// Tokens in and out.
    fn usage(&self) -> Option<(u64, u64)> {
        self.message.usage.tokens(self.request.bytes, self.message.bytes())
    }
}

/// An event with its name, as the API writes it.
fn event(data: &Value) -> Vec<u8> {
    let name = data["type"].as_str().unwrap_or_default();
    format!("event: {name}\ndata: {data}\n\n").into_bytes()
}

/// A delta of the text block with this index, open where its text belongs.
fn filler(index: usize) -> Filler {
    let event = event(&json!({
        "type": "content_block_delta", "index": index,
        "delta": {"type": "text_delta", "text": ""},
    }));
    let end = b"\"}}\n\n";
    let (prefix, suffix) = event.split_at(event.len() - end.len());
    Filler { prefix: prefix.to_vec(), suffix: suffix.to_vec() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> Request {
        Request::seventh("/v1/messages", json!({"model": "m", "stream": true}))
    }

    fn reply() -> Reply {
        Reply::text("Hi you")
            .reasoning("Hm")
            .call(Call::with_text("t", r#"{"n":1}"#).chunk(Chunk::Bytes(4)))
            .usage(3, 4)
    }

    #[test]
    fn a_stream_is_written_as_the_api_does() {
        let answer = answer(&request(), Form::Stream, reply());
        let signature = signature("Hm");
        let expected = [
            r#"message_start {"type":"message_start","message":{"id":"msg_fake_7","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":3,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":1}}}"#,
            r#"content_block_start {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
            r#"ping {"type":"ping"}"#,
            r#"content_block_delta {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Hm"}}"#,
            &format!(
                r#"content_block_delta {{"type":"content_block_delta","index":0,"delta":{{"type":"signature_delta","signature":"{signature}"}}}}"#
            ),
            r#"content_block_stop {"type":"content_block_stop","index":0}"#,
            r#"content_block_start {"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}"#,
            r#"content_block_delta {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"Hi"}}"#,
            r#"content_block_delta {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":" you"}}"#,
            r#"content_block_stop {"type":"content_block_stop","index":1}"#,
            r#"content_block_start {"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"toolu_fake_7_0","name":"t","input":{}}}"#,
            r#"content_block_delta {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":""}}"#,
            r#"content_block_delta {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"n\""}}"#,
            r#"content_block_delta {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":":1}"}}"#,
            r#"content_block_stop {"type":"content_block_stop","index":2}"#,
            r#"message_delta {"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":4}}"#,
            r#"message_stop {"type":"message_stop"}"#,
        ];
        let written: Vec<_> =
            answer.events.iter().map(|event| String::from_utf8(event.clone()).unwrap()).collect();
        let expected = expected.map(|line| {
            let (name, data) = line.split_once(' ').unwrap();
            format!("event: {name}\ndata: {data}\n\n")
        });
        assert_eq!(written, expected);
    }

    #[test]
    fn without_stream_the_reply_is_one_object() {
        let answer = answer(&request(), Form::Whole, reply());
        let body: Value = serde_json::from_slice(&answer.events.concat()).unwrap();
        let expected = json!({
            "id": "msg_fake_7", "type": "message", "role": "assistant", "model": "m",
            "content": [
                {"type": "thinking", "thinking": "Hm", "signature": signature("Hm")},
                {"type": "text", "text": "Hi you"},
                {"type": "tool_use", "id": "toolu_fake_7_0", "name": "t", "input": {"n": 1}},
            ],
            "stop_reason": "tool_use", "stop_sequence": null,
            "usage": {"input_tokens": 3, "output_tokens": 4},
        });
        assert_eq!((answer.streamed, body), (false, expected));
    }

    #[test]
    fn a_failure_has_the_form_of_the_api() {
        let answer = answer(&request(), Form::Stream, Reply::error(529, "Overloaded"));
        let body: Value = serde_json::from_slice(&answer.events.concat()).unwrap();
        let error = json!({"type": "overloaded_error", "message": "Overloaded"});
        let expected = json!({"type": "error", "error": error, "request_id": "req_fake_7"});
        assert_eq!((answer.status, body), (529, expected));
    }

    #[test]
    fn the_filler_is_an_open_delta() {
        let Filler { prefix, suffix } = filler(0);
        let event = [prefix.as_slice(), b"text", &suffix].concat();
        let data = std::str::from_utf8(&event).unwrap().split_once("data: ").unwrap().1;
        let event: Value = serde_json::from_str(data).unwrap();
        assert_eq!(event["delta"], json!({"type": "text_delta", "text": "text"}));
    }
}
