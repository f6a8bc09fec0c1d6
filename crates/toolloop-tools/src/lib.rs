//! The tools that come with toolloop, for any context type.
//!
//! [`builtin`] gives all of them for one folder; each can also be made alone:
//!
//! | tool | does | effect class |
//! |---|---|---|
//! | [`ListDir`] `list_dir` | lists a folder | read only |
//! | [`ReadFile`] `read_file` | reads lines of a text file | read only |
//! | [`BashTool`] `bash` | runs a command | once |
//!
//! The file tools share a [`Root`], which they cannot leave. One file holds one tool; what tools
//! share stands in `root` (paths), `output` (bounds) and `blocking`.

mod bash;
mod binary;
mod blocking;
mod environment;
mod list_dir;
mod output;
mod process;
mod progress;
mod read_file;
mod root;

use std::io;
use std::path::Path;
use std::sync::Arc;

use toolloop_core::ToolHandler;

pub use bash::BashTool;
pub use list_dir::ListDir;
pub use read_file::ReadFile;
pub use root::Root;

/// All built-in tools, working in the folder `root`: `list_dir`, `read_file`, `bash`.
///
/// # Errors
/// When `root` is not a folder that can be opened.
pub fn builtin<Ctx>(root: impl AsRef<Path>) -> io::Result<Vec<Arc<dyn ToolHandler<Ctx>>>> {
    let root = Root::open(root)?;
    let bash = BashTool::new().with_working_dir(root.path());
    Ok(vec![Arc::new(ListDir::new(root.clone())), Arc::new(ReadFile::new(root)), Arc::new(bash)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tools_come_in_a_stable_order() {
        let tools = builtin::<()>(".").unwrap();
        let names: Vec<_> = tools.iter().map(|tool| tool.definition().name).collect();
        assert_eq!(names, ["list_dir", "read_file", "bash"]);
    }

    #[test]
    fn a_root_that_does_not_exist_is_an_error() {
        let error = builtin::<()>("/no/such/folder").err().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
