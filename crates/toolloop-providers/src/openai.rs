//! [`OpenAiProvider`]: OpenAI, and every server that speaks its Chat Completions API.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::future::poll_fn;
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_core::Stream;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use toolloop_core::effect::Outcome;
use toolloop_core::{
    Capability, ChatParams, ChatResponse, ChatStream, LlmError, Provider, ProviderMetadata,
    ReplyAssembler,
};

use crate::codec::openai_chat::{self, ChatDecoder, Quirks};
use crate::models::KnownModel;
use crate::transport::{
    Limits, Redactor, ReplyStream, Timeouts, Transport, default_client, parse_base_url,
};

/// A model behind the Chat Completions API.
///
/// Cloning is cheap; clones share their connections.
///
/// ```
/// use toolloop_providers::OpenAiProvider;
///
/// # fn main() -> Result<(), toolloop_core::LlmError> {
/// let cloud = OpenAiProvider::create("gpt-5", "sk-...")?;
/// let local = OpenAiProvider::builder("qwen3").base_url("http://127.0.0.1:11434/v1").build()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct OpenAiProvider {
    name: Cow<'static, str>,
    model: String,
    quirks: Quirks,
    transport: Arc<Transport>,
}

impl OpenAiProvider {
    /// A model of OpenAI.
    ///
    /// # Errors
    /// When no HTTP header can carry the key.
    pub fn create(
        model: impl Into<String>,
        api_key: impl Into<SecretString>,
    ) -> Result<Self, LlmError> {
        Self::builder(model).api_key(api_key).build()
    }

    /// A model with the key in `OPENAI_API_KEY`, at `OPENAI_BASE_URL` if that is set. A server
    /// of your own may need no key.
    ///
    /// # Errors
    /// When the key is missing, or either is not usable.
    pub fn from_env(model: impl Into<String>) -> Result<Self, LlmError> {
        Self::from_variables(model, |name| std::env::var(name).ok())
    }

    /// Everything else there is to say of a provider.
    pub fn builder(model: impl Into<String>) -> OpenAiProviderBuilder {
        OpenAiProviderBuilder {
            name: Cow::Borrowed("openai"),
            model: model.into(),
            base_url: OPENAI_BASE_URL.to_owned(),
            api_key: None,
            organization: None,
            client: None,
            limits: Limits::default(),
            quirks: None,
        }
    }

    /// The names of the models the server has. Asks once, for five seconds at most.
    ///
    /// # Errors
    /// When the server cannot be reached, refuses, or answers with something else than a list.
    pub async fn list_models(&self) -> Result<Vec<String>, LlmError> {
        let document = self.transport.get(&["models"], LIST_TIME).await?;
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
        let base_url = set("OPENAI_BASE_URL");
        match set("OPENAI_API_KEY") {
            Some(key) => builder = builder.api_key(key),
            None if base_url.is_none() => {
                let cure = "OPENAI_API_KEY is not set: export it, or set OPENAI_BASE_URL to a \
                            server that needs no key";
                return Err(LlmError::Auth(cure.into()));
            }
            None => {}
        }
        if let Some(url) = base_url {
            builder = builder.base_url(url);
        }
        builder.build()
    }

    fn ask(&self, params: &ChatParams) -> Result<ReplyStream<ChatDecoder>, LlmError> {
        let body = openai_chat::encode(&self.model, params, &self.quirks)?;
        Ok(self.transport.post(&["chat", "completions"], body, params))
    }
}

impl Provider for OpenAiProvider {
    async fn generate(&self, params: &ChatParams) -> Result<ChatResponse, LlmError> {
        let mut reply = self.ask(params)?;
        let mut assembler = ReplyAssembler::detached();
        while let Some(event) = poll_fn(|cx| Pin::new(&mut reply).poll_next(cx)).await {
            assembler.push(event?)?;
        }
        match assembler.finish() {
            Outcome::Reply(reply) => Ok(reply.response),
            Outcome::ReplyFailed { failure, .. } => Err(failure.into()),
            // An assembler has these two outcomes only.
            other => unreachable!("a reply ended as {other:?}"),
        }
    }

    async fn stream(&self, params: &ChatParams) -> Result<ChatStream, LlmError> {
        Ok(Box::pin(self.ask(params)?))
    }

    fn metadata(&self) -> ProviderMetadata {
        let known = KnownModel::by_name(&self.model);
        let mut capabilities =
            HashSet::from([Capability::Tools, Capability::StructuredOutput, Capability::MidSystem]);
        capabilities.extend(known.reasons.then_some(Capability::Reasoning));
        capabilities.extend(known.sees.then_some(Capability::Vision));
        capabilities.extend((self.quirks == Quirks::openai()).then_some(Capability::Caching));
        ProviderMetadata {
            name: self.name.clone(),
            model: self.model.clone(),
            context_window: known.context_window,
            capabilities,
        }
    }
}

impl fmt::Debug for OpenAiProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = &self.transport.base_url;
        f.debug_struct("OpenAiProvider")
            .field("name", &self.name)
            .field("model", &self.model)
            .field("server", &url.origin().ascii_serialization())
            .finish_non_exhaustive()
    }
}

