//! [`Target`]: which model a run asks, where it is and with which key; [`choose`] finds it.
//!
//! The first that applies: `--model` or a setting, a key in the environment, a local server,
//! the demo model. The last two need a look at the network and are [`Choice::Local`] here.

use std::net::IpAddr;

use secrecy::SecretString;
use toolloop_providers::OllamaProvider;

use crate::exit::Exit;
use crate::nearest::nearest;
use crate::origin::{Origin, Owner, Sourced};
use crate::providers::{Api, DEMO, PROVIDERS, ProviderEntry, openai, provider};
use crate::report::Report;
use crate::settings::{Environment, Settings};

/// A model, where it is served, and the key for it.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) provider: &'static ProviderEntry,
    /// As the provider names it.
    pub(crate) model: String,
    pub(crate) base_url: Sourced<String>,
    pub(crate) key: Option<Sourced<SecretString>>,
}

impl Target {
    /// The demo model, served at this address.
    pub(crate) fn demo(base_url: String) -> Self {
        Self {
            provider: &DEMO,
            model: "demo".to_owned(),
            base_url: Sourced::new(base_url, Origin::Default),
            key: None,
        }
    }

    /// How sentences call who serves the model.
    pub(crate) fn label(&self) -> String {
        // A server of one's own may be anywhere.
        match self.is_custom() && !self.provider.is_local() {
            true => host(&self.base_url.value).to_owned(),
            false => self.provider.label.to_owned(),
        }
    }

    /// The model as it is chosen with `--model`.
    pub(crate) fn name(&self) -> String {
        match self.provider.name {
            "demo" => "demo".to_owned(),
            provider => format!("{provider}/{}", self.model),
        }
    }

    /// Why its tokens cost nothing; `None` where they may cost something.
    pub(crate) fn free_because(&self) -> Option<&'static str> {
        if self.provider.is_demo() {
            return Some("demo");
        }
        // Ollama has a cloud, too; that one wants a key.
        (self.provider.is_local() && self.key.is_none()).then_some("local")
    }

    /// Whether it is served elsewhere than usual.
    pub(crate) fn is_custom(&self) -> bool {
        !matches!(self.provider.api, Api::Demo | Api::AiCore)
            && self.base_url.origin != Origin::Default
    }
}

/// What the settings say of the model.
#[derive(Debug)]
pub(crate) enum Choice {
    /// This one.
    Target(Target),
    /// The demo model, by name.
    Demo,
    /// Nothing: take a local one, else the demo model.
    Local,
}

/// Finds the model in settings and environment, without looking at the network.
pub(crate) fn choose(settings: &Settings, environment: &Environment<'_>) -> Result<Choice, Report> {
    if let Some(model) = &settings.model {
        return named(model, settings, environment);
    }
    // The key of another provider has no business at an address that was given.
    let candidates = if settings.base_url.is_some() { &PROVIDERS[..1] } else { &PROVIDERS[..] };
    for provider in candidates {
        let Some(default) = provider.default_model else { continue };
        if key_of(provider, settings, environment).is_some() {
            return target(provider, default, settings, environment).map(Choice::Target);
        }
    }
    match &settings.base_url {
        Some(url) => Err(Report::new(
            Exit::NoModel,
            "model",
            format!("no model is chosen for {}", url.value),
        )
        .advice(format!("The address came from {}.", url.origin))
        .advice(match &url.origin {
            Origin::Flag(flag) => format!(
                "Add --model NAME; the server's models: toolloop models {flag} {}",
                url.value
            ),
            _ => "Add --model NAME; the server's models: toolloop models".to_owned(),
        })),
        None => Ok(Choice::Local),
    }
}

/// The target of a provider's model.
pub(crate) fn target(
    provider: &'static ProviderEntry,
    model: &str,
    settings: &Settings,
    environment: &Environment<'_>,
) -> Result<Target, Report> {
    let base_url = base_url_of(provider, settings, environment);
    let key = key_of(provider, settings, environment);
    let Some(key) = key else {
        let is_needed = !provider.is_local() && base_url.origin == Origin::Default;
        let Some(variable) = provider.key_variable().filter(|_| is_needed) else {
            return Ok(Target { provider, model: model.to_owned(), base_url, key: None });
        };
        return Err(no_key(provider, variable));
    };
    check_leak(&base_url, &key)?;
    Ok(Target { provider, model: model.to_owned(), base_url, key: Some(key) })
}

