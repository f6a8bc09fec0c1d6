//! `toolloop doctor`: checks what a run here would need, and says what to do about the rest.

use std::io::{self, IsTerminal, Write};
use std::path::Path;

use futures_util::future::join_all;
use toolloop::tools::sandbox;

use super::config;
use super::models::{Found, local_choice};
use crate::exit::Exit;
use crate::folder;
use crate::grants::Grants;
use crate::model::{Choice, choose};
use crate::origin::short_path;
use crate::providers::{Api, PROVIDERS};
use crate::report::Report;
use crate::settings::{Environment, Settings};
use crate::terminal::paint::{Paint, has_colours};
use crate::terminal::text::clean;

/// Runs the command. It ends with the code that a run would end with at once, else with 0.
pub(crate) async fn run() -> anyhow::Result<Exit> {
    let environment = Environment::of_process();
    let folder = folder::open(None)?;
    let (settings, mut checks) = check_settings(&environment, &folder);
    checks.extend(check_model(&settings, &environment).await);
    checks.push(check_folder(&folder));
    checks.push(check_sandbox().await);
    let stdout = io::stdout();
    let paint = Paint::new(stdout.is_terminal() && has_colours());
    let page: String = checks.iter().map(|check| check.render(paint)).collect();
    match stdout.lock().write_all(page.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => return Err(error.into()),
        _ => {}
    }
    let fault = checks.into_iter().find_map(|check| match check.finding {
        Finding::Broken(report) => Some(report.exit),
        Finding::Well(_) | Finding::Absent(_) | Finding::Faulty(_) => None,
    });
    Ok(fault.unwrap_or(Exit::Answered))
}

/// One line of the page.
struct Check {
    what: String,
    finding: Finding,
}

enum Finding {
    /// As it should be.
    Well(String),
    /// Not there, and not needed.
    Absent(String),
    /// Set up and not working, though a run here does not need it.
    Faulty(Report),
    /// A run would fail by it.
    Broken(Report),
}

impl Check {
    fn new(what: impl Into<String>, finding: Finding) -> Self {
        Self { what: what.into(), finding }
    }

    fn render(&self, paint: Paint) -> String {
        // A server or a folder's file may have put anything into these texts.
        let (mark, text) = match &self.finding {
            Finding::Well(text) => (paint.green("✓"), clean(text).into_owned()),
            Finding::Absent(text) => (paint.dim("–"), paint.dim(&clean(text))),
            Finding::Faulty(report) | Finding::Broken(report) => {
                let text = clean(&report.to_string()).replace('\n', "\n           ");
                (paint.red("✗"), text)
            }
        };
        format!("{mark} {:<10} {text}\n", clean(&self.what))
    }
}

fn check_settings(environment: &Environment<'_>, folder: &Path) -> (Settings, Vec<Check>) {
    let mut checks = Vec::new();
    let settings = config::settings(environment).unwrap_or_else(|report| {
        checks.push(Check::new("settings", Finding::Broken(report)));
        Settings::default()
    });
    if checks.is_empty() {
        let person = environment.config_file().into_iter();
        let files: Vec<String> = person
            .chain([folder.join("toolloop.toml")])
            .filter(|file| file.exists())
            .map(|file| short_path(&file))
            .collect();
        checks.push(Check::new(
            "settings",
            match files.is_empty() {
                true => Finding::Absent("no settings file: the defaults".to_owned()),
                false => Finding::Well(format!("{}   (all: toolloop config)", files.join(", "))),
            },
        ));
    }
    match Grants::load(environment.grants_file(), folder) {
        Ok(grants) if grants.rules().is_empty() => {}
        Ok(grants) => {
            let rules: Vec<String> = grants.rules().iter().map(ToString::to_string).collect();
            checks.push(Check::new("always", Finding::Well(rules.join(", "))));
        }
        Err(report) => checks.push(Check::new("always", Finding::Broken(report))),
    }
    (settings, checks)
}

/// Every provider with a key is asked whether it takes it; the model of a run must be there.
async fn check_model(settings: &Settings, environment: &Environment<'_>) -> Vec<Check> {
    let providers = PROVIDERS.iter().filter(|provider| !matches!(provider.api, Api::Responses));
    let found = join_all(providers.map(|p| Found::look(p, settings, environment))).await;
    let chosen = choose(settings, environment);
    let needed = match &chosen {
        Ok(Choice::Target(target)) => target.provider.name,
        _ => "",
    };
    let servers = found.iter().filter(|found| found.target.is_some()).map(|found| {
        let finding = match &found.models {
            // It has no list of models, so nobody was asked.
            Ok(_) if matches!(found.provider.api, Api::AiCore) => {
                Finding::Absent("set up; only a run asks it".to_owned())
            }
            Ok(models) => Finding::Well(format!("answers, {} models", models.len())),
            Err(report) if found.provider.name == needed => Finding::Broken(report.clone()),
            Err(report) if found.is_just_absent() => {
                Finding::Absent(format!("not running: {}", report.what))
            }
            Err(report) => Finding::Faulty(report.clone()),
        };
        Check::new(found.provider.label, finding)
    });
    let model = match chosen {
        Ok(Choice::Target(target)) => {
            let served = found.iter().find(|found| found.provider.name == target.provider.name);
            let models = served.and_then(|found| found.models.as_ref().ok());
            match models {
                Some(models) if !models.is_empty() && !models.contains(&target.model) => {
                    let what = format!("{} is not there", target.name());
                    let report = Report::new(Exit::NoModel, "model", what);
                    Finding::Broken(report.advice("What there is: toolloop models"))
                }
                _ => Finding::Well(match &target.key {
                    Some(key) => format!("{}, key from {}", target.name(), key.origin),
                    None => target.name(),
                }),
            }
        }
        Ok(_) => Finding::Well(match found.iter().find_map(local_choice) {
            Some(model) => format!("{model}, on this machine"),
            None => "demo: scripted, because there is no key and no local model".to_owned(),
        }),
        Err(report) => Finding::Broken(report),
    };
    std::iter::once(Check::new("model", model)).chain(servers).collect()
}

/// A command that tries to get out says what the sandbox is worth here.
async fn check_sandbox() -> Check {
    let finding = match sandbox::probe().await {
        Ok(held) if held.is_nothing() => Finding::Absent(held.to_string()),
        Ok(held) => Finding::Well(held.to_string()),
        Err(why) => Finding::Absent(format!("bash cannot run here: {why}")),
    };
    Check::new("sandbox", finding)
}

fn check_folder(folder: &Path) -> Check {
    let writable = rustix::fs::access(folder, rustix::fs::Access::WRITE_OK);
    let text = short_path(folder);
    Check::new(
        "folder",
        match writable {
            Ok(()) => Finding::Well(text),
            Err(error) => Finding::Absent(format!("{text}: cannot be written ({error})")),
        },
    )
}
