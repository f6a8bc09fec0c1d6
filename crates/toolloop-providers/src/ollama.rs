//! [`OllamaProvider`]: models that Ollama serves, through its own API.

use std::fmt;
use std::sync::Arc;

use serde::Deserialize;
use toolloop_core::{
    Capability, ChatParams, ChatResponse, ChatStream, LlmError, Provider, ProviderMetadata,
};

use crate::builder::{KeyHeader, ProviderBuilder, TakesKey, without_end};
use crate::codec::ollama::{self, OllamaDecoder};
use crate::codec::outgoing;
use crate::models::KnownModel;
use crate::servers::LOADS_FIRST;
use crate::transport::{ReplyStream, Transport};

/// A model that Ollama serves, on this machine or elsewhere.
///
/// Cloning is cheap; clones share their connections.
///
/// ```
/// use toolloop_providers::OllamaProvider;
///
/// # fn main() -> Result<(), toolloop_core::LlmError> {
/// let here = OllamaProvider::new("qwen3:4b")?;
/// let there = OllamaProvider::builder("qwen3:4b").base_url("http://10.0.0.7:11434").build()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct OllamaProvider {
    model: String,
    context_window: Option<u32>,
    transport: Arc<Transport>,
}

impl OllamaProvider {
    /// A model of the server on this machine, at its usual port.
    ///
    /// # Errors
    /// When there is no HTTP client to be had.
    pub fn new(model: impl Into<String>) -> Result<Self, LlmError> {
        Self::builder(model).build()
    }

    /// A model of the server in `OLLAMA_HOST`, or of this machine where that is not set; with the
    /// key in `OLLAMA_API_KEY` if there is one, which only Ollama's cloud needs.
    ///
    /// # Errors
    /// When a variable is not usable.
    pub fn from_env(model: impl Into<String>) -> Result<Self, LlmError> {
        Self::from_variables(model, |name| std::env::var(name).ok())
    }

    /// Everything else there is to say of a provider.
    pub fn builder(model: impl Into<String>) -> OllamaProviderBuilder {
        ProviderBuilder::new(model, "", Ollama::default()).timeouts(LOADS_FIRST)
    }

    /// The names of the models the server has. Asks once, for five seconds at most.
    ///
    /// # Errors
    /// When the server cannot be reached, refuses, or answers with something else than a list.
    pub async fn list_models(&self) -> Result<Vec<String>, LlmError> {
        let list: ModelList = self.transport.list_models(&["api", "tags"], None).await?;
        Ok(list.models.into_iter().map(|model| model.name).collect())
    }

    /// The address of a server in full: `OLLAMA_HOST` may leave out scheme, host and port, and may
    /// be the address to listen on. People also give the addresses below it.
    pub fn address(host: &str) -> String {
        let host = without_end(host, &["/v1", "/api/chat", "/api"]);
        let (scheme, rest) = host.split_once("://").unwrap_or(("", &host));
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        // The last colon begins the port, unless it is one of an IPv6 address.
        let colon =
            authority.rfind(':').filter(|at| authority.rfind(']').is_none_or(|end| end < *at));
        let (name, port) = authority.split_at(colon.unwrap_or(authority.len()));
        let name = match name {
            "" | "0.0.0.0" | "[::]" => "127.0.0.1",
            name => name,
        };
        let (scheme, port) = match (scheme, port) {
            ("", "" | ":") => ("http", ":11434"),
            ("", port) => ("http", port),
            (scheme, port) => (scheme, port),
        };
        format!("{scheme}://{name}{port}{path}")
    }

    fn from_variables(
        model: impl Into<String>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, LlmError> {
        let mut builder = Self::builder(model).variables(&[], "OLLAMA_HOST", "", &variable)?;
        if let Some(key) = variable("OLLAMA_API_KEY") {
            builder = builder.api_key(key);
        }
        builder.build()
    }

    fn ask(&self, params: &ChatParams) -> Result<ReplyStream<OllamaDecoder>, LlmError> {
        let body = ollama::encode(&self.model, &outgoing(params), self.context_window)?;
        Ok(self.transport.post(&["api", "chat"], body, params, ollama::reading(params)))
    }
}

impl Provider for OllamaProvider {
    async fn generate(&self, params: &ChatParams) -> Result<ChatResponse, LlmError> {
        self.ask(params)?.into_response().await
    }

