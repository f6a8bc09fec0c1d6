//! [`SERVERS`]: the servers that speak the Chat Completions API and are known by name, as data. A
//! new one is a new row.

use std::time::Duration;

use toolloop_core::LlmError;

use crate::codec::openai_chat::{API, CallIds, Quirks};
use crate::openai::{OpenAiProvider, OpenAiProviderBuilder};
use crate::transport::Timeouts;

/// A server that speaks the Chat Completions API.
///
/// ```no_run
/// let groq = toolloop_providers::server("groq").expect("a name of the table");
/// let model = groq.provider("openai/gpt-oss-120b")?;
/// # Ok::<(), toolloop_core::LlmError>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct Server {
    /// The word before the slash of a model, as in `groq/openai/gpt-oss-120b`.
    pub name: &'static str,
    /// How sentences call it.
    pub label: &'static str,
    /// Where its API is.
    pub base_url: &'static str,
    /// The variable that holds another address.
    pub address_variable: &'static str,
    /// The variable that holds the key; `None` where none is needed.
    pub key_variable: Option<&'static str>,
    /// A model to begin with, where only a key is known.
    pub default_model: Option<&'static str>,
    quirks: fn() -> Quirks,
}

impl Server {
    /// Whether it runs on one's own machine.
    pub fn is_local(&self) -> bool {
        self.key_variable.is_none()
    }

    /// One of its models, still without a key.
    pub fn builder(&self, model: impl Into<String>) -> OpenAiProviderBuilder {
        // Wherever it is reached: what it has given for safe-keeping is its own.
        let origin = format!("{API}@{}", self.host()).into();
        let builder = OpenAiProvider::builder(model)
            .name(self.name)
            .base_url(self.base_url)
            .quirks(Quirks { origin, ..(self.quirks)() });
        match self.is_local() {
            true => builder.timeouts(LOADS_FIRST),
            false => builder,
        }
    }

    /// One of its models, with key and address from the variables of the server.
    ///
    /// # Errors
    /// When the key is missing, or either is not usable.
    pub fn provider(&self, model: impl Into<String>) -> Result<OpenAiProvider, LlmError> {
        self.provider_with(model, |name| std::env::var(name).ok())
    }

    /// Its host, with the port where that is not the usual one.
    fn host(&self) -> &'static str {
        let address = self.base_url.split("://").nth(1).unwrap_or(self.base_url);
        address.split('/').next().unwrap_or(address)
    }

    fn provider_with(
        &self,
        model: impl Into<String>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<OpenAiProvider, LlmError> {
        let keys: Vec<&str> = self.key_variable.into_iter().collect();
        let cure = format!("export it with your key of {}", self.label);
        self.builder(model).variables(&keys, self.address_variable, &cure, variable)?.build()
    }
}

/// The server of that name.
pub fn server(name: &str) -> Option<&'static Server> {
    SERVERS.iter().find(|server| server.name == name)
}

