//! The OpenAI Responses API: what may be asked ([`validate`]), and the form of what is answered
//! (`render.rs`). Who may ask, and which models there are, is the same as for Chat Completions.

mod render;
mod validate;

pub(crate) use render::answer;
pub(crate) use validate::only_our_seals;
pub use validate::validate;
