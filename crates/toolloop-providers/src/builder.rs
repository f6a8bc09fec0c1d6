//! [`ProviderBuilder`]: what is the same of all providers: where their API is, with which key and
//! how patiently it is asked.

use std::num::NonZeroUsize;

use http::header::AUTHORIZATION;
use http::{HeaderName, HeaderValue};
use reqwest::Url;
use secrecy::{ExposeSecret, SecretString};
use toolloop_core::LlmError;

use crate::transport::{Limits, Redactor, Timeouts, Transport, default_client, parse_base_url};

/// Builds a provider; `A` is what only its API has.
#[must_use = "a builder does nothing before `build`"]
pub struct ProviderBuilder<A> {
    pub(crate) model: String,
    pub(crate) base_url: String,
    pub(crate) connection: Connection,
    pub(crate) api: A,
}

/// How a server is asked.
#[derive(Default)]
pub(crate) struct Connection {
    pub(crate) api_key: Option<SecretString>,
    pub(crate) client: Option<reqwest::Client>,
    pub(crate) limits: Limits,
}

/// An API that takes a key as it is.
pub trait TakesKey {}

/// The header that holds a key.
pub(crate) enum KeyHeader {
    Bearer,
    Own(&'static str),
}

impl<A> ProviderBuilder<A> {
    /// Where the API is. The addresses of its endpoints will do, too.
    pub fn base_url(mut self, url: impl Into<String>) -> Self {
        self.base_url = url.into();
        self
    }

    /// A client of yours (reqwest 0.13), for its proxies, certificates or pool. Its own limit of
    /// time for a connection counts then. Let it follow no redirects: reqwest keeps headers such as
    /// `x-api-key` when it goes to another server.
    ///
    /// Without one, the proxies of `HTTPS_PROXY`, `HTTP_PROXY` and `ALL_PROXY` are used, but for what
    /// `NO_PROXY` names and for servers on this machine.
    pub fn http_client(mut self, client: reqwest::Client) -> Self {
        self.connection.client = Some(client);
        self
    }

    /// How long the server may take. Servers that load a model first are given ten minutes to the
    /// first piece of content unless this says otherwise.
    pub fn timeouts(mut self, timeouts: Timeouts) -> Self {
        self.connection.limits.timeouts = timeouts;
        self
    }

    /// Tries after the first, where the server says that it cannot now; 4 unless set. Where no
    /// server answers, there are 2 at most.
    pub fn max_retries(mut self, retries: u32) -> Self {
        self.connection.limits.max_retries = retries;
        self
    }

    /// Most bytes of one event of a stream; 32 MiB unless set. A whole stream may have eight times as
    /// many.
    pub fn max_event_bytes(mut self, bytes: NonZeroUsize) -> Self {
        self.connection.limits.max_event = bytes;
        self
    }

    pub(crate) fn new(model: impl Into<String>, base_url: &str, api: A) -> Self {
        let connection = Connection::default();
        Self { model: model.into(), base_url: base_url.to_owned(), connection, api }
    }
}

impl<A: TakesKey> ProviderBuilder<A> {
    /// The key; a server of your own may need none.
    pub fn api_key(mut self, key: impl Into<SecretString>) -> Self {
        self.connection.api_key = Some(key.into());
        self
    }

