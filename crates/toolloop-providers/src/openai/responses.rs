//! [`ResponsesProvider`]: OpenAI, and the servers that speak its Responses API.

use std::fmt;

use secrecy::SecretString;
use toolloop_core::{ChatParams, ChatResponse, ChatStream, LlmError, Provider, ProviderMetadata};

use super::builder::{Endpoint, OpenAiBuilder};
use crate::codec::openai_responses::{self, Quirks, ResponsesDecoder};
use crate::codec::outgoing;
use crate::transport::ReplyStream;

/// A model behind the Responses API, in which a model that reasons keeps its thoughts from one
/// call to the next.
///
/// Nothing is stored at the provider. Cloning is cheap; clones share their connections.
///
/// ```
/// use toolloop_providers::ResponsesProvider;
///
/// # fn main() -> Result<(), toolloop_core::LlmError> {
/// let cloud = ResponsesProvider::create("gpt-5", "sk-...")?;
/// let local = ResponsesProvider::builder("qwen3").base_url("http://127.0.0.1:1234/v1").build()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ResponsesProvider {
    endpoint: Endpoint,
    quirks: Quirks,
}

impl ResponsesProvider {
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
        Self::builder(model).variables(|name| std::env::var(name).ok())?.build()
    }

    /// Everything else there is to say of a provider.
    pub fn builder(model: impl Into<String>) -> ResponsesProviderBuilder {
        OpenAiBuilder::new(model)
    }

    /// The names of the models the server has. Asks once, for five seconds at most.
    ///
    /// # Errors
    /// When the server cannot be reached, refuses, or answers with something else than a list.
    pub async fn list_models(&self) -> Result<Vec<String>, LlmError> {
        self.endpoint.list_models().await
    }

    fn ask(&self, params: &ChatParams) -> Result<ReplyStream<ResponsesDecoder>, LlmError> {
        let body = openai_responses::encode(&self.endpoint.model, &outgoing(params), &self.quirks)?;
        Ok(self.endpoint.transport.post(&["responses"], body, params))
    }
}

impl Provider for ResponsesProvider {
    async fn generate(&self, params: &ChatParams) -> Result<ChatResponse, LlmError> {
        self.ask(params)?.into_response().await
    }

    async fn stream(&self, params: &ChatParams) -> Result<ChatStream, LlmError> {
        Ok(Box::pin(self.ask(params)?))
    }

    fn metadata(&self) -> ProviderMetadata {
        self.endpoint.metadata()
    }
}

impl fmt::Debug for ResponsesProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponsesProvider")
            .field("name", &self.endpoint.name)
            .field("model", &self.endpoint.model)
            .field("server", &self.endpoint.server())
            .finish_non_exhaustive()
    }
}

/// Builds a [`ResponsesProvider`]; made by [`ResponsesProvider::builder`].
pub type ResponsesProviderBuilder = OpenAiBuilder<Quirks>;

impl OpenAiBuilder<Quirks> {
    /// The provider.
    ///
    /// # Errors
    /// When the base URL or the key is not usable.
    pub fn build(self) -> Result<ResponsesProvider, LlmError> {
        let (endpoint, quirks) = self.endpoint()?;
        let quirks = quirks.unwrap_or_else(|| match endpoint.is_openai {
            true => Quirks::openai(&endpoint.model),
            false => Quirks::compatible(&endpoint.model),
        });
        Ok(ResponsesProvider { endpoint, quirks })
    }
}
