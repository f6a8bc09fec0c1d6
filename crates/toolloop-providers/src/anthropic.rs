//! [`AnthropicProvider`]: Claude at Anthropic, and servers that have its Messages API.

mod resumed;

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use reqwest::Method;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::Value;
use toolloop_core::{
    Capability, ChatParams, ChatResponse, ChatStream, ContentBlock, LlmError, Provider,
    ProviderMetadata,
};

use crate::codec::anthropic::{Claude, MessagesDecoder, Options, encode_resumed};
use crate::codec::outgoing;
use crate::transport::{
    Limits, Redactor, ReplyStream, Timeouts, Transport, collect, default_client, parse_base_url,
};

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
        AnthropicProviderBuilder {
            model: model.into(),
            base_url: ANTHROPIC_BASE_URL.to_owned(),
            api_key: None,
            options: Options::default(),
            client: None,
            limits: Limits::default(),
        }
    }

    /// The names of the models the server has, newest first. Asks once, for five seconds at most.
    ///
    /// # Errors
    /// When the server cannot be reached, refuses, or answers with something else than a list.
    pub async fn list_models(&self) -> Result<Vec<String>, LlmError> {
        let mut request = self.transport.request(Method::GET, &["v1", "models"]);
        request.url_mut().set_query(Some("limit=1000"));
        let document = self.transport.document(request, LIST_TIME).await?;
        let list: ModelList =
            serde_json::from_str(&document).map_err(|error| LlmError::ResponseFormat {
                message: format!("the list of models is not readable: {error}"),
                raw: document.chars().take(200).collect(),
            })?;
        Ok(list.data.into_iter().map(|model| model.id).collect())
    }

    fn from_variables(
        model: impl Into<String>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, LlmError> {
        let set = |name| variable(name).filter(|value| !value.trim().is_empty());
        let mut builder = Self::builder(model);
        let base_url = set("ANTHROPIC_BASE_URL");
        match set("ANTHROPIC_API_KEY") {
            Some(key) => builder = builder.api_key(key),
            None if base_url.is_none() => {
                let cure = "ANTHROPIC_API_KEY is not set: export it, or set ANTHROPIC_BASE_URL \
                            to a server that needs no key";
                return Err(LlmError::Auth(cure.into()));
            }
            None => {}
        }
        if let Some(url) = base_url {
            builder = builder.base_url(url);
        }
        builder.build()
    }

    fn ask(
        &self,
        params: &ChatParams,
        paused: &[ContentBlock],
    ) -> Result<ReplyStream<MessagesDecoder>, LlmError> {
        let body = encode_resumed(&self.model, &outgoing(params), &self.options, paused)?;
        Ok(self.transport.post(&["v1", "messages"], body, params))
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
        let url = &self.transport.base_url;
        f.debug_struct("AnthropicProvider")
            .field("model", &self.model)
            .field("server", &url.origin().ascii_serialization())
            .finish_non_exhaustive()
    }
}

/// Builds an [`AnthropicProvider`]; made by [`AnthropicProvider::builder`].
#[must_use = "a builder does nothing before `build`"]
pub struct AnthropicProviderBuilder {
    model: String,
    base_url: String,
    api_key: Option<SecretString>,
    options: Options,
    client: Option<reqwest::Client>,
    limits: Limits,
}

impl AnthropicProviderBuilder {
    /// Where the API is, up to and without `/v1/messages`.
    pub fn base_url(mut self, url: impl Into<String>) -> Self {
        self.base_url = url.into();
        self
    }

    /// The key; a local server may need none.
    pub fn api_key(mut self, key: impl Into<SecretString>) -> Self {
        self.api_key = Some(key.into());
        self
    }

    /// Whether the provider shall cache tools, instructions and the conversation so far; it does
    /// unless this is `false`.
    pub fn caching(mut self, caching: bool) -> Self {
        self.options.caching = caching;
        self
    }

    /// Adds a tool that the provider runs itself, in the words of its API:
    /// `{"type": "web_search_20250305", "name": "web_search"}`. What it does is part of the
    /// reply and goes back with it; a pause it needs is waited for.
    pub fn server_tool(mut self, tool: Value) -> Self {
        self.options.server_tools.push(tool);
        self
    }

    /// A client of yours (reqwest 0.13), for its proxies, certificates or pool. Its own limit of
    /// time for a connection counts then.
    pub fn http_client(mut self, client: reqwest::Client) -> Self {
        self.client = Some(client);
        self
    }

    /// How long the server may take.
    pub fn timeouts(mut self, timeouts: Timeouts) -> Self {
        self.limits.timeouts = timeouts;
        self
    }

    /// Tries after the first, where the server says that it cannot now; 4 unless set. Where no
    /// server answers, there are 2 at most.
    pub fn max_retries(mut self, retries: u32) -> Self {
        self.limits.max_retries = retries;
        self
    }

    /// The provider.
    ///
    /// # Errors
    /// When the base URL or the key is not usable.
    pub fn build(self) -> Result<AnthropicProvider, LlmError> {
        // People paste the address of the endpoint, too.
        let url = self.base_url.trim().trim_end_matches('/');
        let url = url.strip_suffix("/messages").unwrap_or(url);
        let base_url = parse_base_url(url.strip_suffix("/v1").unwrap_or(url))?;
        // A key from a file or a variable may end in a line break.
        let key = self.api_key.map(|key| SecretString::from(key.expose_secret().trim()));
        let key = key.filter(|key| !key.expose_secret().is_empty());
        let mut headers = HeaderMap::new();
        let version = HeaderName::from_static("anthropic-version");
        headers.insert(version, HeaderValue::from_static("2023-06-01"));
        if let Some(key) = &key {
            let mut value = HeaderValue::try_from(key.expose_secret()).map_err(|_| {
                let cure = "the API key holds characters that no HTTP header can carry (a line \
                            break?)";
                LlmError::Auth(cure.into())
            })?;
            value.set_sensitive(true);
            headers.insert(HeaderName::from_static("x-api-key"), value);
        }
        let client = match self.client {
            Some(client) => client,
            None => default_client(&self.limits.timeouts)?,
        };
        let transport = Transport {
            client,
            base_url,
            headers,
            redactor: Redactor::new(key.as_ref()),
            limits: self.limits,
        };
        let (options, transport) = (Arc::new(self.options), Arc::new(transport));
        Ok(AnthropicProvider { model: self.model, options, transport })
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

const ANTHROPIC_BASE_URL: &str = "https://api.anthropic.com";

const LIST_TIME: Duration = Duration::from_secs(5);

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
