//! The form of an answer: [`answer`] writes a [`Reply`] as a stream of chunks or as one object.

use serde_json::{Value, json};

use super::{CREATED, json_answer};
use crate::log::Request;
use crate::playback::{Answer, Filler};
use crate::reply::{Call, Chunk, Message, Reply};

/// The answer to a request that was accepted.
pub(crate) fn answer(request: &Request, reply: Reply) -> Answer {
    let message = |message, chunk, end_marker| {
        let completion = Completion { request, message, chunk };
        match request.body["stream"].as_bool() {
            Some(true) => completion.stream(end_marker),
            _ => completion.whole(),
        }
    };
    Answer::to(reply, message, |status, message| json_answer(status, &error_body(status, message)))
}

/// The body of a failure.
pub(crate) fn error_body(status: u16, message: &str) -> Value {
    let (kind, code) = match status {
        401 => ("invalid_request_error", Some("invalid_api_key")),
        429 => ("requests", Some("rate_limit_exceeded")),
        500.. => ("server_error", None),
        _ => ("invalid_request_error", None),
    };
    json!({"error": {"message": message, "type": kind, "param": null, "code": code}})
}

struct Completion<'a> {
    request: &'a Request,
    message: Message,
    chunk: Chunk,
}

impl Completion<'_> {
    fn stream(&self, end_marker: bool) -> Answer {
        let first = if self.message.text.is_empty() { Value::Null } else { json!("") };
        let mut events = vec![self.delta(json!({"role": "assistant", "content": first}))];
        for piece in self.chunk.split(&self.message.reasoning) {
            events.push(self.delta(json!({"reasoning_content": piece})));
        }
        for piece in self.chunk.split(&self.message.text) {
            events.push(self.delta(json!({"content": piece})));
        }
        for (index, call) in self.message.calls.iter().enumerate() {
            let deltas = call_deltas(call, index, &self.call_id(index));
            events
                .extend(deltas.into_iter().map(|delta| self.delta(json!({"tool_calls": [delta]}))));
        }
        events.push(self.chunk_event(choice(json!({}), Some(self.finish_reason())), None));
        if self.include_usage()
            && let Some(usage) = self.usage()
        {
            events.push(self.chunk_event(json!([]), Some(usage)));
        }
        if end_marker {
            events.push(b"data: [DONE]\n\n".to_vec());
        }
        let filler = Filler::behind(r#""content":""#, &self.delta(json!({"content": ""})));
        Answer::stream("text/event-stream; charset=utf-8", events, filler)
    }

    fn whole(&self) -> Answer {
        let Message { reasoning, text, calls, .. } = &self.message;
        let content = if text.is_empty() && !calls.is_empty() { Value::Null } else { json!(text) };
        let mut message = json!({"role": "assistant", "content": content, "refusal": null});
        if !reasoning.is_empty() {
            message["reasoning_content"] = json!(reasoning);
        }
        if !calls.is_empty() {
            let calls = calls
                .iter()
                .enumerate()
                .map(|(index, call)| whole_call(call, &self.call_id(index)));
            message["tool_calls"] = calls.collect();
        }
        let mut body = self.envelope("chat.completion");
        body["choices"] = json!([{
            "index": 0, "message": message, "logprobs": null, "finish_reason": self.finish_reason(),
        }]);
        if let Some(usage) = self.usage() {
            body["usage"] = usage;
        }
        Answer::whole(200, "application/json", body.to_string())
    }

    fn delta(&self, delta: Value) -> Vec<u8> {
        self.chunk_event(choice(delta, None), None)
    }

    /// As the real server does, every chunk has `usage` if it was asked for, and only the last
    /// one has it filled.
    fn chunk_event(&self, choices: Value, usage: Option<Value>) -> Vec<u8> {
        let mut chunk = self.envelope("chat.completion.chunk");
        chunk["choices"] = choices;
        if self.include_usage() {
            chunk["usage"] = usage.unwrap_or(Value::Null);
        }
        format!("data: {chunk}\n\n").into_bytes()
    }

    fn envelope(&self, object: &str) -> Value {
        json!({
            "id": format!("chatcmpl-fake-{}", self.request.number),
            "object": object,
            "created": CREATED,
            "model": self.request.body["model"],
            "service_tier": "default",
            "system_fingerprint": "fp_fake",
        })
    }

    fn call_id(&self, index: usize) -> String {
        let own = self.message.calls[index].id.clone();
        own.unwrap_or_else(|| format!("call_{}_{index}", self.request.number))
    }

    fn finish_reason(&self) -> &str {
        match &self.message.finish_reason {
            Some(reason) => reason,
            None if self.message.calls.is_empty() => "stop",
            None => "tool_calls",
        }
    }

    fn include_usage(&self) -> bool {
        self.request.body["stream_options"]["include_usage"] == true
    }

    fn usage(&self) -> Option<Value> {
        let (input, output) =
            self.message.usage.tokens(self.request.bytes, self.message.bytes())?;
        let thought = self.message.reasoning.len();
        Some(json!({
            "prompt_tokens": input,
            "completion_tokens": output,
            "total_tokens": input + output,
            "prompt_tokens_details": {"cached_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": thought.div_ceil(4)},
        }))
    }
}