fn named(
    choice: &Sourced<String>,
    settings: &Settings,
    environment: &Environment<'_>,
) -> Result<Choice, Report> {
    let text = choice.value.as_str();
    // Beside an address on the command line, `demo` is a model of that server.
    let of_server = settings
        .base_url
        .as_ref()
        .is_some_and(|url| matches!(url.origin, Origin::Flag(_) | Origin::Variable(_)));
    if (text == "demo" && !of_server) || text == "demo/demo" {
        return Ok(Choice::Demo);
    }
    let known = text.split_once('/').and_then(|(name, model)| Some((provider(name)?, model)));
    match known {
        Some((_, "")) => Err(wrong_model(choice, "names no model behind the slash")),
        Some((provider, _)) if provider.is_demo() => {
            Err(wrong_model(choice, "is not there: the demo model is just `demo`"))
        }
        Some((provider, model)) => {
            target(provider, model, settings, environment).map(Choice::Target)
        }
        // A bare name, or one with a slash of its own, of whatever the given server has.
        None if settings.base_url.is_some() => {
            target(openai(), text, settings, environment).map(Choice::Target)
        }
        None => Err(match text.split_once('/') {
            Some((name, _)) => {
                let names = PROVIDERS.iter().chain([&DEMO]).map(|provider| provider.name);
                let report = wrong_model(choice, "is of a provider that is not known");
                match nearest(name, names, 1).first() {
                    Some(nearest) => report.advice(format!("Did you mean {nearest}/…?")),
                    None => report,
                }
            }
            None => wrong_model(choice, "does not say whose it is")
                .advice(format!("Write it as PROVIDER/NAME, for example {}/{text};", maker(text)))
                .advice("or say where it is served: --base-url URL"),
        }
        .advice("What there is: toolloop models")),
    }
}

/// Whose a model probably is, by its name.
fn maker(model: &str) -> &'static str {
    let model = model.to_ascii_lowercase();
    let made_by = |(beginning, _): &&(&str, &str)| model.starts_with(beginning);
    MAKERS.iter().find(made_by).map_or("openai", |(_, provider)| provider)
}

fn wrong_model(choice: &Sourced<String>, what: &str) -> Report {
    Report::usage(format!("the model \"{}\" {what}", choice.value))
        .advice(format!("It came from {}.", choice.origin))
}

fn no_key(provider: &ProviderEntry, variable: &str) -> Report {
    let report = Report::new(Exit::NoModel, "auth", format!("no key for {}", provider.label));
    if let Api::AiCore = provider.api {
        return report
            .advice(
                "It takes the service key from AICORE_CLIENT_ID, AICORE_CLIENT_SECRET, \
             AICORE_AUTH_URL and AICORE_BASE_URL,",
            )
            .advice("and the deployment of the model from AICORE_DEPLOYMENT_ID.");
    }
    report
        .advice(format!("Set one: export {variable}=…"))
        .advice(format!(
            "or in ~/.config/toolloop/config.toml: [{}] api_key = \"…\"",
            provider.name
        ))
        .advice("Without a key: toolloop run --model demo, or start Ollama.")
}

/// Flag and `TOOLLOOP_BASE_URL` first, then what is said for this provider alone.
fn base_url_of(
    provider: &ProviderEntry,
    settings: &Settings,
    environment: &Environment<'_>,
) -> Sourced<String> {
    let table = settings.providers.get(provider.name);
    settings
        .base_url
        .clone()
        .or_else(|| {
            let origin = Origin::Variable(provider.address_variable.to_owned());
            let address = environment.get(provider.address_variable)?;
            Some(Sourced::new(address, origin))
        })
        .or_else(|| table?.base_url.clone())
        .map(|url| url.map(|url| full_url(provider, &url)))
        .unwrap_or_else(|| Sourced::new(provider.base_url.to_owned(), Origin::Default))
}

