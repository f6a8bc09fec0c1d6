//! The commands, one file each.

pub(crate) mod completions;
pub(crate) mod fake;
pub(crate) mod models;
pub(crate) mod run;
