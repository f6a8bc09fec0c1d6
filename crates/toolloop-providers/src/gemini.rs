//! [`GeminiProvider`]: Google's models behind the Gemini API.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use http::Method;
use secrecy::SecretString;
use serde::Deserialize;
use toolloop_core::{
    Capability, ChatParams, ChatResponse, ChatStream, LlmError, Provider, ProviderMetadata,
};

use crate::builder::{KeyHeader, ProviderBuilder, TakesKey, split_query, without_end};
use crate::codec::gemini::{self, GeminiDecoder};
use crate::codec::{origin, outgoing};
use crate::models::KnownModel;
use crate::transport::{ReplyStream, Transport, collect};

/// A model behind the Gemini API.
///
/// Cloning is cheap; clones share their connections.
///
/// ```
/// use toolloop_providers::GeminiProvider;
///
/// # fn main() -> Result<(), toolloop_core::LlmError> {
/// let model = GeminiProvider::create("gemini-2.5-flash", "AIza...")?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct GeminiProvider {
    model: String,
    origin: Cow<'static, str>,
    transport: Arc<Transport>,
}

impl GeminiProvider {
    /// A model of Google.
    ///
    /// # Errors
    /// When no HTTP header can carry the key.
    pub fn create(
        model: impl Into<String>,
        api_key: impl Into<SecretString>,
    ) -> Result<Self, LlmError> {
        Self::builder(model).api_key(api_key).build()
    }

    /// A model with the key in `GEMINI_API_KEY`, else in `GOOGLE_API_KEY`, at `GEMINI_BASE_URL`
    /// if that is set. A server of your own may need no key.
    ///
    /// # Errors
    /// When the key is missing, or either is not usable.
    pub fn from_env(model: impl Into<String>) -> Result<Self, LlmError> {
        Self::from_variables(model, |name| std::env::var(name).ok())
    }

    /// Everything else there is to say of a provider.
    pub fn builder(model: impl Into<String>) -> GeminiProviderBuilder {
        let model = model.into();
        // The API itself names its models so.
        let model = model.strip_prefix("models/").unwrap_or(&model);
        ProviderBuilder::new(model, GEMINI_BASE_URL, Gemini)
    }

    /// The names of the models that can be asked. Asks once, for five seconds at most.
    ///
    /// # Errors
    /// When the server cannot be reached, refuses, or answers with something else than a list.
    pub async fn list_models(&self) -> Result<Vec<String>, LlmError> {
        let list: ModelList =
            self.transport.list_models(&["models"], Some("pageSize=1000")).await?;
        let answers = |model: &ModelEntry| {
            let methods = &model.supported_generation_methods;
            methods.as_ref().is_none_or(|methods| methods.iter().any(|m| m == "generateContent"))
        };
        let models = list.models.into_iter().filter(answers);
        Ok(models.map(|m| m.name.strip_prefix("models/").unwrap_or(&m.name).to_owned()).collect())
    }

    fn from_variables(
        model: impl Into<String>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, LlmError> {
        let keys = ["GEMINI_API_KEY", "GOOGLE_API_KEY"];
        let cure = "export it (GOOGLE_API_KEY will do), or set GEMINI_BASE_URL to a server that \
                    needs no key";
        Self::builder(model).variables(&keys, "GEMINI_BASE_URL", cure, variable)?.build()
    }

    fn ask(&self, params: &ChatParams) -> Result<ReplyStream<GeminiDecoder>, LlmError> {
        let body = gemini::encode_for(&self.origin, &self.model, &outgoing(params))?;
        let reading = gemini::reading(self.origin.clone(), &self.model, params);
        let method = format!("{}:streamGenerateContent", self.model);
        // A tuned model has a collection of its own in front of its name.
        let path: Vec<&str> = match method.contains('/') {
            true => method.split('/').collect(),
            false => vec!["models", &method],
        };
        let mut request = self.transport.request(Method::POST, &path);
        request.url_mut().query_pairs_mut().append_pair("alt", "sse");
        Ok(self.transport.post_to(request, body, params, reading))
    }
}

impl Provider for GeminiProvider {
    async fn generate(&self, params: &ChatParams) -> Result<ChatResponse, LlmError> {
        collect(self.ask(params)?).await
    }

    async fn stream(&self, params: &ChatParams) -> Result<ChatStream, LlmError> {
        Ok(Box::pin(self.ask(params)?))
    }

