//! [`Reply`]: what the server says to one request, in no API's words.

use serde::Deserialize;
use serde_json::Value;

use crate::faults::Fault;

/// What the server says to one request.
///
/// ```
/// use serde_json::json;
/// use toolloop_fake::{Call, Fault, Reply};
///
/// let reply = Reply::text("Let me look.")
///     .call(Call::new("list_dir", json!({"path": "."})))
///     .fault(Fault::CutAtEvent(3));
/// assert_eq!(reply.faults, [Fault::CutAtEvent(3)]);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// What is said.
    pub content: Content,
    /// How text, reasoning and raw bodies are cut into events.
    pub chunk: Chunk,
    /// Response headers besides the server's own; one of the same name replaces it.
    pub headers: Vec<(String, String)>,
    /// What goes wrong on the way.
    pub faults: Vec<Fault>,
}

impl Reply {
    /// The model says this.
    pub fn text(text: impl Into<String>) -> Self {
        Message { text: text.into(), ..Message::default() }.into()
    }

    /// The model calls tools; add them with [`call`](Self::call).
    pub fn calls(calls: impl IntoIterator<Item = Call>) -> Self {
        Message { calls: calls.into_iter().collect(), ..Message::default() }.into()
    }

    /// The request fails with this status and a body in the form of the API.
    pub fn error(status: u16, message: impl Into<String>) -> Self {
        Self::of(Content::Error { status, message: message.into() }, Chunk::Whole)
    }

    /// Any status with a JSON body.
    pub fn json(status: u16, body: &Value) -> Self {
        Self::raw(status, "application/json", format!("{body:#}"))
    }

    /// Any status with any body; one of type `text/event-stream` or `application/x-ndjson` is sent
    /// as a stream.
    pub fn raw(status: u16, content_type: impl Into<String>, body: impl Into<Vec<u8>>) -> Self {
        let raw = Raw { status, content_type: content_type.into(), body: body.into() };
        Self::of(Content::Raw(raw), Chunk::Whole)
    }

    /// A page where JSON is due: what a proxy or a login portal answers.
    pub fn html() -> Self {
        let page = "<!DOCTYPE html><html><body><h1>502 Bad Gateway</h1></body></html>";
        Self::raw(200, "text/html; charset=utf-8", page)
    }

    /// Success without a body.
    pub fn empty() -> Self {
        Self::raw(200, "application/json", "")
    }

    /// Adds thought before the text.
    pub fn reasoning(self, text: impl Into<String>) -> Self {
        self.with_message(|message| message.reasoning = text.into())
    }

    /// Adds a tool call behind the text.
    pub fn call(self, call: Call) -> Self {
        self.with_message(|message| message.calls.push(call))
    }

    /// Ends with this reason instead of the one that follows from the content.
    pub fn finish_reason(self, reason: impl Into<String>) -> Self {
        self.with_message(|message| message.finish_reason = Some(reason.into()))
    }

    /// Reports these tokens instead of a count from the bytes.
    pub fn usage(self, input: u64, output: u64) -> Self {
        self.with_message(|message| message.usage = UsageReport::Tokens { input, output })
    }

    /// Reports no tokens, asked or not.
    pub fn without_usage(self) -> Self {
        self.with_message(|message| message.usage = UsageReport::Absent)
    }

    /// Cuts text, reasoning or a raw body like this.
    pub fn chunk(mut self, chunk: Chunk) -> Self {
        self.chunk = chunk;
        self
    }

    /// Sets a response header, such as `retry-after` or `x-ratelimit-remaining-requests`.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into().to_ascii_lowercase(), value.into()));
        self
    }

    /// Adds something that goes wrong.
    pub fn fault(mut self, fault: Fault) -> Self {
        self.faults.push(fault);
        self
    }

    fn of(content: Content, chunk: Chunk) -> Self {
        Self { content, chunk, headers: Vec::new(), faults: Vec::new() }
    }

    /// A raw reply has no message to change and stays as it is.
    fn with_message(mut self, change: impl FnOnce(&mut Message)) -> Self {
        if let Content::Message(message) = &mut self.content {
            change(message);
        }
        self
    }
}

impl From<Message> for Reply {
    fn from(message: Message) -> Self {
        Self::of(Content::Message(message), Chunk::Words)
    }
}

/// What a [`Reply`] consists of.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// A reply of the model, written in the form of the API that was asked.
    Message(Message),
    /// A failure, written in the form of the API that was asked.
    Error {
        /// The HTTP status.
        status: u16,
        /// The sentence.
        message: String,
    },
    /// Bytes as they are.
    Raw(Raw),
}

/// A reply of the model.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Message {
    /// What the model thinks first.
    pub reasoning: String,
    /// What the model says.
    pub text: String,
    /// The tools the model calls, after the text.
    pub calls: Vec<Call>,
    /// Why the model stops, in the API's words; `None`: what follows from the content.
    pub finish_reason: Option<String>,
    /// The tokens the server reports.
    pub usage: UsageReport,
}

impl Message {
    /// How many bytes the model wrote, thought included.
    pub(crate) fn bytes(&self) -> usize {
        let calls = self.calls.iter().map(|call| call.name.len() + call.arguments.len());
        self.reasoning.len() + self.text.len() + calls.sum::<usize>()
    }
}

