//! [`chat_loop_with_tools`]: a chat loop that runs its tools, told by callbacks.

use std::sync::Arc;
use std::task::Poll;

use toolloop_core::run::Input;
use toolloop_core::{
    ChatMessage, ChatParams, DynProvider, LlmError, LoopEvent, StopContext, StopDecision,
    TerminationReason, ToolCall, ToolDefinition, Usage,
};

use super::config::ChatLoopConfig;
use super::look_up::LookUp;
use crate::driver::{Driver, Step, open_borrowed};
use crate::tool::ToolLoopConfig;

/// What a chat loop came to.
#[derive(Debug, Clone, PartialEq)]
pub struct ChatLoopResponse {
    /// All text of all replies, in order.
    pub content: String,
    /// Tokens of all model calls.
    pub usage: Usage,
    /// All calls that the model made, in order.
    pub all_tool_calls: Vec<ToolCall>,
    /// Replies with calls.
    pub rounds: usize,
}

/// Asks the model, runs its calls, gives it their results, until it answers without a call.
///
/// In each round, that is a reply with calls: the limit of rounds; `on_tool_calls`; loop
/// detection; the tools, all at once; warnings in front of the results of calls that go in
/// circles; `on_tool_results`; the next model call.
///
/// A call is run by the registry, and by an executor only where its name is not registered;
/// otherwise its result is the error "Tool '{name}' not registered".
///
/// # Errors
/// When a model call fails, when there are more rounds than [`ChatLoopConfig::with_max_rounds`]
/// allows, or when the model goes in circles and its detection or `on_loop_detected` ends it.
///
/// ```
/// use serde_json::json;
/// use toolloop::chat_loop::{ChatLoopConfig, chat_loop_with_tools};
/// use toolloop::mock::MockProvider;
/// use toolloop::{ChatMessage, ChatResponse, ContentBlock, ToolCall};
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let model = MockProvider::default();
/// let call = ToolCall { id: "c1".into(), name: "clock".into(), arguments: json!({}) };
/// let content = vec![ContentBlock::ToolCall(call)];
/// model.queue_response(ChatResponse { content, ..ChatResponse::default() });
/// model.queue_text("It is noon.");
///
/// let config = ChatLoopConfig::new().with_tool("clock", |_| async { Ok::<_, String>("12:00") });
/// let messages = vec![ChatMessage::user("How late is it?")];
/// let response = chat_loop_with_tools(&model, messages, Vec::new(), config).await?;
/// assert_eq!((response.content.as_str(), response.rounds), ("It is noon.", 1));
/// # Ok::<(), toolloop::LlmError>(())
/// # }).unwrap();
/// ```
pub async fn chat_loop_with_tools(
    provider: &dyn DynProvider,
    messages: Vec<ChatMessage>,
    tools: Vec<ToolDefinition>,
    config: ChatLoopConfig,
) -> Result<ChatLoopResponse, LlmError> {
    let registry = config.registry.clone().unwrap_or_default();
    if let Some(error) = registry.broken_schema() {
        return Err(LlmError::InvalidRequest(error.into()));
    }
    let tool_executors = config.tool_executors.clone();
    let toolbox = Arc::new(LookUp { registry, tool_executors });
    let tools = (!tools.is_empty()).then_some(tools);
    let params = ChatParams { messages, tools, ..ChatParams::default() };
    let loop_config = loop_config(&config);
    let mut run_config = loop_config.run_config(Vec::new(), true);
    run_config.runs_any_tool = true;
    let open = open_borrowed(provider);
    let driver = Driver::with_toolbox(open, toolbox, run_config, params, loop_config);
    let mut rounds = Rounds { driver, config, content: String::new(), said: 0, calls: Vec::new() };
    std::future::poll_fn(|cx| {
        loop {
            match rounds.driver.poll_step(cx) {
                Poll::Ready(Step::Event(event)) => rounds.tell(event),
                Poll::Ready(Step::Yielded) => rounds.end_round()?,
                Poll::Ready(Step::Finished) => return Poll::Ready(Ok::<_, LlmError>(())),
                Poll::Pending => return Poll::Pending,
            }
        }
    })
    .await?;
    rounds.into_response()
}

/// The loop while it runs.
struct Rounds<'p> {
    driver: Driver<'p>,
    config: ChatLoopConfig,
    content: String,
    /// How much of the content is of earlier replies.
    said: usize,
    calls: Vec<Vec<ToolCall>>,
}

impl Rounds<'_> {
    fn tell(&mut self, event: LoopEvent) {
        match event {
            LoopEvent::TextDelta(text) => {
                (self.config.on_content)(&text);
                self.content.push_str(&text);
            }
            LoopEvent::ReasoningDelta(text) => (self.config.on_thinking)(&text),
            LoopEvent::IterationStart { .. } => self.said = self.content.len(),
            LoopEvent::AttemptDiscarded { .. } => self.content.truncate(self.said),
            _ => {}
        }
    }

    fn end_round(&mut self) -> Result<(), LlmError> {
        let run = self.driver.run();
        self.calls.push(run.last_response().into_tool_calls());
        (self.config.on_tool_results)(run.last_results());
        self.driver.input(Input::Continue)?;
        Ok(())
    }

    fn into_response(self) -> Result<ChatLoopResponse, LlmError> {
        let result = self.driver.into_result()?;
        match result.termination_reason {
            TerminationReason::LoopDetected { tool_name, count } => {
                Err(LlmError::LoopDetected { tool_name, count })
            }
            // Of the other endings only the limit leaves calls open.
            _ if result.response.tool_calls_iter().next().is_some() => {
                Err(LlmError::MaxRoundsExceeded { limit: self.config.max_rounds })
            }
            _ => Ok(ChatLoopResponse {
                content: self.content,
                usage: result.total_usage,
                rounds: self.calls.len(),
                all_tool_calls: self.calls.concat(),
            }),
        }
    }
}

/// The settings of the loop beneath. Its stop condition is where a round begins.
fn loop_config(config: &ChatLoopConfig) -> ToolLoopConfig {
    let (max_rounds, on_tool_calls) = (config.max_rounds, Arc::clone(&config.on_tool_calls));
    let begin_round = move |context: &StopContext<'_>| {
        let calls: Vec<ToolCall> = context.response.tool_calls_iter().cloned().collect();
        if calls.is_empty() {
            return StopDecision::Continue;
        }
        // Each reply before this one had calls, or it would have been the last.
        if context.iteration as usize > max_rounds {
            return StopDecision::Stop;
        }
        on_tool_calls(&calls);
        StopDecision::Continue
    };
    ToolLoopConfig {
        max_iterations: u32::try_from(max_rounds).unwrap_or(u32::MAX).saturating_add(1),
        stop_when: Some(Arc::new(begin_round)),
        loop_detector: config.loop_detection,
        on_loop_detected: config.on_loop_detected.clone(),
        max_tool_turns: config.max_tool_turns,
        compaction: config.compaction,
        compaction_model: config.compaction_model.clone(),
        ..ToolLoopConfig::default()
    }
}
