//! Policies: pure functions and small states that decide, each in a file of its own.

pub mod approval;
pub mod compaction;
pub mod detection;
pub mod masking;
pub(crate) mod pruning;
pub mod stop;
pub(crate) mod summary;
pub mod window;
