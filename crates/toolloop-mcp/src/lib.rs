//! Servers of the Model Context Protocol as tools of toolloop, for any context type.
//!
//! [`McpServers`] starts servers and gives their tools; [`McpFile`] reads which ones from a
//! `.mcp.json`.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use std::path::Path;
//! use toolloop_mcp::{McpFile, McpOptions, McpServers};
//!
//! let path = Path::new(".mcp.json");
//! let file = McpFile::parse(&std::fs::read_to_string(path)?, path, &|name| std::env::var(name).ok())?;
//! let servers = McpServers::start(file.servers, McpOptions::default()).await;
//! for fault in file.faults.iter().chain(servers.faults()) {
//!     eprintln!("error: {fault} The run goes on without its tools.");
//! }
//! let tools = servers.tools::<()>(); // for ToolRegistry::register_shared
//! // ... a run ...
//! servers.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! # What holds
//!
//! - The toolset keeps its place: a server that dies fails its calls with an error that says how,
//!   and is started again by the next call. A server's changed list moves no tool; a run that goes
//!   on keeps the tools it began with.
//! - A call that is dropped is cancelled at the server; its late progress goes nowhere.
//! - Programs lead a session of their own, so that no process they started outlives
//!   [`McpServers::close`]. They inherit no variable that looks like a secret.
//! - Each call carries its idempotency key in `_meta`, as `toolloop/idempotencyKey`.
//! - Schemas are data: a `$ref` in one is never loaded from network or disk.
//!
//! Connections run in tasks of their own, so a tokio runtime must be there.

mod catalogue;
mod client;
mod config;
mod connection;
mod content;
mod elicitation;
mod ending;
mod error;
mod expand;
mod file;
mod http;
mod lines;
mod name;
mod open_call;
mod process;
mod progress;
mod server;
mod servers;
mod tool;

pub use config::{Pipe, ServerAddress, ServerCommand, ServerConfig, ServerTransport};
pub use elicitation::{Answer, Elicit, Elicitation, Wanted};
pub use error::McpError;
pub use file::McpFile;
pub use servers::{McpOptions, McpServers, ServerState};
