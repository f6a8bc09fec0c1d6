//! The form of an answer: [`answer`] writes a [`Reply`] as a stream or as one object.
//!
//! As the real server does, it ends its lines in CR LF, gives calls no ids of its own, and sends
//! them whole, unless the request asks for their arguments piece by piece.

use serde_json::{Value, json};

use super::{json_answer, refusal, wants_signatures};
use crate::log::Request;
use crate::playback::{Answer, Filler};
use crate::reply::{Call, Chunk, Message, Reply};

/// How the answer is wanted.
#[derive(Clone, Copy)]
pub(super) enum Form {
    Stream,
    Whole,
}

/// The answer to a request that was accepted.
pub(super) fn answer(request: &Request, model: &str, form: Form, reply: Reply) -> Answer {
    let message = |message, chunk, end_marker| {
        let turn = Turn { request, model, message, chunk };
        match form {
            Form::Stream => turn.stream(end_marker),
            Form::Whole => turn.whole(),
        }
    };
    Answer::to(reply, message, |status, message| {
        json_answer(status, &refusal(status, message).body)
    })
}

struct Turn<'a> {
    request: &'a Request,
    model: &'a str,
    message: Message,
    chunk: Chunk,
}

impl Turn<'_> {
    fn stream(&self, end_marker: bool) -> Answer {
        let Message { reasoning, text, calls, .. } = &self.message;
        let mut events = Vec::new();
        for piece in self.chunk.split(reasoning) {
            events.push(self.event(json!({"text": piece, "thought": true})));
        }
        for piece in self.chunk.split(text) {
            events.push(self.event(json!({ "text": piece })));
        }
        for (index, call) in calls.iter().enumerate().filter(|(_, call)| is_object(call)) {
            match self.in_pieces() {
                true => events.extend(self.pieces(index, call).into_iter().map(|p| self.event(p))),
                false => events.push(self.event(self.call(index, call))),
            }
        }
        if end_marker {
            let mut end = self.envelope(self.last_part());
            self.finish(&mut end);
            events.push(framed(&end));
        }
        let filler = Filler::behind(r#""text":""#, &self.event(json!({"text": ""})));
        Answer::stream("text/event-stream", events, filler)
    }

    fn whole(&self) -> Answer {
        let Message { reasoning, text, calls, .. } = &self.message;
        let mut parts = Vec::new();
        if !reasoning.is_empty() {
            parts.push(json!({"text": reasoning, "thought": true}));
        }
        if !text.is_empty() {
            parts.push(json!({ "text": text }));
        }
        let calls = calls.iter().enumerate().filter(|(_, call)| is_object(call));
        parts.extend(calls.map(|(index, call)| self.call(index, call)));
        let mut body = self.envelope(Value::Null);
        body["candidates"][0]["content"]["parts"] = Value::Array(parts);
        self.finish(&mut body);
        json_answer(200, &body)
    }

    fn event(&self, part: Value) -> Vec<u8> {
        framed(&self.envelope(part))
    }

    fn envelope(&self, part: Value) -> Value {
        json!({
            "candidates": [{"content": {"parts": [part], "role": "model"}, "index": 0}],
            "modelVersion": self.model,
            "responseId": format!("fake{}", self.request.number),
        })
    }

    fn call(&self, index: usize, call: &Call) -> Value {
        let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
        let mut function = json!({"name": call.name, "args": arguments});
        if let Some(id) = &call.id {
            function["id"] = json!(id);
        }
        self.signed(index, json!({ "functionCall": function }))
    }

    /// The call with its arguments at their paths. Only text is cut; what is neither text nor
    /// number nor truth stands as null.
    fn pieces(&self, index: usize, call: &Call) -> Vec<Value> {
        let mut function = json!({"name": call.name, "willContinue": true});
        if let Some(id) = &call.id {
            function["id"] = json!(id);
        }
        let mut pieces = vec![self.signed(index, json!({ "functionCall": function }))];
        let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
        let mut partial = Vec::new();
        leaves("$", &arguments, call.chunk, &mut partial);
        pieces.extend(partial.into_iter().map(
            |argument| json!({"functionCall": {"partialArgs": [argument], "willContinue": true}}),
        ));
        pieces.push(json!({"functionCall": {}}));
        pieces
    }

    /// Models that want signatures back sign the first call of a turn.
    fn signed(&self, index: usize, mut part: Value) -> Value {
        if index == 0 && wants_signatures(self.model) {
            part["thoughtSignature"] = json!(self.signature());
        }
        part
    }

    fn signature(&self) -> String {
        format!("fakeSignature+{:06}/", self.request.number)
    }

    /// The last event of a stream has an empty text; without calls, its signature is there.
    fn last_part(&self) -> Value {
        let mut part = json!({"text": ""});
        if self.message.calls.is_empty() && wants_signatures(self.model) {
            part["thoughtSignature"] = json!(self.signature());
        }
        part
    }

    fn finish(&self, last: &mut Value) {
        let malformed = self.message.calls.iter().find(|call| !is_object(call));
        let candidate = &mut last["candidates"][0];
        let reason = match (&self.message.finish_reason, malformed) {
            (Some(reason), _) => reason,
            (None, Some(call)) => {
                let text = format!("Malformed function call: {}({})", call.name, call.arguments);
                candidate["finishMessage"] = json!(text);
                "MALFORMED_FUNCTION_CALL"
            }
            (None, None) => "STOP",
        };
        candidate["finishReason"] = json!(reason);
        let thought = self.message.reasoning.len();
        let written = self.message.bytes() - thought;
        let tokens = self.message.usage.tokens(self.request.bytes, written);
        let Some((input, output)) = tokens else { return };
        let thoughts = thought.div_ceil(4) as u64;
        last["usageMetadata"] = json!({
            "promptTokenCount": input,
            "candidatesTokenCount": output,
            "totalTokenCount": input + output + thoughts,
        });
        if thoughts > 0 {
            last["usageMetadata"]["thoughtsTokenCount"] = json!(thoughts);
        }
    }

    fn in_pieces(&self) -> bool {
        let config = &self.request.body["toolConfig"]["functionCallingConfig"];
        config["streamFunctionCallArguments"] == true
    }
}

