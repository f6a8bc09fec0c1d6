//! [`Server`]: a server that is started anew when it has ended.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use rmcp::model::Tool;
use serde_json::Value;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};
use toolloop_core::{CallContext, ToolError, ToolOutput};

use crate::catalogue::Catalogue;
use crate::client::Client;
use crate::config::ServerConfig;
use crate::connection::{CallFault, Connection};
use crate::content::output;
use crate::elicitation::Elicit;
use crate::error::McpError;

/// A server, connected or not.
///
/// Nothing watches it: that it has ended is seen at the next call, which starts it anew. After
/// the first such try there is a pause, twice as long each time, in which calls fail at once.
pub(crate) struct Server {
    pub(crate) config: ServerConfig,
    /// Its position among the servers.
    index: usize,
    folder: Option<PathBuf>,
    elicit: Option<Elicit>,
    catalogue: Arc<Catalogue>,
    state: Mutex<State>,
    listing: Mutex<()>,
    /// Whether it has answered since it was started last.
    has_answered: AtomicBool,
}

#[derive(Default)]
struct State {
    connection: Option<Arc<Connection>>,
    /// Starts in a row after which it did not answer.
    failures: u32,
    /// Not to be started before this.
    pause_ends: Option<Instant>,
    is_closed: bool,
}

impl Server {
    pub(crate) fn new(
        config: ServerConfig,
        index: usize,
        folder: Option<PathBuf>,
        elicit: Option<Elicit>,
        catalogue: Arc<Catalogue>,
    ) -> Self {
        let (state, listing) = (Mutex::default(), Mutex::default());
        let has_answered = AtomicBool::new(false);
        Self { config, index, folder, elicit, catalogue, state, listing, has_answered }
    }

    /// Starts it and lists its tools.
    pub(crate) async fn start(self: &Arc<Self>) -> Result<(), McpError> {
        self.connection().await.map(|_| ())
    }

    /// Calls one of its tools.
    pub(crate) async fn call(
        self: &Arc<Self>,
        tool: &str,
        arguments: Value,
        call: &CallContext,
    ) -> Result<ToolOutput, ToolError> {
        let Value::Object(arguments) = arguments else {
            return Err(ToolError::new("The arguments must be an object. Call it again."));
        };
        let connection = self.connection().await.map_err(|error| self.tool_error(&error))?;
        if !self.catalogue.is_offered(self.index, tool) {
            return Err(ToolError::new(format!(
                "Server {:?} no longer has the tool {tool:?}. Use another one.",
                self.config.name
            )));
        }
        let result = connection.call(tool, arguments, call, self.config.time_limit).await;
        if matches!(result, Ok(_) | Err(CallFault::Refused(_))) {
            self.has_answered.store(true, Ordering::Relaxed);
        }
        let name = &self.config.name;
        match result {
            Ok(result) => output(result),
            Err(CallFault::Refused(fault)) => Err(self.tool_error(&self.call_error(fault))),
            Err(CallFault::Ended(fault)) => Err(ToolError::new(format!(
                "{} The call may have taken effect in part; check before repeating it. The server \
                 is started again at the next call.",
                self.tool_error(&self.call_error(fault))
            ))),
            Err(CallFault::TimeLimit) => Err(ToolError::new(format!(
                "Tool {tool:?} of server {name:?} was cut off at its time limit of {:?}. It may \
                 have taken effect in part; check before repeating it.",
                self.config.time_limit
            ))),
        }
    }

    /// Ends it for good.
    pub(crate) async fn close(&self) {
        let connection = {
            let mut state = self.state.lock().await;
            state.is_closed = true;
            state.connection.take()
        };
        if let Some(connection) = connection {
            connection.close().await;
        }
    }

    /// The name and version it gives itself.
    pub(crate) async fn about(&self) -> Option<String> {
        let about = self.state.lock().await.connection.as_ref()?.about()?;
        let about = about.server_info.as_ref()?;
        Some(format!("{} {}", about.name, about.version))
    }

    /// The live connection; a new one where there is none.
    async fn connection(self: &Arc<Self>) -> Result<Arc<Connection>, McpError> {
        let mut state = self.state.lock().await;
        if state.is_closed {
            return Err(self.call_error("has been closed".to_owned()));
        }
        if let Some(connection) = &state.connection {
            if connection.lives().await {
                return Ok(Arc::clone(connection));
            }
            state.connection = None;
            // Once it has answered, it is worth a new start at once.
            if self.has_answered.load(Ordering::Relaxed) {
                state.failures = 0;
                state.pause_ends = None;
            }
        }
        let now = Instant::now();
        if let Some(left) = state.pause_ends.and_then(|end| end.checked_duration_since(now)) {
            return Err(self.call_error(format!(
                "does not work. It is started again by the first call after {} s",
                left.as_secs_f64().ceil()
            )));
        }
        state.failures += 1;
        let pause = FIRST_PAUSE * 2u32.saturating_pow(state.failures.saturating_sub(2));
        state.pause_ends = (state.failures > 1).then(|| now + pause.min(LONGEST_PAUSE));
        self.has_answered.store(false, Ordering::Relaxed);
        let (connection, tools) = self.open().await.map_err(|fault| self.start_error(fault))?;
        self.catalogue.take(self.index, &self.config.name, tools);
        let connection = Arc::new(connection);
        state.connection = Some(Arc::clone(&connection));
        Ok(connection)
    }

    async fn open(self: &Arc<Self>) -> Result<(Connection, Vec<Tool>), String> {
        let this: Weak<Self> = Arc::downgrade(self);
        let tools_changed: Arc<dyn Fn() + Send + Sync> = Arc::new(move || {
            if let Some(this) = this.upgrade() {
                tokio::spawn(async move { this.list_again().await });
            }
        });
        let client = Client::new(
            &self.config.name,
            self.folder.as_deref(),
            self.elicit.clone(),
            Arc::clone(&tools_changed),
        );
        let connection = Connection::open(&self.config, client).await?;
        connection.follow_tools(move || tools_changed());
        match timeout(self.config.start_limit, connection.tools()).await {
            Ok(Ok(tools)) => Ok((connection, tools)),
            Ok(Err(fault)) => Err(fault),
            Err(_) => Err("did not list its tools in time".to_owned()),
        }
    }

    /// The server has said that its tools are others now.
    async fn list_again(&self) {
        // Held meanwhile, so that an older list never follows a newer one.
        let _turn = self.listing.lock().await;
        let Some(connection) = self.state.lock().await.connection.clone() else { return };
        if let Ok(Ok(tools)) = timeout(self.config.start_limit, connection.tools()).await {
            self.catalogue.take(self.index, &self.config.name, tools);
        }
    }

    fn start_error(&self, fault: String) -> McpError {
        McpError::Start { server: self.config.name.clone(), fault: self.config.redact(fault) }
    }

    fn call_error(&self, fault: String) -> McpError {
        McpError::Call { server: self.config.name.clone(), fault: self.config.redact(fault) }
    }

    /// An error as the model reads it.
    fn tool_error(&self, error: &McpError) -> ToolError {
        let text = error.to_string();
        ToolError::new(text.replacen("server", "Server", 1))
    }
}

/// Before the third start in a row; the second is not waited for.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
