//! [`AnthropicProvider`]: Claude at Anthropic, and servers that have its Messages API.

mod resumed;

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use http::{HeaderName, HeaderValue};
use secrecy::SecretString;
use serde::Deserialize;
use serde_json::Value;
use toolloop_core::{
    Capability, ChatParams, ChatResponse, ChatStream, ContentBlock, LlmError, Provider,
    ProviderMetadata,
};

use crate::builder::{KeyHeader, ProviderBuilder, TakesKey, without_end};
use crate::codec::anthropic::{API, Claude, MessagesDecoder, Options, encode_resumed, reading};
use crate::codec::{origin, outgoing};
use crate::transport::{ReplyStream, Transport, collect};

use resumed::ResumedReply;

/// A model behind the Anthropic Messages API.
///
/// Cloning is cheap; clones share their connections.
///
/// ```
/// use toolloop_providers::AnthropicProvider;
///
/// # fn main() -> Result<(), toolloop_core::LlmError> {
/// let claude = AnthropicProvider::create("claude-sonnet-4-5", "sk-ant-...")?;
/// let searching = AnthropicProvider::builder("claude-sonnet-4-5")
///     .api_key("sk-ant-...")
///     .server_tool(serde_json::json!({"type": "web_search_20250305", "name": "web_search"}))
///     .build()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct AnthropicProvider {
    model: String,
    options: Arc<Options>,
    transport: Arc<Transport>,
}

impl AnthropicProvider {
    /// A model of Anthropic.
    ///
    /// # Errors
    /// When no HTTP header can carry the key.
    pub fn create(
        model: impl Into<String>,
        api_key: impl Into<SecretString>,
    ) -> Result<Self, LlmError> {
        Self::builder(model).api_key(api_key).build()
    }

    /// A model with the key in `ANTHROPIC_API_KEY`, at `ANTHROPIC_BASE_URL` if that is set. A
    /// server of your own may need no key.
    ///
    /// # Errors
    /// When the key is missing, or either is not usable.
    pub fn from_env(model: impl Into<String>) -> Result<Self, LlmError> {
        Self::from_variables(model, |name| std::env::var(name).ok())
    }

    /// Everything else there is to say of a provider.
    pub fn builder(model: impl Into<String>) -> AnthropicProviderBuilder {
        ProviderBuilder::new(model, ANTHROPIC_BASE_URL, Options::default())
    }

    /// The names of the models the server has, newest first. Asks once, for five seconds at most.
    ///
    /// # Errors
    /// When the server cannot be reached, refuses, or answers with something else than a list.
    pub async fn list_models(&self) -> Result<Vec<String>, LlmError> {
        let path = ["v1", "models"];
        let list: ModelList = self.transport.list_models(&path, Some("limit=1000")).await?;
        Ok(list.data.into_iter().map(|model| model.id).collect())
    }

    fn from_variables(
        model: impl Into<String>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, LlmError> {
        let cure = "export it, or set ANTHROPIC_BASE_URL to a server that needs no key";
        let keys = ["ANTHROPIC_API_KEY"];
        Self::builder(model).variables(&keys, "ANTHROPIC_BASE_URL", cure, variable)?.build()
    }

    fn ask(
        &self,
        params: &ChatParams,
        paused: &[ContentBlock],
    ) -> Result<ReplyStream<MessagesDecoder>, LlmError> {
        let body = encode_resumed(&self.model, &outgoing(params), &self.options, paused)?;
        let reading = reading(&self.model, params, &self.options);
        Ok(self.transport.post(&["v1", "messages"], body, params, reading))
    }

    /// Only the provider's own tools make it pause.
    fn may_pause(&self) -> bool {
        !self.options.server_tools.is_empty()
    }
}

impl Provider for AnthropicProvider {
    async fn generate(&self, params: &ChatParams) -> Result<ChatResponse, LlmError> {
        match self.may_pause() {
            true => collect(ResumedReply::new(self.clone(), params.clone())?).await,
            false => collect(self.ask(params, &[])?).await,
        }
    }

    async fn stream(&self, params: &ChatParams) -> Result<ChatStream, LlmError> {
        Ok(match self.may_pause() {
            true => Box::pin(ResumedReply::new(self.clone(), params.clone())?),
            false => Box::pin(self.ask(params, &[])?),
        })
    }

    fn metadata(&self) -> ProviderMetadata {
        let mut metadata = metadata("anthropic", &self.model);
        if self.options.caching {
            metadata.capabilities.insert(Capability::Caching);
        }
        metadata
    }
}

/// What Claude is and can, whoever serves it.
pub(crate) fn metadata(provider: &'static str, model: &str) -> ProviderMetadata {
    let claude = Claude::by_name(model);
    let mut capabilities = HashSet::from([Capability::Tools, Capability::StructuredOutput]);
    capabilities.extend(claude.thinks().then_some(Capability::Reasoning));
    capabilities.extend(claude.sees().then_some(Capability::Vision));
    ProviderMetadata {
        name: provider.into(),
        model: model.to_owned(),
        context_window: claude.context_window(),
        capabilities,
    }
}

impl fmt::Debug for AnthropicProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnthropicProvider")
            .field("model", &self.model)
            .field("server", &self.transport.server())
            .finish_non_exhaustive()
    }
}