/// The API cannot give a call whose arguments are anything else.
fn is_object(call: &Call) -> bool {
    serde_json::from_str::<Value>(&call.arguments).is_ok_and(|arguments| arguments.is_object())
}

/// The values in `value`, each with the path to it, text cut into pieces.
fn leaves(path: &str, value: &Value, chunk: Chunk, leaves_so_far: &mut Vec<Value>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                leaves(&format!("{path}.{name}"), value, chunk, leaves_so_far);
            }
        }
        Value::Array(elements) => {
            for (at, value) in elements.iter().enumerate() {
                leaves(&format!("{path}[{at}]"), value, chunk, leaves_so_far);
            }
        }
        Value::String(text) => {
            for piece in chunk.split(text) {
                let piece = json!({"jsonPath": path, "stringValue": piece, "willContinue": true});
                leaves_so_far.push(piece);
            }
            leaves_so_far.push(json!({"jsonPath": path, "stringValue": ""}));
        }
        Value::Number(_) => leaves_so_far.push(json!({"jsonPath": path, "numberValue": value})),
        Value::Bool(_) => leaves_so_far.push(json!({"jsonPath": path, "boolValue": value})),
        Value::Null => leaves_so_far.push(json!({"jsonPath": path, "nullValue": "NULL_VALUE"})),
    }
}

