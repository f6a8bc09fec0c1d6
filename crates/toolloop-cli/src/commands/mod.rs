//! The commands, one file each.

pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod doctor;
pub(crate) mod fake;
pub(crate) mod mcp;
pub(crate) mod models;
pub(crate) mod run;
