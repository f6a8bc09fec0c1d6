//! [`Builtin`]: the built-in tools, set up together for one folder.

use std::io;
use std::path::Path;
use std::sync::Arc;

use toolloop_core::ToolHandler;

use crate::{
    BashKill, BashOutput, BashTool, EditFile, FetchUrl, Glob, Grep, Jobs, ListDir, ReadFile,
    ReadResult, ResultStore, Root, Sandbox, WriteFile,
};

/// The built-in tools, set up together for one folder.
///
/// ```
/// use toolloop_core::ToolHandler;
/// use toolloop_tools::Builtin;
///
/// let tools = Builtin::in_folder(".")?.tools::<()>();
/// let names: Vec<_> = tools.iter().map(|tool| tool.definition().name).collect();
/// assert_eq!(names[..4], ["list_dir", "glob", "grep", "read_file"]);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Builtin {
    root: Root,
    sandbox: Option<Sandbox>,
    results: Option<ResultStore>,
    fetch: Option<FetchUrl>,
}

impl Builtin {
    /// Tools that work in the folder `root`.
    ///
    /// # Errors
    /// When `root` is not a folder that can be opened.
    pub fn in_folder(root: impl AsRef<Path>) -> io::Result<Self> {
        let (root, sandbox) = (Root::open(root)?, Some(Sandbox::new()));
        Ok(Self { root, sandbox, results: None, fetch: None })
    }

    /// Takes another sandbox around the commands of `bash`.
    #[must_use]
    pub fn with_sandbox(mut self, sandbox: Sandbox) -> Self {
        self.sandbox = Some(sandbox);
        self
    }

    /// Lets the commands of `bash` do what the user can.
    #[must_use]
    pub fn without_sandbox(mut self) -> Self {
        self.sandbox = None;
        self
    }

    /// Stores long output there, and adds `read_result`, which opens it.
    #[must_use]
    pub fn with_results(mut self, store: ResultStore) -> Self {
        self.results = Some(store);
        self
    }

    /// Adds `fetch_url`.
    #[must_use]
    pub fn with_fetch(mut self, fetch: FetchUrl) -> Self {
        self.fetch = Some(fetch);
        self
    }

    /// The folder that the tools work in.
    pub fn root(&self) -> &Root {
        &self.root
    }

    /// The tools, always in this order: `list_dir`, `glob`, `grep`, `read_file`, `write_file`,
    /// `edit_file`, `bash`, `bash_output`, `bash_kill`, `fetch_url`, `read_result`. Background commands end
    /// with the last of these tools.
    pub fn tools<Ctx>(&self) -> Vec<Arc<dyn ToolHandler<Ctx>>> {
        let root = || self.root.clone();
        let jobs = Jobs::new();
        let bash = match &self.sandbox {
            Some(sandbox) => BashTool::new().with_sandbox(sandbox.clone()),
            None => BashTool::new().without_sandbox(),
        };
        let bash = match &self.results {
            Some(store) => bash.with_results(store.clone()),
            None => bash,
        };
        let mut tools: Vec<Arc<dyn ToolHandler<Ctx>>> = vec![
            Arc::new(ListDir::new(root())),
            Arc::new(Glob::new(root())),
            Arc::new(Grep::new(root())),
            Arc::new(ReadFile::new(root())),
            Arc::new(WriteFile::new(root())),
            Arc::new(EditFile::new(root())),
            Arc::new(bash.with_working_dir(self.root.path()).with_jobs(jobs.clone())),
            Arc::new(BashOutput::new(jobs.clone())),
            Arc::new(BashKill::new(jobs)),
        ];
        if let Some(fetch) = &self.fetch {
            let fetch = fetch.clone();
            tools.push(Arc::new(match &self.results {
                Some(store) => fetch.with_results(store.clone()),
                None => fetch,
            }));
        }
        if let Some(store) = &self.results {
            tools.push(Arc::new(ReadResult::new(store.clone())));
        }
        tools
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tools_come_in_a_stable_order() {
        let builtin = Builtin::in_folder(".").unwrap();
        let builtin = builtin.with_results(ResultStore::temporary()).with_fetch(FetchUrl::new());
        let tools = builtin.tools::<()>();
        let names: Vec<_> = tools.iter().map(|tool| tool.definition().name).collect();
        let expected = [
            "list_dir",
            "glob",
            "grep",
            "read_file",
            "write_file",
            "edit_file",
            "bash",
            "bash_output",
            "bash_kill",
            "fetch_url",
            "read_result",
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn a_root_that_does_not_exist_is_an_error() {
        let error = Builtin::in_folder("/no/such/folder").err().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
