//! Commands: [`BashTool`] runs one, [`Jobs`] are those in the background.
//!
//! From the outside in: `tool` reads the call, `process` carries one command from start to end,
//! `group` ends whatever the command started. What it may do is up to [`crate::sandbox`].

mod bash_kill;
mod bash_output;
mod group;
mod jobs;
mod process;
mod progress;
mod report;
mod tool;

pub use bash_kill::BashKill;
pub use bash_output::BashOutput;
pub use jobs::Jobs;
pub use tool::BashTool;
