//! [`ResponsesProvider`]: OpenAI, and the servers that speak its Responses API.

use reqwest::Url;
use toolloop_core::{ChatParams, ChatResponse, ChatStream, LlmError, Provider, ProviderMetadata};

use super::model::{Api, OPENAI_HOST, OpenAi, OpenAiModel, is_openai};
use super::unsealed::UnsealedReply;
use crate::builder::ProviderBuilder;
use crate::codec::openai_responses::{API, Quirks, encode, reading};
use crate::codec::{origin, outgoing};
use crate::transport::collect;

/// A model behind the Responses API, in which a model that reasons keeps its thoughts from one
/// call to the next. Nothing is stored at the provider.
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
pub type ResponsesProvider = OpenAiModel<Quirks>;

/// Builds a [`ResponsesProvider`]; made by `ResponsesProvider::builder`. Its base URL is the address
/// up to and with `/v1`.
pub type ResponsesProviderBuilder = ProviderBuilder<OpenAi<Quirks>>;

impl Api for Quirks {
    const PROVIDER: &'static str = "ResponsesProvider";

    fn settle(quirks: Option<Self>, model: &str, base_url: &Url) -> Self {
        let mut quirks = quirks.unwrap_or_else(|| match is_openai(base_url) {
            true => Self::openai(model),
            false => Self::compatible(model),
        });
        if quirks.origin == API {
            quirks.origin = origin(API, base_url, OPENAI_HOST);
        }
        quirks
    }
}

impl OpenAiModel<Quirks> {
    fn ask(&self, params: &ChatParams) -> Result<UnsealedReply, LlmError> {
        let body = encode(&self.model, &outgoing(params), &self.quirks)?;
        Ok(UnsealedReply::new(&self.transport, body, params, reading(params, &self.quirks)))
    }
}

impl Provider for OpenAiModel<Quirks> {
    async fn generate(&self, params: &ChatParams) -> Result<ChatResponse, LlmError> {
        collect(self.ask(params)?).await
    }

    async fn stream(&self, params: &ChatParams) -> Result<ChatStream, LlmError> {
        Ok(Box::pin(self.ask(params)?))
    }

    fn metadata(&self) -> ProviderMetadata {
        self.known()
    }
}
