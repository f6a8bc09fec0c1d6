//! [`UsageScope`]: counts the tokens of loops that run inside a tool.
//!
//! A loop finds the scope of the tool it runs in by itself, so nesting works with any context.
//! A loop that a tool spawns as a task of its own is not found, and counts for itself alone.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use toolloop_core::Usage;
use toolloop_core::effect::Outcome;

#[derive(Debug, Clone, Default)]
pub(super) struct UsageScope(Arc<Mutex<Usage>>);

tokio::task_local! {
    static CURRENT: UsageScope;
}

impl UsageScope {
    /// The scope of the tool that is being polled.
    pub(super) fn current() -> Option<Self> {
        CURRENT.try_with(Clone::clone).ok()
    }

    /// Runs a tool inside this scope.
    pub(super) fn enter<F: Future>(self, tool: F) -> impl Future<Output = F::Output> {
        CURRENT.scope(self, tool)
    }

    /// Counts the tokens that an outcome of a nested loop brought.
    pub(super) fn count(&self, outcome: &Outcome) {
        let usage = match outcome {
            Outcome::Reply(reply) => Some(reply.response.usage),
            Outcome::ReplyFailed { partial, .. } => Some(partial.usage),
            Outcome::Tool(tool) => tool.usage,
            Outcome::Cut { partial, usage } => {
                partial.as_ref().map(|partial| partial.usage).or(*usage)
            }
            _ => None,
        };
        if let Some(usage) = usage {
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) += usage;
        }
    }

    pub(super) fn into_usage(self) -> Usage {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
