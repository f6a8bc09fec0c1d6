//! [`McpTool`]: a server's tool as one of the loop's.

use std::sync::Arc;

use serde_json::Value;
use toolloop_core::{CallContext, EffectClass, ToolDefinition, ToolFuture, ToolHandler};

use crate::catalogue::Entry;
use crate::server::Server;

/// A tool of a server. It keeps its time limit itself: time in which the server has a person
/// asked does not count.
pub(crate) struct McpTool {
    server: Arc<Server>,
    entry: Entry,
}

impl McpTool {
    pub(crate) fn new(server: Arc<Server>, entry: Entry) -> Self {
        Self { server, entry }
    }
}

impl<Ctx: Send + Sync> ToolHandler<Ctx> for McpTool {
    fn definition(&self) -> ToolDefinition {
        self.entry.definition.clone()
    }

    fn execute<'a>(&'a self, input: Value, ctx: &'a Ctx) -> ToolFuture<'a> {
        Box::pin(
            async move { self.call(input, &CallContext::detached("outside a loop"), ctx).await },
        )
    }

    fn call<'a>(&'a self, input: Value, call: &'a CallContext, _: &'a Ctx) -> ToolFuture<'a> {
        Box::pin(self.server.call(&self.entry.remote, input, call))
    }

    fn effect_class(&self) -> EffectClass {
        self.entry.effect_class
    }
}
