//! [`OpenAiProvider`]: OpenAI, and every server that speaks its Chat Completions API.

use reqwest::Url;
use toolloop_core::{ChatParams, ChatResponse, ChatStream, LlmError, Provider, ProviderMetadata};

use super::model::{Api, OPENAI_HOST, OpenAi, OpenAiModel, is_openai};
use crate::builder::ProviderBuilder;
use crate::codec::openai_chat::{API, ChatDecoder, Quirks, encode, reading};
use crate::codec::{origin, outgoing};
use crate::servers::quirks_at;
use crate::transport::ReplyStream;

/// A model behind the Chat Completions API.
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
pub type OpenAiProvider = OpenAiModel<Quirks>;

/// Builds an [`OpenAiProvider`]; made by `OpenAiProvider::builder`. Its base URL is the address up to
/// and with `/v1`.
pub type OpenAiProviderBuilder = ProviderBuilder<OpenAi<Quirks>>;

impl Api for Quirks {
    const PROVIDER: &'static str = "OpenAiProvider";

    fn settle(quirks: Option<Self>, _: &str, base_url: &Url) -> Self {
        let mut quirks = quirks.unwrap_or_else(|| match is_openai(base_url) {
            true => Self::openai(),
            false => {
                let host = base_url.host_str().unwrap_or_default();
                quirks_at(host).unwrap_or_else(Self::compatible)
            }
        });
        if quirks.origin == API {
            quirks.origin = origin(API, base_url, OPENAI_HOST);
        }
        quirks
    }
}

impl OpenAiModel<Quirks> {
    fn ask(&self, params: &ChatParams) -> Result<ReplyStream<ChatDecoder>, LlmError> {
        let body = encode(&self.model, &outgoing(params), &self.quirks)?;
        let path = ["chat", "completions"];
        Ok(self.transport.post(&path, body, params, reading(params, &self.quirks)))
    }
}

impl Provider for OpenAiModel<Quirks> {
    async fn generate(&self, params: &ChatParams) -> Result<ChatResponse, LlmError> {
        self.ask(params)?.into_response().await
    }

    async fn stream(&self, params: &ChatParams) -> Result<ChatStream, LlmError> {
        Ok(Box::pin(self.ask(params)?))
    }

    fn metadata(&self) -> ProviderMetadata {
        self.known()
    }
}
