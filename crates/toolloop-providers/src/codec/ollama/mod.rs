//! Ollama's own API, `POST /api/chat`: one JSON document a line.
//!
//! [`encode`] writes the body of a request, [`OllamaDecoder`] reads the lines of the answer. Calls
//! come whole, with an object as arguments, and from older servers without ids.

mod messages;
mod request;
mod response;
mod wire;

pub use request::encode;
pub(crate) use request::reading;
pub use response::OllamaDecoder;
