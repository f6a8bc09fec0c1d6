//! [`GeminiProvider`]: Google's models behind the Gemini API.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, Method};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use toolloop_core::{
    Capability, ChatParams, ChatResponse, ChatStream, LlmError, Provider, ProviderMetadata,
};

use crate::codec::gemini::{self, GeminiDecoder};
use crate::codec::outgoing;
use crate::models::KnownModel;
use crate::transport::{
    Limits, Redactor, ReplyStream, Timeouts, Transport, collect, default_client, parse_base_url,
};

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
        GeminiProviderBuilder {
            // The API itself names its models so.
            model: model.strip_prefix("models/").unwrap_or(&model).to_owned(),
            base_url: GEMINI_BASE_URL.to_owned(),
            api_key: None,
            client: None,
            limits: Limits::default(),
        }
    }

    /// The names of the models that can be asked. Asks once, for five seconds at most.
    ///
    /// # Errors
    /// When the server cannot be reached, refuses, or answers with something else than a list.
    pub async fn list_models(&self) -> Result<Vec<String>, LlmError> {
        let mut request = self.transport.request(Method::GET, &["models"]);
        request.url_mut().set_query(Some("pageSize=1000"));
        let document = self.transport.document(request, LIST_TIME).await?;
        let list: ModelList =
            serde_json::from_str(&document).map_err(|error| LlmError::ResponseFormat {
                message: format!("the list of models is not readable: {error}"),
                raw: document.chars().take(200).collect(),
            })?;
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
        let set = |name| variable(name).filter(|value| !value.trim().is_empty());
        let mut builder = Self::builder(model);
        let base_url = set("GEMINI_BASE_URL");
        match set("GEMINI_API_KEY").or_else(|| set("GOOGLE_API_KEY")) {
            Some(key) => builder = builder.api_key(key),
            None if base_url.is_none() => {
                let cure = "GEMINI_API_KEY is not set: export it (GOOGLE_API_KEY will do), or set \
                            GEMINI_BASE_URL to a server that needs no key";
                return Err(LlmError::Auth(cure.into()));
            }
            None => {}
        }
        if let Some(url) = base_url {
            builder = builder.base_url(url);
        }
        builder.build()
    }

    fn ask(&self, params: &ChatParams) -> Result<ReplyStream<GeminiDecoder>, LlmError> {
        let body = gemini::encode(&self.model, &outgoing(params))?;
        let method = format!("{}:streamGenerateContent", self.model);
        // A tuned model has a collection of its own in front of its name.
        let path: Vec<&str> = match method.contains('/') {
            true => method.split('/').collect(),
            false => vec!["models", &method],
        };
        let mut request = self.transport.request(Method::POST, &path);
        request.url_mut().query_pairs_mut().append_pair("alt", "sse");
        Ok(self.transport.post_to(request, body, params))
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
        let mut capabilities =
            HashSet::from([Capability::Tools, Capability::StructuredOutput, Capability::Caching]);
        capabilities.extend(known.reasons.then_some(Capability::Reasoning));
        capabilities.extend(known.sees.then_some(Capability::Vision));
        ProviderMetadata {
            name: "gemini".into(),
            model: self.model.clone(),
            context_window: known.context_window,
            capabilities,
        }
    }
}

impl fmt::Debug for GeminiProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = &self.transport.base_url;
        f.debug_struct("GeminiProvider")
            .field("model", &self.model)
            .field("server", &url.origin().ascii_serialization())
            .finish_non_exhaustive()
    }
}

/// Builds a [`GeminiProvider`]; made by [`GeminiProvider::builder`].
#[must_use = "a builder does nothing before `build`"]
pub struct GeminiProviderBuilder {
    model: String,
    base_url: String,
    api_key: Option<SecretString>,
    client: Option<reqwest::Client>,
    limits: Limits,
}

impl GeminiProviderBuilder {
    /// Where the API is; its version (`v1beta`) is added unless the address ends in one.
    pub fn base_url(mut self, url: impl Into<String>) -> Self {
        self.base_url = url.into();
        self
    }

    /// The key; a server of your own may need none.
    pub fn api_key(mut self, key: impl Into<SecretString>) -> Self {
        self.api_key = Some(key.into());
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
    pub fn build(self) -> Result<GeminiProvider, LlmError> {
        let key = self.api_key.map(|key| SecretString::from(key.expose_secret().trim()));
        let key = key.filter(|key| !key.expose_secret().is_empty());
        let mut headers = HeaderMap::new();
        if let Some(key) = &key {
            let mut value = HeaderValue::try_from(key.expose_secret())
                .map_err(|_| LlmError::Auth("the API key fits into no HTTP header".into()))?;
            value.set_sensitive(true);
            headers.insert(HeaderName::from_static("x-goog-api-key"), value);
        }
        let client = match self.client {
            Some(client) => client,
            None => default_client(&self.limits.timeouts)?,
        };
        let transport = Transport {
            client,
            base_url: parse_base_url(&with_version(&self.base_url))?,
            headers,
            redactor: Redactor::new(key.as_ref()),
            limits: self.limits,
        };
        Ok(GeminiProvider { model: self.model, transport: Arc::new(transport) })
    }
}

/// The address with the version of the API; people also give the address of its models.
fn with_version(url: &str) -> String {
    let url = url.trim().trim_end_matches('/');
    let url = url.strip_suffix("/models").unwrap_or(url);
    match url.rsplit('/').next() {
        Some("v1beta" | "v1alpha" | "v1") => url.to_owned(),
        _ => format!("{url}/v1beta"),
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

const LIST_TIME: Duration = Duration::from_secs(5);

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
        ] {
            assert_eq!(with_version(given), url);
        }
    }
}
