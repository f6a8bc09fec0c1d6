//! [`AiCoreProvider`]: Claude behind the invoke endpoint of SAP AI Core.

mod reply;
mod session;

use std::fmt;
use std::sync::Arc;

use secrecy::{ExposeSecret, SecretString};
use toolloop_core::{
    Capability, ChatParams, ChatResponse, ChatStream, LlmError, Provider, ProviderMetadata,
};

use crate::anthropic;
use crate::builder::{ProviderBuilder, without_end};
use crate::codec::anthropic::{Options, Platform, encode, reading};
use crate::codec::outgoing;
use crate::transport::{collect, parse_base_url};

use reply::AiCoreReply;
use session::{Account, Sessions};

/// Claude in a deployment of SAP AI Core.
///
/// The token that requests need is fetched with the first of them, and anew shortly before it
/// expires. Cloning is cheap; clones share token and connections.
///
/// ```
/// use toolloop_providers::AiCoreProvider;
///
/// # fn main() -> Result<(), toolloop_core::LlmError> {
/// let claude = AiCoreProvider::builder("anthropic--claude-4.5-sonnet", "d123456789")
///     .credentials("sb-client", "secret")
///     .auth_url("https://tenant.authentication.eu10.hana.ondemand.com")
///     .base_url("https://api.ai.prod.eu-central-1.aws.ml.hana.ondemand.com")
///     .build()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct AiCoreProvider {
    model: String,
    deployment: String,
    options: Options,
    sessions: Arc<Sessions>,
}

impl AiCoreProvider {
    /// A model with the service key in `AICORE_CLIENT_ID`, `AICORE_CLIENT_SECRET`,
    /// `AICORE_AUTH_URL`, `AICORE_BASE_URL`, the group in `AICORE_RESOURCE_GROUP` (`default`
    /// unless set) and the deployment in `AICORE_DEPLOYMENT_ID`.
    ///
    /// The deployment decides which model answers; its name here is for what is known of it.
    ///
    /// # Errors
    /// When a variable is missing or not usable.
    pub fn from_env(model: impl Into<String>) -> Result<Self, LlmError> {
        Self::from_variables(model, |name| std::env::var(name).ok())
    }

    /// A model in a deployment; account and addresses are still to be named.
    pub fn builder(
        model: impl Into<String>,
        deployment: impl Into<String>,
    ) -> AiCoreProviderBuilder {
        let api = AiCore {
            deployment: deployment.into(),
            client_id: String::new(),
            client_secret: SecretString::default(),
            auth_url: String::new(),
            resource_group: "default".to_owned(),
            caching: true,
        };
        ProviderBuilder::new(model, "", api)
    }

    fn from_variables(
        model: impl Into<String>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, LlmError> {
        let set = |name: &str| {
            let value = variable(name).map(|value| value.trim().to_owned());
            value.filter(|value| !value.is_empty())
        };
        let needed = |name: &str| {
            set(name).ok_or_else(|| {
                let cure = "SAP AI Core needs the service key of its instance";
                LlmError::Auth(format!("{name} is not set: {cure}").into())
            })
        };
        let deployment = set("AICORE_DEPLOYMENT_ID").ok_or_else(|| {
            let cure = "export the ID that SAP AI Launchpad shows for the deployment of the model";
            LlmError::InvalidRequest(format!("AICORE_DEPLOYMENT_ID is not set: {cure}").into())
        });
        let mut builder = Self::builder(model, String::new())
            .credentials(needed("AICORE_CLIENT_ID")?, needed("AICORE_CLIENT_SECRET")?)
            .auth_url(needed("AICORE_AUTH_URL")?)
            .base_url(needed("AICORE_BASE_URL")?);
        builder.api.deployment = deployment?;
        if let Some(group) = set("AICORE_RESOURCE_GROUP") {
            builder = builder.resource_group(group);
        }
        builder.build()
    }

    fn ask(&self, params: &ChatParams) -> Result<AiCoreReply, LlmError> {
        let body = encode(&self.model, &outgoing(params), &self.options)?;
        let reading = reading(&self.model, params, &self.options);
        Ok(AiCoreReply::new(Arc::clone(&self.sessions), &self.deployment, body, params, reading))
    }
}

impl Provider for AiCoreProvider {
    async fn generate(&self, params: &ChatParams) -> Result<ChatResponse, LlmError> {
        collect(self.ask(params)?).await
    }

    async fn stream(&self, params: &ChatParams) -> Result<ChatStream, LlmError> {
        Ok(Box::pin(self.ask(params)?))
    }

