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
use toolloop::mcp::{McpError, McpServers};
use toolloop::tool::{
    ApprovalRule, ApprovalRules, CancellationToken, CompactionConfig, DiskCacher, EffectClass,
    Inbox, LoopAction, LoopDetectionConfig, TaskTool, ToolLoopConfig, ToolRegistry,
    ToolResultCacher, tool_loop_stream,
};
use toolloop::tools::{Builtin, FetchUrl, ResultStore, Root};
use toolloop_core::{ChatMessage, ChatParams, DynProvider, ToolCall, ToolLimit};
use toolloop_providers::DialectProvider;

use crate::approval::Policy;
use crate::args::{RunArgs, Yes};
use crate::asking::Asking;
use crate::connect::{Chosen, Connection, choose_and_serve};
use crate::ending::Ended;
use crate::errors::is_unknown_model;
use crate::exit::Exit;
use crate::face::{Face, Header};
use crate::follow::{End, Follower, Tally};
use crate::grants::Grants;
use crate::json::JsonFace;
use crate::nearest::nearest;
use crate::origin::{Origin, Sourced, short_path};
use crate::report::Report;
use crate::run_id::RunId;
use crate::sandbox;
use crate::servers::{FolderServers, told};
use crate::settings::{Environment, Settings};
use crate::signals::Signals;
use crate::starting::{Started, Starting};
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
            let header = Header {
                run: id,
                target: None,
                folder: &folder,
                fell_back_to_demo: false,
                sandbox: None,
            };
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
    provider: DialectProvider,
    settings: Settings,
    folder: PathBuf,
    task: String,
    tools: ToolRegistry,
    /// The folder as the tools see it.
    root: Root,
    /// Where results go that are too long for the conversation.
    results: ResultStore,
    policy: Policy,
    /// What the folder's `.mcp.json` says.
    servers: Result<Option<FolderServers>, McpError>,
    /// Whether a flag says that they may be started.
    servers_agreed: bool,
}

async fn prepare(
    args: &RunArgs,
    matches: &ArgMatches,
    environment: &Environment<'_>,
) -> Result<Plan, Report> {
    let settings = Settings::of_run(args, matches, environment)?;
    let folder = folder(args.dir.as_deref())?;
    let task = task::read(args.task.as_deref(), args.quiet || args.json.is_some())?;
    let results = ResultStore::temporary();
    let builtin = Builtin::in_folder(&folder)
        .map_err(|error| Report::usage(format!("cannot open {}: {error}", short_path(&folder))))?
        .with_results(results.clone())
        .with_fetch(FetchUrl::new());
    let root = builtin.root().clone();
    let tools = all_tools(builtin, &settings);
    let policy = policy(&tools, &settings, environment, &folder)?;
    if let Some(wanted) = &settings.tools {
        let built_in = wanted.value.iter().map(String::as_str).filter(|name| !is_of_server(name));
        check_tools(built_in, &tools, &wanted.origin)?;
    }
    let wanted = settings.tools.as_ref();
    let wants_servers =
        wanted.is_none_or(|tools| tools.value.iter().any(|name| is_of_server(name)));
    let servers = match wants_servers && !args.no_mcp {
        true => FolderServers::read(&folder, environment),
        false => Ok(None),
    };
    let chosen = choose_and_serve(&settings, environment).await?;
    let connection = Connection::to(&chosen.target)?;
    let limit = args.one_tool.then_some(ToolLimit::One);
    let provider = connection.speaking(args.dialect.unwrap_or_default().into(), limit);
    let servers_agreed = args.mcp;
    Ok(Plan {
        chosen,
        connection,
        provider,
        settings,
        folder,
        task,
        tools,
        root,
        results,
        policy,
        servers,
        servers_agreed,
    })
}

