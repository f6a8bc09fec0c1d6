//! [`McpError`]: what can be wrong with servers, by whose fault it is.

use std::path::PathBuf;

/// What is wrong with a file of servers, or with a server.
///
/// The text names the file or server and the cure, and never holds the value of a variable or
/// header that a server was given.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum McpError {
    /// The file cannot be read or is no list of servers; none of its servers is known.
    #[error("{}: {fault}.", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong, and the cure.
        fault: String,
    },
    /// One server is described wrongly; the others of its file are good.
    #[error("{}: server {server:?} {fault}.", path.display())]
    Description {
        /// The file.
        path: PathBuf,
        /// The server.
        server: String,
        /// What is wrong, and the cure.
        fault: String,
    },
    /// A server did not start, or does not speak the protocol.
    #[error("server {server:?} {fault}.")]
    Start {
        /// The server.
        server: String,
        /// What happened, and the cure.
        fault: String,
    },
    /// A server ended, went silent or answered with an error.
    #[error("server {server:?} {fault}.")]
    Call {
        /// The server.
        server: String,
        /// What happened, and the cure.
        fault: String,
    },
}

impl McpError {
    /// The server it is about; `None` for a whole file.
    pub fn server(&self) -> Option<&str> {
        match self {
            Self::File { .. } => None,
            Self::Description { server, .. }
            | Self::Start { server, .. }
            | Self::Call { server, .. } => Some(server),
        }
    }
}
