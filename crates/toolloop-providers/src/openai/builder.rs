//! [`OpenAiBuilder`]: what is the same of both of OpenAI's APIs: where they are, how they are
//! asked, and what is known of their models.

use std::borrow::Cow;
use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use toolloop_core::{Capability, LlmError, ProviderMetadata};

use crate::models::KnownModel;
use crate::transport::{Limits, Redactor, Timeouts, Transport, default_client, parse_base_url};

/// Builds a provider of OpenAI's APIs; `Q` is the quirks of the one it speaks.
#[must_use = "a builder does nothing before `build`"]
pub struct OpenAiBuilder<Q> {
    name: Cow<'static, str>,
    model: String,
    base_url: String,
    api_key: Option<SecretString>,
    organization: Option<String>,
    client: Option<reqwest::Client>,
    limits: Limits,
    quirks: Option<Q>,
}

impl<Q> OpenAiBuilder<Q> {
    /// Where the API is, up to and with `/v1`.
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

    /// What this server takes; unless set, it is told from the base URL and the model.
    pub fn quirks(mut self, quirks: Q) -> Self {
        self.quirks = Some(quirks);
        self
    }

    pub(super) fn new(model: impl Into<String>) -> Self {
        Self {
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

    /// Takes the key in `OPENAI_API_KEY` and the server in `OPENAI_BASE_URL`.
    pub(super) fn variables(
        mut self,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, LlmError> {
        let set = |name| variable(name).filter(|value| !value.trim().is_empty());
        let base_url = set("OPENAI_BASE_URL");
        match set("OPENAI_API_KEY") {
            Some(key) => self = self.api_key(key),
            None if base_url.is_none() => {
                let cure = "OPENAI_API_KEY is not set: export it, or set OPENAI_BASE_URL to a \
                            server that needs no key";
                return Err(LlmError::Auth(cure.into()));
            }
            None => {}
        }
        Ok(match base_url {
            Some(url) => self.base_url(url),
            None => self,
        })
    }

    /// The endpoint, and the quirks that were set for it.
    pub(super) fn endpoint(self) -> Result<(Endpoint, Option<Q>), LlmError> {
        // People paste the address of the endpoint, too.
        let base_url = self.base_url.trim().trim_end_matches('/');
        let base_url = ["/chat/completions", "/responses"]
            .iter()
            .find_map(|path| base_url.strip_suffix(path))
            .unwrap_or(base_url);
        let base_url = parse_base_url(base_url)?;
        // A key from a file or a variable may end in a line break.
        let trimmed = |key: SecretString| SecretString::from(key.expose_secret().trim());
        let api_key = self.api_key.map(trimmed).filter(|key| !key.expose_secret().is_empty());
        let client = match self.client {
            Some(client) => client,
            None => default_client(&self.limits.timeouts)?,
        };
        let is_openai = base_url.host_str().is_some_and(|host| host.ends_with("api.openai.com"));
        let transport = Transport {
            client,
            base_url,
            headers: headers(api_key.as_ref(), self.organization.as_deref())?,
            redactor: Redactor::new(api_key.as_ref()),
            limits: self.limits,
        };
        let (name, model, transport) = (self.name, self.model, Arc::new(transport));
        Ok((Endpoint { name, model, is_openai, transport }, self.quirks))
    }
}

/// A model behind one of OpenAI's APIs.
#[derive(Clone)]
pub(super) struct Endpoint {
    pub(super) name: Cow<'static, str>,
    pub(super) model: String,
    /// Whether it is OpenAI's own server.
    pub(super) is_openai: bool,
    pub(super) transport: Arc<Transport>,
}

impl Endpoint {
    pub(super) async fn list_models(&self) -> Result<Vec<String>, LlmError> {
        let document = self.transport.get(&["models"], LIST_TIME).await?;
        let list: ModelList =
            serde_json::from_str(&document).map_err(|error| LlmError::ResponseFormat {
                message: format!("the list of models is not readable: {error}"),
                raw: document.chars().take(200).collect(),
            })?;
        Ok(list.data.into_iter().map(|model| model.id).collect())
    }

    pub(super) fn metadata(&self) -> ProviderMetadata {
        let known = KnownModel::by_name(&self.model);
        let mut capabilities =
            HashSet::from([Capability::Tools, Capability::StructuredOutput, Capability::MidSystem]);
        capabilities.extend(known.reasons.then_some(Capability::Reasoning));
        capabilities.extend(known.sees.then_some(Capability::Vision));
        capabilities.extend(self.is_openai.then_some(Capability::Caching));
        ProviderMetadata {
            name: self.name.clone(),
            model: self.model.clone(),
            context_window: known.context_window,
            capabilities,
        }
    }

    /// The address without its path, for people.
    pub(super) fn server(&self) -> String {
        self.transport.base_url.origin().ascii_serialization()
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

    fn from(variables: &[(&str, &str)]) -> Result<Endpoint, LlmError> {
        let builder = OpenAiBuilder::<()>::new("m").variables(|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        });
        builder?.endpoint().map(|(endpoint, _)| endpoint)
    }

    #[test]
    fn the_environment_names_key_and_server() {
        let cloud = from(&[("OPENAI_API_KEY", "sk-0123456789\n")]).unwrap();
        assert_eq!(cloud.transport.base_url.as_str(), OPENAI_BASE_URL);
        assert_eq!(cloud.transport.headers[AUTHORIZATION], "Bearer sk-0123456789");
        assert!(cloud.transport.headers[AUTHORIZATION].is_sensitive());
        assert!(cloud.is_openai);

        let local = from(&[("OPENAI_BASE_URL", "http://127.0.0.1:8080/v1")]).unwrap();
        assert!(local.transport.headers.is_empty());
        assert!(!local.is_openai);
    }

    #[test]
    fn a_missing_key_is_named() {
        for variables in [&[][..], &[("OPENAI_API_KEY", " ")]] {
            let Err(error) = from(variables) else { panic!("no key was needed") };
            assert!(matches!(error, LlmError::Auth(_)), "{error}");
            assert!(error.to_string().contains("OPENAI_API_KEY is not set"), "{error}");
        }
    }

    #[test]
    fn the_address_of_an_endpoint_is_as_good() {
        for path in ["", "/", "/chat/completions", "/responses/"] {
            let builder = OpenAiBuilder::<()>::new("m").base_url(format!("http://h/v1{path}"));
            let (endpoint, _) = builder.endpoint().unwrap();
            assert_eq!(endpoint.transport.base_url.as_str(), "http://h/v1");
        }
    }
}
