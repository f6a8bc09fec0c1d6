//! `toolloop models`: which models can be used, and which one a run would take.

use std::io::{self, IsTerminal, Write};

use clap::ArgMatches;
use toolloop_core::LlmError;

use crate::args::ModelsArgs;
use crate::connect::{connect, first_that_chats};
use crate::errors::explain;
use crate::exit::Exit;
use crate::model::{Choice, Target, choose, target};
use crate::providers::{PROVIDERS, ProviderEntry};
use crate::report::Report;
use crate::settings::{Environment, Settings};
use crate::terminal::paint::{Paint, has_colours};
use crate::terminal::text::clean;

/// Runs the command. In a terminal it is a page for people, elsewhere one model a line.
pub(crate) async fn run(args: &ModelsArgs, matches: &ArgMatches) -> anyhow::Result<Exit> {
    let environment = Environment::of_process();
    let settings = Settings::of_models(args, matches, &environment)?;
    let providers: Vec<&'static ProviderEntry> = match settings.base_url {
        // An address is of one server; it is asked, and nobody else.
        Some(_) => PROVIDERS.iter().take(1).collect(),
        None => PROVIDERS.iter().collect(),
    };
    let found =
        providers.into_iter().map(|provider| Found::look(provider, &settings, &environment));
    let found = futures_util::future::join_all(found).await;
    let stdout = io::stdout();
    let page = match stdout.is_terminal() {
        true => page(&found, &settings, &environment, Paint::new(has_colours())),
        false => list(&found),
    };
    match stdout.lock().write_all(page.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => return Err(error.into()),
        _ => {}
    }
    // An address that was given and does not answer is an error; the others are just not there.
    match found.into_iter().next() {
        Some(Found { models: Err(report), .. }) if settings.base_url.is_some() => {
            Err(report.into())
        }
        _ => Ok(Exit::Answered),
    }
}

/// What a provider has.
struct Found {
    provider: &'static ProviderEntry,
    target: Option<Target>,
    models: Result<Vec<String>, Report>,
}

impl Found {
    async fn look(
        provider: &'static ProviderEntry,
        settings: &Settings,
        environment: &Environment<'_>,
    ) -> Self {
        let target = match target(provider, "", settings, environment) {
            Ok(target) => target,
            Err(report) => return Self { provider, target: None, models: Err(report) },
        };
        let models = match connect(&target) {
            Ok(server) => {
                let explained = |error: LlmError| explain(&error, &target, environment);
                server.list_models().await.map_err(explained)
            }
            Err(report) => Err(report),
        };
        Self { provider, target: Some(target), models }
    }

    /// Models as they are chosen with `--model`.
    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self
            .models
            .iter()
            .flatten()
            .map(|model| format!("{}/{}", self.provider.name, clean(model)))
            .collect();
        names.sort();
        names
    }
}

fn list(found: &[Found]) -> String {
    let names = found.iter().flat_map(Found::names).chain(["demo".to_owned()]);
    names.map(|name| name + "\n").collect()
}

fn page(
    found: &[Found],
    settings: &Settings,
    environment: &Environment<'_>,
    paint: Paint,
) -> String {
    let mut page = String::new();
    for found in found {
        let label = match &found.target {
            Some(target) => target.label(),
            None => found.provider.label.to_owned(),
        };
        page += &format!("{}\n", paint.bold(&label));
        match (&found.models, found.names()) {
            (Ok(_), names) if names.is_empty() => page += "  has no models\n",
            (Ok(_), names) => names.iter().for_each(|name| page += &format!("  {name}\n")),
            (Err(report), _) => {
                let what = match (&found.target, found.provider.key_variable) {
                    (None, Some(variable)) => format!("no key: export {variable}=…"),
                    _ => clean(&report.what).into_owned(),
                };
                page += &format!("  {}\n", paint.dim(&what));
            }
        }
    }
    page += &format!("{}\n  demo\n\n", paint.bold("Built in"));
    page += &match choose(settings, environment) {
        Ok(Choice::Target(target)) => format!("A run takes {}.\n", target.name()),
        Ok(Choice::Demo) => "A run takes demo.\n".to_owned(),
        Ok(Choice::Local) => match found.iter().find(|found| found.provider.name == "ollama") {
            Some(Found { models: Ok(models), .. }) => first_that_chats(models),
            _ => None,
        }
        .map_or("A run takes demo: there is no key and no local model.\n".to_owned(), |model| {
            format!("A run takes ollama/{model}.\n")
        }),
        Err(report) => format!("A run would fail: {}.\n", report.what),
    };
    page + &paint
        .dim("Another one: toolloop run --model NAME   How one is chosen: toolloop help models\n")
}
