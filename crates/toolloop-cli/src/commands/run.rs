//! `toolloop run`: gives a model a task and lets it work with its tools.
//!
//! Settings and model are found, the face shows the header, the loop runs while a [`Follower`]
//! shows what happens, and the way it ended becomes an exit code.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::ArgMatches;
use tokio::sync::mpsc;
use tokio::time::Instant;
use toolloop::tool::{
    CancellationToken, EffectClass, Inbox, LoopAction, LoopDetectionConfig, ToolLoopConfig,
    ToolRegistry, tool_loop_stream,
};
use toolloop_core::{ChatMessage, ChatParams};
use toolloop_tools::Builtin;

use crate::approval::Policy;
use crate::args::{RunArgs, Yes};
use crate::asking::Asking;
use crate::connect::{Chosen, Connection, choose_and_serve};
use crate::ending::Ended;
use crate::errors::is_unknown_model;
use crate::exit::Exit;
use crate::face::{Face, Header};
use crate::follow::{End, Follower};
use crate::json::JsonFace;
use crate::nearest::nearest;
use crate::origin::{Origin, Sourced, short_path};
use crate::report::Report;
use crate::run_id::RunId;
use crate::settings::{Environment, Settings};
use crate::signals::Signals;
use crate::summary::Ending;
use crate::task;
use crate::terminal::face::TerminalFace;
use crate::terminal::keys;

/// Runs the command to its exit code; whatever goes wrong is told by the face.
pub(crate) async fn run(args: &RunArgs, matches: &ArgMatches) -> anyhow::Result<Exit> {
    let id = RunId::random();
    let mut face: Box<dyn Face> = match args.json {
        Some(output) => Box::new(JsonFace::new(io::stdout(), output, id)),
        None => Box::new(TerminalFace::of_process(args.quiet)),
    };
    let environment = Environment::of_process();
    let ended = match prepare(args, matches, &environment).await {
        // Until here a signal just ends the process: nothing runs that would outlive it.
        Ok(plan) => plan.run(id, face.as_mut(), Signals::listen()?, &environment).await,
        Err(report) => {
            let folder = args.dir.clone().or_else(|| std::env::current_dir().ok());
            let folder = folder.unwrap_or_default();
            let header =
                Header { run: id, target: None, folder: &folder, fell_back_to_demo: false };
            let ending = Ending::before_the_run(report);
            let exit = ending.exit;
            face.begin(&header).and_then(|()| face.end(&ending, Duration::ZERO)).map(|()| exit)
        }
    };
    match ended {
        // Who read the output has gone: nobody is left to tell, and nothing is wrong.
        Err(error) if is_gone(&error) => Ok(Exit::BrokenPipe),
        ended => Ok(ended.map_err(|error| {
            Report::new(Exit::Failed, "output", format!("the output cannot be written: {error}"))
        })?),
    }
}

/// A closed pipe, or a terminal that was closed.
fn is_gone(error: &io::Error) -> bool {
    let hung_up = error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error());
    hung_up || error.kind() == io::ErrorKind::BrokenPipe
}

/// Everything a run needs.
struct Plan {
    chosen: Chosen,
    connection: Connection,
    settings: Settings,
    folder: PathBuf,
    task: String,
    registry: ToolRegistry,
    asking: Asking,
}

async fn prepare(
    args: &RunArgs,
    matches: &ArgMatches,
    environment: &Environment<'_>,
) -> Result<Plan, Report> {
    let settings = Settings::of_run(args, matches, environment)?;
    let folder = folder(args.dir.as_deref())?;
    let task = task::read(args.task.as_deref(), args.quiet || args.json.is_some())?;
    let tools = all_tools(&folder)?;
    let policy = policy(&tools, &settings)?;
    let registry = match &settings.tools {
        Some(wanted) => {
            let names = wanted.value.iter().map(String::as_str);
            check_tools(names.clone(), &tools, &wanted.origin)?;
            tools.only(names)
        }
        None => tools,
    };
    let chosen = choose_and_serve(&settings, environment).await?;
    let connection = Connection::to(&chosen.target)?;
    let asking = Asking::new(policy);
    Ok(Plan { chosen, connection, settings, folder, task, registry, asking })
}