/// `OLLAMA_HOST` may be `host:port`.
fn full_url(provider: &ProviderEntry, url: &str) -> String {
    match provider.api {
        Api::Ollama => OllamaProvider::address(url),
        _ => url.trim_end_matches('/').to_owned(),
    }
}

fn key_of(
    provider: &ProviderEntry,
    settings: &Settings,
    environment: &Environment<'_>,
) -> Option<Sourced<SecretString>> {
    let from_environment = provider.key_variables.iter().find_map(|&variable| {
        let key = environment.get(variable)?;
        Some(Sourced::new(key.into(), Origin::Variable(variable.to_owned())))
    });
    from_environment.or_else(|| settings.providers.get(provider.name)?.api_key.clone())
}

/// A folder's file may come from strangers: it must not send one's key to an address of theirs.
fn check_leak(base_url: &Sourced<String>, key: &Sourced<SecretString>) -> Result<(), Report> {
    let from_folder = matches!(base_url.origin, Origin::File { owner: Owner::Folder, .. });
    if !from_folder || is_loopback(&base_url.value) {
        return Ok(());
    }
    Err(Report::new(
        Exit::Usage,
        "settings",
        format!("this folder would send your key to {}", base_url.value),
    )
    .advice(format!("The address came from {}, the key from {}.", base_url.origin, key.origin))
    .advice("If you trust it, say so yourself: --base-url URL, or in your own config.toml."))
}

/// Whether an address is on this machine.
pub(crate) fn is_loopback(url: &str) -> bool {
    let host = host(url);
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or(rest),
        None => host.split(':').next().unwrap_or(host),
    };
    name == "localhost" || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// Host and port of a URL; what stands before an `@` is no host.
pub(crate) fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or(rest);
    authority.rsplit('@').next().unwrap_or(authority)
}

