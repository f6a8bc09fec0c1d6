//! [`ToolRegistry`]: the tools of a loop, their schemas compiled once.

use std::any::Any;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::FutureExt;
use jsonschema::{ValidationError, Validator};
use serde_json::Value;
use toolloop_core::{
    CallContext, EffectClass, ToolCall, ToolDefinition, ToolError, ToolHandler, ToolOutput,
    ToolResult, ToolRetryConfig,
};

/// The tools of a loop, in the order in which they were registered.
///
/// Cloning is cheap: the tools are shared.
pub struct ToolRegistry<Ctx = ()> {
    tools: Vec<Arc<Tool<Ctx>>>,
}

struct Tool<Ctx> {
    definition: ToolDefinition,
    handler: Arc<dyn ToolHandler<Ctx>>,
    validator: OnceLock<Result<Validator, String>>,
}

impl<Ctx> ToolRegistry<Ctx> {
    /// A registry without tools.
    pub fn new() -> Self {
        Self { tools: Vec::new() }
    }

    /// Adds a tool. A name registered before is replaced, in its place.
    pub fn register(&mut self, handler: impl ToolHandler<Ctx> + 'static) -> &mut Self {
        self.register_shared(Arc::new(handler))
    }

    /// Adds a tool that is shared with others.
    pub fn register_shared(&mut self, handler: Arc<dyn ToolHandler<Ctx>>) -> &mut Self {
        let definition = handler.definition();
        let at = self.tools.iter().position(|tool| tool.definition.name == definition.name);
        let tool = Arc::new(Tool { definition, handler, validator: OnceLock::new() });
        match at {
            Some(at) => self.tools[at] = tool,
            None => self.tools.push(tool),
        }
        self
    }

    /// The tools as a model sees them, in order of registration.
    pub fn definitions(&self) -> Vec<ToolDefinition> {
        self.tools.iter().map(|tool| tool.definition.clone()).collect()
    }

    /// The same as [`definitions`](Self::definitions), for code that keeps its tools apart from
    /// its loop.
    pub fn get_tools_for_llm(&self) -> Vec<ToolDefinition> {
        self.definitions()
    }

    /// The tool of this name.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn ToolHandler<Ctx>>> {
        self.tool(name).map(|tool| &tool.handler)
    }

    /// Whether there is a tool of this name.
    pub fn contains(&self, name: &str) -> bool {
        self.tool(name).is_some()
    }

    /// How many tools there are.
    pub fn len(&self) -> usize {
        self.tools.len()
    }

    /// Whether there is no tool.
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// The same tools but these.
    #[must_use]
    pub fn without<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Self {
        let names: Vec<&str> = names.into_iter().collect();
        self.filtered(|name| !names.contains(&name))
    }

    /// Only these of the tools.
    #[must_use]
    pub fn only<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Self {
        let names: Vec<&str> = names.into_iter().collect();
        self.filtered(|name| names.contains(&name))
    }

    fn filtered(&self, keep: impl Fn(&str) -> bool) -> Self {
        let tools = self.tools.iter().filter(|tool| keep(&tool.definition.name));
        Self { tools: tools.cloned().collect() }
    }

    fn tool(&self, name: &str) -> Option<&Arc<Tool<Ctx>>> {
        self.tools.iter().find(|tool| tool.definition.name == name)
    }
}

impl<Ctx: Send + Sync> ToolRegistry<Ctx> {
    /// Runs one call outside a loop: validation, retries, time limit. Every failure is a result
    /// whose text names the cure.
    pub async fn execute(&self, call: &ToolCall, ctx: &Ctx) -> ToolResult {
        let outcome = match self.fault(call) {
            Some(fault) => Err(ToolError::new(fault)),
            None => self.run(call, &CallContext::detached(&call.id), ctx).await,
        };
        result_of(call, outcome)
    }

    /// What keeps a call from running, in words for the model.
    pub(crate) fn fault(&self, call: &ToolCall) -> Option<String> {
        let Some(tool) = self.tool(&call.name) else {
            let names: Vec<&str> = self.tools.iter().map(|t| t.definition.name.as_str()).collect();
            return Some(match names.is_empty() {
                true => format!("Unknown tool '{}': no tools are available.", call.name),
                false => {
                    format!("Unknown tool '{}'. Available tools: {}.", call.name, names.join(", "))
                }
            });
        };
        let validator = match tool.validator() {
            Ok(validator) => validator,
            Err(error) => return Some(error.clone()),
        };
        let all = faults(validator, &call.arguments)?;
        Some(format!("The arguments do not fit the schema of '{}': {all}.", call.name))
    }

    /// The first tool whose schema is unusable, with the reason.
    pub(crate) fn broken_schema(&self) -> Option<String> {
        self.tools.iter().find_map(|tool| tool.validator().as_ref().err().cloned())
    }

    /// What running a tool twice would mean; `None` where there is no such tool.
    pub fn effect_class(&self, name: &str) -> Option<EffectClass> {
        self.tool(name).map(|tool| tool.handler.effect_class())
    }

