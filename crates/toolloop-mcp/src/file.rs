//! [`McpFile`]: the servers of a `.mcp.json`, the format that other programs use as well.
//!
//! ```json
//! {
//!   "mcpServers": {
//!     "files": {"command": "npx", "args": ["-y", "server-filesystem", "."]},
//!     "web": {"type": "http", "url": "https://example.org/mcp",
//!             "headers": {"Authorization": "Bearer ${WEB_TOKEN}"}}
//!   }
//! }
//! ```

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value};
use toolloop_platform::names_a_secret;

use crate::config::{ServerAddress, ServerCommand, ServerConfig, ServerTransport};
use crate::error::McpError;
use crate::expand::expand;

/// What a file of servers says.
#[derive(Debug, Default)]
pub struct McpFile {
    /// The servers that are described well, in the order of the file.
    pub servers: Vec<ServerConfig>,
    /// What is wrong with the others.
    pub faults: Vec<McpError>,
}

impl McpFile {
    /// Reads what such a file says. `path` is for errors; `variable` gives what `${NAME}` in
    /// commands, arguments, variables, addresses and headers stands for.
    ///
    /// # Errors
    /// When the text is not JSON with an object `mcpServers`. A server that is described wrongly
    /// is one of the [`faults`](Self::faults), and the others are good.
    pub fn parse(
        text: &str,
        path: &Path,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, McpError> {
        let wrong = |fault: String| McpError::File { path: path.to_owned(), fault };
        // Some editors begin a file with a byte order mark.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let root: Value = serde_json::from_str(text)
            .map_err(|error| wrong(format!("{error}. Correct it, it is not JSON")))?;
        let Some(servers) = root.get("mcpServers").and_then(Value::as_object) else {
            return Err(wrong(
                "there is no object \"mcpServers\". Write {\"mcpServers\": {\"NAME\": \
                 {\"command\": \"PROGRAM\", \"args\": []}}}"
                    .to_owned(),
            ));
        };
        let mut file = Self::default();
        for (name, entry) in servers {
            match server(name, entry, variable) {
                Ok(server) => file.servers.extend(server),
                Err(fault) => file.faults.push(McpError::Description {
                    path: path.to_owned(),
                    server: name.clone(),
                    fault,
                }),
            }
        }
        Ok(file)
    }
}

/// One server as it is written. Other programs know more fields; they are passed over.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    #[serde(rename = "type", alias = "transport")]
    kind: Option<String>,
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: Map<String, Value>,
    cwd: Option<String>,
    #[serde(alias = "serverUrl")]
    url: Option<String>,
    #[serde(default)]
    headers: Map<String, Value>,
    /// In milliseconds.
    timeout: Option<u64>,
    #[serde(default)]
    disabled: bool,
}

