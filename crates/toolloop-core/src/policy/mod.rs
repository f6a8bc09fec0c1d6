//! Policies: pure functions and small states that decide, each in a file of its own.

pub mod detection;
pub mod masking;
pub mod stop;
