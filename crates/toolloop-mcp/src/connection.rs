//! [`Connection`]: one live connection to a server.

use std::collections::BTreeMap;
use std::error::Error;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientRequest, InputRequiredResult,
    JsonObject, ListToolsRequest, PaginatedRequestParams, PingRequest, ProtocolVersion,
    RequestMetaObject, ServerPeerInfo, ServerResult, SubscriptionFilter, Tool,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt, PeerRequestOptions,
    RunningService, ServiceError,
};
use rmcp::transport::Transport;
use rmcp::transport::streamable_http_client::StreamableHttpError;
use serde::Deserialize;
use serde_json::Value;
use tokio::select;
use tokio::time::{Instant, sleep_until, timeout};
use toolloop_core::CallContext;

use crate::client::Client;
use crate::config::{ServerCommand, ServerConfig, ServerTransport};
use crate::ending::Ending;
use crate::http;
use crate::lines::Lines;
use crate::open_call::OpenCall;
use crate::process::Process;
use crate::progress::{Followable, Progress};

/// One live connection to a server. Dropping it closes it, in the background.
///
/// Faults are in the words that follow `server "name"` in a [`McpError`](crate::McpError).
pub(crate) struct Connection {
    service: RunningService<RoleClient, Client>,
    progress: Progress,
    ending: Ending,
    /// Whether a call ran into its time limit since the server last said anything.
    may_hang: AtomicBool,
}

/// Why a call has no result.
pub(crate) enum CallFault {
    /// The connection ended meanwhile; nobody knows what the call has done.
    Ended(String),
    /// The call ran into its time limit, and the server was told.
    TimeLimit,
    /// The server answered with an error.
    Refused(String),
}

impl Connection {
    /// Starts or reaches the server and agrees on the protocol.
    pub(crate) async fn open(config: &ServerConfig, client: Client) -> Result<Self, String> {
        match Self::open_with(config, client.clone(), ClientLifecycleMode::Initialize).await {
            // A server of the newest protocol alone answers the old greeting with an error.
            Err(OpenFault::Greeting(refusal)) => {
                let preferred_versions = vec![ProtocolVersion::LATEST];
                let newest = ClientLifecycleMode::Discover { preferred_versions };
                let opened = Self::open_with(config, client, newest).await;
                opened.map_err(|_| format!("refused to begin: {refusal}"))
            }
            Err(OpenFault::Other(fault)) => Err(fault),
            Ok(connection) => Ok(connection),
        }
    }

    async fn open_with(
        config: &ServerConfig,
        client: Client,
        lifecycle: ClientLifecycleMode,
    ) -> Result<Self, OpenFault> {
        let ending = Ending::new();
        match &config.transport {
            ServerTransport::Stdio(command) => {
                let (process, pipe) = Process::start(command)
                    .map_err(|error| OpenFault::Other(not_started(command, &error)))?;
                let lines = Lines::new(pipe, Some(process), ending.clone());
                Self::greet(config, lines, ending, client, lifecycle).await
            }
            ServerTransport::Pipe(open) => {
                let pipe = open().await;
                let pipe =
                    pipe.map_err(|error| OpenFault::Other(format!("cannot be reached: {error}")))?;
                let lines = Lines::new(pipe, None, ending.clone());
                Self::greet(config, lines, ending, client, lifecycle).await
            }
            ServerTransport::Http(address) => {
                let transport = http::transport(address).map_err(OpenFault::Other)?;
                Self::greet(config, transport, ending, client, lifecycle).await
            }
        }
    }

