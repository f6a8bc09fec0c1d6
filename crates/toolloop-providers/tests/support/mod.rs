//! What the suites share: a decoder for bytes, and a server for replies.

pub(crate) mod decode;
pub(crate) mod server;
