//! [`ServerConfig`]: how one server is reached.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use tokio::io::{AsyncRead, AsyncWrite};
use toolloop_core::BoxFuture;

/// How one server is reached, and for how long a call to it may last.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// The name that its tools carry in front, and that errors name.
    pub name: String,
    /// The way to it.
    pub transport: ServerTransport,
    /// The way in words, for people: as it is written, with variables by name and not by value.
    pub place: String,
    /// Longest time one call may take; time in which a person is asked does not count.
    pub time_limit: Duration,
    /// Longest time until it has started and listed its tools. `npx` may have to download first.
    pub start_limit: Duration,
    /// Values that must not be shown, besides those of its variables and headers.
    pub(crate) secrets: Vec<SecretString>,
}

/// The way to a server.
#[derive(Clone)]
#[non_exhaustive]
pub enum ServerTransport {
    /// A program that speaks over its standard input and output.
    Stdio(ServerCommand),
    /// A server that speaks streamable HTTP.
    Http(ServerAddress),
    /// Anything else that carries lines: a server in the same process, a socket.
    Pipe(Arc<dyn Fn() -> BoxFuture<'static, io::Result<Pipe>> + Send + Sync>),
}

/// A program that is a server.
#[derive(Clone, Default)]
pub struct ServerCommand {
    /// Name or path of the program.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables besides those it inherits. What looks like a secret is inherited by no server;
    /// one that needs a key gets it here.
    pub env: BTreeMap<String, SecretString>,
    /// The folder it starts in; `None` is the one of this process.
    pub folder: Option<PathBuf>,
}

/// Where a server is.
#[derive(Clone, Default)]
pub struct ServerAddress {
    /// An `http` or `https` address.
    pub url: String,
    /// Sent with every request, for example `Authorization`.
    pub headers: BTreeMap<String, SecretString>,
}

/// Both directions of a connection; messages are lines of JSON.
pub struct Pipe {
    /// What the server writes.
    pub reader: Box<dyn AsyncRead + Send + Unpin>,
    /// What the server reads.
    pub writer: Box<dyn AsyncWrite + Send + Unpin>,
}

impl ServerConfig {
    /// A server of this name, with the default limits: five minutes a call, one minute to start.
    pub fn new(name: impl Into<String>, transport: impl Into<ServerTransport>) -> Self {
        let transport = transport.into();
        let mut config = Self {
            name: name.into(),
            place: String::new(),
            transport,
            time_limit: Duration::from_secs(300),
            start_limit: Duration::from_secs(60),
            secrets: Vec::new(),
        };
        config.place = config.redact(match &config.transport {
            ServerTransport::Stdio(command) => {
                let words = std::iter::once(&command.program).chain(&command.args);
                words.map(String::as_str).collect::<Vec<_>>().join(" ")
            }
            ServerTransport::Http(address) => address.url.clone(),
            ServerTransport::Pipe(_) => "a pipe".to_owned(),
        });
        config
    }

    /// The text without the values of this server's variables and headers, and its other secrets.
    pub(crate) fn redact(&self, mut text: String) -> String {
        let named = match &self.transport {
            ServerTransport::Stdio(command) => Some(&command.env),
            ServerTransport::Http(address) => Some(&address.headers),
            ServerTransport::Pipe(_) => None,
        };
        let named = named.into_iter().flat_map(BTreeMap::values);
        for secret in named.chain(&self.secrets).map(ExposeSecret::expose_secret) {
            // A header's key stands behind its scheme.
            let key = secret.rsplit(' ').next().unwrap_or_default();
            for part in [secret, key].into_iter().filter(|part| part.len() >= SHORTEST_SECRET) {
                if text.contains(part) {
                    text = text.replace(part, "[redacted]");
                }
            }
        }
        text
    }
}

impl From<ServerCommand> for ServerTransport {
    fn from(command: ServerCommand) -> Self {
        Self::Stdio(command)
    }
}

impl From<ServerAddress> for ServerTransport {
    fn from(address: ServerAddress) -> Self {
        Self::Http(address)
    }
}

impl fmt::Debug for ServerTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdio(command) => command.fmt(f),
            Self::Http(address) => address.fmt(f),
            Self::Pipe(_) => f.write_str("Pipe"),
        }
    }
}

/// Names the variables, never their values.
impl fmt::Debug for ServerCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerCommand")
            .field("program", &self.program)
            .field("args", &self.args)
            .field("env", &self.env.keys())
            .field("folder", &self.folder)
            .finish()
    }
}

/// Names the headers, never their values.
impl fmt::Debug for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerAddress")
            .field("url", &self.url)
            .field("headers", &self.headers.keys())
            .finish()
    }
}

/// Shorter values are words like `debug`, and taking them out would garble a text.
const SHORTEST_SECRET: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_value_of_a_variable_or_header_is_shown() {
        let env = [("TOKEN".to_owned(), "s3cret-value".to_owned().into())].into();
        let command = ServerCommand {
            program: "server".into(),
            args: vec!["--token=s3cret-value".into()],
            env,
            folder: None,
        };
        let config = ServerConfig::new("files", command);
        assert_eq!(config.place, "server --token=[redacted]");

        let headers = [("Authorization".to_owned(), "Bearer abcdefgh1".to_owned().into())].into();
        let address = ServerAddress { url: "http://127.0.0.1:1/mcp".into(), headers };
        let config = ServerConfig::new("web", address);
        assert_eq!(config.redact("refused abcdefgh1".into()), "refused [redacted]");
        assert!(!format!("{config:?}").contains("abcdefgh1"));
    }
}
