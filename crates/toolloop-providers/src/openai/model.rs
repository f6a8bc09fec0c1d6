//! [`OpenAiModel`]: a model behind one of OpenAI's two APIs, as far as they are the same.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use http::HeaderName;
use reqwest::Url;
use secrecy::SecretString;
use serde::Deserialize;
use toolloop_core::{Capability, LlmError, ProviderMetadata};

use crate::builder::{KeyHeader, ProviderBuilder, TakesKey, header_value, without_end};
use crate::codec::is_below;
use crate::models::KnownModel;
use crate::transport::Transport;

/// A model of OpenAI, or of a server that speaks one of its APIs:
/// [`OpenAiProvider`](crate::OpenAiProvider) or [`ResponsesProvider`](crate::ResponsesProvider).
/// `Q` is the quirks of that API.
///
/// Cloning is cheap; clones share their connections.
#[derive(Clone)]
pub struct OpenAiModel<Q> {
    pub(super) name: Cow<'static, str>,
    pub(super) model: String,
    pub(super) quirks: Q,
    pub(super) transport: Arc<Transport>,
}

/// One of the two APIs, known by its quirks.
pub trait Api: Sized {
    /// What its provider is called.
    const PROVIDER: &'static str;

    /// The quirks of a server, as far as nobody said them.
    fn settle(quirks: Option<Self>, model: &str, base_url: &Url) -> Self;
}

impl<Q: Api> OpenAiModel<Q> {
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
        let cure = "export it, or set OPENAI_BASE_URL to a server that needs no key";
        let variable = |name: &str| std::env::var(name).ok();
        let builder = Self::builder(model);
        builder.variables(&["OPENAI_API_KEY"], "OPENAI_BASE_URL", cure, variable)?.build()
    }

    /// Everything else there is to say of a provider.
    pub fn builder(model: impl Into<String>) -> ProviderBuilder<OpenAi<Q>> {
        let api = OpenAi { name: Cow::Borrowed("openai"), organization: None, quirks: None };
        ProviderBuilder::new(model, OPENAI_BASE_URL, api)
    }

    /// The names of the models the server has. Asks once, for five seconds at most.
    ///
    /// # Errors
    /// When the server cannot be reached, refuses, or answers with something else than a list.
    pub async fn list_models(&self) -> Result<Vec<String>, LlmError> {
        let list: ModelList = self.transport.list_models(&["models"], None).await?;
        Ok(list.data.into_iter().map(|model| model.id).collect())
    }

    pub(super) fn known(&self) -> ProviderMetadata {
        let known = KnownModel::by_name(&self.model);
        let mut capabilities = known.capabilities([
            Capability::Tools,
            Capability::StructuredOutput,
            Capability::MidSystem,
        ]);
        let is_openai = is_openai(&self.transport.base_url);
        capabilities.extend(is_openai.then_some(Capability::Caching));
        ProviderMetadata {
            name: self.name.clone(),
            model: self.model.clone(),
            context_window: known.context_window,
            capabilities,
        }
    }
}

impl<Q: Api> fmt::Debug for OpenAiModel<Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(Q::PROVIDER)
            .field("name", &self.name)
            .field("model", &self.model)
            .field("server", &self.transport.server())
            .finish_non_exhaustive()
    }
}

/// What only the APIs of OpenAI have.
pub struct OpenAi<Q> {
    name: Cow<'static, str>,
    organization: Option<String>,
    quirks: Option<Q>,
}

impl<Q> TakesKey for OpenAi<Q> {}

impl<Q: Api> ProviderBuilder<OpenAi<Q>> {
    /// The organization that is billed, where a key belongs to several.
    pub fn organization(mut self, organization: impl Into<String>) -> Self {
        self.api.organization = Some(organization.into());
        self
    }

    /// What errors and metadata call this provider; `openai` unless set.
    pub fn name(mut self, name: impl Into<Cow<'static, str>>) -> Self {
        self.api.name = name.into();
        self
    }

    /// What this server takes; unless set, it is told from the base URL and the model.
    pub fn quirks(mut self, quirks: Q) -> Self {
        self.api.quirks = Some(quirks);
        self
    }

    /// The provider.
    ///
    /// # Errors
    /// When the base URL or the key is not usable.
    pub fn build(self) -> Result<OpenAiModel<Q>, LlmError> {
        let Self { model, base_url, connection, api } = self;
        let base_url = without_end(&base_url, &["/chat/completions", "/responses"]);
        let mut transport = connection.transport(&base_url, KeyHeader::Bearer)?;
        if let Some(organization) = &api.organization {
            let name = HeaderName::from_static("openai-organization");
            transport.headers.insert(name, header_value(organization, "the organization")?);
        }
        let quirks = Q::settle(api.quirks, &model, &transport.base_url);
        Ok(OpenAiModel { name: api.name, model, quirks, transport: Arc::new(transport) })
    }
}

/// Whether it is OpenAI's own server.
pub(super) fn is_openai(base_url: &Url) -> bool {
    is_below(base_url, OPENAI_HOST)
}

#[derive(Deserialize)]
struct ModelList {
    data: Vec<ModelEntry>,
}

#[derive(Deserialize)]
struct ModelEntry {
    id: String,
}

pub(super) const OPENAI_HOST: &str = "api.openai.com";

const OPENAI_BASE_URL: &str = "https://api.openai.com/v1";

#[cfg(test)]
mod tests {
    use crate::OpenAiProvider;

    #[test]
    fn the_address_of_an_endpoint_is_as_good() {
        for path in ["", "/", "/chat/completions", "/responses/"] {
            let builder = OpenAiProvider::builder("m").base_url(format!("http://h/v1{path}"));
            assert_eq!(builder.build().unwrap().transport.base_url.as_str(), "http://h/v1");
        }
    }
}
