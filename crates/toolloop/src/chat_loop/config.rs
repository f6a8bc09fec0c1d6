//! [`ChatLoopConfig`]: tools, callbacks and limits of [`chat_loop_with_tools`].
//!
//! [`chat_loop_with_tools`]: super::chat_loop_with_tools

use std::collections::HashMap;
use std::fmt::{self, Display};
use std::sync::Arc;

use toolloop_core::{
    BoxFuture, CompactionConfig, DynProvider, LoopDetection, LoopDetectorConfig, ToolCall,
    ToolError, ToolOutput, ToolResult,
};

use crate::tool::{LoopDetectedFn, ToolRegistry};

/// Tools, callbacks and limits of [`chat_loop_with_tools`](super::chat_loop_with_tools).
///
/// ```
/// use toolloop::ToolCall;
/// use toolloop::chat_loop::ChatLoopConfig;
///
/// let config = ChatLoopConfig::new()
///     .with_tool("shout", |call: ToolCall| async move {
///         let text = call.arguments["text"].as_str().ok_or("text is missing")?;
///         Ok::<_, &str>(text.to_uppercase())
///     })
///     .on_content(|text| print!("{text}"))
///     .with_max_rounds(5);
/// ```
#[derive(Clone)]
pub struct ChatLoopConfig {
    pub(super) registry: Option<Arc<ToolRegistry>>,
    /// Asked for tools that are not registered.
    pub(super) tool_executors: HashMap<String, ToolExecutor>,
    pub(super) on_content: Show<str>,
    pub(super) on_thinking: Show<str>,
    pub(super) on_tool_calls: Show<[ToolCall]>,
    pub(super) on_tool_results: Show<[ToolResult]>,
    pub(super) on_loop_detected: Option<LoopDetectedFn>,
    pub(super) max_rounds: usize,
    pub(super) loop_detection: Option<LoopDetectorConfig>,
    pub(super) max_tool_turns: Option<u32>,
    pub(super) compaction: Option<CompactionConfig>,
    pub(super) compaction_model: Option<Arc<dyn DynProvider>>,
}

/// Runs a call outside any registry.
pub(super) type ToolExecutor =
    Arc<dyn Fn(ToolCall) -> BoxFuture<'static, Result<ToolOutput, ToolError>> + Send + Sync>;

/// Is shown something and decides nothing.
type Show<T> = Arc<dyn Fn(&T) + Send + Sync>;

impl ChatLoopConfig {
    /// No tools, no callbacks, 10 rounds, loop detection as [`LoopDetectorConfig`] has it.
    pub fn new() -> Self {
        Self {
            registry: None,
            tool_executors: HashMap::new(),
            on_content: Arc::new(|_| {}),
            on_thinking: Arc::new(|_| {}),
            on_tool_calls: Arc::new(|_| {}),
            on_tool_results: Arc::new(|_| {}),
            on_loop_detected: None,
            max_rounds: 10,
            loop_detection: Some(LoopDetectorConfig::default()),
            max_tool_turns: None,
            compaction: None,
            compaction_model: None,
        }
    }

    /// Runs calls by these tools. What is registered may be called whether or not it is offered:
    /// [`ToolRegistry::only`] narrows.
    #[must_use]
    pub fn with_registry(mut self, registry: Arc<ToolRegistry>) -> Self {
        self.registry = Some(registry);
        self
    }

    /// Runs calls of this name where the registry has no such tool. Arguments are an object, held
    /// against no schema.
    #[must_use]
    pub fn with_tool<F, Fut, O, E>(mut self, name: impl Into<String>, run: F) -> Self
    where
        F: Fn(ToolCall) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O, E>> + Send + 'static,
        O: Into<ToolOutput>,
        E: Display,
    {
        let run: ToolExecutor = Arc::new(move |call| {
            let running = run(call);
            Box::pin(async move {
                running.await.map(Into::into).map_err(|error| ToolError::new(error.to_string()))
            })
        });
        self.tool_executors.insert(name.into(), run);
        self
    }

    /// Shown each piece of text as it comes, also of a reply that a provider then starts anew.
    #[must_use]
    pub fn on_content(mut self, show: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.on_content = Arc::new(show);
        self
    }

    /// Shown each piece of thought as it comes.
    #[must_use]
    pub fn on_thinking(mut self, show: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.on_thinking = Arc::new(show);
        self
    }

    /// Shown the calls of a reply, before the first one runs.
    #[must_use]
    pub fn on_tool_calls(mut self, show: impl Fn(&[ToolCall]) + Send + Sync + 'static) -> Self {
        self.on_tool_calls = Arc::new(show);
        self
    }

    /// Shown the results of a reply's calls as the model will read them, in call order.
    #[must_use]
    pub fn on_tool_results(mut self, show: impl Fn(&[ToolResult]) + Send + Sync + 'static) -> Self {
        self.on_tool_results = Arc::new(show);
        self
    }

    /// Asked about each circle that is found, instead of doing what the detection's settings say:
    /// `true` goes on without a warning, `false` ends the loop.
    #[must_use]
    pub fn on_loop_detected(
        mut self,
        decide: impl Fn(&LoopDetection) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.on_loop_detected = Some(Arc::new(decide));
        self
    }

    /// Most replies with calls; one more is an error.
    #[must_use]
    pub fn with_max_rounds(mut self, max_rounds: usize) -> Self {
        self.max_rounds = max_rounds;
        self
    }

    /// When the model counts as going in circles, and what is done then.
    #[must_use]
    pub fn with_loop_detection(mut self, config: LoopDetectorConfig) -> Self {
        self.loop_detection = Some(config);
        self
    }

    /// Most tool turns that a request shows; see [`ToolLoopConfig`](crate::ToolLoopConfig).
    #[must_use]
    pub fn with_max_tool_turns(mut self, turns: u32) -> Self {
        self.max_tool_turns = Some(turns);
        self
    }

    /// When the conversation of a request is shortened; see
    /// [`ToolLoopConfig`](crate::ToolLoopConfig).
    #[must_use]
    pub fn with_compaction(mut self, config: CompactionConfig) -> Self {
        self.compaction = Some(config);
        self
    }

    /// The model that sums up, instead of the loop's own.
    #[must_use]
    pub fn with_compaction_model(mut self, model: Arc<dyn DynProvider>) -> Self {
        self.compaction_model = Some(model);
        self
    }

    /// Lets the model go in circles.
    #[must_use]
    pub fn without_loop_detection(mut self) -> Self {
        self.loop_detection = None;
        self
    }
}

impl Default for ChatLoopConfig {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for ChatLoopConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut tool_executors: Vec<_> = self.tool_executors.keys().collect();
        tool_executors.sort();
        f.debug_struct("ChatLoopConfig")
            .field("registry", &self.registry)
            .field("tool_executors", &tool_executors)
            .field("has_on_loop_detected", &self.on_loop_detected.is_some())
            .field("max_rounds", &self.max_rounds)
            .field("loop_detection", &self.loop_detection)
            .field("max_tool_turns", &self.max_tool_turns)
            .field("compaction", &self.compaction)
            .field("has_compaction_model", &self.compaction_model.is_some())
            .finish_non_exhaustive()
    }
}
