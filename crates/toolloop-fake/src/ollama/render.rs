//! The form of an answer: [`answer`] writes a [`Reply`] as lines or as one object.

use serde_json::{Value, json};

use super::{CREATED, json_answer};
use crate::log::Request;
use crate::playback::{Answer, Filler};
use crate::reply::{Call, Chunk, Message, Reply};

/// The answer to a request that was accepted.
pub(super) fn answer(request: &Request, reply: Reply) -> Answer {
    let message = |message, chunk, end_marker| {
        let chat = Chat { request, message, chunk };
        // A stream unless it is declined.
        match request.body["stream"].as_bool() {
            Some(false) => chat.whole(),
            _ => chat.stream(end_marker),
        }
    };
    Answer::to(reply, message, |status, message| json_answer(status, &json!({ "error": message })))
}

struct Chat<'a> {
    request: &'a Request,
    message: Message,
    chunk: Chunk,
}

impl Chat<'_> {
    fn stream(&self, end_marker: bool) -> Answer {
        let Message { reasoning, text, calls, .. } = &self.message;
        let mut events = Vec::new();
        for piece in self.chunk.split(reasoning) {
            events.push(self.line(json!({"role": "assistant", "content": "", "thinking": piece})));
        }
        for piece in self.chunk.split(text) {
            events.push(self.line(json!({"role": "assistant", "content": piece})));
        }
        for (index, call) in calls.iter().enumerate() {
            let calls = [self.call(index, call)];
            let message = json!({"role": "assistant", "content": "", "tool_calls": calls});
            events.push(self.line(message));
        }
        if end_marker {
            let mut end = self.envelope(json!({"role": "assistant", "content": ""}));
            self.finish(&mut end);
            events.push(format!("{end}\n").into_bytes());
        }
        let empty = self.line(json!({"role": "assistant", "content": ""}));
        let filler = Filler::behind(r#""content":""#, &empty);
        Answer::stream("application/x-ndjson", events, filler)
    }

    fn whole(&self) -> Answer {
        let Message { reasoning, text, calls, .. } = &self.message;
        let mut message = json!({"role": "assistant", "content": text});
        if !reasoning.is_empty() {
            message["thinking"] = json!(reasoning);
        }
        if !calls.is_empty() {
            let calls = calls.iter().enumerate().map(|(index, call)| self.call(index, call));
            message["tool_calls"] = calls.collect();
        }
        let mut body = self.envelope(message);
        self.finish(&mut body);
        json_answer(200, &body)
    }

    fn line(&self, message: Value) -> Vec<u8> {
        format!("{}\n", self.envelope(message)).into_bytes()
    }

    fn envelope(&self, message: Value) -> Value {
        let model = &self.request.body["model"];
        json!({"model": model, "created_at": CREATED, "message": message, "done": false})
    }

    fn finish(&self, last: &mut Value) {
        last["done"] = json!(true);
        last["done_reason"] = json!(self.message.finish_reason.as_deref().unwrap_or("stop"));
        let tokens = self.message.usage.tokens(self.request.bytes, self.message.bytes());
        let Some((input, output)) = tokens else { return };
        last["total_duration"] = json!(1_000_000);
        last["prompt_eval_count"] = json!(input);
        last["eval_count"] = json!(output);
    }

    /// The real server only gives objects; arguments that are none are given as the text they are.
    fn call(&self, index: usize, call: &Call) -> Value {
        let arguments = serde_json::from_str(&call.arguments)
            .unwrap_or_else(|_| Value::String(call.arguments.clone()));
        let id = || format!("call_{}_{index}", self.request.number);
        let id = call.id.clone().unwrap_or_else(id);
        json!({"id": id, "function": {"index": index, "name": call.name, "arguments": arguments}})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(body: Value) -> Request {
        Request::seventh("/api/chat", body)
    }

    fn reply() -> Reply {
        Reply::text("Hi you")
            .reasoning("Hm")
            .call(Call::new("t", json!({"n": 1})))
            .call(Call::with_text("u", "{oops").id("a"))
            .usage(3, 4)
    }

    fn calls() -> [Value; 2] {
        [
            json!({"id": "call_7_0", "function": {"index": 0, "name": "t", "arguments": {"n": 1}}}),
            json!({"id": "a", "function": {"index": 1, "name": "u", "arguments": "{oops"}}),
        ]
    }

    #[test]
    fn a_stream_is_one_object_a_line() {
        let answer = answer(&request(json!({"model": "m"})), reply());
        let seen: Vec<Value> =
            answer.events.iter().map(|line| serde_json::from_slice(line).unwrap()).collect();
        let line = |message: Value| json!({"model": "m", "created_at": CREATED, "message": message, "done": false});
        let [first, second] = calls();
        let mut end = line(json!({"role": "assistant", "content": ""}));
        end["done"] = json!(true);
        end["done_reason"] = json!("stop");
        end["total_duration"] = json!(1_000_000);
        end["prompt_eval_count"] = json!(3);
        end["eval_count"] = json!(4);
        let expected = [
            line(json!({"role": "assistant", "content": "", "thinking": "Hm"})),
            line(json!({"role": "assistant", "content": "Hi"})),
            line(json!({"role": "assistant", "content": " you"})),
            line(json!({"role": "assistant", "content": "", "tool_calls": [first]})),
            line(json!({"role": "assistant", "content": "", "tool_calls": [second]})),
            end,
        ];
        assert_eq!(seen, expected);
        assert!(answer.events.iter().all(|line| line.ends_with(b"}\n")));
    }

    #[test]
    fn a_stream_may_be_declined() {
        let answer = answer(&request(json!({"model": "m", "stream": false})), reply());
        let body: Value = serde_json::from_slice(&answer.events.concat()).unwrap();
        let message = json!({
            "role": "assistant", "content": "Hi you", "thinking": "Hm", "tool_calls": calls(),
        });
        assert_eq!(
            (&body["message"], &body["done"], answer.streamed),
            (&message, &json!(true), false)
        );
    }

    #[test]
    fn an_error_is_a_sentence() {
        let answer = answer(&request(json!({"model": "m"})), Reply::error(500, "Oops"));
        assert_eq!((answer.status, answer.events.concat()), (500, br#"{"error":"Oops"}"#.to_vec()));
    }
}
