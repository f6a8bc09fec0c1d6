//! [`Redactor`]: takes keys out of text that providers send.

use std::fmt;
use std::sync::Arc;

use http::HeaderMap;
use reqwest::Url;
use secrecy::{ExposeSecret, SecretString};

/// Knows the secrets of a request. What they leave of themselves is `…` and four characters.
#[derive(Clone, Default)]
pub(crate) struct Redactor(Arc<[SecretString]>);

impl Redactor {
    pub(crate) fn new(key: Option<&SecretString>) -> Self {
        let mut redactor = Self::default();
        redactor.add(key.map(|key| key.expose_secret().to_owned()));
        redactor
    }

    /// Adds what a caller's own headers keep secret.
    pub(crate) fn add_headers(&mut self, headers: &HeaderMap) {
        let secrets =
            headers.iter().filter(|(name, value)| value.is_sensitive() || is_secret(name.as_str()));
        self.add(secrets.filter_map(|(_, value)| {
            let value = value.to_str().ok()?;
            // Behind the name of a scheme, such as `Bearer`.
            Some(value.rsplit(' ').next().unwrap_or(value).to_owned())
        }));
    }

    /// Adds what an address keeps secret: a password, a key behind the path.
    pub(crate) fn add_address(&mut self, url: &Url) {
        let keys = url.query_pairs().filter(|(name, _)| is_secret(&name.to_ascii_lowercase()));
        let keys = keys.map(|(_, value)| value.into_owned());
        self.add(url.password().map(str::to_owned).into_iter().chain(keys));
    }

    /// The text without the secrets.
    pub(super) fn redact(&self, mut text: String) -> String {
        for secret in self.0.iter().map(ExposeSecret::expose_secret) {
            if text.contains(secret) {
                text = text.replace(secret, &trace_of(secret));
            }
        }
        text
    }

    fn add(&mut self, secrets: impl IntoIterator<Item = String>) {
        let new = secrets.into_iter().map(|secret| secret.trim().to_owned());
        // Shorter ones are placeholders for servers that want none; they are words of any text.
        let new = new.filter(|secret| secret.len() >= SHORTEST);
        let new = new.flat_map(|secret| [form_encoded(&secret), Some(secret)]);
        let new = new.flatten().map(SecretString::from);
        self.0 = self.0.iter().cloned().chain(new).collect();
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Redactor(..)")
    }
}

/// Whether what goes by this name is nobody else's business.
fn is_secret(name: &str) -> bool {
    ["auth", "key", "token", "cookie", "secret"].iter().any(|word| name.contains(word))
}

/// The secret as it stands in a form or an address, where that is another text.
fn form_encoded(secret: &str) -> Option<String> {
    let url = Url::parse_with_params("form:", [("", secret)]).ok()?;
    let encoded = url.query()?.strip_prefix('=')?;
    (encoded != secret).then(|| encoded.to_owned())
}

/// Enough to tell which key it was; nothing of a key that is mostly those four characters.
fn trace_of(secret: &str) -> String {
    let count = secret.chars().count();
    match count >= 3 * SHOWN {
        true => format!("…{}", secret.chars().skip(count - SHOWN).collect::<String>()),
        false => "…".to_owned(),
    }
}

const SHORTEST: usize = 6;
const SHOWN: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn redactor(key: &str) -> Redactor {
        Redactor::new(Some(&key.to_owned().into()))
    }

    #[test]
    fn a_key_leaves_its_last_four_characters() {
        let redacted = redactor("sk-proj-0123456789").redact("Bad key: sk-proj-0123456789.".into());
        assert_eq!(redacted, "Bad key: …6789.");
        assert_eq!(redactor("sk-test").redact("key sk-test".into()), "key …");
        assert_eq!(redactor("none").redact("none of it".into()), "none of it");
    }

    #[test]
    fn a_key_is_known_in_an_address_too() {
        let mut redactor = redactor("ab$cd=ef/0123456789");
        let echo = "grant_type=x&client_secret=ab%24cd%3Def%2F0123456789";
        assert_eq!(redactor.redact(echo.into()), "grant_type=x&client_secret=…6789");
        redactor
            .add_address(&Url::parse("https://me:password-0123@h/v1?key=query-0123456").unwrap());
        let echo = "password-0123 query-0123456";
        assert_eq!(redactor.redact(echo.into()), "…0123 …3456");
    }

    #[test]
    fn secret_headers_of_the_caller_are_known_too() {
        let mut headers = HeaderMap::new();
        headers.insert("api-key", HeaderValue::from_static("azure-0123456789"));
        headers.insert("authorization", HeaderValue::from_static("Bearer token-0123456789"));
        headers.insert("x-trace", HeaderValue::from_static("trace-1234"));
        let mut redactor = Redactor::default();
        redactor.add_headers(&headers);
        let text = "azure-0123456789 token-0123456789 trace-1234";
        assert_eq!(redactor.redact(text.into()), "…6789 …6789 trace-1234");
    }
}
