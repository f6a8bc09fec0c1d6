//! The tools that come with toolloop, for any context type.
//!
//! [`Builtin`] gives them for one folder; each can also be made alone:
//!
//! | tool | does | effect class |
//! |---|---|---|
//! | [`ListDir`] `list_dir` | lists a folder | read only |
//! | [`Glob`] `glob` | finds files by a pattern for their paths | read only |
//! | [`Grep`] `grep` | searches files for a regular expression | read only |
//! | [`ReadFile`] `read_file` | reads lines of a text file | read only |
//! | [`WriteFile`] `write_file` | writes a whole file | idempotent |
//! | [`EditFile`] `edit_file` | changes parts of a file, named by their text | once |
//! | [`BashTool`] `bash` | runs a command in a [`sandbox`] | once |
//! | [`BashOutput`] `bash_output` | shows how a background command is | read only |
//! | [`BashKill`] `bash_kill` | ends a background command | idempotent |
//! | [`FetchUrl`] `fetch_url` | fetches a text from the Internet; only where asked for | idempotent |
//! | [`ReadResult`] `read_result` | reads on in a long result | read only |
//!
//! The file tools share a [`Root`], which they cannot leave. One file holds one tool; what tools
//! share stands in `root` (paths), `place` (replacing files), `walk` (files of a tree), `output`
//! (bounds) and `blocking`. [`preview`] shows what a call would change, for who approves it.

mod addresses;
mod bash;
mod bash_kill;
mod bash_output;
mod bash_report;
mod binary;
mod blocking;
mod builtin;
mod edit_file;
mod edits;
mod environment;
mod fetch_url;
mod glob;
mod grep;
mod group;
mod html;
mod ignore_rules;
mod jobs;
mod list_dir;
mod matches;
mod output;
mod place;
mod preview;
mod process;
mod progress;
mod read_file;
mod read_result;
mod result_store;
mod root;
pub mod sandbox;
mod walk;
mod web;
mod write_file;

pub use bash::BashTool;
pub use bash_kill::BashKill;
pub use bash_output::BashOutput;
pub use builtin::Builtin;
pub use edit_file::EditFile;
pub use fetch_url::FetchUrl;
pub use glob::Glob;
pub use grep::Grep;
pub use jobs::Jobs;
pub use list_dir::ListDir;
pub use preview::preview;
pub use read_file::ReadFile;
pub use read_result::ReadResult;
pub use result_store::ResultStore;
pub use root::Root;
pub use sandbox::Sandbox;
pub use write_file::WriteFile;