    /// Takes the key from the first of `keys` that is set, and the address from another variable.
    /// Where there is neither, the error says `cure`; no key is needed where none is named.
    pub(crate) fn variables(
        mut self,
        keys: &[&str],
        address: &str,
        cure: &str,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, LlmError> {
        let set = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        let (key, address) = (keys.iter().find_map(|name| set(name)), set(address));
        match (keys.first(), key) {
            (_, Some(key)) => self = self.api_key(key),
            (Some(name), None) if address.is_none() => {
                return Err(LlmError::Auth(format!("{name} is not set: {cure}").into()));
            }
            _ => {}
        }
        Ok(match address {
            Some(url) => self.base_url(url),
            None => self,
        })
    }
}

impl Connection {
    /// The transport to an API at this address.
    pub(crate) fn transport(
        self,
        base_url: &str,
        header: KeyHeader,
    ) -> Result<Transport, LlmError> {
        // A key from a file or a variable may end in a line break.
        let trimmed = |key: &SecretString| SecretString::from(key.expose_secret().trim());
        let key = self.api_key.as_ref().map(trimmed).filter(|key| !key.expose_secret().is_empty());
        let base_url = parse_base_url(base_url)?;
        let client = self.client(&base_url)?;
        let mut redactor = Redactor::new(key.as_ref());
        redactor.add_address(&base_url);
        // Takes user and password out of the address, into a header.
        let bare = client.get(base_url).build().map_err(|error| {
            LlmError::InvalidRequest(
                format!("the base URL is not usable: {}", error.without_url()).into(),
            )
        })?;
        let mut headers = bare.headers().clone();
        redactor.add_headers(&headers);
        if let Some(key) = &key {
            let (name, value) = header.with(key.expose_secret());
            let mut value = header_value(&value, "the API key")?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        Ok(Transport {
            base_url: bare.url().clone(),
            client,
            headers,
            redactor,
            limits: self.limits,
        })
    }

    /// The client for a server at this address.
    pub(crate) fn client(&self, server: &Url) -> Result<reqwest::Client, LlmError> {
        match &self.client {
            Some(client) => Ok(client.clone()),
            None => default_client(&self.limits.timeouts, server),
        }
    }
}

impl KeyHeader {
    fn with(self, key: &str) -> (HeaderName, String) {
        match self {
            Self::Bearer => (AUTHORIZATION, format!("Bearer {key}")),
            Self::Own(name) => (HeaderName::from_static(name), key.to_owned()),
        }
    }
}

/// A header of this value, which is not shown: it is, or stands near, a secret.
pub(crate) fn header_value(value: &str, what: &str) -> Result<HeaderValue, LlmError> {
    HeaderValue::try_from(value).map_err(|_| {
        let text = format!("{what} holds characters that no HTTP header can carry (a line break?)");
        LlmError::Auth(text.into())
    })
}

/// The address without the first of these ends that its path has: people paste those of endpoints.
pub(crate) fn without_end(url: &str, ends: &[&str]) -> String {
    let (path, query) = split_query(url.trim());
    let path = path.trim_end_matches('/');
    let path = ends.iter().find_map(|end| path.strip_suffix(end)).unwrap_or(path);
    format!("{path}{query}")
}

/// An address up to what is asked for behind its path, and that.
pub(crate) fn split_query(url: &str) -> (&str, &str) {
    url.split_at(url.find('?').unwrap_or(url.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Any;

    impl TakesKey for Any {}

    fn from(variables: &[(&str, &str)]) -> Result<Transport, LlmError> {
        let builder = ProviderBuilder::new("m", "https://h/v1", Any);
        let builder = builder.variables(&["A_KEY", "B_KEY"], "A_URL", "export it", |name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })?;
        builder.connection.transport(&builder.base_url, KeyHeader::Bearer)
    }

    #[test]
    fn variables_name_key_and_server() {
        let first =
            from(&[("B_KEY", "second-0123456789"), ("A_KEY", "first-0123456789\n")]).unwrap();
        assert_eq!(first.base_url.as_str(), "https://h/v1");
        assert_eq!(first.headers[AUTHORIZATION], "Bearer first-0123456789");
        assert!(first.headers[AUTHORIZATION].is_sensitive());
        let second = from(&[("B_KEY", "second-0123456789"), ("A_KEY", " ")]).unwrap();
        assert_eq!(second.headers[AUTHORIZATION], "Bearer second-0123456789");
        let local = from(&[("A_URL", "http://127.0.0.1:8080/v1")]).unwrap();
        assert_eq!(local.base_url.as_str(), "http://127.0.0.1:8080/v1");
        assert!(local.headers.is_empty());
    }

    #[test]
    fn user_and_password_of_the_address_are_sent_and_not_shown() {
        let address = ("A_URL", "https://me:password@h/v1");
        let alone = from(&[address]).unwrap();
        assert_eq!(alone.base_url.as_str(), "https://h/v1");
        assert_eq!(alone.headers[AUTHORIZATION], "Basic bWU6cGFzc3dvcmQ=");
        assert!(alone.headers[AUTHORIZATION].is_sensitive());
        let with_key = from(&[address, ("A_KEY", "first-0123456789")]).unwrap();
        assert_eq!(with_key.headers[AUTHORIZATION], "Bearer first-0123456789");
    }

    #[test]
    fn a_missing_key_is_named() {
        for variables in [&[][..], &[("A_KEY", " ")]] {
            let Err(error) = from(variables) else { panic!("no key was needed") };
            assert!(matches!(error, LlmError::Auth(_)), "{error}");
            assert!(error.to_string().ends_with("A_KEY is not set: export it"), "{error}");
        }
    }

    #[test]
    fn a_key_that_no_header_can_carry_is_not_shown() {
        let Err(error) = from(&[("A_KEY", "first-\n0123456789")]) else { panic!("it was taken") };
        let text = "authentication failed: the API key holds characters that no HTTP header can \
                    carry (a line break?)";
        assert_eq!(error.to_string(), text);
    }

    #[test]
    fn the_address_of_an_endpoint_is_as_good() {
        for end in ["", "/", "/messages", "/chat/", " "] {
            assert_eq!(
                without_end(&format!("http://h/v1{end}"), &["/messages", "/chat"]),
                "http://h/v1"
            );
        }
        // As Azure shows it.
        let pasted = "http://h/v1/chat?api-version=2024-10-21";
        assert_eq!(without_end(pasted, &["/chat"]), "http://h/v1?api-version=2024-10-21");
    }
}
