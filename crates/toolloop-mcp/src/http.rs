//! The streamable HTTP transport: `rmcp`'s, over a client of ours.
//!
//! TLS is rustls with ring, handed to reqwest ready-made, because a library must not install a
//! crypto provider for the whole process. Certificates are judged by the platform's own store.

use std::time::Duration;

use http::{HeaderName, HeaderValue};
use reqwest::redirect;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use secrecy::ExposeSecret;
use toolloop_platform::http_client;

use crate::config::ServerAddress;

/// The transport to this address.
///
/// # Errors
/// A fault in the words of [`McpError`](crate::McpError).
pub(crate) fn transport(
    address: &ServerAddress,
) -> Result<StreamableHttpClientTransport<reqwest::Client>, String> {
    if !["http://", "https://"].iter().any(|scheme| address.url.starts_with(scheme)) {
        return Err(format!("has the url {:?}. Begin it with http:// or https://", address.url));
    }
    let mut config = StreamableHttpClientTransportConfig::with_uri(address.url.as_str());
    for (name, value) in &address.headers {
        let (Ok(name), Ok(mut value)) =
            (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_str(value.expose_secret()))
        else {
            return Err(format!("has a header {name:?} that HTTP cannot carry. Correct it"));
        };
        value.set_sensitive(true);
        config.custom_headers.insert(name, value);
    }
    let client = client().map_err(|error| format!("cannot be reached: {error}"))?;
    Ok(StreamableHttpClientTransport::with_client(client, config))
}

fn client() -> Result<reqwest::Client, String> {
    // A key must not follow a redirect to somebody else.
    let same_server = redirect::Policy::custom(|attempt| {
        let from = attempt.previous().last().map(|url| url.origin());
        match from == Some(attempt.url().origin()) && attempt.previous().len() <= 5 {
            true => attempt.follow(),
            false => attempt.stop(),
        }
    });
    http_client()
        .map_err(|error| error.to_string())?
        .tcp_nodelay(true)
        .connect_timeout(Duration::from_secs(10))
        .redirect(same_server)
        .build()
        .map_err(|error| error.to_string())
}
