//! Results too long for a conversation: where they are kept, and the tool that reads on in them.

mod read_result;
mod store;

pub use read_result::ReadResult;
pub use store::ResultStore;
pub(crate) use store::shorten;