/// How the names of models begin.
const MAKERS: [(&str, &str); 11] = [
    ("claude", "anthropic"),
    ("gemini", "gemini"),
    ("deepseek", "deepseek"),
    ("mistral", "mistral"),
    ("ministral", "mistral"),
    ("codestral", "mistral"),
    ("devstral", "mistral"),
    ("grok", "xai"),
    ("llama", "ollama"),
    ("qwen", "ollama"),
    ("gemma", "ollama"),
];

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;

    fn env(pairs: &'static [(&str, &str)]) -> impl Fn(&str) -> Option<String> {
        move |name| pairs.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned())
    }

    fn settings(model: Option<&str>, base_url: Option<&str>) -> Settings {
        let sourced = |text: &str, flag| Sourced::new(text.to_owned(), Origin::Flag(flag));
        Settings {
            model: model.map(|text| sourced(text, "--model")),
            base_url: base_url.map(|text| sourced(text, "--base-url")),
            ..Settings::default()
        }
    }

    /// Name, address and key of the target, or what was chosen or said instead.
    fn chosen(settings: &Settings, pairs: &'static [(&str, &str)]) -> String {
        match choose(settings, &Environment(&env(pairs))) {
            Ok(Choice::Target(target)) => {
                let key = target.key.map(|key| key.value.expose_secret().to_owned());
                format!(
                    "{}/{} at {} with {}",
                    target.provider.name,
                    target.model,
                    target.base_url.value,
                    key.as_deref().unwrap_or("no key")
                )
            }
            Ok(other) => format!("{other:?}"),
            Err(report) => report.to_string(),
        }
    }

    const KEY: &[(&str, &str)] = &[("OPENAI_API_KEY", "sk-1")];

    #[test]
    fn the_first_that_applies_is_taken() {
        assert_eq!(
            chosen(&settings(Some("openai/gpt-5"), None), KEY),
            "openai/gpt-5 at https://api.openai.com/v1 with sk-1"
        );
        assert_eq!(
            chosen(&settings(None, None), KEY),
            "openai/gpt-5-mini at https://api.openai.com/v1 with sk-1"
        );
        assert_eq!(chosen(&settings(None, None), &[]), "Local");
        assert_eq!(
            chosen(&settings(None, None), &[("GOOGLE_API_KEY", "g"), ("GROQ_API_KEY", "q")]),
            "gemini/gemini-2.5-flash at https://generativelanguage.googleapis.com/v1beta with g"
        );
        assert_eq!(
            chosen(&settings(None, None), &[("GROQ_API_KEY", "q")]),
            "groq/openai/gpt-oss-120b at https://api.groq.com/openai/v1 with q"
        );
        assert_eq!(chosen(&settings(Some("demo"), None), KEY), "Demo");
        assert_eq!(
            chosen(&settings(Some("ollama/qwen3"), None), &[("OLLAMA_HOST", "0.0.0.0:9")]),
            "ollama/qwen3 at http://127.0.0.1:9 with no key"
        );
    }

    #[test]
    fn an_address_makes_a_bare_name_enough_and_the_key_optional() {
        assert_eq!(
            chosen(&settings(Some("qwen/qwen3"), Some("http://h:1/v1/")), &[]),
            "openai/qwen/qwen3 at http://h:1/v1 with no key"
        );
        assert_eq!(
            chosen(&settings(Some("demo"), Some("http://h:1/v1")), &[]),
            "openai/demo at http://h:1/v1 with no key"
        );
        assert_eq!(
            chosen(&settings(None, Some("http://h:1/v1")), &[]),
            "no model is chosen for http://h:1/v1\n  The address came from --base-url.\n  \
             Add --model NAME; the server's models: toolloop models --base-url http://h:1/v1"
        );
    }

    #[test]
    fn no_key_goes_to_an_address_that_was_given_for_another_provider() {
        let chosen = chosen(&settings(None, Some("http://h:1")), &[("ANTHROPIC_API_KEY", "a")]);
        assert!(chosen.starts_with("no model is chosen for http://h:1"), "{chosen}");
    }

    #[test]
    fn a_model_that_cannot_be_says_what_to_write() {
        assert_eq!(
            chosen(&settings(Some("gpt-5"), None), &[]),
            "the model \"gpt-5\" does not say whose it is\n  It came from --model.\n  \
             Write it as PROVIDER/NAME, for example openai/gpt-5;\n  \
             or say where it is served: --base-url URL\n  What there is: toolloop models"
        );
        let claude = chosen(&settings(Some("claude-sonnet-5"), None), &[]);
        assert!(claude.contains("for example anthropic/claude-sonnet-5;"), "{claude}");
        assert_eq!(
            chosen(&settings(Some("opnai/gpt-5"), None), &[]),
            "the model \"opnai/gpt-5\" is of a provider that is not known\n  \
             It came from --model.\n  Did you mean openai/…?\n  What there is: toolloop models"
        );
        assert_eq!(
            chosen(&settings(Some("openai/gpt-5"), None), &[]),
            "no key for OpenAI\n  Set one: export OPENAI_API_KEY=…\n  \
             or in ~/.config/toolloop/config.toml: [openai] api_key = \"…\"\n  \
             Without a key: toolloop run --model demo, or start Ollama."
        );
    }

    #[test]
    fn a_folder_cannot_make_the_key_go_to_a_stranger() {
        let folder = Origin::File { path: "toolloop.toml".into(), line: 2, owner: Owner::Folder };
        let with = |url: &str| Settings {
            base_url: Some(Sourced::new(url.to_owned(), folder.clone())),
            ..settings(Some("openai/gpt-5"), None)
        };
        assert_eq!(
            chosen(&with("https://127.0.0.1@evil.example/v1"), KEY),
            "this folder would send your key to https://127.0.0.1@evil.example/v1\n  \
             The address came from toolloop.toml, line 2, the key from OPENAI_API_KEY in the \
             environment.\n  \
             If you trust it, say so yourself: --base-url URL, or in your own config.toml."
        );
        assert_eq!(
            chosen(&with("http://localhost:8080/v1"), KEY),
            "openai/gpt-5 at http://localhost:8080/v1 with sk-1"
        );
    }

    #[test]
    fn loopback_is_judged_by_the_host_alone() {
        for url in ["http://127.0.0.1:1/v1", "http://[::1]:2", "localhost:3", "http://127.8.8.8"] {
            assert!(is_loopback(url), "{url}");
        }
        for url in ["http://localhost.evil.example", "http://a@10.0.0.1", "https://h/127.0.0.1"] {
            assert!(!is_loopback(url), "{url}");
        }
    }
}
