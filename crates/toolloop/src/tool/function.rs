//! Tools from closures: [`tool_fn`] and [`tool_fn_with_ctx`].

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;

use serde_json::Value;
use toolloop_core::{ToolDefinition, ToolError, ToolFuture, ToolHandler, ToolOutput};

/// A tool from an async closure of its arguments.
///
/// ```
/// use serde_json::{Value, json};
/// use toolloop::tool::{ToolError, ToolRegistry, tool_fn};
/// use toolloop::{JsonSchema, ToolDefinition};
///
/// let definition = ToolDefinition {
///     name: "double".into(),
///     description: "Doubles a number.".into(),
///     parameters: JsonSchema::new(json!({
///         "type": "object",
///         "properties": { "n": { "type": "integer" } },
///         "required": ["n"],
///     })),
///     retry: None,
/// };
/// let double = tool_fn(definition, |args: Value| async move {
///     let n = args["n"].as_i64().ok_or_else(|| ToolError::new("n is too large"))?;
///     Ok((n * 2).to_string())
/// });
/// let mut registry: ToolRegistry = ToolRegistry::new();
/// registry.register(double);
/// ```
pub fn tool_fn<F, Fut, O>(definition: ToolDefinition, handler: F) -> FnTool<F>
where
    F: Fn(Value) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<O, ToolError>> + Send + 'static,
    O: Into<ToolOutput> + Send + 'static,
{
    FnTool { definition, handler }
}

/// A tool from an async closure of its arguments and the loop's context. The future owns what it
/// needs: clone from the context before the `async` block.
pub fn tool_fn_with_ctx<Ctx, F, Fut, O>(
    definition: ToolDefinition,
    handler: F,
) -> FnToolWithCtx<Ctx, F>
where
    Ctx: Send + Sync + 'static,
    F: for<'c> Fn(Value, &'c Ctx) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<O, ToolError>> + Send + 'static,
    O: Into<ToolOutput> + Send + 'static,
{
    FnToolWithCtx { definition, handler, ctx: PhantomData }
}

/// What [`tool_fn`] makes; it serves loops of any context.
pub struct FnTool<F> {
    definition: ToolDefinition,
    handler: F,
}

/// What [`tool_fn_with_ctx`] makes.
pub struct FnToolWithCtx<Ctx, F> {
    definition: ToolDefinition,
    handler: F,
    ctx: PhantomData<fn(&Ctx)>,
}

impl<Ctx, F, Fut, O> ToolHandler<Ctx> for FnTool<F>
where
    F: Fn(Value) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<O, ToolError>> + Send + 'static,
    O: Into<ToolOutput> + Send + 'static,
{
    fn definition(&self) -> ToolDefinition {
        self.definition.clone()
    }

    fn execute<'a>(&'a self, input: Value, _: &'a Ctx) -> ToolFuture<'a> {
        let future = (self.handler)(input);
        Box::pin(async move { future.await.map(Into::into) })
    }
}

impl<Ctx, F, Fut, O> ToolHandler<Ctx> for FnToolWithCtx<Ctx, F>
where
    Ctx: Send + Sync + 'static,
    F: for<'c> Fn(Value, &'c Ctx) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<O, ToolError>> + Send + 'static,
    O: Into<ToolOutput> + Send + 'static,
{
    fn definition(&self) -> ToolDefinition {
        self.definition.clone()
    }

    fn execute<'a>(&'a self, input: Value, ctx: &'a Ctx) -> ToolFuture<'a> {
        let future = (self.handler)(input, ctx);
        Box::pin(async move { future.await.map(Into::into) })
    }
}

impl<F> fmt::Debug for FnTool<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FnTool").field("definition", &self.definition).finish_non_exhaustive()
    }
}

impl<Ctx, F> fmt::Debug for FnToolWithCtx<Ctx, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FnToolWithCtx")
            .field("definition", &self.definition)
            .finish_non_exhaustive()
    }
}
