//! The OpenAI Chat Completions API, as OpenAI and the many servers that speak it have it.
//!
//! [`encode`] writes the body of a request, [`ChatDecoder`] reads the chunks of the answer.
//! Where servers differ in what they take, [`Quirks`] says it as data; where they differ in what
//! they send, the decoder takes all of it.

mod calls;
mod details;
mod messages;
mod request;
mod response;
mod wire;

pub(crate) use request::reading;
pub use request::{CallIds, MaxTokensField, Quirks, encode};
pub use response::ChatDecoder;

/// Names this API in `ProviderData`; behind an `@` there follows the server, unless it is OpenAI's.
///
/// The data is a JSON object; its members are put into the message of the assistant, or into the
/// tool call, that the block stands behind; `reasoning_details` always into the message.
pub const API: &str = "openai-chat";
