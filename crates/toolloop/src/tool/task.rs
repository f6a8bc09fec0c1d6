//! [`TaskTool`]: a sub-agent as a tool.

use std::fmt;
use std::sync::Arc;

use futures_util::StreamExt;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use toolloop_core::{
    CallContext, ChatMessage, ChatParams, ChatRole, ContentBlock, DynProvider, EffectClass,
    LlmError, LoopDepth, LoopEvent, TerminationReason, ToolDefinition, ToolError, ToolFuture,
    ToolHandler, ToolLoopResult, ToolOutput, read_arguments,
};

use super::config::ToolLoopConfig;
use super::loop_fn::tool_loop_stream;
use super::registry::ToolRegistry;

/// A sub-agent as a tool: a loop of its own, with a conversation of its own and fewer tools, that
/// gives only its answer back.
///
/// It lives within the loop that calls it: that loop's wall clock and cancellation end it, its
/// tokens count there once, and it opens no deeper than `max_depth`. Its own limits are those of
/// its [`ToolLoopConfig`]; where one of them ends it, what it has found out so far is given back
/// with a remark. Whoever follows the outer loop sees its tools as progress.
///
/// ```
/// use std::sync::Arc;
/// use toolloop::mock::MockProvider;
/// use toolloop::tool::{TaskTool, ToolRegistry};
///
/// let model = Arc::new(MockProvider::default());
/// let mut tools: ToolRegistry = ToolRegistry::new();
/// // Without the tools that change something.
/// let for_the_task = tools.only(["list_dir", "glob", "grep", "read_file"]);
/// tools.register(TaskTool::new(model, for_the_task));
/// ```
pub struct TaskTool<Ctx = ()> {
    provider: Arc<dyn DynProvider>,
    registry: Arc<ToolRegistry<Ctx>>,
    params: ChatParams,
    config: ToolLoopConfig,
}

impl<Ctx> TaskTool<Ctx> {
    /// A sub-agent on this model with these tools, of which `task` itself is none.
    pub fn new(provider: Arc<dyn DynProvider>, registry: ToolRegistry<Ctx>) -> Self {
        Self {
            provider,
            registry: Arc::new(registry.without([NAME])),
            params: ChatParams { system: Some(SYSTEM.to_owned()), ..ChatParams::default() },
            config: ToolLoopConfig { final_answer: true, ..ToolLoopConfig::default() },
        }
    }

    /// Sets its limits, callbacks and policies. Approvals of the outer loop do not reach into it:
    /// a sub-agent whose calls are to be asked about needs the callback here as well.
    #[must_use]
    pub fn with_config(mut self, config: ToolLoopConfig) -> Self {
        self.config = config;
        self
    }

    /// Changes what its model is asked with: instructions, temperature, limits.
    #[must_use]
    pub fn with_params(mut self, change: impl FnOnce(&mut ChatParams)) -> Self {
        change(&mut self.params);
        self
    }
}

impl<Ctx: LoopDepth + 'static> TaskTool<Ctx> {
    async fn run(
        &self,
        input: Value,
        call: &CallContext,
        ctx: &Ctx,
    ) -> Result<ToolOutput, ToolError> {
        let Arguments { task } = read_arguments(NAME, input)?;
        let mut params = self.params.clone();
        params.messages.push(ChatMessage::user(task));
        let (provider, registry) = (Arc::clone(&self.provider), Arc::clone(&self.registry));
        let (config, ctx) = (self.config.clone(), Arc::new(ctx.clone()));
        let mut events = tool_loop_stream(provider, registry, params, config, ctx);
        while let Some(event) = events.next().await {
            match event {
                Ok(LoopEvent::Done(result)) => return answer(&result).map(ToolOutput::from),
                Ok(LoopEvent::ToolExecutionStart { tool_name, arguments, .. }) => {
                    call.progress(format!("{tool_name} {arguments}"));
                }
                Ok(_) => {}
                Err(error) => return Err(explain(&error)),
            }
        }
        Err(ToolError::new("The sub-agent ended without an answer. Do the task yourself."))
    }
}

