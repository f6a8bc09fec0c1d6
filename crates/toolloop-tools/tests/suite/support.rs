//! A folder to work in, and a call of a tool as the loop makes it.

use std::path::Path;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tempfile::TempDir;
use toolloop_core::{BoxFuture, CallContext, CallHost, ToolHandler};
use toolloop_tools::Root;

/// A folder with these files, and what lies beside it.
pub(crate) struct Folder {
    outer: TempDir,
}

impl Folder {
    pub(crate) fn new(files: &[(&str, &[u8])]) -> Self {
        let folder = Self { outer: TempDir::new().unwrap() };
        std::fs::create_dir(folder.path()).unwrap();
        for (name, content) in files {
            folder.write(name, content);
        }
        folder
    }

    pub(crate) fn path(&self) -> std::path::PathBuf {
        self.outer.path().join("root")
    }

    /// Outside the root.
    pub(crate) fn outer(&self) -> &Path {
        self.outer.path()
    }

    pub(crate) fn root(&self) -> Root {
        Root::open(self.path()).unwrap()
    }

    pub(crate) fn write(&self, name: &str, content: &[u8]) {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path().join(name)).unwrap()
    }

    /// The names in a folder, sorted.
    pub(crate) fn names(&self, folder: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.path().join(folder)).unwrap();
        let name = |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name();
        let mut names: Vec<_> = entries.map(|entry| name(entry).into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// A text in which this folder's own path reads `ROOT`.
    pub(crate) fn neutral(&self, text: String) -> String {
        text.replace(self.path().to_str().unwrap(), "ROOT")
            .replace(self.outer.path().to_str().unwrap(), "OUTER")
    }
}

/// What the model reads: the output, or the error's message.
pub(crate) async fn call(tool: &dyn ToolHandler, input: Value) -> Result<String, String> {
    call_in(tool, input, &CallContext::detached("c")).await
}

pub(crate) async fn call_in(
    tool: &dyn ToolHandler,
    input: Value,
    context: &CallContext,
) -> Result<String, String> {
    match tool.call(input, context, &()).await {
        Ok(output) => Ok(output.content.into()),
        Err(error) => Err(error.message),
    }
}

/// Keeps what a tool says while it runs.
#[derive(Default)]
pub(crate) struct Watcher(pub(crate) Mutex<Vec<String>>);

impl Watcher {
    pub(crate) fn context(self: &Arc<Self>) -> CallContext {
        CallContext::new("c", "run/t/1/0", self.clone())
    }
}

impl CallHost for Watcher {
    fn progress(&self, _: &str, text: String) {
        self.0.lock().unwrap().push(text);
    }

    fn is_cancelled(&self) -> bool {
        false
    }

    fn cancelled(&self) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
}