/// `None` for a server that is switched off.
fn server(
    name: &str,
    entry: &Value,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<ServerConfig>, String> {
    let entry = Entry::deserialize(entry).map_err(|error| wrong_field(entry, &error))?;
    if entry.disabled {
        return Ok(None);
    }
    let place = place(&entry);
    let secrets = RefCell::new(Vec::new());
    let expand = |text: &str| {
        expand(text, &|name| {
            let value = variable(name)?;
            if names_a_secret(name) {
                secrets.borrow_mut().push(value.clone().into());
            }
            Some(value)
        })
    };
    let expand_all = |values: &Map<String, Value>| -> Result<BTreeMap<String, _>, String> {
        values
            .iter()
            .map(|(name, value)| {
                let text = match value {
                    Value::String(text) => expand(text)?,
                    Value::Number(_) | Value::Bool(_) => value.to_string(),
                    _ => return Err(format!("has a value for {name:?} that is no text")),
                };
                Ok((name.clone(), text.into()))
            })
            .collect()
    };
    let transport: ServerTransport = match (entry.kind.as_deref(), entry.command, entry.url) {
        (None | Some("stdio"), Some(command), None) => ServerCommand {
            program: expand(&command)?,
            args: entry.args.iter().map(|text| expand(text)).collect::<Result<_, _>>()?,
            env: expand_all(&entry.env)?,
            folder: entry.cwd.map(|folder| expand(&folder)).transpose()?.map(Into::into),
        }
        .into(),
        (None | Some("http" | "streamable-http" | "streamableHttp"), None, Some(url)) => {
            ServerAddress { url: expand(&url)?, headers: expand_all(&entry.headers)? }.into()
        }
        (Some("sse"), ..) => {
            return Err("uses \"sse\", which the protocol has given up. Use its streamable HTTP \
                        address with \"type\": \"http\""
                .to_owned());
        }
        (Some(kind), ..) if !KINDS.contains(&kind) => {
            return Err(format!("has the unknown type {kind:?}. Use \"stdio\" or \"http\""));
        }
        (_, Some(_), Some(_)) => {
            return Err("has a \"command\" and a \"url\". Keep one of them".to_owned());
        }
        (Some("stdio"), ..) => return Err("has no \"command\". Add it".to_owned()),
        (Some(_), ..) => return Err("has no \"url\". Add it".to_owned()),
        (None, ..) => return Err("has neither \"command\" nor \"url\". Add one".to_owned()),
    };
    let mut server = ServerConfig::new(name, transport);
    server.place = place;
    server.secrets = secrets.take();
    if let Some(limit) = entry.timeout {
        server.time_limit = Duration::from_millis(limit);
    }
    Ok(Some(server))
}

/// What is wrong with the form of a server. serde does not name the field, so each is tried alone.
fn wrong_field(entry: &Value, error: &serde_json::Error) -> String {
    let Some(fields) = entry.as_object() else {
        return "is no object. Write {\"command\": \"PROGRAM\", \"args\": []}".to_owned();
    };
    let alone = |(name, value): (&String, &Value)| {
        let field = Value::Object(Map::from_iter([(name.clone(), value.clone())]));
        let error = Entry::deserialize(field).err()?;
        Some(format!("has a {name:?} that is not right: {error}. Correct it"))
    };
    fields.iter().find_map(alone).unwrap_or_else(|| format!("is not right: {error}"))
}

/// The way to a server as it is written, and which variables and headers it is given.
fn place(entry: &Entry) -> String {
    let way = entry.command.iter().chain(&entry.args).chain(&entry.url);
    let mut place = way.map(String::as_str).collect::<Vec<_>>().join(" ");
    let given = entry.env.iter().chain(&entry.headers);
    let given: Vec<String> = given
        .map(|(name, value)| match value.as_str().filter(|value| value.contains("${")) {
            Some(value) => format!("{name}={value}"),
            None => name.clone(),
        })
        .collect();
    if !given.is_empty() {
        place += &format!(" (given {})", given.join(", "));
    }
    place
}

const KINDS: [&str; 5] = ["stdio", "http", "streamable-http", "streamableHttp", "sse"];

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;

    fn parsed(text: &str) -> Result<McpFile, McpError> {
        let variable = |name: &str| (name == "TOKEN").then(|| "abcdefgh".to_owned());
        McpFile::parse(text, Path::new(".mcp.json"), &variable)
    }

    fn fault(entry: &str) -> String {
        let file = parsed(&format!(r#"{{"mcpServers":{{"files":{entry}}}}}"#)).unwrap();
        assert!(file.servers.is_empty());
        file.faults[0].to_string()
    }

    #[test]
    fn servers_come_in_the_order_of_the_file() {
        let file = parsed(
            r#"{"mcpServers": {
                "zoo": {"command": "npx", "args": ["-y", "${TOKEN}"], "env": {"T": "${TOKEN}", "N": 1},
                        "alwaysAllow": ["x"], "timeout": 1500},
                "off": {"command": "x", "disabled": true},
                "bad": {"command": "${NONE}"},
                "aero": {"type": "http", "url": "http://h/${PATH_:-mcp}",
                         "headers": {"X-Key": "k ${TOKEN}"}}
            }}"#,
        )
        .unwrap();
        let shown: Vec<_> = file
            .servers
            .iter()
            .map(|server| (server.name.as_str(), server.place.as_str()))
            .collect();
        assert_eq!(
            shown,
            [
                ("zoo", "npx -y ${TOKEN} (given T=${TOKEN}, N)"),
                ("aero", "http://h/${PATH_:-mcp} (given X-Key=k ${TOKEN})"),
            ]
        );
        assert_eq!(file.servers[0].redact("it said abcdefgh".into()), "it said [redacted]");
        let ServerTransport::Stdio(zoo) = &file.servers[0].transport else { panic!("no command") };
        assert_eq!(
            (zoo.program.as_str(), zoo.args.as_slice()),
            ("npx", &["-y", "abcdefgh"].map(String::from)[..])
        );
        assert_eq!(zoo.env["T"].expose_secret(), "abcdefgh");
        assert_eq!(zoo.env["N"].expose_secret(), "1");
        assert_eq!(file.servers[0].time_limit, Duration::from_millis(1500));
        let ServerTransport::Http(aero) = &file.servers[1].transport else { panic!("no address") };
        assert_eq!(aero.url, "http://h/mcp");
        assert_eq!(aero.headers["X-Key"].expose_secret(), "k abcdefgh");
        assert_eq!(
            file.faults[0].to_string(),
            ".mcp.json: server \"bad\" needs the variable NONE, which is not set. Set it, or give \
             a default: ${NONE:-...}."
        );
    }

    #[test]
    fn a_fault_names_file_server_and_cure() {
        for (entry, said) in [
            (r#"{}"#, r#"has neither "command" nor "url". Add one"#),
            (r#"{"command":"a","url":"b"}"#, r#"has a "command" and a "url". Keep one of them"#),
            (r#"{"type":"http"}"#, r#"has no "url". Add it"#),
            (r#"{"type":"ws","url":"x"}"#, r#"has the unknown type "ws". Use "stdio" or "http""#),
            (
                r#"{"type":"sse","url":"x"}"#,
                r#"uses "sse", which the protocol has given up. Use its streamable HTTP address with "type": "http""#,
            ),
            (r#"7"#, r#"is no object. Write {"command": "PROGRAM", "args": []}"#),
            (
                r#"{"command":7}"#,
                r#"has a "command" that is not right: invalid type: integer `7`, expected a string. Correct it"#,
            ),
            (
                r#"{"command":"x","args":"-y"}"#,
                r#"has a "args" that is not right: invalid type: string "-y", expected a sequence. Correct it"#,
            ),
            (r#"{"command":"x","env":{"A":[]}}"#, r#"has a value for "A" that is no text"#),
        ] {
            assert_eq!(fault(entry), format!(".mcp.json: server \"files\" {said}."));
        }
    }

    #[test]
    fn a_file_that_is_no_list_of_servers_says_what_to_write() {
        assert_eq!(
            parsed("{").unwrap_err().to_string(),
            ".mcp.json: EOF while parsing an object at line 1 column 1. Correct it, it is not JSON."
        );
        assert!(parsed("{}").unwrap_err().to_string().contains("\"mcpServers\""));
        assert_eq!(parsed("\u{feff}{\"mcpServers\": {}}").unwrap().servers.len(), 0);
    }
}