    async fn greet<T: Transport<RoleClient> + 'static>(
        config: &ServerConfig,
        transport: T,
        ending: Ending,
        client: Client,
        lifecycle: ClientLifecycleMode,
    ) -> Result<Self, OpenFault> {
        let progress = Progress::default();
        let transport = Followable {
            transport,
            progress: progress.clone(),
            ending: ending.clone(),
            stray_errors_end: matches!(config.transport, ServerTransport::Http(_)),
        };
        let greeted = client.serve_with_lifecycle(transport, lifecycle);
        match timeout(config.start_limit, greeted).await {
            Ok(Ok(service)) => {
                let may_hang = AtomicBool::new(false);
                Ok(Self { service, progress, ending, may_hang })
            }
            Ok(Err(ClientInitializeError::JsonRpcError(error))) => {
                Err(OpenFault::Greeting(error.message.into_owned()))
            }
            Ok(Err(error)) => Err(OpenFault::Other(match (ending.get(), error) {
                (Some(ending), _) => ending.replacen("ended", "ended at once", 1),
                (None, ClientInitializeError::TransportError { error, .. }) => {
                    unreachable(config, error.error.as_ref())
                }
                (None, error) => format!("does not speak the protocol: {}", short(&error)),
            })),
            Err(_) => Err(OpenFault::Other(format!(
                "did not begin within {:?}. Start it by hand to see why: {}",
                config.start_limit, config.place
            ))),
        }
    }

    /// What the server says of itself.
    pub(crate) fn about(&self) -> Option<Arc<ServerPeerInfo>> {
        self.service.peer_info()
    }

    /// Why the connection ended; `None` while it lives.
    fn ending(&self) -> Option<String> {
        self.ending.get().or_else(|| {
            self.service.is_transport_closed().then(|| "closed the connection".to_owned())
        })
    }

    /// Whether it can still be used. A server that let a call run into its time limit is asked for
    /// a sign of life first, and closed if it gives none.
    pub(crate) async fn lives(&self) -> bool {
        if self.may_hang.load(Ordering::Relaxed) && self.ending().is_none() {
            let ping = ClientRequest::PingRequest(PingRequest::default());
            match timeout(PING_LIMIT, self.service.send_request(ping)).await {
                // The newest protocol has no ping, so an error is a sign of life as well.
                Ok(Ok(_) | Err(ServiceError::McpError(_))) => {
                    self.may_hang.store(false, Ordering::Relaxed);
                }
                _ => self.close().await,
            }
        }
        self.ending().is_none()
    }

    /// Calls this for each change of the tools that a server of the newest protocol tells. It
    /// tells them only to who listens; older ones tell everybody.
    pub(crate) fn follow_tools(&self, changed: impl Fn() + Send + 'static) {
        let Some(about) = self.about() else { return };
        let tells = about.capabilities.tools.as_ref().and_then(|tools| tools.list_changed);
        if about.protocol_version.has_initialize() || tells != Some(true) {
            return;
        }
        let peer = self.service.peer().clone();
        tokio::spawn(async move {
            let tools = SubscriptionFilter::builder().tools_list_changed().build();
            let Ok(mut told) = peer.listen(tools).await else { return };
            // It ends with the connection.
            while let Ok(Some(_)) = told.next().await {
                changed();
            }
        });
    }

    /// All tools of the server, in its own order. A tool that is not right is left out.
    pub(crate) async fn tools(&self) -> Result<Vec<Tool>, String> {
        if self.about().is_some_and(|about| about.capabilities.tools.is_none()) {
            return Ok(Vec::new());
        }
        let mut tools = Vec::new();
        let mut cursor = None;
        for _ in 0..MOST_PAGES {
            let page = PaginatedRequestParams::default().with_cursor(cursor);
            let request = ListToolsRequest { params: Some(page), ..Default::default() };
            let request = ClientRequest::ListToolsRequest(request);
            cursor = match self.service.send_request(request).await {
                Ok(ServerResult::ListToolsResult(page)) => {
                    tools.extend(page.tools);
                    page.next_cursor
                }
                // One wrong tool must not cost the others.
                Ok(ServerResult::CustomResult(page)) => {
                    let listed = page.0.get("tools").and_then(Value::as_array);
                    let listed = listed.ok_or("gave a list of tools that is not right")?;
                    tools.extend(listed.iter().filter_map(|tool| Tool::deserialize(tool).ok()));
                    page.0.get("nextCursor").and_then(Value::as_str).map(str::to_owned)
                }
                Ok(_) => return Err("gave a list of tools that is not right".to_owned()),
                Err(error) => return Err(self.fault(error)),
            };
            if cursor.is_none() {
                break;
            }
        }
        Ok(tools)
    }

    /// Calls a tool. Dropping the future tells the server that the call is cancelled.
    pub(crate) async fn call(
        &self,
        tool: &str,
        arguments: JsonObject,
        call: &CallContext,
        limit: Duration,
    ) -> Result<CallToolResult, CallFault> {
        let mut params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        for _ in 0..MOST_ROUNDS {
            match self.call_once(params.clone(), call, limit).await? {
                ServerResult::CallToolResult(result) => return Ok(result),
                ServerResult::InputRequiredResult(wanted) => {
                    self.answer(&mut params, wanted).await?;
                }
                other => {
                    let other = serde_json::to_string(&other).unwrap_or_default();
                    return Err(CallFault::Refused(format!(
                        "gave a result that is not right: {}",
                        short(&other)
                    )));
                }
            }
        }
        Err(CallFault::Refused(format!("asked for more input {MOST_ROUNDS} times")))
    }

    async fn call_once(
        &self,
        params: CallToolRequestParams,
        call: &CallContext,
        limit: Duration,
    ) -> Result<ServerResult, CallFault> {
        let mut meta = RequestMetaObject::new();
        meta.insert(IDEMPOTENCY_KEY.to_owned(), call.idempotency_key().into());
        let options = PeerRequestOptions::no_options().with_meta(meta);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let handle = self.service.send_request_with_option(request, options).await;
        let mut open = OpenCall::new(handle.map_err(|error| self.call_fault(error))?);
        let _followed = self.progress.follow(open.handle(), call.clone());
        let mut deadline = Instant::now() + limit;
        loop {
            select! {
                reply = open.reply() => return reply.map_err(|error| self.call_fault(error)),
                () = sleep_until(deadline) => match self.service.service().is_asking() {
                    true => deadline = Instant::now() + limit,
                    false => {
                        self.may_hang.store(true, Ordering::Relaxed);
                        return Err(CallFault::TimeLimit);
                    }
                },
            }
        }
    }

    /// Puts the answers to what a server wants to know into the next round of a call.
    async fn answer(
        &self,
        params: &mut CallToolRequestParams,
        wanted: InputRequiredResult,
    ) -> Result<(), CallFault> {
        let mut answers = BTreeMap::new();
        for (name, request) in wanted.input_requests.unwrap_or_default() {
            let answer = self.service.service().answer(request).await;
            let answer = answer.map_err(|error| CallFault::Refused(error.message.into_owned()))?;
            answers.insert(name, answer);
        }
        params.input_responses = (!answers.is_empty()).then_some(answers);
        params.request_state = wanted.request_state;
        Ok(())
    }

    /// Closes the connection; a program and all it started are gone afterwards.
    pub(crate) async fn close(&self) {
        self.service.cancellation_token().cancel();
        let _ = timeout(CLOSE_LIMIT, self.ending.wait()).await;
    }

    fn call_fault(&self, error: ServiceError) -> CallFault {
        match error {
            ServiceError::McpError(error) => {
                CallFault::Refused(format!("refused the call: {}", error.message))
            }
            error => CallFault::Ended(self.fault(error)),
        }
    }

    fn fault(&self, error: ServiceError) -> String {
        match (self.ending.get(), error) {
            (Some(ending), _) => ending,
            (None, ServiceError::McpError(error)) => format!("answered: {}", error.message),
            (None, ServiceError::TransportSend(error)) => {
                let fault = format!("cannot be reached: {}", root_cause(error.error.as_ref()));
                // Whoever answers next may not know our session; so the next call opens its own.
                self.ending.set(fault.clone());
                fault
            }
            (None, error) => short(&error),
        }
    }
}

