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
//! A folder of the source is a family of tools, a file in it one tool or what they share. Across
//! families stand only `output` (bounds), `blocking` and `binary`. File tools cannot leave their
//! [`Root`]. [`preview`] shows what a call would change, for who approves it.

mod bash;
mod binary;
mod blocking;
mod builtin;
mod files;
mod output;
mod results;
pub mod sandbox;
mod search;
mod web;

pub use bash::{BashKill, BashOutput, BashTool, Jobs};
pub use builtin::Builtin;
pub use files::{EditFile, ListDir, ReadFile, Root, WriteFile, preview};
pub use results::{ReadResult, ResultStore};
pub use sandbox::Sandbox;
pub use search::{Glob, Grep};
pub use web::FetchUrl;
