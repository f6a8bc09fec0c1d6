//! The HTTP client that providers use unless they are given one.

use reqwest::{Url, redirect};
use toolloop_core::LlmError;
use toolloop_platform::http_client;

use super::failure::root_cause;
use super::{Timeouts, is_loopback};

/// A client of its own, with its own pool: connections belong to the runtime that opened them,
/// so one pool for the whole process would outlive its runtime.
pub(crate) fn default_client(
    timeouts: &Timeouts,
    server: &Url,
) -> Result<reqwest::Client, LlmError> {
    let builder = http_client().map_err(|error| {
        LlmError::InvalidRequest(format!("TLS is not available: {error}").into())
    })?;
    // A proxy elsewhere cannot reach what runs here; curl asks it nevertheless.
    let builder = if is_loopback(server) { builder.no_proxy() } else { builder };
    builder
        .tcp_nodelay(true)
        .connect_timeout(timeouts.connect)
        // A redirected POST would become a GET, and a key must not follow a redirect.
        .redirect(redirect::Policy::none())
        .build()
        .map_err(|error| LlmError::InvalidRequest(root_cause(&error).into()))
}
