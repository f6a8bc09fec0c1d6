//! The OpenAI Responses API, as OpenAI and the servers that speak it have it.
//!
//! [`encode`] writes the body of a request, [`ResponsesDecoder`] reads the events of the answer.
//! Nothing is stored at the provider: what a reasoning model has thought comes encrypted with
//! its reply and goes back with the conversation. What servers take differently, [`Quirks`] says.

mod calls;
mod items;
mod kept;
mod request;
mod response;
mod selection;
mod wire;

pub(crate) use request::reading;
pub use request::{Quirks, encode};
pub use response::ResponsesDecoder;

/// Names this API in `ProviderData`; behind an `@` there follows the server, unless it is OpenAI's.
///
/// The data is a JSON object. With a `type` it is an output item (a thought, a search) that goes
/// back as it came, in its place. Without one, its members belong to the item of the text or the
/// call that the block stands behind.
pub const API: &str = "openai-responses";
