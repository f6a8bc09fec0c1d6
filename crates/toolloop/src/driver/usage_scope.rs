//! [`UsageScope`]: counts the tokens of loops that run inside a tool.
//!
//! A loop finds the scope of the tool it runs in by itself, so nesting works with any context.
//! A loop that a tool spawns as a task of its own is not found, and counts for itself alone.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use toolloop_core::Usage;

#[derive(Debug, Clone)]
pub(super) struct UsageScope(Arc<Scope>);

#[derive(Debug)]
struct Scope {
    usage: Mutex<Usage>,
    /// The tool around the loop whose tool this is.
    outer: Option<UsageScope>,
}

tokio::task_local! {
    static CURRENT: UsageScope;
}

impl UsageScope {
    /// The scope of the tool that is being polled.
    pub(super) fn current() -> Option<Self> {
        CURRENT.try_with(Clone::clone).ok()
    }

    /// A scope for a tool of a loop that runs in `outer` itself.
    pub(super) fn inside(outer: Option<Self>) -> Self {
        Self(Arc::new(Scope { usage: Mutex::default(), outer }))
    }

    /// Runs a tool inside this scope.
    pub(super) fn enter<F: Future>(self, tool: F) -> impl Future<Output = F::Output> {
        CURRENT.scope(self, tool)
    }

    /// Counts the tokens of a model call here and in every scope around: at once, so that those
    /// of a loop that is cut before its end are not lost.
    pub(super) fn count(&self, usage: Usage) {
        let mut scope = Some(self);
        while let Some(Self(of_tool)) = scope {
            *of_tool.usage.lock().unwrap_or_else(PoisonError::into_inner) += usage;
            scope = of_tool.outer.as_ref();
        }
    }

    pub(super) fn usage(&self) -> Usage {
        *self.0.usage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