impl Plan {
    async fn run(
        mut self,
        id: RunId,
        face: &mut dyn Face,
        mut signals: Signals,
        environment: &Environment<'_>,
    ) -> io::Result<Exit> {
        face.begin(&Header {
            run: id,
            target: Some(&self.chosen.target),
            folder: &self.folder,
            fell_back_to_demo: self.chosen.fell_back_to_demo,
            sandbox: sandbox::note(&self.settings, &self.folder),
        })?;
        let started = Instant::now();
        let cancel = CancellationToken::new();
        let (ask, asks) = mpsc::unbounded_channel();
        let person = (face.can_ask() && keys::is_there()).then_some(ask);
        let starting = Starting {
            face,
            signals: &mut signals,
            began: started,
            person: person.clone(),
            folder: self.folder.clone(),
        };
        let servers = match self.start_servers(starting).await? {
            Ok(servers) => servers,
            Err(signal) => {
                let tally = Tally { signal: Some(signal), ..Tally::default() };
                return self.end(End::Abandoned, tally, None, face, started, environment).await;
            }
        };
        let asking = Asking::new(std::mem::take(&mut self.policy), self.root.clone());
        let config = ToolLoopConfig {
            on_approval: Some(asking.callback(person, cancel.clone())),
            ..self.config()
        };
        let registry = self.registry(servers.as_ref(), &asking, &config, face, started)?;
        let inbox = Inbox::new();
        let stream = tool_loop_stream(
            Arc::new(self.provider.clone()),
            Arc::new(registry),
            self.params(),
            ToolLoopConfig { cancel: Some(cancel.clone()), inbox: Some(inbox.clone()), ..config },
            Arc::new(()),
        );
        let follower = Follower::new(face, signals, asking.clone(), asks, cancel, inbox, started);
        let (end, tally) = follower.follow(stream).await?;
        let unanswered = asking.take_unanswered();
        if let Some(call) = unanswered.as_ref().filter(|_| tally.signal.is_none()) {
            face.approval_needed(call)?;
        }
        let is_urgent = matches!(end, End::Abandoned);
        let exit = self.end(end, tally, unanswered, face, started, environment).await?;
        match servers {
            Some(servers) if !is_urgent => servers.close().await,
            // Nobody waits for them; they are killed.
            _ => {}
        }
        Ok(exit)
    }

    async fn end(
        &self,
        end: End,
        tally: Tally,
        unanswered: Option<ToolCall>,
        face: &mut dyn Face,
        started: Instant,
        environment: &Environment<'_>,
    ) -> io::Result<Exit> {
        let models = match &end {
            End::Error(error) if is_unknown_model(error) => {
                self.connection.list_models().await.unwrap_or_default()
            }
            _ => Vec::new(),
        };
        let (target, settings) = (&self.chosen.target, &self.settings);
        let elapsed = started.elapsed();
        let ending =
            Ended { end, tally, unanswered, target, settings, models, elapsed }.ending(environment);
        face.end(&ending, elapsed)?;
        Ok(ending.exit)
    }

    /// The folder's servers, as far as they are agreed to and start; what is wrong with them is
    /// told and does not end the run. `Err`: this signal came.
    async fn start_servers(
        &mut self,
        mut starting: Starting<'_>,
    ) -> io::Result<Result<Option<McpServers>, Exit>> {
        let (found, mut warnings) = match std::mem::replace(&mut self.servers, Ok(None)) {
            Ok(Some(mut found)) => {
                let faults = std::mem::take(&mut found.faults);
                (Some(found), faults.iter().map(without_tools).collect())
            }
            Ok(None) => (None, Vec::new()),
            Err(fault) => (None, vec![without_tools(&fault)]),
        };
        let mut servers = None;
        if let Some(found) = found.filter(|found| !found.servers.is_empty()) {
            let not_agreed = found.not_agreed("--mcp");
            match starting.start(found, self.servers_agreed, &mut self.policy.grants).await? {
                Started::Servers(started) => {
                    warnings.extend(started.faults().iter().map(without_tools));
                    servers = Some(started);
                }
                Started::Refused => {}
                Started::NobodyToAsk => warnings.push(not_agreed),
                Started::Signal(signal) => return Ok(Err(signal)),
            }
        }
        for warning in warnings {
            starting.face.warn(&warning, starting.began.elapsed())?;
        }
        Ok(Ok(servers))
    }

