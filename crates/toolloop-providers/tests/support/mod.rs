//! What the suites share: recordings, a decoder for bytes, a server for replies, a process.

pub(crate) mod child;
pub(crate) mod corpus;
pub(crate) mod decode;
pub(crate) mod fixtures;
pub(crate) mod server;
