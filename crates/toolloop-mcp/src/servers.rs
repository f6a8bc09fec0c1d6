//! [`McpServers`]: some servers, and their tools.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::join_all;
use toolloop_core::ToolHandler;

use crate::catalogue::Catalogue;
use crate::config::ServerConfig;
use crate::elicitation::Elicit;
use crate::error::McpError;
use crate::server::Server;
use crate::tool::McpTool;

/// Servers that were started together, and their tools.
///
/// Call [`close`](Self::close) at the end: it waits until programs and all they started are gone.
/// Dropping it ends them as well, as long as the runtime still runs.
pub struct McpServers {
    servers: Vec<Arc<Server>>,
    catalogue: Arc<Catalogue>,
    faults: Vec<McpError>,
}

/// What servers may ask for.
#[derive(Clone, Default)]
pub struct McpOptions {
    /// The folder that servers are told to work in (their root).
    pub folder: Option<PathBuf>,
    /// Asks a person what a server wants to know; without it nobody is asked.
    pub elicit: Option<Elicit>,
}

impl McpServers {
    /// Starts servers, all at once. One that does not start is among the
    /// [`faults`](Self::faults), and the others are there. Of two with the same name the later
    /// counts.
    pub async fn start(configs: Vec<ServerConfig>, options: McpOptions) -> Self {
        let mut chosen: Vec<ServerConfig> = Vec::new();
        for config in configs {
            match chosen.iter_mut().find(|other| other.name == config.name) {
                Some(other) => *other = config,
                None => chosen.push(config),
            }
        }
        let catalogue = Arc::new(Catalogue::default());
        let servers: Vec<Arc<Server>> = chosen
            .into_iter()
            .enumerate()
            .map(|(index, config)| {
                let McpOptions { folder, elicit } = options.clone();
                Arc::new(Server::new(config, index, folder, elicit, Arc::clone(&catalogue)))
            })
            .collect();
        let started = join_all(servers.iter().map(Server::start)).await;
        catalogue.settle();
        let faults = started.into_iter().filter_map(Result::err).collect();
        Self { servers, catalogue, faults }
    }

    /// What kept servers from starting, in their order.
    pub fn faults(&self) -> &[McpError] {
        &self.faults
    }

    /// The tools that servers offer now, for a registry: server by server, each by name, and then
    /// what they offered later. A tool is called `server__tool`, in letters that every API takes.
    pub fn tools<Ctx: Send + Sync>(&self) -> Vec<Arc<dyn ToolHandler<Ctx>>> {
        let tool = |entry: crate::catalogue::Entry| -> Arc<dyn ToolHandler<Ctx>> {
            Arc::new(McpTool::new(Arc::clone(&self.servers[entry.server]), entry))
        };
        self.catalogue.offered().into_iter().map(tool).collect()
    }

    /// What is known of each server, in order.
    pub async fn states(&self) -> Vec<ServerState> {
        let offered = self.catalogue.offered();
        join_all(self.servers.iter().enumerate().map(async |(index, server)| {
            let tools = offered.iter().filter(|entry| entry.server == index);
            let fault =
                self.faults.iter().find(|fault| fault.server() == Some(&server.config.name));
            ServerState {
                name: server.config.name.clone(),
                place: server.config.place.clone(),
                about: server.about().await,
                tools: tools
                    .map(|entry| (entry.remote.clone(), entry.definition.description.clone()))
                    .collect(),
                fault: fault.cloned(),
            }
        }))
        .await
    }

    /// Ends all servers; after this, calls fail. Takes five seconds at most.
    pub async fn close(&self) {
        join_all(self.servers.iter().map(|server| server.close())).await;
    }
}

impl fmt::Debug for McpServers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.servers.iter().map(|server| &server.config.name);
        f.debug_list().entries(names).finish()
    }
}

impl fmt::Debug for McpOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpOptions")
            .field("folder", &self.folder)
            .field("has_elicit", &self.elicit.is_some())
            .finish()
    }
}

/// What is known of a server.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerState {
    /// Its name here.
    pub name: String,
    /// Where it is, or which program it is.
    pub place: String,
    /// The name and version it gives itself, while it is connected.
    pub about: Option<String>,
    /// Its tools: their names there, and what they do.
    pub tools: Vec<(String, String)>,
    /// Why it did not start.
    pub fault: Option<McpError>,
}
