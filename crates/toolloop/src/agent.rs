//! [`Agent`]: the five arguments of a loop, collected. It is no second loop.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;
use toolloop_core::{
    CallContext, ChatMessage, ChatParams, DynProvider, EffectClass, LlmError, LoopDepth,
    ToolDefinition, ToolFuture, ToolHandler, ToolLoopResult,
};

use crate::tool::{LoopStream, ToolLoopConfig, ToolRegistry, tool_loop, tool_loop_stream};

/// A model, its tools and the settings of their loop, ready to be asked.
///
/// ```no_run
/// use toolloop::{Agent, LoopEvent::*, StreamExt, tool};
///
/// /// Current weather of a city.
/// #[tool]
/// async fn get_weather(/** City name */ city: String) -> String {
///     format!("18 degrees in {city}")
/// }
///
/// # async fn example() -> Result<(), toolloop::LlmError> {
/// let agent = Agent::new("openai/gpt-5")?.system("Answer in one sentence.").tool(get_weather);
/// let mut events = agent.stream("What is the weather in Paris?");
/// while let Some(event) = events.next().await {
///     if let TextDelta(text) = event? {
///         print!("{text}");
///     }
/// }
/// # Ok(())
/// # }
/// ```
pub struct Agent<Ctx = ()> {
    provider: Arc<dyn DynProvider>,
    registry: ToolRegistry<Ctx>,
    params: ChatParams,
    config: ToolLoopConfig,
    ctx: Arc<Ctx>,
}

impl Agent {
    /// An agent on the model `"provider/name"`, set up from the provider's usual variables; see
    /// [`provider`](crate::provider()).
    ///
    /// # Errors
    /// When the provider is unknown or its key is missing.
    pub fn new(model: &str) -> Result<Self, LlmError> {
        Ok(Self::from_provider(crate::provider(model)?))
    }

    /// An agent on any model.
    pub fn from_provider(provider: Arc<dyn DynProvider>) -> Self {
        Self {
            provider,
            registry: ToolRegistry::new(),
            params: ChatParams::default(),
            config: ToolLoopConfig::default(),
            ctx: Arc::new(()),
        }
    }

    /// Gives the tools a context to share. Tools added before go on without it.
    pub fn ctx<Ctx: LoopDepth + 'static>(self, ctx: Ctx) -> Agent<Ctx> {
        let mut registry = ToolRegistry::new();
        for name in self.registry.definitions().into_iter().map(|definition| definition.name) {
            if let Some(handler) = self.registry.get(&name) {
                registry.register(WithoutCtx(Arc::clone(handler)));
            }
        }
        Agent {
            provider: self.provider,
            registry,
            params: self.params,
            config: self.config,
            ctx: Arc::new(ctx),
        }
    }
}

impl<Ctx: LoopDepth + 'static> Agent<Ctx> {
    /// Takes another model.
    #[must_use]
    pub fn provider(mut self, provider: Arc<dyn DynProvider>) -> Self {
        self.provider = provider;
        self
    }

    /// Adds a tool.
    #[must_use]
    pub fn tool(mut self, tool: impl ToolHandler<Ctx> + 'static) -> Self {
        self.registry.register(tool);
        self
    }

    /// Adds all tools of a registry.
    #[must_use]
    pub fn tools(mut self, registry: &ToolRegistry<Ctx>) -> Self {
        for definition in registry.definitions() {
            if let Some(handler) = registry.get(&definition.name) {
                self.registry.register_shared(Arc::clone(handler));
            }
        }
        self
    }

    /// Sets the instructions in front of the conversation.
    #[must_use]
    pub fn system(mut self, system: impl Into<String>) -> Self {
        self.params.system = Some(system.into());
        self
    }

    /// Sets the conversation before the next question, for example the `messages` of an earlier
    /// result.
    #[must_use]
    pub fn messages(mut self, messages: Vec<ChatMessage>) -> Self {
        self.params.messages = messages;
        self
    }

    /// Sets limits, callbacks and policies.
    #[must_use]
    pub fn config(mut self, config: ToolLoopConfig) -> Self {
        self.config = config;
        self
    }

    /// Changes what else the model is asked with: temperature, limits, the form of the answer.
    #[must_use]
    pub fn params(mut self, change: impl FnOnce(&mut ChatParams)) -> Self {
        change(&mut self.params);
        self
    }

    /// Asks and waits for the end of the loop.
    ///
    /// # Errors
    /// Those of [`tool_loop`].
    pub async fn run(&self, prompt: impl Into<String>) -> Result<ToolLoopResult, LlmError> {
        let params = self.asking(prompt.into());
        tool_loop(&*self.provider, &self.registry, params, self.config.clone(), &*self.ctx).await
    }

    /// Asks and gives the events of the loop as they happen.
    pub fn stream(&self, prompt: impl Into<String>) -> LoopStream {
        tool_loop_stream(
            Arc::clone(&self.provider),
            Arc::new(self.registry.clone()),
            self.asking(prompt.into()),
            self.config.clone(),
            Arc::clone(&self.ctx),
        )
    }

    fn asking(&self, prompt: String) -> ChatParams {
        let mut params = self.params.clone();
        params.messages.push(ChatMessage::user(prompt));
        params
    }
}

impl<Ctx> Clone for Agent<Ctx> {
    fn clone(&self) -> Self {
        Self {
            provider: Arc::clone(&self.provider),
            registry: self.registry.clone(),
            params: self.params.clone(),
            config: self.config.clone(),
            ctx: Arc::clone(&self.ctx),
        }
    }
}

impl<Ctx> fmt::Debug for Agent<Ctx> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent")
            .field("provider", &self.provider.metadata().name)
            .field("tools", &self.registry)
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

/// A tool that needs no context, among tools that have one.
struct WithoutCtx(Arc<dyn ToolHandler<()>>);

impl<Ctx: Sync> ToolHandler<Ctx> for WithoutCtx {
    fn definition(&self) -> ToolDefinition {
        self.0.definition()
    }

    fn execute<'a>(&'a self, input: Value, _: &'a Ctx) -> ToolFuture<'a> {
        self.0.execute(input, &())
    }

    fn call<'a>(&'a self, input: Value, call: &'a CallContext, _: &'a Ctx) -> ToolFuture<'a> {
        self.0.call(input, call, &())
    }

    fn effect_class(&self) -> EffectClass {
        self.0.effect_class()
    }

    fn time_limit(&self) -> Option<std::time::Duration> {
        self.0.time_limit()
    }
}