/// The servers that are known by name: those one needs a key for, then those of one's own machine.
pub static SERVERS: [Server; 9] = [
    Server {
        name: "deepseek",
        label: "DeepSeek",
        base_url: "https://api.deepseek.com/v1",
        address_variable: "DEEPSEEK_BASE_URL",
        key_variable: Some("DEEPSEEK_API_KEY"),
        default_model: Some("deepseek-flash"),
        // After a call it wants to know what it thought before.
        quirks: || Quirks { reasoning_back: true, ..strict() },
    },
    Server {
        name: "mistral",
        label: "Mistral",
        base_url: "https://api.mistral.ai/v1",
        address_variable: "MISTRAL_BASE_URL",
        key_variable: Some("MISTRAL_API_KEY"),
        default_model: Some("mistral-large-latest"),
        quirks: || Quirks {
            // It reports usage unasked.
            stream_usage: false,
            required_word: "any",
            call_ids: CallIds::Nine,
            ..strict()
        },
    },
    Server {
        name: "groq",
        label: "Groq",
        base_url: "https://api.groq.com/openai/v1",
        address_variable: "GROQ_BASE_URL",
        key_variable: Some("GROQ_API_KEY"),
        default_model: Some("openai/gpt-oss-120b"),
        quirks: strict,
    },
    Server {
        name: "openrouter",
        label: "OpenRouter",
        base_url: "https://openrouter.ai/api/v1",
        address_variable: "OPENROUTER_BASE_URL",
        key_variable: Some("OPENROUTER_API_KEY"),
        default_model: Some("openrouter/auto"),
        quirks: || Quirks { members_back: &["reasoning_details"], ..Quirks::compatible() },
    },
    Server {
        name: "xai",
        label: "xAI",
        base_url: "https://api.x.ai/v1",
        address_variable: "XAI_BASE_URL",
        key_variable: Some("XAI_API_KEY"),
        default_model: Some("grok-4.3"),
        quirks: strict,
    },
    Server {
        name: "together",
        label: "Together",
        base_url: "https://api.together.xyz/v1",
        address_variable: "TOGETHER_BASE_URL",
        key_variable: Some("TOGETHER_API_KEY"),
        default_model: Some("openai/gpt-oss-120b"),
        quirks: strict,
    },
    Server {
        name: "lmstudio",
        label: "LM Studio",
        base_url: "http://127.0.0.1:1234/v1",
        address_variable: "LMSTUDIO_BASE_URL",
        key_variable: None,
        default_model: None,
        quirks: strict,
    },
    Server {
        name: "llamacpp",
        label: "llama.cpp",
        base_url: "http://127.0.0.1:8080/v1",
        address_variable: "LLAMACPP_BASE_URL",
        key_variable: None,
        default_model: None,
        quirks: strict,
    },
    Server {
        name: "vllm",
        label: "vLLM",
        base_url: "http://127.0.0.1:8000/v1",
        address_variable: "VLLM_BASE_URL",
        key_variable: None,
        default_model: None,
        quirks: strict,
    },
];

/// A server that gives nothing for safe-keeping; some refuse members that they do not know.
fn strict() -> Quirks {
    Quirks { members_back: &[], ..Quirks::compatible() }
}

/// What is known of the server at a host.
pub(crate) fn quirks_at(host: &str) -> Option<Quirks> {
    let is_there = |server: &&Server| !server.is_local() && server.host() == host;
    SERVERS.iter().find(is_there).map(|server| (server.quirks)())
}

/// A server of one's own may load the model before its first word, and reads a long prompt slowly
/// on a small machine.
pub(crate) const LOADS_FIRST: Timeouts = Timeouts {
    connect: Duration::from_secs(10),
    first_content: Duration::from_secs(600),
    stall: Duration::from_secs(120),
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_server_makes_a_provider() {
        for server in &SERVERS {
            let key = |name: &str| (Some(name) == server.key_variable).then(|| "key-0".to_owned());
            let provider = server.provider_with("m", key).unwrap();
            let origin = server.base_url.split_inclusive('/').take(3).collect::<String>();
            let shown = format!(
                "OpenAiProvider {{ name: {:?}, model: \"m\", server: {:?}, .. }}",
                server.name,
                origin.trim_end_matches('/')
            );
            assert_eq!(format!("{provider:?}"), shown);
            assert_eq!(server.provider_with("m", |_| None).is_ok(), server.is_local());
        }
    }

    #[test]
    fn a_server_is_known_by_its_host() {
        assert_eq!(quirks_at("api.mistral.ai").map(|quirks| quirks.required_word), Some("any"));
        assert_eq!(quirks_at("127.0.0.1"), None);
    }

    #[test]
    fn a_missing_key_is_named() {
        let error = server("groq").unwrap().provider_with("m", |_| None).unwrap_err();
        let sentence =
            "authentication failed: GROQ_API_KEY is not set: export it with your key of Groq";
        assert_eq!(error.to_string(), sentence);
    }
}
