//! The form of an answer: [`answer`] writes a [`Reply`] as a stream of events or as one object.

use serde_json::{Value, json};

use crate::log::Request;
use crate::openai_chat::{CREATED, error_body, json_answer};
use crate::playback::{Answer, Filler};
use crate::reply::{Call, Chunk, Message, Reply};

/// The answer to a request that was accepted; thoughts are encrypted under a seal.
pub(crate) fn answer(request: &Request, seal: &str, reply: Reply) -> Answer {
    let message = |message, chunk, end_marker| {
        let response = Response { request, seal, message, chunk };
        match request.body["stream"].as_bool() {
            Some(true) => response.stream(end_marker),
            _ => json_answer(200, &response.end()),
        }
    };
    Answer::to(reply, message, |status, message| json_answer(status, &error_body(status, message)))
}

struct Response<'a> {
    request: &'a Request,
    seal: &'a str,
    message: Message,
    chunk: Chunk,
}

/// What the model says, one item of the output each.
enum Item<'a> {
    Thought(&'a str),
    Text(&'a str),
    Call(usize, &'a Call),
}

impl Response<'_> {
    fn stream(&self, end_marker: bool) -> Answer {
        let mut events = Events::default();
        let begin = self.envelope("in_progress", json!([]));
        events.push("response.created", json!({"response": begin}));
        events.push("response.in_progress", json!({"response": begin}));
        for (index, item) in self.items().iter().enumerate() {
            self.write(index, item, &mut events);
        }
        if end_marker {
            let end = self.end();
            let kind = format!("response.{}", end["status"].as_str().unwrap_or_default());
            events.push(&kind, json!({"response": end}));
        }
        let mut delta = Events::default();
        delta.push("response.output_text.delta", text_delta(""));
        let filler = Filler::behind(r#""delta":""#, &delta.0.concat());
        Answer::stream("text/event-stream; charset=utf-8", events.0, filler)
    }

    /// The response as it is at its end.
    fn end(&self) -> Value {
        let status = if self.cut().is_some() { "incomplete" } else { "completed" };
        let items = self.items();
        let output: Vec<_> =
            items.iter().enumerate().map(|(index, item)| self.whole(index, item)).collect();
        let mut response = self.envelope(status, json!(output));
        if let Some(reason) = self.cut() {
            response["incomplete_details"] = json!({"reason": reason});
        }
        if let Some((input, output)) = self.usage() {
            let thought = self.message.reasoning.len().div_ceil(4);
            response["usage"] = json!({
                "input_tokens": input,
                "input_tokens_details": {"cached_tokens": 0},
                "output_tokens": output,
                "output_tokens_details": {"reasoning_tokens": thought},
                "total_tokens": input + output,
            });
        }
        response
    }

    fn envelope(&self, status: &str, output: Value) -> Value {
        let body = &self.request.body;
        json!({
            "id": format!("resp_fake_{}", self.request.number),
            "object": "response",
            "created_at": CREATED,
            "status": status,
            "error": null,
            "incomplete_details": null,
            "model": body["model"],
            "output": output,
            "store": body.get("store").unwrap_or(&Value::Bool(true)),
            "usage": null,
        })
    }

    fn items(&self) -> Vec<Item<'_>> {
        let Message { reasoning, text, calls, .. } = &self.message;
        let mut items = Vec::new();
        if !reasoning.is_empty() {
            items.push(Item::Thought(reasoning));
        }
        if !text.is_empty() || items.is_empty() && calls.is_empty() {
            items.push(Item::Text(text));
        }
        items.extend(calls.iter().enumerate().map(|(at, call)| Item::Call(at, call)));
        items
    }

    /// The events of one item.
    fn write(&self, index: usize, item: &Item<'_>, events: &mut Events) {
        let whole = self.whole(index, item);
        let id = whole["id"].clone();
        let mut begun = whole.clone();
        begun["status"] = json!("in_progress");
        let at = |more: Value| {
            let mut data = json!({"item_id": id, "output_index": index});
            if let (Some(data), Value::Object(more)) = (data.as_object_mut(), more) {
                data.extend(more);
            }
            data
        };
        match item {
            Item::Thought(text) => {
                begun["summary"] = json!([]);
                if let Some(begun) = begun.as_object_mut() {
                    begun.remove("status");
                }
                events.push("response.output_item.added", item_event(index, &begun));
                let part = |text: &str| json!({"type": "summary_text", "text": text});
                let part_event = |text| at(json!({"summary_index": 0, "part": part(text)}));
                events.push("response.reasoning_summary_part.added", part_event(""));
                for piece in self.chunk.split(text) {
                    let delta = at(json!({"summary_index": 0, "delta": piece}));
                    events.push("response.reasoning_summary_text.delta", delta);
                }
                let done = at(json!({"summary_index": 0, "text": text}));
                events.push("response.reasoning_summary_text.done", done);
                events.push("response.reasoning_summary_part.done", part_event(text));
            }
            Item::Text(text) => {
                begun["content"] = json!([]);
                events.push("response.output_item.added", item_event(index, &begun));
                let part_event = |text| at(json!({"content_index": 0, "part": output_text(text)}));
                events.push("response.content_part.added", part_event(""));
                for piece in self.chunk.split(text) {
                    events.push("response.output_text.delta", at(text_delta(piece)));
                }
                let done = at(json!({"content_index": 0, "text": text, "logprobs": []}));
                events.push("response.output_text.done", done);
                events.push("response.content_part.done", part_event(text));
            }
            Item::Call(_, call) => {
                begun["arguments"] = json!("");
                events.push("response.output_item.added", item_event(index, &begun));
                let chunk = if call.in_one_delta { Chunk::Whole } else { call.chunk };
                for piece in chunk.split(&call.arguments) {
                    let delta = at(json!({"delta": piece}));
                    events.push("response.function_call_arguments.delta", delta);
                }
                let done = at(json!({"arguments": call.arguments}));
                events.push("response.function_call_arguments.done", done);
            }
        }
        events.push("response.output_item.done", item_event(index, &whole));
    }

    /// An item as it is when it is done.
    fn whole(&self, index: usize, item: &Item<'_>) -> Value {
        let is_last = index + 1 == self.items().len();
        let cut = self.cut() == Some("max_output_tokens") && is_last;
        let status = if cut { "incomplete" } else { "completed" };
        let number = self.request.number;
        match item {
            Item::Thought(text) => {
                let mut thought = json!({
                    "id": self.thought_id(), "type": "reasoning",
                    "summary": [{"type": "summary_text", "text": text}],
                });
                let include = self.request.body["include"].as_array();
                let wanted = "reasoning.encrypted_content";
                if include.is_some_and(|parts| parts.iter().any(|part| part == wanted)) {
                    thought["encrypted_content"] = json!(format!("gAAAA_{}_{number}", self.seal));
                }
                thought
            }
            Item::Text(text) => json!({
                "id": self.id("msg", index), "type": "message", "status": status,
                "role": "assistant", "content": [output_text(text)],
            }),
            Item::Call(at, call) => {
                let call_id = call.id.clone().unwrap_or_else(|| format!("call_{number}_{at}"));
                json!({
                    "id": self.id("fc", index), "type": "function_call", "status": status,
                    "call_id": call_id, "name": call.name, "arguments": call.arguments,
                })
            }
        }
    }

    /// The id of an item. It ends in that of the thought which it is tied to.
    fn id(&self, prefix: &str, index: usize) -> String {
        let number = self.request.number;
        match self.message.reasoning.is_empty() {
            true => format!("{prefix}_fake_{number}_{index}"),
            false => format!("{prefix}_{index}_{}", self.thought_id()),
        }
    }

    fn thought_id(&self) -> String {
        format!("rs_fake_{}", self.request.number)
    }

    /// Why the reply is incomplete, if it is.
    fn cut(&self) -> Option<&str> {
        match self.message.finish_reason.as_deref()? {
            // The words of the other APIs, for scripts that are played to all of them.
            "length" | "max_tokens" => Some("max_output_tokens"),
            "stop" | "tool_calls" | "completed" => None,
            reason => Some(reason),
        }
    }

    fn usage(&self) -> Option<(u64, u64)> {
        self.message.usage.tokens(self.request.bytes, self.message.bytes())
    }
}

/// Events as they are written, numbered.
#[derive(Default)]
struct Events(Vec<Vec<u8>>);

impl Events {
    fn push(&mut self, kind: &str, data: Value) {
        let mut event = json!({"type": kind, "sequence_number": self.0.len()});
        if let (Some(event), Value::Object(data)) = (event.as_object_mut(), data) {
            event.extend(data);
        }
        self.0.push(format!("event: {kind}\ndata: {event}\n\n").into_bytes());
    }
}

fn item_event(index: usize, item: &Value) -> Value {
    json!({"output_index": index, "item": item})
}

fn text_delta(text: &str) -> Value {
    json!({"content_index": 0, "delta": text, "logprobs": []})
}

fn output_text(text: &str) -> Value {
    json!({"type": "output_text", "annotations": [], "logprobs": [], "text": text})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::Fault;

    fn request(body: Value) -> Request {
        Request::seventh("/v1/responses", body)
    }

    fn streamed() -> Request {
        let include = ["reasoning.encrypted_content"];
        request(json!({"model": "m", "stream": true, "store": false, "include": include}))
    }

    fn events(answer: &Answer) -> Vec<Value> {
        let data = |event: &Vec<u8>| {
            let event = std::str::from_utf8(event).unwrap();
            let (name, data) = event.split_once("\ndata: ").unwrap();
            let data: Value = serde_json::from_str(data.strip_suffix("\n\n").unwrap()).unwrap();
            assert_eq!(name.strip_prefix("event: "), data["type"].as_str());
            data
        };
        answer.events.iter().map(data).collect()
    }

    fn kinds(answer: &Answer) -> Vec<String> {
        events(answer)
            .iter()
            .map(|event| event["type"].as_str().unwrap().trim_start_matches("response.").to_owned())
            .collect()
    }

    fn reply() -> Reply {
        Reply::text("Hi you")
            .reasoning("Hm")
            .call(Call::with_text("t", "{}ab").chunk(Chunk::Bytes(2)).id("a"))
            .usage(3, 4)
    }

    #[test]
    fn a_stream_has_every_event_of_the_api() {
        let answer = answer(&streamed(), "fake", reply());
        let expected = [
            "created",
            "in_progress",
            "output_item.added",
            "reasoning_summary_part.added",
            "reasoning_summary_text.delta",
            "reasoning_summary_text.done",
            "reasoning_summary_part.done",
            "output_item.done",
            "output_item.added",
            "content_part.added",
            "output_text.delta",
            "output_text.delta",
            "output_text.done",
            "content_part.done",
            "output_item.done",
            "output_item.added",
            "function_call_arguments.delta",
            "function_call_arguments.delta",
            "function_call_arguments.done",
            "output_item.done",
            "completed",
        ];
        assert_eq!(kinds(&answer), expected);
        let events = events(&answer);
        let thought = json!({
            "id": "rs_fake_7", "type": "reasoning", "encrypted_content": "gAAAA_fake_7",
            "summary": [{"type": "summary_text", "text": "Hm"}],
        });
        let call = json!({
            "id": "fc_2_rs_fake_7", "type": "function_call", "status": "completed",
            "call_id": "a", "name": "t", "arguments": "{}ab",
        });
        assert_eq!((&events[7]["item"], &events[19]["item"]), (&thought, &call));
        let delta = json!({
            "type": "response.output_text.delta", "sequence_number": 11,
            "item_id": "msg_1_rs_fake_7", "output_index": 1, "content_index": 0,
            "delta": " you", "logprobs": [],
        });
        assert_eq!(events[11], delta);
        let end = &events[20]["response"];
        assert_eq!(end["output"].as_array().unwrap().len(), 3);
        assert_eq!(end["usage"]["total_tokens"], 7);
    }

    #[test]
    fn without_stream_the_reply_is_one_object() {
        let answer = answer(&request(json!({"model": "m"})), "fake", reply());
        let body: Value = serde_json::from_slice(&answer.events.concat()).unwrap();
        let kinds: Vec<_> =
            body["output"].as_array().unwrap().iter().map(|item| &item["type"]).collect();
        assert_eq!(kinds, ["reasoning", "message", "function_call"]);
        // Encrypted thought is for those who ask.
        assert_eq!(body["output"][0]["encrypted_content"], Value::Null);
        assert_eq!((&body["status"], &body["store"]), (&json!("completed"), &json!(true)));
    }

    #[test]
    fn a_limit_cuts_the_last_item() {
        let answer = answer(&streamed(), "fake", reply().finish_reason("length"));
        let events = events(&answer);
        let [.., done, end] = &events[..] else { panic!() };
        assert_eq!(done["item"]["status"], "incomplete");
        assert_eq!(end["type"], "response.incomplete");
        assert_eq!(end["response"]["incomplete_details"], json!({"reason": "max_output_tokens"}));
        assert_eq!(end["response"]["output"][1]["status"], "completed");
    }

    #[test]
    fn the_end_may_be_missing() {
        let answer = answer(&streamed(), "fake", reply().fault(Fault::NoEndMarker));
        assert_eq!(kinds(&answer).last().unwrap(), "output_item.done");
    }

    #[test]
    fn the_filler_is_an_open_delta() {
        let Filler { prefix, suffix } = answer(&streamed(), "fake", Reply::text("x")).filler;
        let event = String::from_utf8([prefix.as_slice(), b"text", &suffix].concat()).unwrap();
        let data = event.split_once("data: ").unwrap().1;
        assert_eq!(serde_json::from_str::<Value>(data).unwrap()["delta"], "text");
    }
}