    /// Runs a call whose arguments were validated, with the tool's retries and time limit.
    pub(crate) async fn run(
        &self,
        call: &ToolCall,
        context: &CallContext,
        ctx: &Ctx,
    ) -> Result<ToolOutput, ToolError> {
        let Some(tool) = self.tool(&call.name) else {
            return Err(ToolError::new(format!("Unknown tool '{}'.", call.name)));
        };
        let mut attempt = 0;
        loop {
            let error = match tool.run_once(call.arguments.clone(), context, ctx).await {
                Ok(output) => return Ok(output),
                Err(error) => error,
            };
            let Some(retry) = &tool.definition.retry else { return Err(error) };
            if attempt >= retry.max_retries || !tool.is_worth_another_try(retry, &error)? {
                return Err(error);
            }
            tokio::time::sleep(backoff(retry, attempt)).await;
            attempt += 1;
        }
    }
}

impl<Ctx> Tool<Ctx> {
    fn validator(&self) -> &Result<Validator, String> {
        self.validator.get_or_init(|| {
            // No retriever is compiled in: a `$ref` to the network or the disk is an error here.
            jsonschema::validator_for(self.definition.parameters.as_value()).map_err(|error| {
                format!(
                    "The JSON Schema of tool '{}' is not usable: {error}. Correct `parameters` in \
                     its definition.",
                    self.definition.name
                )
            })
        })
    }

    /// Asks the tool's predicate; its panic is one of the tool, which has run.
    fn is_worth_another_try(
        &self,
        retry: &ToolRetryConfig,
        error: &ToolError,
    ) -> Result<bool, ToolError> {
        let Some(decide) = &retry.retry_if else { return Ok(true) };
        std::panic::catch_unwind(AssertUnwindSafe(|| decide(&error.message)))
            .map_err(|panic| panicked(&self.definition.name, &*panic))
    }

    async fn run_once(
        &self,
        input: Value,
        context: &CallContext,
        ctx: &Ctx,
    ) -> Result<ToolOutput, ToolError> {
        // Inside an async block, so that a panic before the first await is caught as well.
        let work = AssertUnwindSafe(async { self.handler.call(input, context, ctx).await });
        let work = work.catch_unwind();
        let finished = match self.handler.time_limit() {
            None => work.await,
            Some(limit) => match tokio::time::timeout(limit, work).await {
                Ok(finished) => finished,
                Err(_) => {
                    return Err(ToolError::new(format!(
                        "Tool '{}' was cut off at its time limit of {limit:?}. It may have taken \
                         effect in part; check before repeating it.",
                        self.definition.name
                    )));
                }
            },
        };
        finished.unwrap_or_else(|panic| Err(panicked(&self.definition.name, &*panic)))
    }
}

/// What of a value does not fit its schema, the first few faults.
pub(crate) fn faults(validator: &Validator, value: &Value) -> Option<String> {
    let mut faults = validator.iter_errors(value).map(|error| in_short(&error));
    let first = faults.next()?;
    Some(std::iter::once(first).chain(faults).take(5).collect::<Vec<_>>().join("; "))
}

/// A tool's panic as its error.
pub(crate) fn panicked(tool_name: &str, panic: &(dyn Any + Send)) -> ToolError {
    let said = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    ToolError::new(format!("Tool '{tool_name}' panicked: {said}"))
}

/// What the model reads of a call that has ended.
pub(crate) fn result_of(call: &ToolCall, outcome: Result<ToolOutput, ToolError>) -> ToolResult {
    let (content, is_error) = match outcome {
        Ok(output) => (output.content, false),
        Err(error) => (error.message.into(), true),
    };
    ToolResult { tool_call_id: call.id.clone(), content, is_error }
}

/// A fault with its place. It quotes the value only where that is short: the model has it already.
fn in_short(error: &ValidationError<'_>) -> String {
    let mut fault = match error.to_string() {
        quoting if quoting.len() <= LONGEST_FAULT => quoting,
        _ => error.masked_with("the value").to_string(),
    };
    if !error.instance_path().as_str().is_empty() {
        fault = format!("{}: {fault}", error.instance_path());
    }
    match fault.char_indices().nth(LONGEST_FAULT) {
        Some((cut, _)) => format!("{}…", &fault[..cut]),
        None => fault,
    }
}

/// A fault in more bytes than this is told without the value, and cut if that is not enough.
const LONGEST_FAULT: usize = 300;

/// The pause after the failed try number `attempt`, from 0.
fn backoff(retry: &ToolRetryConfig, attempt: u32) -> Duration {
    let factor = retry.backoff_multiplier.powi(i32::try_from(attempt).unwrap_or(i32::MAX));
    let most = retry.max_backoff.as_secs_f64();
    let pause = (retry.initial_backoff.as_secs_f64() * factor).min(most);
    let spread = 1.0 + retry.jitter.clamp(0.0, 1.0) * (fastrand::f64() * 2.0 - 1.0);
    Duration::try_from_secs_f64((pause * spread).clamp(0.0, most)).unwrap_or(retry.max_backoff)
}

impl<Ctx> Default for ToolRegistry<Ctx> {
    fn default() -> Self {
        Self::new()
    }
}

impl<Ctx> Clone for ToolRegistry<Ctx> {
    fn clone(&self) -> Self {
        Self { tools: self.tools.clone() }
    }
}

impl<Ctx> fmt::Debug for ToolRegistry<Ctx> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.tools.iter().map(|tool| &tool.definition.name);
        f.debug_list().entries(names).finish()
    }
}
