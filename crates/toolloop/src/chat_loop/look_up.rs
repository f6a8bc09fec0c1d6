//! [`LookUp`]: the tool of a name, in the registry or else among the executors.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use toolloop_core::{BoxFuture, CallContext, ToolCall, ToolError, ToolResult};

use super::config::ToolExecutor;
use crate::driver::Toolbox;
use crate::tool::{ToolRegistry, panicked, result_of};

/// Runs a call by the registry; by an executor only where the name is not registered, so that a
/// tool that ran and failed is never run again.
pub(super) struct LookUp {
    pub(super) registry: Arc<ToolRegistry>,
    pub(super) tool_executors: HashMap<String, ToolExecutor>,
}

impl Toolbox for LookUp {
    fn fault(&self, call: &ToolCall) -> Option<String> {
        self.registry.contains(&call.name).then(|| self.registry.fault(call))?
    }

    fn run(&self, call: ToolCall, context: CallContext) -> BoxFuture<'static, ToolResult> {
        if self.registry.contains(&call.name) {
            let registry = Arc::clone(&self.registry);
            return Box::pin(
                async move { result_of(&call, registry.run(&call, &context, &()).await) },
            );
        }
        let executor = self.tool_executors.get(&call.name).cloned();
        Box::pin(async move {
            let outcome = match executor {
                Some(run) => {
                    // Inside an async block, so that a panic before the first await is caught too.
                    let work = AssertUnwindSafe(async { run(call.clone()).await });
                    let finished = work.catch_unwind().await;
                    finished.unwrap_or_else(|panic| Err(panicked(&call.name, &*panic)))
                }
                None => Err(ToolError::new(format!("Tool '{}' not registered", call.name))),
            };
            result_of(&call, outcome)
        })
    }
}
