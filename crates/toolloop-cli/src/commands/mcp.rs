//! `toolloop mcp`: shows the MCP servers of a folder, and tries their tools.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::Instant;
use toolloop::mcp::{McpError, McpServers, ServerState};
use toolloop::tool::ToolRegistry;
use toolloop_core::{ToolCall, ToolResult};

use crate::args::{McpArgs, McpCommand, ServersArgs};
use crate::asking::Asked;
use crate::exit::Exit;
use crate::face::Face;
use crate::folder;
use crate::grants::Grants;
use crate::nearest::nearest;
use crate::report::Report;
use crate::servers::{FolderServers, told};
use crate::settings::Environment;
use crate::signals::Signals;
use crate::starting::{Put, Started, Starting, put};
use crate::terminal::face::TerminalFace;
use crate::terminal::form::Form;
use crate::terminal::keys;
use crate::terminal::paint::{Paint, has_colours};
use crate::terminal::question::{Question, Said};
use crate::terminal::text::clean;

/// Runs the command.
pub(crate) async fn run(args: &McpArgs) -> anyhow::Result<Exit> {
    match &args.command {
        McpCommand::List { servers } => list(servers).await,
        McpCommand::Call { server, tool, arguments, servers } => {
            let arguments: Value = serde_json::from_str(arguments)
                .ok()
                .filter(Value::is_object)
                .ok_or_else(|| Report::usage("the arguments are no JSON object"))?;
            call(server, tool, arguments, servers).await
        }
    }
}

async fn list(args: &ServersArgs) -> anyhow::Result<Exit> {
    let mut session = Session::open(args)?;
    let Some(found) = session.found.take() else {
        println!(
            "There is no .mcp.json here that names a server. For its form: toolloop mcp --help"
        );
        return Ok(Exit::Answered);
    };
    let consent = found.consent();
    let faults: String =
        found.faults.iter().map(|fault| format!("{}\n", clean(&told(fault)))).collect();
    let not_agreed = found.not_agreed("--yes");
    let paint = Paint::new(io::stdout().is_terminal() && has_colours());
    let (servers, page) = match session.start(found, args.yes).await? {
        Started::Servers(servers) => {
            let states = servers.states().await;
            let page = states.iter().map(|state| section(state, paint)).collect::<String>();
            (Some(servers), page)
        }
        Started::Refused | Started::NobodyToAsk => {
            let place = |(name, place): &(String, String)| {
                format!("{}   {}\n  not started\n", paint.bold(&clean(name)), clean(place))
            };
            (None, consent.servers().iter().map(place).collect())
        }
        Started::Signal(signal) => return Ok(signal),
    };
    let printed = io::stdout().lock().write_all((page + &faults).as_bytes());
    let is_whole = faults.is_empty() && servers.as_ref().is_some_and(|s| s.faults().is_empty());
    let exit = match servers {
        Some(servers) => {
            servers.close().await;
            if is_whole { Exit::Answered } else { Exit::Failed }
        }
        None => {
            not_agreed.eprint();
            not_agreed.exit
        }
    };
    match printed {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(exit),
    }
}

/// A server: its name and place, and its tools or what is wrong.
fn section(state: &ServerState, paint: Paint) -> String {
    let about = state.about.as_deref().map(|about| format!("   {about}")).unwrap_or_default();
    let head = paint.dim(&clean(&format!("{}{about}", state.place)));
    let mut section = format!("{}   {head}\n", paint.bold(&clean(&state.name)));
    match &state.fault {
        Some(fault) => section += &format!("  {}\n", clean(&fault.to_string())),
        None if state.tools.is_empty() => section += "  has no tools\n",
        None => {
            for (name, description) in &state.tools {
                let first = description.lines().find(|line| !line.trim().is_empty());
                let first = first.unwrap_or_default().trim();
                section += &format!("  {}", clean(name));
                if !first.is_empty() {
                    section += &format!("   {}", paint.dim(&clean(first)));
                }
                section.push('\n');
            }
        }
    }
    section
}

async fn call(
    server: &str,
    tool: &str,
    arguments: Value,
    args: &ServersArgs,
) -> anyhow::Result<Exit> {
    let mut session = Session::open(args)?;
    let Some(mut found) = session.found.take() else {
        return Err(Report::usage("there is no .mcp.json here that names a server").into());
    };
    let names: Vec<String> = found.servers.iter().map(|server| server.name.clone()).collect();
    found.servers.retain(|config| config.name == server);
    found.faults.retain(|fault| fault.server() == Some(server));
    if found.servers.is_empty() && found.faults.is_empty() {
        return Err(unknown("server", server, &names).into());
    }
    if let Some(fault) = found.faults.first() {
        return Err(Report::usage(in_file(fault)).into());
    }
    let not_agreed = found.not_agreed("--yes");
    let servers = match session.start(found, args.yes).await? {
        Started::Servers(servers) => servers,
        Started::Refused | Started::NobodyToAsk => return Err(not_agreed.into()),
        Started::Signal(signal) => return Ok(signal),
    };
    let ended = session.call(&servers, tool, arguments).await;
    servers.close().await;
    match ended? {
        Err(signal) => Ok(signal),
        Ok(result) if result.is_error => {
            Err(Report::new(Exit::Failed, "tool", result.content.text).into())
        }
        Ok(result) => {
            let mut text = result.content.text;
            if !text.ends_with('\n') {
                text.push('\n');
            }
            io::stdout().lock().write_all(clean_in_terminal(&text).as_bytes())?;
            for image in result.content.images {
                eprintln!("[a picture, {}]", clean(&image.media_type));
            }
            Ok(Exit::Answered)
        }
    }
}

