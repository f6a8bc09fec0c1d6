//! The HTTP client that providers use unless they are given one.

use reqwest::redirect;
use toolloop_core::LlmError;
use toolloop_platform::http_client;

use super::Timeouts;
use super::failure::root_cause;

/// A client of its own, with its own pool: connections belong to the runtime that opened them,
/// so one pool for the whole process would outlive its runtime.
pub(crate) fn default_client(timeouts: &Timeouts) -> Result<reqwest::Client, LlmError> {
    http_client()
        .map_err(|error| LlmError::InvalidRequest(format!("TLS is not available: {error}").into()))?
        .tcp_nodelay(true)
        .connect_timeout(timeouts.connect)
        // A redirected POST would become a GET, and a key must not follow a redirect.
        .redirect(redirect::Policy::none())
        .build()
        .map_err(|error| LlmError::InvalidRequest(root_cause(&error).into()))
}
