//! The format of script files: one reply a line, or one JSON array of replies.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Deserializer, Value};

use crate::faults::Fault;
use crate::reply::{Call, Chunk, Content, Message, Reply, UsageReport};
use crate::script::ScriptError;

/// The replies in a JSON array, or in JSON values one after the other.
pub(crate) fn parse(text: &str) -> Result<Vec<Reply>, ScriptError> {
    let mut replies = Vec::new();
    for value in Deserializer::from_str(text).into_iter::<Value>() {
        let value = value.map_err(|error| fault(replies.len(), error))?;
        let values = match value {
            Value::Array(values) => values,
            value => vec![value],
        };
        for value in values {
            let line: ReplyLine =
                serde_json::from_value(value).map_err(|error| fault(replies.len(), error))?;
            let reply = line.into_reply().map_err(|error| fault(replies.len(), error))?;
            replies.push(reply);
        }
    }
    Ok(replies)
}

/// A reply as it stands in a file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReplyLine {
    #[serde(default)]
    reasoning: String,
    #[serde(default)]
    text: String,
    #[serde(default)]
    calls: Vec<CallLine>,
    finish_reason: Option<String>,
    #[serde(default = "counted", deserialize_with = "tokens")]
    usage: UsageReport,
    status: Option<u16>,
    content_type: Option<String>,
    body: Option<Value>,
    chunk: Option<Chunk>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    faults: Vec<Fault>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallLine {
    id: Option<String>,
    name: String,
    #[serde(default)]
    arguments: Value,
    chunk: Option<Chunk>,
    #[serde(default)]
    without_index: bool,
    #[serde(default)]
    repeating: bool,
    #[serde(default)]
    in_one_delta: bool,
}

impl ReplyLine {
    fn into_reply(self) -> Result<Reply, &'static str> {
        let says = !(self.reasoning.is_empty() && self.text.is_empty() && self.calls.is_empty());
        let raw = self.status.is_some() || self.body.is_some() || self.content_type.is_some();
        if says && raw {
            return Err("a reply has text, reasoning and calls, or status and body, not both");
        }
        let mut reply = if raw {
            raw_reply(self.status.unwrap_or(200), self.content_type, self.body)
        } else {
            Reply::from(Message {
                reasoning: self.reasoning,
                text: self.text,
                calls: self.calls.into_iter().map(CallLine::into_call).collect(),
                finish_reason: self.finish_reason,
                usage: self.usage,
            })
        };
        reply.chunk = self.chunk.unwrap_or(reply.chunk);
        for (name, value) in self.headers {
            reply = reply.header(name, value);
        }
        reply.faults = self.faults;
        Ok(reply)
    }
}

impl CallLine {
    fn into_call(self) -> Call {
        let call = match self.arguments {
            Value::Null => Call::with_text(self.name, "{}"),
            Value::String(text) => Call::with_text(self.name, text),
            value => Call::new(self.name, value),
        };
        Call {
            id: self.id,
            chunk: self.chunk.unwrap_or(call.chunk),
            without_index: self.without_index,
            repeating: self.repeating,
            in_one_delta: self.in_one_delta,
            ..call
        }
    }
}

fn counted() -> UsageReport {
    UsageReport::Counted
}

/// `null` is none at all.
fn tokens<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<UsageReport, D::Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Tokens {
        input: u64,
        output: u64,
    }
    let tokens = Option::<Tokens>::deserialize(deserializer)?;
    Ok(tokens.map_or(UsageReport::Absent, |Tokens { input, output }| UsageReport::Tokens {
        input,
        output,
    }))
}

/// A body that is a string is sent as it is, unless the message of an error is wanted.
fn raw_reply(status: u16, content_type: Option<String>, body: Option<Value>) -> Reply {
    match (content_type, body) {
        (Some(content_type), Some(Value::String(text))) => Reply::raw(status, content_type, text),
        (None, Some(Value::String(text))) if status >= 400 => Reply::error(status, text),
        (None, Some(Value::String(text))) => Reply::raw(status, "text/plain", text),
        (content_type, Some(body)) => {
            let mut reply = Reply::json(status, &body);
            if let (Some(content_type), Content::Raw(raw)) = (content_type, &mut reply.content) {
                raw.content_type = content_type;
            }
            reply
        }
        (content_type, None) => {
            Reply::raw(status, content_type.as_deref().unwrap_or("application/json"), "")
        }
    }
}

fn fault(before: usize, error: impl ToString) -> ScriptError {
    ScriptError::Format { reply: before + 1, message: error.to_string() }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;

    #[test]
    fn every_part_of_a_reply_can_be_written() {
        let text = r#"
            {"text": "Hi", "reasoning": "Hm", "chunk": {"bytes": 3}, "usage": {"input": 9, "output": 2}}
            {"calls": [{"name": "list_dir", "arguments": {"path": "."}, "id": "a", "in_one_delta": true},
                       {"name": "bash", "arguments": "{oops", "chunk": "whole"}],
             "finish_reason": "stop", "usage": null}
            {"status": 429, "body": "Slow down", "headers": {"Retry-After": "2"}}
            {"status": 500, "body": {"oops": 1}}
            {"text": "x", "faults": ["mute", {"delay_head_ms": 20}, {"cut_at_byte": 9},
                {"stall_at_event": {"event": 1, "ping_every_ms": 5}},
                {"garbage_at_event": {"event": 0, "text": "?"}}]}
        "#;
        let expected = [
            Reply::text("Hi").reasoning("Hm").chunk(Chunk::Bytes(3)).usage(9, 2),
            Reply::calls([
                Call::new("list_dir", json!({"path": "."})).id("a").in_one_delta(),
                Call::with_text("bash", "{oops").chunk(Chunk::Whole),
            ])
            .finish_reason("stop")
            .without_usage(),
            Reply::error(429, "Slow down").header("retry-after", "2"),
            Reply::json(500, &json!({"oops": 1})),
            Reply::text("x")
                .fault(Fault::Mute)
                .fault(Fault::DelayHead(Duration::from_millis(20)))
                .fault(Fault::CutAtByte(9))
                .fault(Fault::StallAtEvent { event: 1, ping_every: Some(Duration::from_millis(5)) })
                .fault(Fault::GarbageAtEvent { event: 0, bytes: b"?".to_vec() }),
        ];
        assert_eq!(parse(text).unwrap(), expected);
    }

    #[test]
    fn an_array_is_as_good_as_lines() {
        let expected = [Reply::text("a"), Reply::text("b")];
        assert_eq!(parse(r#"[{"text": "a"}, {"text": "b"}]"#).unwrap(), expected);
    }

    #[test]
    fn a_fault_of_the_file_names_the_reply() {
        let message = |text: &str| parse(text).unwrap_err().to_string();
        assert_eq!(
            message("{\"text\": \"a\"}\n{\"txt\": \"b\"}"),
            "reply 2 of the script is not in the format: unknown field `txt`, expected one of \
             `reasoning`, `text`, `calls`, `finish_reason`, `usage`, `status`, `content_type`, \
             `body`, `chunk`, `headers`, `faults`"
        );
        assert_eq!(
            message(r#"{"text": "a", "status": 500}"#),
            "reply 1 of the script is not in the format: a reply has text, reasoning and calls, \
             or status and body, not both"
        );
    }
}
