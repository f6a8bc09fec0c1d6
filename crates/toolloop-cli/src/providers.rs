//! [`PROVIDERS`]: the providers the command knows, as data. A new one is a new row, here or in the
//! table of servers that speak the Chat Completions API.

use std::sync::LazyLock;

use toolloop_providers::{SERVERS, Server};

/// A provider.
#[derive(Debug)]
pub(crate) struct ProviderEntry {
    /// The word before the slash of a model.
    pub(crate) name: &'static str,
    /// How sentences call it.
    pub(crate) label: &'static str,
    /// The variables its key can be in, the usual one first.
    pub(crate) key_variables: &'static [&'static str],
    /// The variable its address is usually in.
    pub(crate) address_variable: &'static str,
    /// Its usual address.
    pub(crate) base_url: &'static str,
    /// The model to take when only a key is known.
    pub(crate) default_model: Option<&'static str>,
    pub(crate) api: Api,
}

/// How a provider is spoken to.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Api {
    /// Chat Completions.
    Chat,
    Responses,
    Anthropic,
    Gemini,
    Ollama,
    AiCore,
    /// Chat Completions, with the peculiarities of this server.
    Server(&'static Server),
    /// Chat Completions of the scripted model.
    Demo,
}

impl ProviderEntry {
    /// The variable its key is usually in.
    pub(crate) fn key_variable(&self) -> Option<&'static str> {
        self.key_variables.first().copied()
    }

    /// Whether it is a server of one's own, which needs no key.
    pub(crate) fn is_local(&self) -> bool {
        match self.api {
            Api::Ollama => true,
            Api::Server(server) => server.is_local(),
            _ => false,
        }
    }

    pub(crate) fn is_demo(&self) -> bool {
        matches!(self.api, Api::Demo)
    }

    /// Whether addresses of its API usually end in `/v1`.
    pub(crate) fn ends_in_v1(&self) -> bool {
        matches!(self.api, Api::Chat | Api::Responses | Api::Server(_))
    }
}

impl From<&'static Server> for ProviderEntry {
    fn from(server: &'static Server) -> Self {
        Self {
            name: server.name,
            label: server.label,
            key_variables: server.key_variable.as_slice(),
            address_variable: server.address_variable,
            base_url: server.base_url,
            default_model: server.default_model,
            api: Api::Server(server),
        }
    }
}

/// All providers but the demo model, in the order in which they are considered.
pub(crate) static PROVIDERS: LazyLock<Vec<ProviderEntry>> = LazyLock::new(|| {
    let own = [
        ProviderEntry {
            name: "openai",
            label: "OpenAI",
            key_variables: &["OPENAI_API_KEY"],
            address_variable: "OPENAI_BASE_URL",
            base_url: "https://api.openai.com/v1",
            default_model: Some("gpt-5-mini"),
            api: Api::Chat,
        },
        ProviderEntry {
            name: "anthropic",
            label: "Anthropic",
            key_variables: &["ANTHROPIC_API_KEY"],
            address_variable: "ANTHROPIC_BASE_URL",
            base_url: "https://api.anthropic.com",
            default_model: Some("claude-sonnet-5"),
            api: Api::Anthropic,
        },
        ProviderEntry {
            name: "gemini",
            label: "Gemini",
            key_variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
            address_variable: "GEMINI_BASE_URL",
            base_url: "https://generativelanguage.googleapis.com/v1beta",
            default_model: Some("gemini-2.5-flash"),
            api: Api::Gemini,
        },
        ProviderEntry {
            name: "responses",
            label: "OpenAI",
            key_variables: &["OPENAI_API_KEY"],
            address_variable: "OPENAI_BASE_URL",
            base_url: "https://api.openai.com/v1",
            default_model: None,
            api: Api::Responses,
        },
        ProviderEntry {
            name: "aicore",
            label: "SAP AI Core",
            key_variables: &["AICORE_CLIENT_SECRET"],
            address_variable: "AICORE_BASE_URL",
            base_url: "",
            default_model: None,
            api: Api::AiCore,
        },
        ProviderEntry {
            name: "ollama",
            label: "Ollama",
            key_variables: &["OLLAMA_API_KEY"],
            address_variable: "OLLAMA_HOST",
            base_url: "http://127.0.0.1:11434",
            default_model: None,
            api: Api::Ollama,
        },
    ];
    own.into_iter().chain(SERVERS.iter().map(ProviderEntry::from)).collect()
});

/// The scripted model the command brings; its server is started when it is used.
pub(crate) static DEMO: ProviderEntry = ProviderEntry {
    name: "demo",
    label: "the demo model",
    key_variables: &[],
    address_variable: "",
    base_url: "",
    default_model: Some("demo"),
    api: Api::Demo,
};

/// OpenAI, whose API other servers speak, too.
pub(crate) fn openai() -> &'static ProviderEntry {
    &PROVIDERS[0]
}

/// The provider of that name.
pub(crate) fn provider(name: &str) -> Option<&'static ProviderEntry> {
    PROVIDERS.iter().chain([&DEMO]).find(|provider| provider.name == name)
}

/// The variables of the keys that most people have, as a sentence names them.
pub(crate) const KEY_VARIABLES: &str = "OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_that_are_named_are_the_first_that_count() {
        let first = PROVIDERS.iter().filter(|p| p.default_model.is_some()).take(3);
        let variables: Vec<_> = first.filter_map(ProviderEntry::key_variable).collect();
        assert_eq!(variables.join(", ").replace(", GEMINI", " or GEMINI"), KEY_VARIABLES);
    }

    #[test]
    fn every_name_is_there_once() {
        for (at, one) in PROVIDERS.iter().enumerate() {
            assert!(PROVIDERS[..at].iter().all(|other| other.name != one.name), "{}", one.name);
        }
    }
}