/// What both commands need: the file, who agreed to it, and a person to ask.
struct Session {
    found: Option<FolderServers>,
    grants: Grants,
    folder: PathBuf,
    face: TerminalFace,
    signals: Signals,
    began: Instant,
    person: Option<mpsc::UnboundedSender<Asked>>,
    asks: mpsc::UnboundedReceiver<Asked>,
}

impl Session {
    fn open(args: &ServersArgs) -> anyhow::Result<Self> {
        let environment = Environment::of_process();
        let folder = folder::open(args.dir.as_deref())?;
        let found = FolderServers::read(&folder, &environment)
            .map_err(|fault| Report::usage(in_file(&fault)))?;
        let grants = Grants::load(environment.grants_file(), &folder)?;
        let face = TerminalFace::of_process(false);
        let (ask, asks) = mpsc::unbounded_channel();
        let person = (face.can_ask() && keys::is_there()).then_some(ask);
        let (signals, began) = (Signals::listen()?, Instant::now());
        Ok(Self { found, grants, folder, face, signals, began, person, asks })
    }

    async fn start(&mut self, found: FolderServers, agreed: bool) -> io::Result<Started> {
        let mut starting = Starting {
            face: &mut self.face,
            signals: &mut self.signals,
            began: self.began,
            person: self.person.clone(),
            folder: self.folder.clone(),
        };
        starting.start(found, agreed, &mut self.grants).await
    }

    /// Calls a tool, and puts to the person what its server wants to know. `Err`: a signal came.
    async fn call(
        &mut self,
        servers: &McpServers,
        tool: &str,
        arguments: Value,
    ) -> anyhow::Result<Result<ToolResult, Exit>> {
        let states = servers.states().await;
        if let Some(fault) = states.iter().find_map(|state| state.fault.as_ref()) {
            return Err(Report::new(Exit::Failed, "mcp", fault.to_string()).into());
        }
        let tools: Vec<&String> =
            states.iter().flat_map(|state| state.tools.iter().map(|(name, _)| name)).collect();
        let Some(at) = tools.iter().position(|name| *name == tool) else {
            let tools: Vec<String> = tools.into_iter().cloned().collect();
            return Err(unknown("tool", tool, &tools).into());
        };
        let handler = servers.tools::<()>().remove(at);
        let call = ToolCall { id: "call".to_owned(), name: handler.definition().name, arguments };
        let mut registry = ToolRegistry::new();
        registry.register_shared(handler);
        let mut running = std::pin::pin!(registry.execute(&call, &()));
        loop {
            tokio::select! {
                result = &mut running => return Ok(Ok(result)),
                signal = self.signals.next() => return Ok(Err(signal)),
                Some(asked) = self.asks.recv() => {
                    let Asked::Server(ask) = asked else { continue };
                    let form = Question::Form(Form::new(ask.elicitation));
                    let said = put(form, &mut self.face, &mut self.signals, self.began);
                    // The call goes on meanwhile: its server may give the question up.
                    let said = tokio::select! {
                        result = &mut running => return Ok(Ok(result)),
                        said = said => said?,
                    };
                    match said {
                        Put::Signal(signal) => return Ok(Err(signal)),
                        Put::Said(Said::Form(answer)) => drop(ask.answer.send(answer)),
                        Put::Said(_) | Put::Nobody => {}
                    }
                }
            }
        }
    }
}

/// A fault behind the word "error:".
fn in_file(fault: &McpError) -> String {
    told(fault).trim_start_matches("error ").to_owned()
}

fn unknown(what: &str, name: &str, known: &[String]) -> Report {
    let report = Report::usage(format!("there is no {what} {name}"));
    match nearest(name, known.iter().map(String::as_str), 1).first() {
        Some(near) => report.advice(format!("Did you mean {near}?")),
        None => report.advice(format!("There is: {}.", known.join(", "))),
    }
}

/// A terminal gets no escape sequences from a server; a file gets what it said.
fn clean_in_terminal(text: &str) -> std::borrow::Cow<'_, str> {
    match io::stdout().is_terminal() {
        true => clean(text),
        false => text.into(),
    }
}
