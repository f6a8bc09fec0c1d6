//! `toolloop models`: which models can be used, and which one a run would take.

use std::io::{self, IsTerminal, Write};

use clap::ArgMatches;
use futures_util::future::join_all;
use toolloop_core::LlmError;

use crate::args::ModelsArgs;
use crate::connect::{Connection, first_that_chats, is_looked_for};
use crate::errors::explain;
use crate::exit::Exit;
use crate::model::{Choice, Target, choose, target};
use crate::origin::Origin;
use crate::providers::{Api, PROVIDERS, ProviderEntry, openai};
use crate::report::Report;
use crate::settings::{Environment, Settings};
use crate::terminal::paint::{Paint, Style, has_colours};
use crate::terminal::screen::Size;
use crate::terminal::text::{Span, clean, wrap};

/// Runs the command. In a terminal it is a page for people, elsewhere one model a line.
pub(crate) async fn run(args: &ModelsArgs, matches: &ArgMatches) -> anyhow::Result<Exit> {
    let environment = Environment::of_process();
    let settings = Settings::of_models(args, matches, &environment)?;
    let providers: Vec<&'static ProviderEntry> = match settings.base_url {
        // An address is of one server; it is asked, and nobody else.
        Some(_) => vec![openai()],
        // Both APIs of OpenAI have the same models.
        None => PROVIDERS.iter().filter(|p| !matches!(p.api, Api::Responses)).collect(),
    };
    let found =
        providers.into_iter().map(|provider| Found::look(provider, &settings, &environment));
    let found = join_all(found).await;
    let stdout = io::stdout();
    let page = match stdout.is_terminal() {
        true => page(&found, &settings, &environment, Paint::new(has_colours())),
        false => list(&found, settings.base_url.is_none()),
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
pub(super) struct Found {
    pub(super) provider: &'static ProviderEntry,
    /// `None`: it needs a key, and there is none.
    pub(super) target: Option<Target>,
    pub(super) models: Result<Vec<String>, Report>,
}

impl Found {
    pub(super) async fn look(
        provider: &'static ProviderEntry,
        settings: &Settings,
        environment: &Environment<'_>,
    ) -> Self {
        let target = match target(provider, "", settings, environment) {
            Ok(target) => target,
            Err(report) => return Self { provider, target: None, models: Err(report) },
        };
        let models = match Connection::to(&target) {
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

    /// A server of one's own that was not named and is not there: no news.
    pub(super) fn is_just_absent(&self) -> bool {
        let unnamed = |target: &Target| target.base_url.origin == Origin::Default;
        self.provider.is_local()
            && self.models.is_err()
            && self.target.as_ref().is_some_and(unnamed)
    }

    /// What is said of the provider: its name, how it is reached, its models or why there are none.
    fn section(&self, target: &Target, paint: Paint) -> String {
        let how = match &target.key {
            Some(key) => format!("key from {}", key.origin),
            None => target.base_url.value.clone(),
        };
        let mut section =
            format!("{}   {}\n", paint.bold(&target.label()), paint.dim(&clean(&how)));
        match (&self.models, self.names()) {
            (Ok(_), _) if matches!(self.provider.api, Api::AiCore) => {
                section += "  aicore/NAME, the model of the deployment\n";
            }
            (Ok(_), names) if names.is_empty() => section += "  has no models\n",
            (Ok(_), names) => names.iter().for_each(|name| section += &format!("  {name}\n")),
            (Err(report), _) => section += &format!("  {}\n", clean(&report.what)),
        }
        section
    }
}

fn list(found: &[Found], with_demo: bool) -> String {
    let demo = with_demo.then(|| "demo".to_owned());
    let names = found.iter().flat_map(Found::names).chain(demo);
    names.map(|name| name + "\n").collect()
}

fn page(
    found: &[Found],
    settings: &Settings,
    environment: &Environment<'_>,
    paint: Paint,
) -> String {
    let mut page = String::new();
    for one in found.iter().filter(|found| !found.is_just_absent()) {
        page.extend(one.target.as_ref().map(|target| one.section(target, paint)));
    }
    match settings.base_url {
        Some(_) => page.push('\n'),
        None => page += &format!("{}\n  demo\n\n", paint.bold("Built in")),
    }
    let keys = found.iter().filter(|found| found.target.is_none());
    page += &named("No key", keys.map(|found| found.provider.key_variable().unwrap_or_default()));
    let absent = found.iter().filter(|found| found.is_just_absent());
    page += &named("Not running", absent.map(|found| found.provider.label));
    page += &match choose(settings, environment) {
        Ok(Choice::Target(target)) => format!("A run takes {}.\n", target.name()),
        Ok(Choice::Demo) => "A run takes demo.\n".to_owned(),
        Ok(Choice::Local) => match found.iter().find_map(local_choice) {
            Some(model) => format!("A run takes {model}.\n"),
            None => "A run takes demo: there is no key and no local model.\n".to_owned(),
        },
        Err(report) => format!("A run would fail: {}.\n", report.what),
    };
    page + &paint
        .dim("Another one: toolloop run --model NAME   How one is chosen: toolloop help models\n")
}

/// `No key: A, B, C`, or nothing.
fn named<'a>(what: &str, names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<_> = names.collect();
    match names.is_empty() {
        true => String::new(),
        false => {
            let text = Span::new(format!("{what}: {}", names.join(", ")), Style::PLAIN);
            wrap(&[text], Size::of_process().columns, Paint::new(false)).join("\n") + "\n"
        }
    }
}

/// The model a run takes of this server, if nothing else is said.
pub(super) fn local_choice(found: &Found) -> Option<String> {
    let target = found.target.as_ref()?;
    let models = found.models.as_ref().ok()?;
    let is_candidate = found.provider.is_local() && is_looked_for(target);
    let model = first_that_chats(models).filter(|_| is_candidate)?;
    Some(format!("{}/{model}", found.provider.name))
}