fn framed(event: &Value) -> Vec<u8> {
    format!("data: {event}\r\n\r\n").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(body: Value) -> Request {
        Request::seventh("/v1beta/models/m:streamGenerateContent?alt=sse", body)
    }

    fn parts(model: &str, body: Value, reply: Reply) -> (Vec<Value>, Value) {
        let answer = answer(&request(body), model, Form::Stream, reply);
        let mut chunks: Vec<Value> = answer
            .events
            .iter()
            .map(|event| {
                let text = std::str::from_utf8(event).unwrap();
                let data = text.strip_prefix("data: ").unwrap().strip_suffix("\r\n\r\n").unwrap();
                serde_json::from_str(data).unwrap()
            })
            .collect();
        let last = chunks.last().unwrap().clone();
        let part = |chunk: &mut Value| chunk["candidates"][0]["content"]["parts"][0].take();
        (chunks.iter_mut().map(part).collect(), last)
    }

    fn reply() -> Reply {
        Reply::text("Hi you")
            .reasoning("Hm")
            .call(Call::new("t", json!({"n": 1})))
            .call(Call::new("u", json!({})).id("a"))
            .usage(3, 4)
    }

    #[test]
    fn a_stream_is_written_as_the_api_does() {
        let (seen, last) = parts("gemini-3-pro", json!({}), reply());
        let expected = [
            json!({"text": "Hm", "thought": true}),
            json!({"text": "Hi"}),
            json!({"text": " you"}),
            json!({"functionCall": {"name": "t", "args": {"n": 1}},
                "thoughtSignature": "fakeSignature+000007/"}),
            json!({"functionCall": {"name": "u", "args": {}, "id": "a"}}),
            json!({"text": ""}),
        ];
        assert_eq!(seen, expected);
        let expected = json!({
            "candidates": [{
                "content": {"parts": [{"text": ""}], "role": "model"},
                "index": 0, "finishReason": "STOP",
            }],
            "modelVersion": "gemini-3-pro",
            "responseId": "fake7",
            "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 4,
                "totalTokenCount": 8, "thoughtsTokenCount": 1},
        });
        assert_eq!(last, expected);
    }

    #[test]
    fn models_before_gemini_3_sign_nothing() {
        let (seen, _) = parts("gemini-2.5-flash", json!({}), reply());
        assert!(seen.iter().all(|part| part["thoughtSignature"].is_null()));
    }

    #[test]
    fn arguments_come_in_pieces_where_they_are_asked_for() {
        let config = json!({"functionCallingConfig": {"streamFunctionCallArguments": true}});
        let call = Call::new("t", json!({"a": ["xy", 1]})).chunk(Chunk::Bytes(1));
        let (seen, _) =
            parts("gemini-2.5-flash", json!({"toolConfig": config}), Reply::calls([call]));
        let piece = |argument: Value| json!({"functionCall": {"partialArgs": [argument], "willContinue": true}});
        let expected = [
            json!({"functionCall": {"name": "t", "willContinue": true}}),
            piece(json!({"jsonPath": "$.a[0]", "stringValue": "x", "willContinue": true})),
            piece(json!({"jsonPath": "$.a[0]", "stringValue": "y", "willContinue": true})),
            piece(json!({"jsonPath": "$.a[0]", "stringValue": ""})),
            piece(json!({"jsonPath": "$.a[1]", "numberValue": 1})),
            json!({"functionCall": {}}),
            json!({"text": ""}),
        ];
        assert_eq!(seen, expected);
    }

    #[test]
    fn arguments_that_are_no_object_end_the_answer() {
        let call = Call::with_text("t", "{oops");
        let (_, last) = parts("gemini-2.5-flash", json!({}), Reply::calls([call]));
        let candidate = &last["candidates"][0];
        assert_eq!(candidate["finishReason"], "MALFORMED_FUNCTION_CALL");
        assert_eq!(candidate["finishMessage"], "Malformed function call: t({oops)");
    }

    #[test]
    fn an_answer_may_come_as_one_object() {
        let answer = answer(&request(json!({})), "gemini-2.5-flash", Form::Whole, reply());
        let body: Value = serde_json::from_slice(&answer.events.concat()).unwrap();
        let parts = json!([
            {"text": "Hm", "thought": true},
            {"text": "Hi you"},
            {"functionCall": {"name": "t", "args": {"n": 1}}},
            {"functionCall": {"name": "u", "args": {}, "id": "a"}},
        ]);
        assert_eq!(body["candidates"][0]["content"]["parts"], parts);
        assert!(!answer.streamed);
    }
}