/// A body that is sent as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Raw {
    /// The HTTP status.
    pub status: u16,
    /// The `content-type` header.
    pub content_type: String,
    /// The body.
    pub body: Vec<u8>,
}

/// A tool call of the model, and how it is streamed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The id; `None`: one that is unique for this server.
    pub id: Option<String>,
    /// Name of the tool.
    pub name: String,
    /// The argument text, which need not be JSON.
    pub arguments: String,
    /// How the argument text is cut into deltas.
    pub chunk: Chunk,
    /// Deltas carry no `index`, as from some servers.
    pub without_index: bool,
    /// Every delta repeats id and name, as from some servers.
    pub repeating: bool,
    /// Id, name and arguments come in one delta, as from some servers.
    pub in_one_delta: bool,
}

impl Call {
    /// A call with these arguments.
    pub fn new(name: impl Into<String>, arguments: Value) -> Self {
        Self::with_text(name, arguments.to_string())
    }

    /// A call with this argument text, which need not be JSON.
    pub fn with_text(name: impl Into<String>, arguments: impl Into<String>) -> Self {
        Self {
            id: None,
            name: name.into(),
            arguments: arguments.into(),
            chunk: Chunk::Bytes(8),
            without_index: false,
            repeating: false,
            in_one_delta: false,
        }
    }

    /// Gives the call this id; two calls may share one.
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Cuts the argument text like this.
    pub fn chunk(mut self, chunk: Chunk) -> Self {
        self.chunk = chunk;
        self
    }

    /// Leaves `index` out.
    pub fn without_index(mut self) -> Self {
        self.without_index = true;
        self
    }

    /// Repeats id and name in every delta.
    pub fn repeating(mut self) -> Self {
        self.repeating = true;
        self
    }

    /// Sends everything in one delta.
    pub fn in_one_delta(mut self) -> Self {
        self.in_one_delta = true;
        self
    }
}

/// How a text is cut into pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Chunk {
    /// Not at all.
    Whole,
    /// Before the white space between words, as most tokenizers do.
    Words,
    /// Every so many bytes, but never inside a character.
    Bytes(usize),
}

impl Chunk {
    /// The pieces of a text; none of an empty one.
    pub(crate) fn split(self, text: &str) -> Vec<&str> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(self.next_cut(rest));
            pieces.push(piece);
            rest = after;
        }
        pieces
    }

    /// The pieces of a body that need not be text.
    pub(crate) fn split_bytes(self, body: &[u8]) -> Vec<Vec<u8>> {
        match (self, std::str::from_utf8(body)) {
            _ if body.is_empty() => Vec::new(),
            // A raw body may be cut anywhere: that is what the network does.
            (Self::Bytes(size), _) => body.chunks(size.max(1)).map(<[u8]>::to_vec).collect(),
            (Self::Words, Ok(text)) => {
                self.split(text).into_iter().map(|piece| piece.as_bytes().to_vec()).collect()
            }
            _ => vec![body.to_vec()],
        }
    }

    /// Where the first piece of a text that is not empty ends.
    fn next_cut(self, text: &str) -> usize {
        match self {
            Self::Whole => text.len(),
            Self::Words => {
                let mut in_word = false;
                let cut = text.char_indices().find(|(_, c)| {
                    let ends = in_word && c.is_whitespace();
                    in_word |= !c.is_whitespace();
                    ends
                });
                cut.map_or(text.len(), |(at, _)| at)
            }
            Self::Bytes(size) => {
                let mut cut = size.clamp(1, text.len());
                while !text.is_char_boundary(cut) {
                    cut += 1;
                }
                cut
            }
        }
    }
}

/// The tokens a server reports with a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UsageReport {
    /// Bytes of request and reply, divided by four.
    #[default]
    Counted,
    /// These.
    Tokens {
        /// Tokens the model read.
        input: u64,
        /// Tokens the model wrote.
        output: u64,
    },
    /// None, asked or not.
    Absent,
}

impl UsageReport {
    /// The tokens in and out, of so many bytes that the model read and wrote.
    pub(crate) fn tokens(self, read: usize, written: usize) -> Option<(u64, u64)> {
        match self {
            Self::Counted => Some((read.div_ceil(4) as u64, written.div_ceil(4) as u64)),
            Self::Tokens { input, output } => Some((input, output)),
            Self::Absent => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_keep_the_white_space_before_them() {
        let pieces = Chunk::Words.split("A b\n\n  c ");
        assert_eq!(pieces, ["A", " b", "\n\n  c", " "]);
    }

    #[test]
    fn bytes_never_cut_a_character() {
        assert_eq!(Chunk::Bytes(1).split("aé漢b"), ["a", "é", "漢", "b"]);
        assert_eq!(Chunk::Bytes(0).split("ab"), ["a", "b"]);
        assert_eq!(Chunk::Bytes(2).split("abcde"), ["ab", "cd", "e"]);
    }

    #[test]
    fn a_raw_body_is_cut_anywhere() {
        assert_eq!(Chunk::Bytes(2).split_bytes("é漢".as_bytes()).len(), 3);
        assert_eq!(Chunk::Whole.split_bytes(b""), Vec::<Vec<u8>>::new());
    }
}
