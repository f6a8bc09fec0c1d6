//! [`Toolbox`]: a registry and the context of its tools, as one object without type parameter.

use toolloop_core::{BoxFuture, CallContext, ToolCall, ToolResult};

use crate::tool::{ToolRegistry, result_of};

/// Where the calls of a loop are run.
pub(crate) trait Toolbox: Send + Sync {
    /// What keeps a call from running, in words for the model.
    fn fault(&self, call: &ToolCall) -> Option<String>;

    /// Runs a call whose arguments were validated.
    fn run(&self, call: ToolCall, context: CallContext) -> BoxFuture<'static, ToolResult>;
}

/// A registry with the context its tools get, one level deeper than the loop's own.
pub(super) struct Bound<Ctx> {
    registry: ToolRegistry<Ctx>,
    ctx: Ctx,
}

impl<Ctx> Bound<Ctx> {
    pub(super) fn new(registry: ToolRegistry<Ctx>, ctx: Ctx) -> Self {
        Self { registry, ctx }
    }
}

impl<Ctx: Clone + Send + Sync + 'static> Toolbox for Bound<Ctx> {
    fn fault(&self, call: &ToolCall) -> Option<String> {
        self.registry.fault(call)
    }

    fn run(&self, call: ToolCall, context: CallContext) -> BoxFuture<'static, ToolResult> {
        let (registry, ctx) = (self.registry.clone(), self.ctx.clone());
        Box::pin(async move { result_of(&call, registry.run(&call, &context, &ctx).await) })
    }
}
