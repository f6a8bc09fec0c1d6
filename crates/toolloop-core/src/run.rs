//! stub
use serde::{Deserialize, Serialize};
/// Misuse.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[non_exhaustive]
pub enum ApiMisuse {
    /// x
    #[error("x")]
    X,
}
/// Run
#[derive(Debug)]
pub struct Run;
