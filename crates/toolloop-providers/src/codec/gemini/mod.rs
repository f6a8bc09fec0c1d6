//! The Gemini API: `generateContent` as a stream.
//!
//! [`encode`] writes the body of a request, [`GeminiDecoder`] reads the events of the answer.
//! What sets this API apart: turns are `user` and `model` only, results of calls are parts of a
//! user turn and answer by name and order, and the thoughts of the model come back to it as
//! signatures, each on the very part it came with.

mod calls;
mod contents;
mod partial;
mod parts;
mod request;
mod response;
mod wire;

pub use request::encode;
pub(crate) use request::{encode_for, reading};
pub use response::GeminiDecoder;

/// Names this API in `ProviderData`; behind an `@` there follows the server, unless it is Google's.
///
/// The data is JSON. `{"thoughtSignature": ..}` alone is put into the part of the call it stands
/// behind; anything else is a whole part, which goes back byte for byte: code that ran on the
/// server, or a thought or text (the end of the block before it) with its signature.
pub const API: &str = "gemini";
