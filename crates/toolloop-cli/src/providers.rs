//! [`PROVIDERS`]: the providers the command knows, as data. A new one is a new row.

/// A provider that speaks the OpenAI Chat Completions API.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ProviderEntry {
    /// The word before the slash of a model.
    pub(crate) name: &'static str,
    /// How sentences call it.
    pub(crate) label: &'static str,
    /// The variable its key is usually in; `None` where it takes no key.
    pub(crate) key_variable: Option<&'static str>,
    /// The variable its address is usually in.
    pub(crate) address_variable: &'static str,
    /// Its usual address.
    pub(crate) base_url: &'static str,
    /// The model to take when only a key is known.
    pub(crate) default_model: Option<&'static str>,
}

impl ProviderEntry {
    /// Why its tokens cost nothing; `None` where they may cost something.
    pub(crate) fn free_because(&self) -> Option<&'static str> {
        match self.name {
            "demo" => Some("demo"),
            "ollama" => Some("local"),
            _ => None,
        }
    }
}

/// All providers but the demo model, in the order in which they are considered.
pub(crate) static PROVIDERS: [ProviderEntry; 2] = [
    ProviderEntry {
        name: "openai",
        label: "OpenAI",
        key_variable: Some("OPENAI_API_KEY"),
        address_variable: "OPENAI_BASE_URL",
        base_url: "https://api.openai.com/v1",
        default_model: Some("gpt-5-mini"),
    },
    ProviderEntry {
        name: "ollama",
        label: "Ollama",
        key_variable: None,
        address_variable: "OLLAMA_HOST",
        base_url: "http://127.0.0.1:11434/v1",
        default_model: None,
    },
];

/// The scripted model the command brings; its server is started when it is used.
pub(crate) static DEMO: ProviderEntry = ProviderEntry {
    name: "demo",
    label: "the demo model",
    key_variable: None,
    address_variable: "",
    base_url: "",
    default_model: Some("demo"),
};

/// The provider of that name.
pub(crate) fn provider(name: &str) -> Option<&'static ProviderEntry> {
    PROVIDERS.iter().chain([&DEMO]).find(|provider| provider.name == name)
}

/// The variables a key can be in: `A`, `A or B`, `A, B or C`.
pub(crate) fn key_variables() -> String {
    let names: Vec<&str> = PROVIDERS.iter().filter_map(|p| p.key_variable).collect();
    match names.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    }
}