    fn metadata(&self) -> ProviderMetadata {
        let mut metadata = anthropic::metadata("aicore", &self.model);
        if self.options.caching {
            metadata.capabilities.insert(Capability::Caching);
        }
        metadata
    }
}

impl fmt::Debug for AiCoreProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AiCoreProvider")
            .field("model", &self.model)
            .field("deployment", &self.deployment)
            .field("server", &self.sessions.account.base_url.origin().ascii_serialization())
            .finish_non_exhaustive()
    }
}

/// Builds an [`AiCoreProvider`]; made by [`AiCoreProvider::builder`]. Its base URL is `AI_API_URL` of
/// the service key.
pub type AiCoreProviderBuilder = ProviderBuilder<AiCore>;

/// A deployment of SAP AI Core, and whose it is.
pub struct AiCore {
    deployment: String,
    client_id: String,
    client_secret: SecretString,
    auth_url: String,
    resource_group: String,
    caching: bool,
}

impl ProviderBuilder<AiCore> {
    /// `clientid` and `clientsecret` of the service key.
    pub fn credentials(
        mut self,
        client_id: impl Into<String>,
        client_secret: impl Into<SecretString>,
    ) -> Self {
        self.api.client_id = client_id.into();
        self.api.client_secret = client_secret.into();
        self
    }

    /// `url` of the service key, with or without `/oauth/token`.
    pub fn auth_url(mut self, url: impl Into<String>) -> Self {
        self.api.auth_url = url.into();
        self
    }

    /// The resource group of the deployment; `default` unless set.
    pub fn resource_group(mut self, group: impl Into<String>) -> Self {
        self.api.resource_group = group.into();
        self
    }

    /// Whether the model shall cache tools, instructions and the conversation so far; it does
    /// unless this is `false`.
    pub fn caching(mut self, caching: bool) -> Self {
        self.api.caching = caching;
        self
    }

    /// The provider.
    ///
    /// # Errors
    /// When an address is not usable, or the deployment or an account is not named.
    pub fn build(self) -> Result<AiCoreProvider, LlmError> {
        let Self { model, base_url, connection, api } = self;
        let deployment = api.deployment.trim();
        if deployment.is_empty() {
            return Err(LlmError::InvalidRequest("the deployment has no ID".into()));
        }
        let client_secret = SecretString::from(api.client_secret.expose_secret().trim());
        if api.client_id.trim().is_empty() || client_secret.expose_secret().is_empty() {
            return Err(LlmError::Auth("SAP AI Core needs a client ID and a secret".into()));
        }
        let base_url = parse_base_url(&without_end(&base_url, &["/v2"]))?;
        let account = Account {
            client_id: api.client_id.trim().to_owned(),
            client_secret,
            auth_url: parse_base_url(&without_end(&api.auth_url, &["/oauth/token"]))?,
            resource_group: api.resource_group.trim().to_owned(),
            client: connection.client(&base_url)?,
            base_url,
            limits: connection.limits,
        };
        let options =
            Options { caching: api.caching, platform: Platform::Bedrock, ..Options::default() };
        let (deployment, sessions) = (deployment.to_owned(), Sessions::new(account)?);
        Ok(AiCoreProvider { model, deployment, options, sessions })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VARIABLES: [(&str, &str); 5] = [
        ("AICORE_CLIENT_ID", "sb-client"),
        ("AICORE_CLIENT_SECRET", "secret-0123456789"),
        ("AICORE_AUTH_URL", "https://auth.example/oauth/token"),
        ("AICORE_BASE_URL", "https://ai.example/v2/"),
        ("AICORE_DEPLOYMENT_ID", "d1\n"),
    ];

    fn without(missing: &str) -> Result<AiCoreProvider, LlmError> {
        AiCoreProvider::from_variables("anthropic--claude-4.5-sonnet", |name| {
            let found = VARIABLES.iter().find(|(known, _)| *known == name && name != missing);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn the_environment_names_account_and_deployment() {
        let provider = without("").unwrap();
        let Account { auth_url, base_url, resource_group, .. } = &provider.sessions.account;
        assert_eq!(
            (auth_url.as_str(), base_url.as_str(), resource_group.as_str()),
            ("https://auth.example/", "https://ai.example/", "default")
        );
        assert_eq!(
            format!("{provider:?}"),
            r#"AiCoreProvider { model: "anthropic--claude-4.5-sonnet", deployment: "d1", server: "https://ai.example", .. }"#
        );
        let metadata = provider.metadata();
        assert_eq!((&*metadata.name, metadata.context_window), ("aicore", 200_000));
    }

    #[test]
    fn what_is_missing_is_named() {
        for (name, _) in VARIABLES {
            let error = without(name).unwrap_err().to_string();
            assert!(error.contains(&format!("{name} is not set")), "{error}");
        }
    }
}
