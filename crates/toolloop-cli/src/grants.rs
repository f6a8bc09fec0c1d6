//! [`Grants`]: what a person has said "always" to, and which MCP servers they have agreed to,
//! remembered for the folder.
//!
//! One file for all folders, which people may read and edit:
//!
//! ```toml
//! ["/home/ada/proj"]
//! allow = ["bash(command: wc *)"]
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind::{NotADirectory, NotFound};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use toolloop::tool::{ApprovalRule, EffectClass};
use toolloop_core::ToolCall;

use crate::origin::short_path;
use crate::report::Report;

/// The rules a person has agreed to in one folder.
#[derive(Debug, Default)]
pub(crate) struct Grants {
    rules: Vec<ApprovalRule>,
    /// The text of the `.mcp.json` whose servers may be started.
    servers: Option<String>,
    /// Where they are kept and for which folder; `None`: nowhere.
    kept: Option<(PathBuf, PathBuf)>,
}

/// The file, by folder.
type File = BTreeMap<PathBuf, Entry>;

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    #[serde(default)]
    allow: Vec<ApprovalRule>,
    #[serde(default, rename = "mcp", skip_serializing_if = "Option::is_none")]
    servers: Option<String>,
}

impl Grants {
    /// Those for this folder. A `file` of `None` remembers nothing.
    pub(crate) fn load(file: Option<PathBuf>, folder: &Path) -> Result<Self, Report> {
        let Some(file) = file else { return Ok(Self::default()) };
        let Entry { allow: rules, servers } = read(&file)?.remove(folder).unwrap_or_default();
        Ok(Self { rules, servers, kept: Some((file, folder.to_owned())) })
    }

    /// Whether a call is among them.
    pub(crate) fn cover(&self, call: &ToolCall, class: EffectClass) -> bool {
        self.rules.iter().any(|rule| rule.allows(call, class))
    }

    pub(crate) fn rules(&self) -> &[ApprovalRule] {
        &self.rules
    }

    /// Adds one without remembering it.
    pub(crate) fn add_for_this_run(&mut self, rule: ApprovalRule) {
        if !self.rules.contains(&rule) {
            self.rules.push(rule);
        }
    }

    /// Adds one, for later runs in this folder, too.
    ///
    /// # Errors
    /// When the file cannot be written; the grant then holds for this run.
    pub(crate) fn add(&mut self, rule: ApprovalRule) -> Result<(), Report> {
        self.add_for_this_run(rule.clone());
        self.remember(|entry| {
            if !entry.allow.contains(&rule) {
                entry.allow.push(rule);
            }
        })
    }

    /// Whether the servers of a `.mcp.json` with exactly this text may be started.
    pub(crate) fn cover_servers(&self, text: &str) -> bool {
        self.servers.as_deref() == Some(text)
    }

    /// Agrees to the servers of a `.mcp.json`, for as long as its text is this one.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(crate) fn add_servers(&mut self, text: &str) -> Result<(), Report> {
        self.servers = Some(text.to_owned());
        self.remember(|entry| entry.servers = Some(text.to_owned()))
    }

    fn remember(&self, change: impl FnOnce(&mut Entry)) -> Result<(), Report> {
        let Some((file, folder)) = &self.kept else { return Ok(()) };
        // Read again: another run may have added to it meanwhile.
        let mut all = read(file)?;
        change(all.entry(folder.clone()).or_default());
        write(file, &all)
            .map_err(|error| Report::usage(format!("cannot write {}: {error}", short_path(file))))
    }
}

fn read(file: &Path) -> Result<File, Report> {
    let text = match fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if matches!(error.kind(), NotFound | NotADirectory) => return Ok(File::new()),
        Err(error) => {
            let report = Report::usage(format!("cannot read {}: {error}", short_path(file)));
            return Err(report.advice(HOLDS));
        }
    };
    toml::from_str(&text).map_err(|error| {
        let line = error.span().map_or(0, |span| text[..span.start].lines().count().max(1));
        Report::usage(format!("in {}, line {line}: {}", short_path(file), error.message()))
            .advice(HOLDS)
    })
}

const HOLDS: &str = "It holds what was always allowed, by folder. Mend or remove it.";

/// Whole or not at all, and for the person's eyes only.
fn write(file: &Path, all: &File) -> io::Result<()> {
    let folder = file.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let text = toml::to_string(all).map_err(io::Error::other)?;
    let new = file.with_extension(format!("{}.new", std::process::id()));
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    options.open(&new)?.write_all(text.as_bytes())?;
    fs::rename(new, file)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_grant_is_of_its_folder_and_stays() {
        let temporary = tempfile::tempdir().unwrap();
        let file = temporary.path().join("new/approvals.toml");
        let load = |folder: &str| Grants::load(Some(file.clone()), Path::new(folder)).unwrap();
        let rule = ApprovalRule::beginning("bash", "command", "wc");
        load("/a").add(rule.clone()).unwrap();
        load("/a").add(rule.clone()).unwrap();
        load("/b").add(ApprovalRule::tool("edit_file")).unwrap();
        assert_eq!(load("/a").rules(), [rule]);
        let arguments = json!({"command": "wc x"});
        let call = ToolCall { id: "c".into(), name: "bash".into(), arguments };
        assert!(load("/a").cover(&call, EffectClass::Once));
        assert!(!load("/b").cover(&call, EffectClass::Once));
        let text =
            "[\"/a\"]\nallow = [\"bash(command: wc *)\"]\n\n[\"/b\"]\nallow = [\"edit_file\"]\n";
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
    }

    #[test]
    fn servers_are_agreed_to_by_folder_and_text() {
        let temporary = tempfile::tempdir().unwrap();
        let file = temporary.path().join("approvals.toml");
        let load = |folder: &str| Grants::load(Some(file.clone()), Path::new(folder)).unwrap();
        let text = "{\"mcpServers\": {}}\n";
        load("/a").add_servers(text).unwrap();
        load("/a").add(ApprovalRule::tool("bash")).unwrap();
        assert!(load("/a").cover_servers(text));
        assert!(!load("/a").cover_servers("{\"mcpServers\": {}}"));
        assert!(!load("/b").cover_servers(text));
    }

    #[test]
    fn a_broken_file_is_named_with_its_line() {
        let temporary = tempfile::tempdir().unwrap();
        let file = temporary.path().join("approvals.toml");
        fs::write(&file, "[\"/a\"]\nallow = [\"not a rule\"]\n").unwrap();
        let error = Grants::load(Some(file), Path::new("/a")).unwrap_err().to_string();
        assert!(error.contains("approvals.toml, line 2: `not a rule` is no rule"), "{error}");
    }
}
