//! Searches through the files of a [`Root`](crate::Root), which obey `.gitignore`.

mod glob;
mod grep;
mod ignore_rules;
mod matches;
mod walk;

pub use glob::Glob;
pub use grep::Grep;
