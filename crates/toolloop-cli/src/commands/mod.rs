//! The commands, one file each.

pub(crate) mod fake;
pub(crate) mod models;
pub(crate) mod run;
