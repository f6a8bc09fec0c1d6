//! What the crates of toolloop that reach outside share: [`http_client`] for connections, and
//! [`inherited`] for the environment of programs they start.
//!
//! Internal to toolloop: nothing here is re-exported.

mod environment;
mod http;

pub use environment::{inherited, names_a_secret};
pub use http::http_client;