impl<Ctx: LoopDepth + 'static> ToolHandler<Ctx> for TaskTool<Ctx> {
    fn definition(&self) -> ToolDefinition {
        let tools: Vec<String> =
            self.registry.definitions().into_iter().map(|tool| tool.name).collect();
        let tools = match tools.is_empty() {
            true => "no tools".to_owned(),
            false => format!("the tools {}", tools.join(", ")),
        };
        ToolDefinition::from_type::<Arguments>(
            NAME,
            format!(
                "Gives a task of its own to a sub-agent, which has {tools}, and returns its \
                 answer. It knows nothing of this conversation. Good for searches whose details \
                 do not matter here; several tasks can be done at the same time."
            ),
        )
    }

    fn execute<'a>(&'a self, input: Value, ctx: &'a Ctx) -> ToolFuture<'a> {
        Box::pin(async move { self.run(input, &CallContext::detached(NAME), ctx).await })
    }

    fn call<'a>(&'a self, input: Value, call: &'a CallContext, ctx: &'a Ctx) -> ToolFuture<'a> {
        Box::pin(self.run(input, call, ctx))
    }

    /// Read only where all its tools are: what else it does is think.
    fn effect_class(&self) -> EffectClass {
        let tools = self.registry.definitions();
        let mut classes = tools.iter().filter_map(|tool| self.registry.effect_class(&tool.name));
        match classes.all(|class| class == EffectClass::ReadOnly) {
            true => EffectClass::ReadOnly,
            false => EffectClass::Once,
        }
    }
}

impl<Ctx> fmt::Debug for TaskTool<Ctx> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskTool")
            .field("model", &self.provider.metadata().model)
            .field("tools", &self.registry)
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// What to do or find out, with all that must be known for it, and what to answer with.
    task: String,
}

/// What the outer model reads: the last thing that was said, and what cut it short.
fn answer(result: &ToolLoopResult) -> Result<String, ToolError> {
    let remark = match &result.termination_reason {
        TerminationReason::Complete => None,
        TerminationReason::MaxIterations { limit } => {
            Some(format!("it reached its limit of {limit} iterations"))
        }
        TerminationReason::Timeout { limit } => Some(format!("its time of {limit:?} was over")),
        TerminationReason::LoopDetected { tool_name, .. } => {
            Some(format!("it repeated {tool_name} without end"))
        }
        TerminationReason::StopCondition { reason } => {
            Some(reason.clone().unwrap_or_else(|| "it was stopped".to_owned()))
        }
    };
    let last = result.messages.iter().rev().filter(|message| message.role == ChatRole::Assistant);
    let text = last.map(text_of).find(|text| !text.trim().is_empty());
    match (text, remark) {
        (Some(text), None) => Ok(text),
        (Some(text), Some(remark)) => {
            Ok(format!("{text}\n[the sub-agent did not get to its end: {remark}]"))
        }
        (None, remark) => {
            let remark = remark.unwrap_or_else(|| "it said nothing".to_owned());
            Err(ToolError::new(format!(
                "The sub-agent gave no answer: {remark}. Give it a smaller task, or do it yourself."
            )))
        }
    }
}

fn text_of(message: &ChatMessage) -> String {
    let texts = message.content.iter().filter_map(|block| match block {
        ContentBlock::Text(text) => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

fn explain(error: &LlmError) -> ToolError {
    ToolError::new(match error {
        LlmError::MaxDepthExceeded { limit, .. } => format!(
            "Sub-agents are nested {limit} deep at most, and this is the deepest. Do the task \
             yourself."
        ),
        error => format!("The sub-agent's model failed: {error}"),
    })
}

const NAME: &str = "task";
const SYSTEM: &str = "You do a task for another agent, which sees only your last message: put all \
    that it needs into it, exactly and briefly, with paths and line numbers where there are any.";
