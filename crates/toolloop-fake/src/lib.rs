//! A fake model provider for tests: it speaks a real API strictly, plays scripts, and breaks
//! connections on request.
//!
//! [`FakeServer`] listens on the loopback and serves, as a stream and as one object,
//! OpenAI Chat Completions and Responses (`POST /v1/chat/completions`, `POST /v1/responses`,
//! `GET /v1/models`), Anthropic Messages (`POST /v1/messages`, `GET /v1/models`), also behind SAP
//! AI Core (`POST /oauth/token`, `POST /v2/inference/deployments/..`), the Gemini API
//! (`POST /v1beta/models/..:streamGenerateContent?alt=sse`, `GET /v1beta/models`) and Ollama's own
//! API (`POST /api/chat`, `GET /api/tags`), all from one script. It refuses what the API refuses,
//! with the API's status and sentence, so an agent that passes here does not meet those
//! refusals in production. A [`Script`] says what the model replies; a [`Fault`] what goes wrong
//! on the way; [`log`](FakeServer::log) what was really written.
//!
//! ```
//! use serde_json::json;
//! use toolloop_fake::{Call, FakeServer, Fault, Reply, Script};
//!
//! let server = FakeServer::start(Script::new([
//!     Reply::error(429, "Slow down").header("retry-after", "1"),
//!     Reply::text("Let me look.").call(Call::new("list_dir", json!({"path": "."}))),
//!     Reply::text("This one never ends").fault(Fault::CutAtEvent(3)),
//! ]));
//!
//! // Point an agent at this address ...
//! assert!(server.base_url().starts_with("http://127.0.0.1:"));
//! // ... let it run, and look at what it sent.
//! assert_eq!(server.requests().len(), 0);
//! ```
//!
//! # The binary
//!
//! `toolloop-fake [--port N] [--model demo | --script FILE] [--require-key KEY] [--log FILE]`
//! serves the scripted model `demo`, which looks at a folder through the tools `list_dir`,
//! `read_file` and `bash`, or the replies of a file. With `--log` it writes one JSON line for
//! each request: what was asked, what was answered, and how it ended.
//!
//! # Script files
//!
//! One JSON object a line, or one JSON array of objects; each is the reply to one request. All
//! members may be left out.
//!
//! ```
//! # use std::time::Duration;
//! # use serde_json::json;
//! # use toolloop_fake::{Call, Chunk, FakeServer, Fault, Reply, Script};
//! let script = Script::parse(r#"
//!     {"text": "Hi there", "reasoning": "A greeting.", "chunk": "words"}
//!     {"calls": [{"name": "read_file", "arguments": {"path": "a.txt"}, "id": "call_1"}]}
//!     {"calls": [{"name": "bash", "arguments": "{not json", "chunk": {"bytes": 3}}]}
//!     {"text": "cut", "finish_reason": "length", "usage": {"input": 12, "output": 3}}
//!     {"text": "x", "usage": null, "headers": {"x-ratelimit-remaining-requests": "9"}}
//!     {"status": 503, "body": "Try later", "headers": {"retry-after": "2"}}
//!     {"status": 200, "content_type": "text/html", "body": "<html></html>"}
//!     {"text": "a b c", "faults": ["no_end_marker", {"delay_events_ms": 20}]}
//!     {"text": "a b c", "faults": [{"stall_at_event": {"event": 2, "ping_every_ms": 1000}}]}
//! "#)?;
//! let server = FakeServer::start(script);
//! # Ok::<(), toolloop_fake::ScriptError>(())
//! ```
//!
//! - `text`, `reasoning`, `calls`, `finish_reason`, `usage` make a reply of the model; see
//!   [`Message`]. Arguments that are a string are sent as they are. A call also takes
//!   `without_index`, `repeating` and `in_one_delta`. `usage` is counted where it is left out,
//!   and not reported where it is `null`.
//! - `status`, `body`, `content_type` make any other reply; see [`Raw`]. A string is the message
//!   of an error, or with `content_type` the body itself; other JSON is the body.
//! - `chunk` is `"whole"`, `"words"` or `{"bytes": N}`, `headers` an object of strings.
//! - `faults` is a list of [`Fault`]s, with the names of that type in snake_case.

pub mod anthropic;
mod demo;
mod faults;
pub mod gemini;
mod http;
mod log;
pub mod ollama;
pub mod openai_chat;
pub mod openai_responses;
mod playback;
mod player;
mod refusal;
mod reply;
mod script;
mod script_file;
mod server;

pub use faults::Fault;
pub use log::{End, Exchange, Request};
pub use refusal::Refusal;
pub use reply::{Call, Chunk, Content, Message, Raw, Reply, UsageReport};
pub use script::{Script, ScriptError};
pub use server::FakeServer;
