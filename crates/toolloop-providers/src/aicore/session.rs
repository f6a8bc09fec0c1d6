//! [`Sessions`]: tokens, each with a transport that sends it.

use std::sync::Arc;
use std::time::Duration;

use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Url};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};
use toolloop_core::LlmError;

use crate::transport::{Limits, Redactor, Transport};

/// Whose deployments are asked, and where.
pub(super) struct Account {
    pub(super) client_id: String,
    pub(super) client_secret: SecretString,
    pub(super) auth_url: Url,
    pub(super) base_url: Url,
    pub(super) resource_group: String,
    pub(super) client: reqwest::Client,
    pub(super) limits: Limits,
}

/// The token in use, for all calls of a provider.
pub(super) struct Sessions {
    pub(super) account: Account,
    /// Where tokens come from.
    issuer: Transport,
    /// Held while a token is fetched, so that calls at once fetch one.
    current: Mutex<Option<Session>>,
}

/// A token while it is good.
#[derive(Clone)]
pub(super) struct Session {
    pub(super) transport: Arc<Transport>,
    ends: Instant,
}

impl Sessions {
    pub(super) fn new(account: Account) -> Result<Arc<Self>, LlmError> {
        let group = HeaderValue::try_from(&account.resource_group)
            .map_err(|_| LlmError::InvalidRequest("the resource group is not usable".into()))?;
        let issuer = Transport {
            client: account.client.clone(),
            base_url: account.auth_url.clone(),
            headers: HeaderMap::from_iter([(RESOURCE_GROUP, group)]),
            redactor: Redactor::new(Some(&account.client_secret)),
            limits: account.limits,
        };
        Ok(Arc::new(Self { account, issuer, current: Mutex::new(None) }))
    }

    /// The session in use, or a new one; `refused` is one that is no longer good.
    pub(super) async fn open(&self, refused: Option<&Session>) -> Result<Session, LlmError> {
        let mut current = self.current.lock().await;
        let is_good = |session: &&Session| {
            session.ends > Instant::now()
                && refused.is_none_or(|old| !Arc::ptr_eq(&old.transport, &session.transport))
        };
        if let Some(session) = current.as_ref().filter(is_good) {
            return Ok(session.clone());
        }
        let mut delays = DELAYS.into_iter();
        let session = loop {
            match (self.fetch().await, delays.next()) {
                (Err(error), Some(delay)) if error.is_retryable() => sleep(delay).await,
                (outcome, _) => break outcome?,
            }
        };
        *current = Some(session.clone());
        Ok(session)
    }

    async fn fetch(&self) -> Result<Session, LlmError> {
        let Account { client_id, client_secret, base_url, client, limits, .. } = &self.account;
        let mut request = self.issuer.request(Method::POST, &["oauth", "token"]);
        let form = Url::parse_with_params(
            "form:",
            [
                ("grant_type", "client_credentials"),
                ("client_id", client_id),
                ("client_secret", client_secret.expose_secret()),
            ],
        );
        let form = form.ok().and_then(|url| url.query().map(str::to_owned)).unwrap_or_default();
        request.headers_mut().remove(RESOURCE_GROUP);
        let content_type = HeaderValue::from_static("application/x-www-form-urlencoded");
        request.headers_mut().insert(CONTENT_TYPE, content_type);
        *request.body_mut() = Some(form.into());
        let document = self.issuer.document(request, TOKEN_TIME).await.map_err(explained)?;
        // What cannot be read is not shown: it may hold a token.
        let Ok(Granted { access_token, expires_in }) = serde_json::from_str(&document) else {
            let message = "the token service of SAP AI Core answered without a token (is \
                           AICORE_AUTH_URL right?)";
            return Err(LlmError::ResponseFormat { message: message.into(), raw: String::new() });
        };
        let access_token = SecretString::from(access_token);
        let mut headers = self.issuer.headers.clone();
        let mut value = HeaderValue::try_from(format!("Bearer {}", access_token.expose_secret()))
            .map_err(|_| LlmError::Auth("the token fits into no HTTP header".into()))?;
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
        let transport = Transport {
            client: client.clone(),
            base_url: base_url.clone(),
            headers,
            redactor: Redactor::new(Some(&access_token)),
            limits: *limits,
        };
        let lifetime = Duration::from_secs(expires_in.unwrap_or(USUAL_LIFETIME).min(LONGEST));
        let ends = Instant::now() + lifetime.saturating_sub(MARGIN);
        Ok(Session { transport: Arc::new(transport), ends })
    }
}

fn explained(error: LlmError) -> LlmError {
    let cure = match error.status() {
        Some(404 | 405) => "is AICORE_AUTH_URL right?",
        _ => "are AICORE_CLIENT_ID and AICORE_CLIENT_SECRET right?",
    };
    match error {
        LlmError::Auth(message) | LlmError::InvalidRequest(message) => {
            LlmError::Auth(format!("SAP AI Core gave no token: {message} ({cure})").into())
        }
        other => other,
    }
}

#[derive(Deserialize)]
struct Granted {
    access_token: String,
    /// Seconds.
    #[serde(default)]
    expires_in: Option<u64>,
}

const RESOURCE_GROUP: HeaderName = HeaderName::from_static("ai-resource-group");

/// For one request of a token.
const TOKEN_TIME: Duration = Duration::from_secs(20);

/// Between the tries.
const DELAYS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(2)];

/// Seconds a token lives where the service does not say.
const USUAL_LIFETIME: u64 = 3600;

/// A clock can hold it.
const LONGEST: u64 = 86_400;

/// A token is not used in its last minute: a request takes time, and clocks differ.
const MARGIN: Duration = Duration::from_secs(60);