    fn metadata(&self) -> ProviderMetadata {
        let known = KnownModel::by_name(&self.model);
        let api = [Capability::Tools, Capability::StructuredOutput, Capability::Caching];
        ProviderMetadata {
            name: "gemini".into(),
            model: self.model.clone(),
            context_window: known.context_window,
            capabilities: known.capabilities(api),
        }
    }
}

impl fmt::Debug for GeminiProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GeminiProvider")
            .field("model", &self.model)
            .field("server", &self.transport.server())
            .finish_non_exhaustive()
    }
}

/// Builds a [`GeminiProvider`]; made by [`GeminiProvider::builder`]. Its base URL gets the version of
/// the API (`v1beta`) unless it ends in one.
pub type GeminiProviderBuilder = ProviderBuilder<Gemini>;

/// The Gemini API.
pub struct Gemini;

impl TakesKey for Gemini {}

impl ProviderBuilder<Gemini> {
    /// The provider.
    ///
    /// # Errors
    /// When the base URL or the key is not usable.
    pub fn build(self) -> Result<GeminiProvider, LlmError> {
        let base_url = with_version(&self.base_url);
        let transport = self.connection.transport(&base_url, KeyHeader::Own("x-goog-api-key"))?;
        let origin = origin(gemini::API, &transport.base_url, "googleapis.com");
        Ok(GeminiProvider { model: self.model, origin, transport: Arc::new(transport) })
    }
}

/// The address with the version of the API; people also give the address of its models.
fn with_version(url: &str) -> String {
    let url = without_end(url, &["/models"]);
    let (path, query) = split_query(&url);
    match path.rsplit('/').next() {
        Some("v1beta" | "v1alpha" | "v1") => url,
        _ => format!("{path}/v1beta{query}"),
    }
}

#[derive(Deserialize)]
struct ModelList {
    models: Vec<ModelEntry>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ModelEntry {
    name: String,
    supported_generation_methods: Option<Vec<String>>,
}

const GEMINI_BASE_URL: &str = "https://generativelanguage.googleapis.com/v1beta";

#[cfg(test)]
mod tests {
    use super::*;

    fn from(variables: &[(&str, &str)]) -> Result<GeminiProvider, LlmError> {
        GeminiProvider::from_variables("models/gemini-2.5-flash", |name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn the_environment_names_key_and_server() {
        let both =
            [("GOOGLE_API_KEY", "google-0123456789"), ("GEMINI_API_KEY", "gemini-0123456789\n")];
        let provider = from(&both).unwrap();
        assert_eq!(provider.transport.base_url.as_str(), GEMINI_BASE_URL);
        assert_eq!(provider.transport.headers["x-goog-api-key"], "gemini-0123456789");
        assert!(provider.transport.headers["x-goog-api-key"].is_sensitive());
        assert_eq!(
            format!("{provider:?}"),
            "GeminiProvider { model: \"gemini-2.5-flash\", \
             server: \"https://generativelanguage.googleapis.com\", .. }"
        );
        let google = from(&both[..1]).unwrap();
        assert_eq!(google.transport.headers["x-goog-api-key"], "google-0123456789");
        let local = from(&[("GEMINI_BASE_URL", "http://127.0.0.1:1/x/")]).unwrap();
        assert_eq!(local.transport.base_url.as_str(), "http://127.0.0.1:1/x/v1beta");
        assert!(local.transport.headers.is_empty());
    }

    #[test]
    fn a_missing_key_is_named() {
        let error = from(&[("GEMINI_API_KEY", " ")]).unwrap_err();
        assert!(matches!(error, LlmError::Auth(_)), "{error}");
        assert!(error.to_string().contains("GEMINI_API_KEY is not set"), "{error}");
    }

    #[test]
    fn the_version_is_added_once() {
        for (given, url) in [
            ("https://h", "https://h/v1beta"),
            ("https://h/v1beta/", "https://h/v1beta"),
            ("https://h/v1beta/models", "https://h/v1beta"),
            ("https://h/gateway/v1", "https://h/gateway/v1"),
            ("https://h/?key=k", "https://h/v1beta?key=k"),
            ("https://h/v1beta?key=k/1", "https://h/v1beta?key=k/1"),
        ] {
            assert_eq!(with_version(given), url);
        }
    }
}
