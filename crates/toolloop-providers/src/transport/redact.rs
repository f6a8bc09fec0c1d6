//! [`Redactor`]: takes keys out of text that providers send.

use std::fmt;
use std::sync::Arc;

use http::HeaderMap;
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
    pub(super) fn add_headers(&mut self, headers: &HeaderMap) {
        let secrets = headers.iter().filter(|(name, value)| {
            let name = name.as_str();
            value.is_sensitive()
                || ["auth", "key", "token", "cookie", "secret"].iter().any(|s| name.contains(s))
        });
        self.add(secrets.filter_map(|(_, value)| {
            let value = value.to_str().ok()?;
            Some(value.strip_prefix("Bearer ").unwrap_or(value).to_owned())
        }));
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
        let new = new.filter(|secret| secret.len() >= SHORTEST).map(SecretString::from);
        self.0 = self.0.iter().cloned().chain(new).collect();
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Redactor(..)")
    }
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
