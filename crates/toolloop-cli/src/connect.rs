//! [`Connection`]: a [`Target`] as a provider that can be asked. [`choose_and_serve`]: the target
//! of a run, with the server of the demo model where it is that one.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use secrecy::ExposeSecret;
use tokio::net::TcpStream;
use toolloop_core::{Dialect, DynProvider, LlmError, ToolLimit};
use toolloop_fake::{FakeServer, Script};
use toolloop_providers::{
    AiCoreProvider, AnthropicProvider, DialectProvider, GeminiProvider, OllamaProvider,
    OpenAiProvider, ResponsesProvider,
};

use crate::exit::Exit;
use crate::model::{Choice, Target, choose, host, target};
use crate::origin::Origin;
use crate::providers::{Api, PROVIDERS, ProviderEntry};
use crate::report::Report;
use crate::settings::{Environment, Settings};

/// A provider that can be asked.
#[derive(Clone)]
pub(crate) enum Connection {
    Chat(OpenAiProvider),
    Responses(ResponsesProvider),
    Anthropic(AnthropicProvider),
    Gemini(GeminiProvider),
    Ollama(OllamaProvider),
    AiCore(AiCoreProvider),
}

impl Connection {
    /// To a target.
    pub(crate) fn to(target: &Target) -> Result<Self, Report> {
        Self::build(target).map_err(|error| {
            let origin = match (&error, &target.key) {
                // Its sentence names the variable.
                _ if matches!(target.provider.api, Api::AiCore) => None,
                (LlmError::Auth(_), Some(key)) => {
                    Some(format!("The key came from {}.", key.origin))
                }
                _ => Some(format!("The address came from {}.", target.base_url.origin)),
            };
            let exit = if matches!(error, LlmError::Auth(_)) { Exit::NoModel } else { Exit::Usage };
            let what = match error {
                LlmError::Auth(sentence) | LlmError::InvalidRequest(sentence) => {
                    sentence.to_string()
                }
                error => error.to_string(),
            };
            Report::new(exit, "settings", what).maybe_advice(origin.as_deref())
        })
    }

    fn build(target: &Target) -> Result<Self, LlmError> {
        // The builders have no common type, but the same names.
        macro_rules! build {
            ($builder:expr) => {{
                let builder = $builder.base_url(target.base_url.value.as_str());
                match &target.key {
                    Some(key) => builder.api_key(key.value.expose_secret().to_owned()).build()?,
                    None => builder.build()?,
                }
            }};
        }
        let model = target.model.as_str();
        Ok(match target.provider.api {
            Api::Chat | Api::Demo => {
                let builder = OpenAiProvider::builder(model).name(target.provider.name);
                Self::Chat(build!(builder))
            }
            Api::Server(server) => Self::Chat(build!(server.builder(model))),
            Api::Responses => {
                let builder = ResponsesProvider::builder(model).name(target.provider.name);
                Self::Responses(build!(builder))
            }
            Api::Anthropic => Self::Anthropic(build!(AnthropicProvider::builder(model))),
            Api::Gemini => Self::Gemini(build!(GeminiProvider::builder(model))),
            Api::Ollama => Self::Ollama(build!(OllamaProvider::builder(model))),
            Api::AiCore => Self::AiCore(AiCoreProvider::from_env(model)?),
        })
    }

    /// As the loop takes it.
    fn provider(&self) -> Arc<dyn DynProvider> {
        match self.clone() {
            Self::Chat(provider) => Arc::new(provider),
            Self::Responses(provider) => Arc::new(provider),
            Self::Anthropic(provider) => Arc::new(provider),
            Self::Gemini(provider) => Arc::new(provider),
            Self::Ollama(provider) => Arc::new(provider),
            Self::AiCore(provider) => Arc::new(provider),
        }
    }

    /// As the loop takes it, in a dialect and within a limit of calls in a message.
    pub(crate) fn speaking(&self, dialect: Dialect, limit: Option<ToolLimit>) -> DialectProvider {
        let provider = DialectProvider::new(self.provider(), dialect);
        match limit {
            Some(limit) => provider.with_tool_limit(limit),
            None => provider,
        }
    }

    /// The names of the models the server has.
    pub(crate) async fn list_models(&self) -> Result<Vec<String>, LlmError> {
        match self {
            Self::Chat(provider) => provider.list_models().await,
            Self::Responses(provider) => provider.list_models().await,
            Self::Anthropic(provider) => provider.list_models().await,
            Self::Gemini(provider) => provider.list_models().await,
            Self::Ollama(provider) => provider.list_models().await,
            // A deployment is of one model, and is known by its id.
            Self::AiCore(_) => Ok(Vec::new()),
        }
    }
}

/// The model a run asks, with the server of the demo model where it is that one.
pub(crate) struct Chosen {
    pub(crate) target: Target,
    /// Whether nothing else was found.
    pub(crate) fell_back_to_demo: bool,
    /// Serves the demo model until it is dropped.
    _demo: Option<FakeServer>,
}

/// Chooses the model, looking for a local one where nobody names one.
pub(crate) async fn choose_and_serve(
    settings: &Settings,
    environment: &Environment<'_>,
) -> Result<Chosen, Report> {
    let fell_back_to_demo = match choose(settings, environment)? {
        Choice::Target(target) => {
            return Ok(Chosen { target, fell_back_to_demo: false, _demo: None });
        }
        Choice::Demo => false,
        Choice::Local => match local_model(settings, environment).await {
            Some(target) => return Ok(Chosen { target, fell_back_to_demo: false, _demo: None }),
            None => true,
        },
    };
    let server = FakeServer::bind(([127, 0, 0, 1], 0), Script::demo(DEMO_WORD_DELAY).forget())
        .map_err(|error| {
            Report::new(Exit::Failed, "server", format!("the demo model cannot start: {error}"))
        })?;
    let target = Target::demo(server.base_url());
    Ok(Chosen { target, fell_back_to_demo, _demo: Some(server) })
}

/// The first model of the first local server that answers at once.
async fn local_model(settings: &Settings, environment: &Environment<'_>) -> Option<Target> {
    let servers = PROVIDERS.iter().filter(|provider| provider.is_local());
    let probes = servers.map(|server| probe(server, settings, environment));
    join_all(probes).await.into_iter().flatten().next()
}

async fn probe(
    server: &'static ProviderEntry,
    settings: &Settings,
    environment: &Environment<'_>,
) -> Option<Target> {
    let mut found = target(server, "", settings, environment).ok()?;
    if !is_looked_for(&found) {
        return None;
    }
    let address = host(&found.base_url.value).to_owned();
    tokio::time::timeout(PROBE, TcpStream::connect(address)).await.ok()?.ok()?;
    let connection = Connection::to(&found).ok()?;
    let models = tokio::time::timeout(PROBE, connection.list_models()).await.ok()?.ok()?;
    found.model = first_that_chats(&models)?.to_owned();
    Some(found)
}

/// Whether a run without a model looks for this server. At the usual port of vLLM there may be
/// anything, so it must have been named.
pub(crate) fn is_looked_for(target: &Target) -> bool {
    target.provider.name != "vllm" || target.base_url.origin != Origin::Default
}

/// The first of a local server's models that is made for answers; some only embed.
pub(crate) fn first_that_chats(models: &[String]) -> Option<&str> {
    models.iter().map(String::as_str).find(|model| !model.contains("embed"))
}

const PROBE: Duration = Duration::from_millis(150);
const DEMO_WORD_DELAY: Duration = Duration::from_millis(15);