/// Builds an [`OpenAiProvider`]; made by [`OpenAiProvider::builder`].
#[must_use = "a builder does nothing before `build`"]
pub struct OpenAiProviderBuilder {
    name: Cow<'static, str>,
    model: String,
    base_url: String,
    api_key: Option<SecretString>,
    organization: Option<String>,
    client: Option<reqwest::Client>,
    limits: Limits,
    quirks: Option<Quirks>,
}

impl OpenAiProviderBuilder {
    /// Where the API is, up to and without `/chat/completions`.
    pub fn base_url(mut self, url: impl Into<String>) -> Self {
        self.base_url = url.into();
        self
    }

    /// The key; a local server may need none.
    pub fn api_key(mut self, key: impl Into<SecretString>) -> Self {
        self.api_key = Some(key.into());
        self
    }

    /// The organization that is billed, where a key belongs to several.
    pub fn organization(mut self, organization: impl Into<String>) -> Self {
        self.organization = Some(organization.into());
        self
    }

    /// What errors and metadata call this provider; `openai` unless set.
    pub fn name(mut self, name: impl Into<Cow<'static, str>>) -> Self {
        self.name = name.into();
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

    /// Most bytes of one event of a stream; 32 MiB unless set.
    pub fn max_event_bytes(mut self, bytes: NonZeroUsize) -> Self {
        self.limits.max_event = bytes;
        self
    }

    /// What this server takes; unless set, it is told from the base URL.
    pub fn quirks(mut self, quirks: Quirks) -> Self {
        self.quirks = Some(quirks);
        self
    }

    /// The provider.
    ///
    /// # Errors
    /// When the base URL or the key is not usable.
    pub fn build(self) -> Result<OpenAiProvider, LlmError> {
        // People paste the address of the endpoint, too.
        let base_url = self.base_url.trim().trim_end_matches('/');
        let base_url =
            parse_base_url(base_url.strip_suffix("/chat/completions").unwrap_or(base_url))?;
        // A key from a file or a variable may end in a line break.
        let trimmed = |key: SecretString| SecretString::from(key.expose_secret().trim());
        let api_key = self.api_key.map(trimmed).filter(|key| !key.expose_secret().is_empty());
        let quirks = self.quirks.unwrap_or_else(|| match base_url.host_str() {
            Some(host) if host.ends_with("api.openai.com") => Quirks::openai(),
            _ => Quirks::compatible(),
        });
        let client = match self.client {
            Some(client) => client,
            None => default_client(&self.limits.timeouts)?,
        };
        let transport = Transport {
            client,
            base_url,
            headers: headers(api_key.as_ref(), self.organization.as_deref())?,
            redactor: Redactor::new(api_key.as_ref()),
            limits: self.limits,
        };
        let transport = Arc::new(transport);
        Ok(OpenAiProvider { name: self.name, model: self.model, quirks, transport })
    }
}

fn headers(key: Option<&SecretString>, organization: Option<&str>) -> Result<HeaderMap, LlmError> {
    let mut headers = HeaderMap::new();
    if let Some(key) = key {
        let mut value = HeaderValue::try_from(format!("Bearer {}", key.expose_secret()))
            .map_err(|_| unusable("the API key"))?;
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
    }
    if let Some(organization) = organization {
        let value =
            HeaderValue::try_from(organization).map_err(|_| unusable("the organization"))?;
        headers.insert(HeaderName::from_static("openai-organization"), value);
    }
    Ok(headers)
}

/// The value itself is not shown: it is, or stands near, a secret.
fn unusable(what: &str) -> LlmError {
    let text = format!("{what} holds characters that no HTTP header can carry (a line break?)");
    LlmError::Auth(text.into())
}

#[derive(Deserialize)]
struct ModelList {
    data: Vec<ModelEntry>,
}

#[derive(Deserialize)]
struct ModelEntry {
    id: String,
}

const OPENAI_BASE_URL: &str = "https://api.openai.com/v1";

const LIST_TIME: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    fn from(variables: &[(&str, &str)]) -> Result<OpenAiProvider, LlmError> {
        OpenAiProvider::from_variables("m", |name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn the_environment_names_key_and_server() {
        let provider = from(&[("OPENAI_API_KEY", "sk-0123456789\n")]).unwrap();
        assert_eq!(provider.transport.base_url.as_str(), OPENAI_BASE_URL);
        assert_eq!(provider.transport.headers[AUTHORIZATION], "Bearer sk-0123456789");
        assert!(provider.transport.headers[AUTHORIZATION].is_sensitive());
        assert_eq!(provider.quirks, Quirks::openai());

        let local = from(&[("OPENAI_BASE_URL", "http://127.0.0.1:8080/v1")]).unwrap();
        assert!(local.transport.headers.is_empty());
        assert_eq!(local.quirks, Quirks::compatible());
    }

    #[test]
    fn a_missing_key_is_named() {
        for variables in [&[][..], &[("OPENAI_API_KEY", " ")]] {
            let error = from(variables).unwrap_err();
            assert!(matches!(error, LlmError::Auth(_)), "{error}");
            assert!(error.to_string().contains("OPENAI_API_KEY is not set"), "{error}");
        }
    }
}