    /// The tools of the run: the built-in ones, a sub-agent with this configuration, and those of
    /// servers, as far as they are wanted.
    fn registry(
        &self,
        servers: Option<&McpServers>,
        asking: &Asking,
        config: &ToolLoopConfig,
        face: &mut dyn Face,
        started: Instant,
    ) -> io::Result<ToolRegistry> {
        let mut tools = self.tools.clone();
        let tools_of_it = TOOLS_OF_A_TASK.into_iter().filter(|name| self.wants(name));
        let task = TaskTool::new(Arc::new(self.provider.clone()), tools.only(tools_of_it));
        tools.register(task.with_config(config.clone()));
        // Its own tools are asked about as if they were called here.
        asking.policy().classes.insert(TASK.to_owned(), EffectClass::ReadOnly);
        for tool in servers.into_iter().flat_map(McpServers::tools) {
            // A server's own word that its tool changes nothing is no reason not to ask.
            asking.policy().classes.insert(tool.definition().name, EffectClass::Once);
            tools.register_shared(tool);
        }
        let Some(wanted) = &self.settings.tools else {
            // It can carry out what the model knows, so it is asked for by name.
            return Ok(tools.without(["fetch_url"]));
        };
        let names = wanted.value.iter().map(String::as_str);
        if let Err(report) = check_tools(names.clone(), &tools, &wanted.origin) {
            face.warn(&report, started.elapsed())?;
        }
        Ok(tools.only(names))
    }

    /// Whether the settings name a tool, or leave it open.
    fn wants(&self, name: &str) -> bool {
        self.settings.tools.as_ref().is_none_or(|tools| tools.value.iter().any(|it| it == name))
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
            result_cacher: self.wants("read_result").then(|| {
                let cacher = DiskCacher::new(self.results.clone());
                Arc::new(cacher.with_inline_threshold(MOST_INLINE)) as Arc<dyn ToolResultCacher>
            }),
            final_answer: true,
            compaction: Some(CompactionConfig::for_window(self.provider.metadata().context_window)),
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

fn all_tools(builtin: Builtin, settings: &Settings) -> ToolRegistry {
    let mut registry = ToolRegistry::new();
    registry.register_builtin(&match sandbox::sandbox(settings) {
        Some(sandbox) => builtin.with_sandbox(sandbox),
        None => builtin.without_sandbox(),
    });
    registry
}

fn policy(
    tools: &ToolRegistry,
    settings: &Settings,
    environment: &Environment<'_>,
    folder: &Path,
) -> Result<Policy, Report> {
    if let Some(Sourced { value: Yes::Tools(names), origin }) = &settings.yes {
        let built_in = names.iter().map(String::as_str).filter(|name| !is_of_server(name));
        check_tools(built_in, tools, origin)?;
    }
    let values =
        |rules: &[Sourced<ApprovalRule>]| rules.iter().map(|rule| rule.value.clone()).collect();
    let mut rules = ApprovalRules {
        deny: values(&settings.approvals.deny),
        ask: values(&settings.approvals.ask),
        allow: values(&settings.approvals.allow),
    };
    rules.allow.push(ApprovalRule::class(EffectClass::ReadOnly));
    // What it ends was approved when it began.
    rules.allow.push(ApprovalRule::tool("bash_kill"));
    let names = tools.definitions().into_iter().map(|tool| tool.name);
    Ok(Policy {
        rules,
        classes: names
            .map(|name| {
                let class = tools.effect_class(&name).unwrap_or_default();
                (name, class)
            })
            .collect(),
        yes: settings.yes.as_ref().map(|yes| yes.value.clone()),
        grants: Grants::load(environment.grants_file(), folder)?,
    })
}

/// What is said of servers that are not there.
fn without_tools(fault: &McpError) -> Report {
    Report::new(Exit::Failed, "mcp", format!("{} The run goes on without its tools.", told(fault)))
}

/// Whether a tool of this name is a server's: those are known only once servers have started.
fn is_of_server(name: &str) -> bool {
    name.contains("__")
}

/// A tool that is named must be there.
fn check_tools<'a>(
    names: impl Iterator<Item = &'a str>,
    tools: &ToolRegistry,
    origin: &Origin,
) -> Result<(), Report> {
    let known: Vec<String> = tools.definitions().into_iter().map(|tool| tool.name).collect();
    for name in names {
        if tools.contains(name) || name == TASK {
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
pub(super) const DEFAULT_ITERATIONS: u32 = 50;
/// The sub-agent; it needs the model, which is found when the names of tools have been checked.
const TASK: &str = "task";
/// What it works with: enough to find something out, and nothing to change.
const TOOLS_OF_A_TASK: [&str; 5] = ["list_dir", "glob", "grep", "read_file", "read_result"];
/// In tokens: a little more than the file tools give at once, so that it is they who say how to
/// see the rest.
const MOST_INLINE: u32 = 12_500;