    async fn stream(&self, params: &ChatParams) -> Result<ChatStream, LlmError> {
        Ok(Box::pin(self.ask(params)?))
    }

    /// What a model can is only guessed from its name: the server knows, but is not asked here.
    fn metadata(&self) -> ProviderMetadata {
        let known = KnownModel::by_name(&self.model);
        let api = [Capability::Tools, Capability::StructuredOutput, Capability::MidSystem];
        ProviderMetadata {
            name: "ollama".into(),
            model: self.model.clone(),
            // The server gives a model less room than it could use, unless it is told.
            context_window: self.context_window.map_or(0, u64::from),
            capabilities: known.capabilities(api),
        }
    }
}

impl fmt::Debug for OllamaProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OllamaProvider")
            .field("model", &self.model)
            .field("server", &self.transport.server())
            .finish_non_exhaustive()
    }
}

/// Builds an [`OllamaProvider`]; made by [`OllamaProvider::builder`]. Its base URL may have any form
/// that `OLLAMA_HOST` has: `10.0.0.7`, `host:8080`, `https://example.com/ollama`.
pub type OllamaProviderBuilder = ProviderBuilder<Ollama>;

/// Ollama's own API.
#[derive(Default)]
pub struct Ollama {
    context_window: Option<u32>,
}

impl TakesKey for Ollama {}

impl ProviderBuilder<Ollama> {
    /// Tokens the server makes room for. Its own default is a few thousand, beyond which it
    /// silently forgets the oldest messages; more takes more memory.
    pub fn context_window(mut self, tokens: u32) -> Self {
        self.api.context_window = Some(tokens);
        self
    }

    /// The provider.
    ///
    /// # Errors
    /// When the address or the key is not usable.
    pub fn build(self) -> Result<OllamaProvider, LlmError> {
        let Self { model, base_url, connection, api: Ollama { context_window } } = self;
        let base_url = OllamaProvider::address(&base_url);
        let transport = Arc::new(connection.transport(&base_url, KeyHeader::Bearer)?);
        Ok(OllamaProvider { model, context_window, transport })
    }
}

#[derive(Deserialize)]
struct ModelList {
    models: Vec<ModelEntry>,
}

#[derive(Deserialize)]
struct ModelEntry {
    name: String,
}

#[cfg(test)]
mod tests {
    use http::header::AUTHORIZATION;

    use super::*;

    #[test]
    fn the_address_may_come_in_every_form() {
        for (host, url) in [
            ("", "http://127.0.0.1:11434"),
            ("0.0.0.0", "http://127.0.0.1:11434"),
            (":8080", "http://127.0.0.1:8080"),
            ("box", "http://box:11434"),
            ("box:1", "http://box:1"),
            ("[::1]", "http://[::1]:11434"),
            ("[::]:7", "http://127.0.0.1:7"),
            ("http://box", "http://box"),
            ("https://ollama.com/", "https://ollama.com"),
            ("http://127.0.0.1:11434/v1", "http://127.0.0.1:11434"),
            ("https://h/ollama/api/chat", "https://h/ollama"),
        ] {
            assert_eq!(OllamaProvider::address(host), url, "{host}");
        }
    }

    #[test]
    fn the_environment_names_server_and_key() {
        let provider = OllamaProvider::from_variables("m", |name| match name {
            "OLLAMA_HOST" => Some("box:1".to_owned()),
            "OLLAMA_API_KEY" => Some("key-0123456789\n".to_owned()),
            _ => None,
        });
        let provider = provider.unwrap();
        assert_eq!(provider.transport.base_url.as_str(), "http://box:1/");
        assert_eq!(provider.transport.headers[AUTHORIZATION], "Bearer key-0123456789");
        assert_eq!(
            format!("{provider:?}"),
            r#"OllamaProvider { model: "m", server: "http://box:1", .. }"#
        );
        let local = OllamaProvider::from_variables("m", |_| None).unwrap();
        assert_eq!(local.transport.base_url.as_str(), "http://127.0.0.1:11434/");
        assert!(local.transport.headers.is_empty());
    }
}
