//! The Anthropic Messages API, as Anthropic, and others who serve Claude, have it.
//!
//! [`encode`] writes the body of a request, [`MessagesDecoder`] reads the events of the answer.
//! [`Options`] says what a request may use besides what its
//! [`ChatParams`](toolloop_core::ChatParams) say, and who serves it.

mod blocks;
mod members;
mod model;
mod opaque;
mod open_block;
mod request;
mod response;
mod text_run;
mod tools;
mod turns;
mod wire;

pub(crate) use model::Claude;
pub use request::{Options, Platform, encode};
pub(crate) use request::{encode_resumed, reading};
pub use response::MessagesDecoder;

/// Names this API in `ProviderData`; behind an `@` there follows the server, unless it serves
/// Claude: what one of its platforms has signed, by the word of its maker the others take.
///
/// The data is a JSON object with one of these members: `block`, a whole block to be sent as it
/// is; `signature`, which belongs to the thought before it; `texts`, which says where the blocks
/// of the text before it end and what they cite; `call`, members of the call before it.
pub const API: &str = "anthropic-messages";
