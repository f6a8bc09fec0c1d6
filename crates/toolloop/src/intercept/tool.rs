//! [`ToolInterceptor`]: around each execution of a tool.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use toolloop_core::{CallContext, EffectClass, ToolDefinition, ToolFuture, ToolHandler};

use crate::tool::ToolRegistry;

/// Code around each execution of a tool. A function of the same form is one.
///
/// It stands where the tool itself stands: the arguments have passed the schema (changed ones are
/// not held against it again), approvals are given, each try of a tool that is retried passes
/// through it, and the tool's time limit counts for both.
///
/// ```
/// use toolloop::intercept::{ToolInterceptor, ToolInterceptors, ToolNext, ToolRequest};
/// use toolloop::{ToolCall, ToolError, ToolFuture, ToolRegistry, tool};
///
/// /// Reads a file.
/// #[tool(read_only)]
/// fn read(/** Where it is */ path: String) -> String {
///     format!("the text of {path}")
/// }
///
/// /// Keeps tools out of a folder.
/// struct Fence;
///
/// impl ToolInterceptor for Fence {
///     fn call<'a>(&'a self, request: ToolRequest<'a>, next: ToolNext<'a>) -> ToolFuture<'a> {
///         Box::pin(async move {
///             if request.input["path"].as_str().is_some_and(|path| path.starts_with("/etc")) {
///                 return Err(ToolError::new("/etc is off limits; look elsewhere."));
///             }
///             next.run(request).await
///         })
///     }
/// }
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let mut tools = ToolRegistry::new();
/// tools.register(read);
/// let tools = ToolInterceptors::new().with(Fence).around(&tools);
/// let call = |path: &str| ToolCall {
///     id: "c1".into(),
///     name: "read".into(),
///     arguments: serde_json::json!({ "path": path }),
/// };
/// assert_eq!(tools.execute(&call("a.txt"), &()).await.content, "the text of a.txt");
/// assert!(tools.execute(&call("/etc/passwd"), &()).await.is_error);
/// # });
/// ```
pub trait ToolInterceptor<Ctx = ()>: Send + Sync {
    /// Answers a call, as a rule with what [`ToolNext::run`] gives.
    fn call<'a>(&'a self, request: ToolRequest<'a, Ctx>, next: ToolNext<'a, Ctx>)
    -> ToolFuture<'a>;
}

impl<Ctx, F> ToolInterceptor<Ctx> for F
where
    F: for<'a> Fn(ToolRequest<'a, Ctx>, ToolNext<'a, Ctx>) -> ToolFuture<'a> + Send + Sync,
{
    fn call<'a>(
        &'a self,
        request: ToolRequest<'a, Ctx>,
        next: ToolNext<'a, Ctx>,
    ) -> ToolFuture<'a> {
        self(request, next)
    }
}

/// An execution that is asked for.
#[derive(Debug)]
pub struct ToolRequest<'a, Ctx = ()> {
    /// Name of the tool.
    pub name: &'a str,
    /// The arguments.
    pub input: Value,
    /// Id, idempotency key, progress and cancellation of the call.
    pub call: &'a CallContext,
    /// The context that the tools share.
    pub ctx: &'a Ctx,
}

impl<Ctx> Clone for ToolRequest<'_, Ctx> {
    fn clone(&self) -> Self {
        Self { input: self.input.clone(), ..*self }
    }
}

/// The rest of the way to a tool: the interceptors behind this one, and the tool itself. It may
/// be taken more than once, or not at all.
pub struct ToolNext<'a, Ctx = ()> {
    interceptors: &'a [Arc<dyn ToolInterceptor<Ctx>>],
    handler: &'a dyn ToolHandler<Ctx>,
}

impl<'a, Ctx> ToolNext<'a, Ctx> {
    /// Hands a call on.
    ///
    /// # Errors
    /// Those of the tool and of the interceptors behind.
    pub fn run(&self, request: ToolRequest<'a, Ctx>) -> ToolFuture<'a> {
        match self.interceptors.split_first() {
            Some((first, interceptors)) => first.call(request, ToolNext { interceptors, ..*self }),
            None => self.handler.call(request.input, request.call, request.ctx),
        }
    }
}

impl<Ctx> Clone for ToolNext<'_, Ctx> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<Ctx> Copy for ToolNext<'_, Ctx> {}

/// Interceptors in their order, the outermost first.
pub struct ToolInterceptors<Ctx = ()> {
    interceptors: Vec<Arc<dyn ToolInterceptor<Ctx>>>,
}

impl<Ctx> ToolInterceptors<Ctx> {
    /// None yet.
    pub fn new() -> Self {
        Self { interceptors: Vec::new() }
    }

    /// Adds one behind those that are there.
    #[must_use]
    pub fn with(mut self, interceptor: impl ToolInterceptor<Ctx> + 'static) -> Self {
        self.interceptors.push(Arc::new(interceptor));
        self
    }
}

impl<Ctx: Send + Sync + 'static> ToolInterceptors<Ctx> {
    /// The tools of a registry, in their order, with these interceptors around each.
    pub fn around(&self, registry: &ToolRegistry<Ctx>) -> ToolRegistry<Ctx> {
        let mut intercepted = ToolRegistry::new();
        for definition in registry.definitions() {
            if let Some(handler) = registry.get(&definition.name) {
                intercepted.register_shared(self.around_tool(Arc::clone(handler)));
            }
        }
        intercepted
    }

    /// A tool with these interceptors around it.
    pub fn around_tool(&self, handler: Arc<dyn ToolHandler<Ctx>>) -> Arc<dyn ToolHandler<Ctx>> {
        let name = handler.definition().name;
        Arc::new(Intercepted { interceptors: self.interceptors.clone(), handler, name })
    }
}

impl<Ctx> Clone for ToolInterceptors<Ctx> {
    fn clone(&self) -> Self {
        Self { interceptors: self.interceptors.clone() }
    }
}

impl<Ctx> Default for ToolInterceptors<Ctx> {
    fn default() -> Self {
        Self::new()
    }
}

impl<Ctx> fmt::Debug for ToolInterceptors<Ctx> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolInterceptors").field("count", &self.interceptors.len()).finish()
    }
}

struct Intercepted<Ctx> {
    interceptors: Vec<Arc<dyn ToolInterceptor<Ctx>>>,
    handler: Arc<dyn ToolHandler<Ctx>>,
    name: String,
}

impl<Ctx: Send + Sync> ToolHandler<Ctx> for Intercepted<Ctx> {
    fn definition(&self) -> ToolDefinition {
        self.handler.definition()
    }

    fn execute<'a>(&'a self, input: Value, ctx: &'a Ctx) -> ToolFuture<'a> {
        Box::pin(async move {
            let call = CallContext::detached(&self.name);
            self.call(input, &call, ctx).await
        })
    }

    fn call<'a>(&'a self, input: Value, call: &'a CallContext, ctx: &'a Ctx) -> ToolFuture<'a> {
        let next = ToolNext { interceptors: &self.interceptors, handler: &*self.handler };
        next.run(ToolRequest { name: &self.name, input, call, ctx })
    }

    fn effect_class(&self) -> EffectClass {
        self.handler.effect_class()
    }

    fn time_limit(&self) -> Option<Duration> {
        self.handler.time_limit()
    }
}
