//! `toolloop run`: gives a model a task and lets it work with its tools.
//!
//! Settings and model are found, the face shows the header, the loop runs while a [`Follower`]
//! shows what happens, and the way it ended becomes an exit code.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use clap::ArgMatches;
use tokio::sync::mpsc;
use tokio::time::Instant;
use toolloop::mcp::{McpError, McpServers};
use toolloop::tool::{CancellationToken, Inbox, ToolLoopConfig, tool_loop_stream};
use toolloop_core::ToolCall;

use crate::args::RunArgs;
use crate::asking::Asking;
use crate::ending::Ended;
use crate::errors::is_unknown_model;
use crate::exit::Exit;
use crate::face::{Face, Header};
use crate::follow::{End, Follower, Tally};
use crate::json::JsonFace;
use crate::plan::Plan;
use crate::report::Report;
use crate::run_id::RunId;
use crate::sandbox;
use crate::servers::told;
use crate::settings::Environment;
use crate::signals::Signals;
use crate::starting::{Started, Starting};
use crate::summary::Ending;
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
    let ended = match Plan::prepare(args, matches, &environment).await {
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
        let (registry, missing) = self.registry(servers.as_ref(), &asking, &config);
        if let Some(report) = missing {
            face.warn(&report, started.elapsed())?;
        }
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
}

/// What is said of servers that are not there.
fn without_tools(fault: &McpError) -> Report {
    Report::new(Exit::Failed, "mcp", format!("{} The run goes on without its tools.", told(fault)))
}