/// Why a connection was not made.
enum OpenFault {
    /// The server answered the greeting with this error.
    Greeting(String),
    Other(String),
}

/// A program that could not be run.
fn not_started(command: &ServerCommand, error: &io::Error) -> String {
    let missing = error.kind() == io::ErrorKind::NotFound;
    match &command.folder {
        Some(folder) if missing && !folder.is_dir() => {
            format!("cannot be started: there is no folder {}. Correct \"cwd\"", folder.display())
        }
        _ if missing => format!(
            "cannot be started: there is no program {:?}. Install it, or correct \"command\"",
            command.program
        ),
        _ => format!("cannot be started: {error}"),
    }
}

/// An HTTP server that could not be spoken to.
fn unreachable(config: &ServerConfig, error: &(dyn Error + 'static)) -> String {
    let cause = root_cause(error);
    let place = &config.place;
    match cause.contains("401") || cause.contains("authorization required") {
        true => format!("at {place} wants a key: {cause}. Give it in \"headers\""),
        false => format!("cannot be reached at {place}: {cause}. Start it, or correct \"url\""),
    }
}

/// The innermost error: the outer ones only say that something failed.
fn root_cause(error: &(dyn Error + 'static)) -> String {
    let mut cause = error;
    loop {
        // This one does not give its source away.
        let inner = match cause.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
            Some(StreamableHttpError::Client(error)) => Some(error as &(dyn Error + 'static)),
            _ => cause.source(),
        };
        match inner {
            Some(inner) => cause = inner,
            None => return short(&cause),
        }
    }
}

fn short(text: &dyn std::fmt::Display) -> String {
    text.to_string().chars().filter(|c| !c.is_control()).take(LONGEST_QUOTE).collect()
}

/// Where a call's key stands in its `_meta`: the same for each execution of that call.
pub(crate) const IDEMPOTENCY_KEY: &str = "toolloop/idempotencyKey";
/// A server that lists for ever is cut off here.
const MOST_PAGES: usize = 100;
/// How often a server may ask for more input before a call has its result.
const MOST_ROUNDS: usize = 10;
/// How long a sign of life may take.
const PING_LIMIT: Duration = Duration::from_secs(5);
const CLOSE_LIMIT: Duration = Duration::from_secs(5);
/// In characters.
const LONGEST_QUOTE: usize = 300;
