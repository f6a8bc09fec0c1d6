//! [`Answer`]: one answer, read from its stream.

use std::borrow::Cow;

use benchkit::Conv;
use bytes::BytesMut;
use http_body_util::BodyExt;
use hyper::body::Incoming;

use crate::chunk::{CallDelta, Chunk, First, Str};
use crate::text;

/// One answer, read from its stream.
#[derive(Default)]
pub(crate) struct Answer {
    use_template: bool,
    template: Option<Template>,
    pub(crate) text: String,
    pub(crate) calls: Vec<Call>,
    /// It ends in tool calls.
    pub(crate) tool_calls: bool,
    pub(crate) output_tokens: u64,
    done: bool,
}

#[derive(Default)]
pub(crate) struct Call {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) arguments: String,
}

impl Answer {
    pub(crate) async fn read(
        mut body: Incoming,
        use_template: bool,
        conv: &mut Conv,
    ) -> Result<Self, String> {
        let mut answer = Self { use_template, ..Self::default() };
        let mut rest = BytesMut::new();
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame.map_err(text)?.into_data() else { continue };
            if rest.is_empty() {
                let used = answer.events(&data, conv)?;
                rest.extend_from_slice(&data[used..]);
            } else {
                rest.extend_from_slice(&data);
                let used = answer.events(&rest, conv)?;
                let _ = rest.split_to(used);
            }
        }
        answer.done.then_some(answer).ok_or_else(|| "stream ended early".to_owned())
    }

    /// All complete events in `buf`; gives how many bytes they took.
    fn events(&mut self, buf: &[u8], conv: &mut Conv) -> Result<usize, String> {
        let mut at = 0;
        while let Some(n) = memchr::memmem::find(&buf[at..], b"\n\n") {
            self.event(&buf[at..at + n], conv)?;
            at += n + 2;
        }
        Ok(at)
    }

    /// One SSE event, without its closing blank line.
    fn event(&mut self, event: &[u8], conv: &mut Conv) -> Result<(), String> {
        let Some(data) = event.strip_prefix(b"data: ") else { return Ok(()) };
        if data == b"[DONE]" {
            self.done = true;
            return Ok(());
        }
        if let Some(delta) = self.template.as_ref().and_then(|t| t.read(data)) {
            conv.text(delta);
            self.text.push_str(delta);
            return Ok(());
        }
        let chunk: Chunk = serde_json::from_slice(data).map_err(text)?;
        let no_usage = chunk.usage.is_none();
        if let Some(usage) = chunk.usage {
            self.output_tokens += usage.completion_tokens;
        }
        let Some(choice) = chunk.choices.0 else { return Ok(()) };
        if let Some(Str(delta)) = choice.delta.content {
            conv.text(&delta);
            self.text.push_str(&delta);
            let only_text =
                no_usage && choice.delta.tool_calls.is_none() && choice.finish_reason.is_none();
            if let (true, true, Cow::Borrowed(text)) = (self.use_template, only_text, &delta) {
                self.template = Template::learn(data, text);
            }
        }
        if let Some(First(Some(delta))) = choice.delta.tool_calls {
            self.call_delta(delta);
        }
        if let Some(reason) = choice.finish_reason {
            self.tool_calls = reason == "tool_calls";
        }
        Ok(())
    }

    fn call_delta(&mut self, delta: CallDelta) {
        if delta.index >= self.calls.len() {
            self.calls.resize_with(delta.index + 1, Call::default);
        }
        let call = &mut self.calls[delta.index];
        if let Some(id) = delta.id {
            call.id.push_str(id);
        }
        if let Some(name) = delta.function.name {
            call.name.push_str(name);
        }
        if let Some(Str(piece)) = delta.function.arguments {
            call.arguments.push_str(&piece);
        }
    }
}

/// What stood around the text in a parsed chunk that brought a text delta and nothing else.
/// If another chunk has the same surroundings and between them no quote, backslash or control
/// character, then parsing it would give the same but for that text.
struct Template {
    before: Vec<u8>,
    after: Vec<u8>,
}

impl Template {
    /// `text` must be borrowed from `data`: its address tells where it stands.
    fn learn(data: &[u8], text: &str) -> Option<Self> {
        let at = (text.as_ptr() as usize).checked_sub(data.as_ptr() as usize)?;
        let end = at + text.len();
        if data.get(at..end)? != text.as_bytes() {
            return None;
        }
        Some(Self { before: data[..at].to_vec(), after: data[end..].to_vec() })
    }

    fn read<'a>(&self, data: &'a [u8]) -> Option<&'a str> {
        let text = data.strip_prefix(&self.before[..])?.strip_suffix(&self.after[..])?;
        if text.iter().any(|b| *b == b'"' || *b == b'\\' || *b < 0x20) {
            return None;
        }
        std::str::from_utf8(text).ok()
    }
}
