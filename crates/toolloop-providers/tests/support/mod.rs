//! What the suites share: recordings, a decoder for bytes, and a server for replies.

pub(crate) mod corpus;
pub(crate) mod decode;
pub(crate) mod server;
