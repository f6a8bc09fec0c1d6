//! Everything over real connections on the loopback, against a client that shows every byte.

/// The client of these tests.
#[path = "suite/client.rs"]
mod client;
/// What real servers accepted and refused, where such recordings are at hand.
#[path = "suite/recordings.rs"]
mod recordings;

/// The Messages API, also behind SAP AI Core: replies, faults, refusals, recordings.
#[path = "suite/anthropic.rs"]
mod anthropic;
/// The binary: what it prints, serves and logs.
#[cfg(feature = "cli")]
#[path = "suite/binary.rs"]
mod binary;
/// Chat Completions: what real servers accepted and refused.
#[path = "suite/corpus.rs"]
mod corpus;
/// A whole conversation with the demo model about a real folder.
#[path = "suite/demo.rs"]
mod demo;
/// Every fault as the client sees it and as the log tells it.
#[path = "suite/faults.rs"]
mod faults;
/// The Gemini API: replies, faults, refusals, recordings.
#[path = "suite/gemini.rs"]
mod gemini;
/// Ollama's own API: replies, faults, refusals, recordings.
#[path = "suite/ollama.rs"]
mod ollama;
/// What is refused before a script is asked.
#[path = "suite/refusals.rs"]
mod refusals;
/// The bytes of whole replies, connections kept and closed, the log.
#[path = "suite/replies.rs"]
mod replies;
/// The Responses API: loops, refusals, faults, and what real servers accepted.
#[path = "suite/responses.rs"]
mod responses;
