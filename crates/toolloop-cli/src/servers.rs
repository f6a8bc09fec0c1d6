//! [`FolderServers`]: the MCP servers that a folder's `.mcp.json` names, and who agreed to them.
//!
//! A cloned repository can bring such a file, and what it names is run, or sent variables of the
//! environment. So nothing of it is started or reached before a person has agreed: by a flag, for
//! once, or for as long as the file stays as it is.

use std::io;
use std::path::Path;

use toolloop::mcp::{McpError, McpFile, ServerConfig, ServerTransport};

use crate::exit::Exit;
use crate::report::Report;
use crate::settings::Environment;
use crate::terminal::consent::Consent;

/// What a folder's `.mcp.json` says.
#[derive(Debug)]
pub(crate) struct FolderServers {
    /// What was read; an agreement is to this text.
    pub(crate) text: String,
    pub(crate) servers: Vec<ServerConfig>,
    pub(crate) faults: Vec<McpError>,
}

impl FolderServers {
    /// `None` where the folder has no such file, or it names no server.
    pub(crate) fn read(
        folder: &Path,
        environment: &Environment<'_>,
    ) -> Result<Option<Self>, McpError> {
        let wrong = |fault: String| McpError::File { path: FILE.into(), fault };
        let text = match std::fs::read_to_string(folder.join(FILE)) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(wrong(format!("{error}. Make it readable"))),
        };
        let variable = |name: &str| environment.get(name);
        let McpFile { mut servers, faults } = McpFile::parse(&text, Path::new(FILE), &variable)?;
        for server in &mut servers {
            if let ServerTransport::Stdio(command) = &mut server.transport {
                let own = command.folder.take().unwrap_or_default();
                command.folder = Some(folder.join(own));
            }
        }
        Ok((!servers.is_empty() || !faults.is_empty()).then_some(Self { text, servers, faults }))
    }

    /// The question whether they may be started.
    pub(crate) fn consent(&self) -> Consent {
        let place = |server: &ServerConfig| (server.name.clone(), server.place.clone());
        Consent::new(self.servers.iter().map(place).collect())
    }

    /// What is said where nobody has agreed and nobody can be asked.
    pub(crate) fn not_agreed(&self, flag: &str) -> Report {
        let names: Vec<_> = self.servers.iter().map(|server| server.name.as_str()).collect();
        let what = format!(
            "the MCP servers of this folder were not started: nobody has agreed to them ({})",
            names.join(", ")
        );
        Report::new(Exit::Approval, "mcp", what).advice(format!("To start them: {flag}"))
    }
}

/// A fault as it is told.
pub(crate) fn told(fault: &McpError) -> String {
    match fault.to_string() {
        text if text.starts_with(FILE) => format!("error in {text}"),
        text => format!("error in {FILE}: {text}"),
    }
}

const FILE: &str = ".mcp.json";

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Option<FolderServers>, McpError> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(FILE), text).unwrap();
        FolderServers::read(folder.path(), &Environment(&|_| None))
    }

    #[test]
    fn a_fault_names_the_file_once() {
        let wrong = read(r#"{"mcpServers":{"files":{}}}"#).unwrap().unwrap();
        assert_eq!(
            told(&wrong.faults[0]),
            "error in .mcp.json: server \"files\" has neither \"command\" nor \"url\". Add one."
        );
        let ended = McpError::Start { server: "files".into(), fault: "ended at once".into() };
        assert_eq!(told(&ended), "error in .mcp.json: server \"files\" ended at once.");
        assert!(told(&read("x").unwrap_err()).starts_with("error in .mcp.json: expected value"));
    }

    #[test]
    fn programs_start_in_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let text = r#"{"mcpServers":{"a":{"command":"x"},"b":{"command":"x","cwd":"sub"}}}"#;
        std::fs::write(folder.path().join(FILE), text).unwrap();
        let found = FolderServers::read(folder.path(), &Environment(&|_| None)).unwrap().unwrap();
        let folders = found.servers.iter().map(|server| match &server.transport {
            ServerTransport::Stdio(command) => command.folder.clone().unwrap(),
            other => panic!("{other:?}"),
        });
        let folders: Vec<_> = folders.collect();
        assert_eq!(folders, [folder.path().join(""), folder.path().join("sub")]);
    }

    #[test]
    fn no_file_and_no_server_are_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let found = FolderServers::read(folder.path(), &Environment(&|_| None)).unwrap();
        assert!(found.is_none());
        assert!(read(r#"{"mcpServers":{}}"#).unwrap().is_none());
    }
}
