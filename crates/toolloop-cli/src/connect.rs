//! [`connect`]: a [`Target`] as a provider that can be asked. [`choose_and_serve`]: the target of
//! a run, with the server of the demo model where it is that one.

use std::time::Duration;

use secrecy::ExposeSecret;
use tokio::net::TcpStream;
use toolloop_fake::{FakeServer, Script};
use toolloop_providers::OpenAiProvider;

use crate::exit::Exit;
use crate::model::{Choice, Target, choose, host, target};
use crate::providers::provider;
use crate::report::Report;
use crate::settings::{Environment, Settings};

/// The provider for a target.
pub(crate) fn connect(target: &Target) -> Result<OpenAiProvider, Report> {
    let mut builder = OpenAiProvider::builder(target.model.as_str())
        .base_url(target.base_url.value.as_str())
        .name(target.provider.name);
    if let Some(key) = &target.key {
        builder = builder.api_key(key.value.expose_secret().to_owned());
    }
    builder.build().map_err(|error| {
        let origin = match (&error, &target.key) {
            (toolloop_core::LlmError::Auth(_), Some(key)) => {
                format!("The key came from {}.", key.origin)
            }
            _ => format!("The address came from {}.", target.base_url.origin),
        };
        Report::usage(error.to_string()).advice(origin)
    })
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

/// The first model of a local Ollama, if one answers at once.
async fn local_model(settings: &Settings, environment: &Environment<'_>) -> Option<Target> {
    let mut found = target(provider("ollama")?, "", settings, environment).ok()?;
    let address = host(&found.base_url.value).to_owned();
    tokio::time::timeout(PROBE, TcpStream::connect(address)).await.ok()?.ok()?;
    let server = connect(&found).ok()?;
    let models = tokio::time::timeout(PROBE, server.list_models()).await.ok()?.ok()?;
    found.model = first_that_chats(&models)?.to_owned();
    Some(found)
}

/// The first of a local server's models that is made for answers; some only embed.
pub(crate) fn first_that_chats(models: &[String]) -> Option<&str> {
    models.iter().map(String::as_str).find(|model| !model.contains("embed"))
}

const PROBE: Duration = Duration::from_millis(150);
const DEMO_WORD_DELAY: Duration = Duration::from_millis(15);