/// Builds an [`AnthropicProvider`]; made by [`AnthropicProvider::builder`]. Its base URL is the address
/// up to and without `/v1/messages`.
pub type AnthropicProviderBuilder = ProviderBuilder<Options>;

impl TakesKey for Options {}

impl ProviderBuilder<Options> {
    /// Whether the provider shall cache tools, instructions and the conversation so far; it does
    /// unless this is `false`.
    pub fn caching(mut self, caching: bool) -> Self {
        self.api.caching = caching;
        self
    }

    /// Adds a tool that the provider runs itself, in the words of its API:
    /// `{"type": "web_search_20250305", "name": "web_search"}`. What it does is part of the
    /// reply and goes back with it; a pause it needs is waited for.
    pub fn server_tool(mut self, tool: Value) -> Self {
        self.api.server_tools.push(tool);
        self
    }

    /// Above how many tokens of input the provider shall sum the conversation up, from 50,000 on;
    /// never unless this is set. The summary is part of the reply and goes back with it, in the
    /// place of what it sums up. A beta of the API, for its later models; a run's own compaction
    /// works with every model.
    pub fn compact_above(mut self, tokens: u32) -> Self {
        self.api.compact_above = Some(tokens);
        self
    }

    /// The provider.
    ///
    /// # Errors
    /// When the base URL or the key is not usable.
    pub fn build(self) -> Result<AnthropicProvider, LlmError> {
        let Self { model, base_url, connection, api } = self;
        let base_url = without_end(&base_url, &["/v1/messages", "/v1", "/messages"]);
        let mut transport = connection.transport(&base_url, KeyHeader::Own("x-api-key"))?;
        let version = HeaderName::from_static("anthropic-version");
        transport.headers.insert(version, HeaderValue::from_static("2023-06-01"));
        if api.compact_above.is_some() {
            let beta = HeaderName::from_static("anthropic-beta");
            transport.headers.insert(beta, HeaderValue::from_static(COMPACTION));
        }
        let origin = origin(API, &transport.base_url, "anthropic.com");
        let options = Arc::new(Options { origin, ..api });
        Ok(AnthropicProvider { model, options, transport: Arc::new(transport) })
    }
}

#[derive(Deserialize)]
struct ModelList {
    data: Vec<ModelEntry>,
}

#[derive(Deserialize)]
struct ModelEntry {
    id: String,
}

/// The beta in which the API takes `context_management` for compaction.
const COMPACTION: &str = "compact-2026-01-12";

const ANTHROPIC_BASE_URL: &str = "https://api.anthropic.com";

#[cfg(test)]
mod tests {
    use super::*;

    fn from(variables: &[(&str, &str)]) -> Result<AnthropicProvider, LlmError> {
        AnthropicProvider::from_variables("m", |name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn the_environment_names_key_and_server() {
        let provider = from(&[("ANTHROPIC_API_KEY", "sk-ant-0123456789\n")]).unwrap();
        let Transport { base_url, headers, .. } = &*provider.transport;
        assert_eq!(base_url.as_str(), "https://api.anthropic.com/");
        assert_eq!(headers["x-api-key"], "sk-ant-0123456789");
        assert!(headers["x-api-key"].is_sensitive());
        assert_eq!(headers["anthropic-version"], "2023-06-01");

        for url in ["http://h/x", "http://h/x/v1/", "http://h/x/v1/messages"] {
            let local = from(&[("ANTHROPIC_BASE_URL", url)]).unwrap();
            assert_eq!(local.transport.base_url.as_str(), "http://h/x");
            assert!(!local.transport.headers.contains_key("x-api-key"));
        }
    }

    #[test]
    fn a_missing_key_is_named() {
        let error = from(&[("ANTHROPIC_API_KEY", " ")]).unwrap_err();
        assert!(error.to_string().contains("ANTHROPIC_API_KEY is not set"), "{error}");
    }

    #[test]
    fn debug_shows_no_key() {
        let provider = AnthropicProvider::create("m", "sk-ant-0123456789").unwrap();
        let expected =
            r#"AnthropicProvider { model: "m", server: "https://api.anthropic.com", .. }"#;
        assert_eq!(format!("{provider:?}"), expected);
    }

    #[test]
    fn capabilities_follow_from_the_model() {
        let told = |model| AnthropicProvider::create(model, "k").unwrap().metadata();
        let sonnet = told("claude-sonnet-4-5");
        assert_eq!((&*sonnet.name, sonnet.context_window), ("anthropic", 200_000));
        let all = [
            Capability::Tools,
            Capability::StructuredOutput,
            Capability::Caching,
            Capability::Reasoning,
            Capability::Vision,
        ];
        assert_eq!(sonnet.capabilities, HashSet::from(all));
        assert!(!told("claude-3-5-haiku-latest").capabilities.contains(&Capability::Reasoning));
    }
}
