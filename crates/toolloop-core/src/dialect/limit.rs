//! [`ToolLimit`]: how many calls a reply may have.

use serde::{Deserialize, Serialize};

/// How many calls a reply may have. Where one more begins, the reply is ended as if the model had
/// ended it there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolLimit {
    /// As many as the model likes.
    #[default]
    Unlimited,
    /// One: the model sees its result before it makes the next.
    One,
    /// So many.
    N(u32),
}

impl ToolLimit {
    /// Whether a reply that has begun `calls` calls may begin one more.
    pub fn allows_another(self, calls: u32) -> bool {
        match self {
            Self::Unlimited => true,
            Self::One => calls < 1,
            Self::N(limit) => calls < limit,
        }
    }
}

/// Why a reply is ended before the model has ended it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StreamingError {
    /// One call more than allowed has begun. What came before is the reply.
    #[error("Tool limit reached - only one tool per message allowed")]
    ToolLimitReached,
    /// The user wants no more of it. What came is void.
    #[error("Streaming cancelled by user")]
    UserCancelled,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_counts_calls_that_began() {
        let allowed = |limit: ToolLimit| (0..5).take_while(|n| limit.allows_another(*n)).count();
        let limits = [ToolLimit::Unlimited, ToolLimit::One, ToolLimit::N(3), ToolLimit::N(0)];
        assert_eq!(limits.map(allowed), [5, 1, 3, 0]);
    }
}