impl Plan {
    async fn run(
        self,
        id: RunId,
        face: &mut dyn Face,
        signals: Signals,
        environment: &Environment<'_>,
    ) -> io::Result<Exit> {
        let target = &self.chosen.target;
        face.begin(&Header {
            run: id,
            target: Some(target),
            folder: &self.folder,
            fell_back_to_demo: self.chosen.fell_back_to_demo,
        })?;
        let started = Instant::now();
        let cancel = CancellationToken::new();
        let (ask, asks) = mpsc::unbounded_channel();
        let person = (face.can_ask() && keys::is_there()).then_some(ask);
        let inbox = Inbox::new();
        let stream = tool_loop_stream(
            self.connection.provider(),
            Arc::new(self.registry.clone()),
            self.params(),
            ToolLoopConfig {
                on_approval: Some(self.asking.callback(person, cancel.clone())),
                cancel: Some(cancel.clone()),
                inbox: Some(inbox.clone()),
                ..self.config()
            },
            Arc::new(()),
        );
        let follower =
            Follower::new(face, signals, self.asking.clone(), asks, cancel, inbox, started);
        let (end, tally) = follower.follow(stream).await?;
        let unanswered = self.asking.take_unanswered();
        if let Some(call) = unanswered.as_ref().filter(|_| tally.signal.is_none()) {
            face.approval_needed(call)?;
        }
        let models = match &end {
            End::Error(error) if is_unknown_model(error) => {
                self.connection.list_models().await.unwrap_or_default()
            }
            _ => Vec::new(),
        };
        let settings = &self.settings;
        let elapsed = started.elapsed();
        let ending =
            Ended { end, tally, unanswered, target, settings, models, elapsed }.ending(environment);
        face.end(&ending, elapsed)?;
        Ok(ending.exit)
    }

    fn config(&self) -> ToolLoopConfig {
        ToolLoopConfig {
            max_iterations: match &self.settings.max_iterations {
                Some(limit) => limit.value,
                None => DEFAULT_ITERATIONS,
            },
            timeout: self.settings.timeout.as_ref().map(|limit| limit.value),
            loop_detection: Some(LoopDetectionConfig {
                action: LoopAction::InjectWarning,
                ..LoopDetectionConfig::default()
            }),
            final_answer: true,
            ..ToolLoopConfig::default()
        }
    }

    fn params(&self) -> ChatParams {
        ChatParams {
            messages: vec![ChatMessage::user(self.task.as_str())],
            system: Some(self.system()),
            ..ChatParams::default()
        }
    }

    fn system(&self) -> String {
        match &self.settings.system {
            Some(system) => system.value.clone(),
            // Without a date: it would void the provider's prompt cache every day.
            None => format!(
                "You are an agent that a person runs in a terminal. You work in the folder {}; \
                 paths are relative to it. Use the tools to find out what you need instead of \
                 guessing, change only what the task asks for, and then answer briefly, in \
                 Markdown.",
                self.folder.display()
            ),
        }
    }
}

fn folder(dir: Option<&Path>) -> Result<PathBuf, Report> {
    let dir = dir.unwrap_or(Path::new("."));
    match dir.canonicalize() {
        Ok(folder) if folder.is_dir() => Ok(folder),
        Ok(file) => Err(Report::usage(format!("{} is no folder", short_path(&file)))
            .advice("Give the folder to work in: --dir DIR")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(Report::usage(format!("the folder {} does not exist", short_path(dir)))
                .advice("Give the folder to work in: --dir DIR"))
        }
        Err(error) => Err(Report::usage(format!("cannot open {}: {error}", short_path(dir)))),
    }
}

fn all_tools(folder: &Path) -> Result<ToolRegistry, Report> {
    let tools = Builtin::in_folder(folder)
        .map_err(|error| Report::usage(format!("cannot open {}: {error}", short_path(folder))))?;
    let mut registry = ToolRegistry::new();
    for tool in tools.tools() {
        registry.register_shared(tool);
    }
    Ok(registry)
}

fn policy(tools: &ToolRegistry, settings: &Settings) -> Result<Policy, Report> {
    if let Some(Sourced { value: Yes::Tools(names), origin }) = &settings.yes {
        check_tools(names.iter().map(String::as_str), tools, origin)?;
    }
    let is_read_only = |name: &String| {
        tools.get(name).is_some_and(|tool| tool.effect_class() == EffectClass::ReadOnly)
    };
    let names = tools.definitions().into_iter().map(|tool| tool.name);
    Ok(Policy {
        read_only: names.filter(is_read_only).collect(),
        yes: settings.yes.as_ref().map(|yes| yes.value.clone()),
        always: Vec::new(),
    })
}

/// A tool that is named must be there.
fn check_tools<'a>(
    names: impl Iterator<Item = &'a str>,
    tools: &ToolRegistry,
    origin: &Origin,
) -> Result<(), Report> {
    let known: Vec<String> = tools.definitions().into_iter().map(|tool| tool.name).collect();
    for name in names {
        if tools.contains(name) {
            continue;
        }
        let report = Report::usage(format!("there is no tool {name}"))
            .advice(format!("It was named by {origin}."));
        let near = nearest(name, known.iter().map(String::as_str), 1);
        return Err(match near.first() {
            Some(near) => report.advice(format!("Did you mean {near}?")),
            None => report.advice(format!("Tools are: {}.", known.join(", "))),
        });
    }
    Ok(())
}

/// Enough for most tasks, and an end for the others.
const DEFAULT_ITERATIONS: u32 = 50;