fn choice(delta: Value, finish_reason: Option<&str>) -> Value {
    json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish_reason}])
}

fn call_deltas(call: &Call, index: usize, id: &str) -> Vec<Value> {
    let delta = |named: bool, arguments: &str| {
        let mut delta = json!({});
        if !call.without_index {
            delta["index"] = json!(index);
        }
        if named {
            delta["id"] = json!(id);
            delta["type"] = json!("function");
            delta["function"] = json!({"name": call.name, "arguments": arguments});
        } else {
            delta["function"] = json!({"arguments": arguments});
        }
        delta
    };
    if call.in_one_delta {
        return vec![delta(true, &call.arguments)];
    }
    let mut deltas = vec![delta(true, "")];
    let pieces = call.chunk.split(&call.arguments);
    deltas.extend(pieces.into_iter().map(|piece| delta(call.repeating, piece)));
    deltas
}

fn whole_call(call: &Call, id: &str) -> Value {
    json!({
        "id": id,
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(body: Value) -> Request {
        Request::seventh("/v1/chat/completions", body)
    }

    /// What differs from chunk to chunk.
    fn deltas(reply: Reply) -> Vec<Value> {
        let answer = answer(&request(json!({"model": "m", "stream": true})), reply);
        let chunks = answer.events.iter().filter_map(|event| {
            let text = std::str::from_utf8(event).unwrap();
            let data = text.strip_prefix("data: ").unwrap().strip_suffix("\n\n").unwrap();
            serde_json::from_str::<Value>(data).ok()
        });
        chunks.map(|mut chunk| chunk["choices"][0]["delta"].take()).collect()
    }

    fn call_parts(call: Call) -> Vec<Value> {
        let mut deltas = deltas(Reply::calls([call]));
        deltas.pop();
        deltas.remove(0);
        deltas.into_iter().map(|mut delta| delta["tool_calls"][0].take()).collect()
    }

    #[test]
    fn a_stream_is_written_as_the_api_does() {
        let body = json!({
            "model": "m", "stream": true, "stream_options": {"include_usage": true},
        });
        let answer = answer(&request(body), Reply::text("Hi you"));
        let head = r#"data: {"id":"chatcmpl-fake-7","object":"chat.completion.chunk","created":1700000000,"model":"m","service_tier":"default","system_fingerprint":"fp_fake","choices":"#;
        let expected = [
            format!(
                r#"{head}[{{"index":0,"delta":{{"role":"assistant","content":""}},"logprobs":null,"finish_reason":null}}],"usage":null}}"#
            ),
            format!(
                r#"{head}[{{"index":0,"delta":{{"content":"Hi"}},"logprobs":null,"finish_reason":null}}],"usage":null}}"#
            ),
            format!(
                r#"{head}[{{"index":0,"delta":{{"content":" you"}},"logprobs":null,"finish_reason":null}}],"usage":null}}"#
            ),
            format!(
                r#"{head}[{{"index":0,"delta":{{}},"logprobs":null,"finish_reason":"stop"}}],"usage":null}}"#
            ),
            format!(
                r#"{head}[],"usage":{{"prompt_tokens":10,"completion_tokens":2,"total_tokens":12,"prompt_tokens_details":{{"cached_tokens":0}},"completion_tokens_details":{{"reasoning_tokens":0}}}}}}"#
            ),
            "data: [DONE]".to_owned(),
        ];
        let written: Vec<_> =
            answer.events.iter().map(|event| String::from_utf8(event.clone()).unwrap()).collect();
        assert_eq!(written, expected.map(|event| event + "\n\n"));
    }

    #[test]
    fn usage_is_for_those_who_ask() {
        let asked =
            json!({"model": "m", "stream": true, "stream_options": {"include_usage": true}});
        let has_usage = |body: &Value, reply: Reply| {
            let events = answer(&request(body.clone()), reply).events.concat();
            String::from_utf8(events).unwrap().contains("prompt_tokens")
        };
        assert!(has_usage(&asked, Reply::text("x").usage(1, 2)));
        assert!(!has_usage(&asked, Reply::text("x").without_usage()));
        assert!(!has_usage(&json!({"model": "m", "stream": true}), Reply::text("x")));
        assert!(has_usage(&json!({"model": "m"}), Reply::text("x")));
    }

    #[test]
    fn thought_comes_before_text() {
        let deltas = deltas(Reply::text("ok").reasoning("so so"));
        let expected = [
            json!({"role": "assistant", "content": ""}),
            json!({"reasoning_content": "so"}),
            json!({"reasoning_content": " so"}),
            json!({"content": "ok"}),
            json!({}),
        ];
        assert_eq!(deltas, expected);
    }

    #[test]
    fn calls_are_streamed_in_every_known_manner() {
        let call = || Call::with_text("t", "{}ab").chunk(Chunk::Bytes(2));
        let start = json!({
            "index": 0, "id": "call_7_0", "type": "function",
            "function": {"name": "t", "arguments": ""},
        });
        let piece = |text| json!({"index": 0, "function": {"arguments": text}});
        assert_eq!(call_parts(call()), [start, piece("{}"), piece("ab")]);

        let named = |arguments| json!({"id": "x", "type": "function", "function": {"name": "t", "arguments": arguments}});
        let odd = call().id("x").without_index().repeating();
        assert_eq!(call_parts(odd), [named(""), named("{}"), named("ab")]);
        assert_eq!(call_parts(call().id("x").without_index().in_one_delta()), [named("{}ab")]);
    }

    #[test]
    fn without_stream_the_reply_is_one_object() {
        let reply = Reply::calls([Call::new("t", json!({"n": 1})).id("a")]).usage(3, 4);
        let answer = answer(&request(json!({"model": "m"})), reply);
        let body: Value = serde_json::from_slice(&answer.events.concat()).unwrap();
        let expected = json!({
            "id": "chatcmpl-fake-7", "object": "chat.completion", "created": CREATED, "model": "m",
            "service_tier": "default", "system_fingerprint": "fp_fake",
            "choices": [{
                "index": 0,
                "message": {
                    "role": "assistant", "content": null, "refusal": null,
                    "tool_calls": [{
                        "id": "a", "type": "function",
                        "function": {"name": "t", "arguments": "{\"n\":1}"},
                    }],
                },
                "logprobs": null, "finish_reason": "tool_calls",
            }],
            "usage": {
                "prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7,
                "prompt_tokens_details": {"cached_tokens": 0},
                "completion_tokens_details": {"reasoning_tokens": 0},
            },
        });
        assert_eq!(body, expected);
    }

    #[test]
    fn the_filler_is_an_open_delta() {
        let answer = answer(&request(json!({"model": "m", "stream": true})), Reply::text("x"));
        let Filler { prefix, suffix } = answer.filler;
        let event = [prefix.as_slice(), b"text", &suffix].concat();
        let data = std::str::from_utf8(&event).unwrap().strip_prefix("data: ").unwrap();
        let chunk: Value = serde_json::from_str(data).unwrap();
        assert_eq!(chunk["choices"][0]["delta"], json!({"content": "text"}));
    }

    #[test]
    fn an_error_has_the_form_of_the_api() {
        let answer = answer(&request(json!({})), Reply::error(429, "Slow down"));
        let body: Value = serde_json::from_slice(&answer.events.concat()).unwrap();
        let error = json!({
            "message": "Slow down", "type": "requests", "param": null,
            "code": "rate_limit_exceeded",
        });
        assert_eq!((answer.status, body), (429, json!({ "error": error })));
    }

    #[test]
    fn a_header_of_the_reply_replaces_the_servers() {
        let reply =
            Reply::error(429, "no").header("Content-Type", "text/plain").header("retry-after", "1");
        let answer = answer(&request(json!({})), reply);
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let expected = [header("content-type", "text/plain"), header("retry-after", "1")];
        assert_eq!((answer.status, answer.headers), (429, expected.to_vec()));
    }
}
