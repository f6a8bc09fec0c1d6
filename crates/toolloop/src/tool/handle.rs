//! [`ToolLoopHandle`]: a loop that its caller takes forward turn by turn.

use std::fmt;
use std::sync::Arc;
use std::task::Poll;

use toolloop_core::run::Input;
use toolloop_core::{
    ChatMessage, ChatParams, ChatResponse, ContentBlock, DynProvider, LlmError, LoopDepth,
    LoopEvent, TerminationReason, ToolCall, ToolLoopResult, ToolResult, Usage, transcript,
};

use super::config::ToolLoopConfig;
use super::registry::ToolRegistry;
use crate::driver::{Driver, Step, open_shared};

/// A loop that its caller takes forward turn by turn, and may look into at any time.
///
/// All of the loop's state lives in the handle: a dropped [`next_turn`](Self::next_turn) loses
/// nothing, and the next one goes on where it stood. Dropping the handle cuts off what runs.
///
/// ```
/// use std::sync::Arc;
/// use toolloop::mock::MockProvider;
/// use toolloop::tool::{ToolLoopConfig, ToolLoopHandle, ToolRegistry, TurnResult};
/// use toolloop::{ChatMessage, ChatParams};
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let provider = Arc::new(MockProvider::default());
/// provider.queue_text("Hello!");
/// let registry = Arc::new(ToolRegistry::<()>::new());
/// let params = ChatParams { messages: vec![ChatMessage::user("Hi")], ..ChatParams::default() };
/// let config = ToolLoopConfig::default();
/// let mut handle = ToolLoopHandle::new(provider, registry, params, config, Arc::new(()))?;
/// loop {
///     match handle.next_turn().await {
///         TurnResult::Yielded(turn) => turn.continue_loop(),
///         TurnResult::Completed(done) => break assert_eq!(done.response.text(), Some("Hello!")),
///         TurnResult::Error(failed) => return Err(failed.error),
///     }
/// }
/// assert_eq!(handle.messages().len(), 2);
/// # Ok::<(), toolloop::LlmError>(())
/// # }).unwrap();
/// ```
pub struct ToolLoopHandle {
    driver: Driver<'static>,
    events: Vec<LoopEvent>,
    /// The conversation as the caller edits it; `None` where it was not touched.
    edited: Option<Vec<ChatMessage>>,
}

/// How a turn ended.
#[derive(Debug)]
pub enum TurnResult<'h> {
    /// Tools have run; the loop waits for its caller.
    Yielded(Yielded<'h>),
    /// The loop is over.
    Completed(Completed),
    /// A model call failed; the handle's `messages` stay valid.
    Error(TurnError),
}

/// A turn whose tools have run. Dropping it means [`continue_loop`](Self::continue_loop).
pub struct Yielded<'h> {
    handle: &'h mut ToolLoopHandle,
    /// The calls the model made.
    pub tool_calls: Vec<ToolCall>,
    /// Their results, after the pipeline, in call order.
    pub results: Vec<ToolResult>,
    /// The whole reply.
    pub assistant_content: Vec<ContentBlock>,
    /// The iteration, from 1.
    pub iteration: u32,
    /// Tokens of the loop so far.
    pub total_usage: Usage,
    /// What happened since the turn before.
    pub events: Vec<LoopEvent>,
}

/// A loop that is over.
#[derive(Debug)]
pub struct Completed {
    /// The last reply.
    pub response: ChatResponse,
    /// Why it is over.
    pub termination_reason: TerminationReason,
    /// Iterations it took.
    pub iterations: u32,
    /// Tokens of the loop.
    pub total_usage: Usage,
    /// What happened since the turn before.
    pub events: Vec<LoopEvent>,
}

/// A loop that failed.
#[derive(Debug)]
pub struct TurnError {
    /// Why.
    pub error: LlmError,
    /// Iterations it took.
    pub iterations: u32,
    /// Tokens of the loop.
    pub total_usage: Usage,
    /// What happened since the turn before.
    pub events: Vec<LoopEvent>,
}

impl ToolLoopHandle {
    /// Sets up a loop; nothing is asked before the first [`next_turn`](Self::next_turn).
    ///
    /// # Errors
    /// When the loop is nested too deep or a tool's schema is unusable.
    pub fn new<Ctx: LoopDepth + 'static>(
        provider: Arc<dyn DynProvider>,
        registry: Arc<ToolRegistry<Ctx>>,
        params: ChatParams,
        config: ToolLoopConfig,
        ctx: Arc<Ctx>,
    ) -> Result<Self, LlmError> {
        let driver = Driver::new(open_shared(provider), &registry, params, config, &ctx, true)?;
        Ok(Self { driver, events: Vec::new(), edited: None })
    }

    /// Takes the loop to the end of its turn. A turn that yielded before is continued.
    pub async fn next_turn(&mut self) -> TurnResult<'_> {
        if let Err(error) = self.go_on() {
            return self.failed(error);
        }
        let yielded = std::future::poll_fn(|cx| {
            loop {
                match self.driver.poll_step(cx) {
                    Poll::Ready(Step::Event(event)) => self.events.push(event),
                    Poll::Ready(Step::Yielded) => return Poll::Ready(true),
                    Poll::Ready(Step::Finished) => return Poll::Ready(false),
                    Poll::Pending => return Poll::Pending,
                }
            }
        });
        if yielded.await {
            return TurnResult::Yielded(self.turn());
        }
        match self.driver.run().result() {
            Ok(result) => TurnResult::Completed(Completed {
                response: result.response,
                termination_reason: result.termination_reason,
                iterations: result.iterations,
                total_usage: result.total_usage,
                events: std::mem::take(&mut self.events),
            }),
            Err(error) => self.failed(error),
        }
    }

    /// The whole conversation, valid for a next request in every state of the loop.
    pub fn messages(&self) -> Vec<ChatMessage> {
        let Some(mut messages) = self.edited.clone() else { return self.driver.messages() };
        transcript::repair(&mut messages);
        messages
    }

    /// Tokens of the loop so far.
    pub fn total_usage(&self) -> &Usage {
        self.driver.run().total_usage()
    }

    /// Iterations begun so far.
    pub fn iterations(&self) -> u32 {
        self.driver.run().iteration()
    }

    /// Whether the loop is over.
    pub fn is_finished(&self) -> bool {
        self.driver.run().is_finished()
    }

    /// The result of a loop that is over.
    ///
    /// # Errors
    /// What the loop failed with, or that it is not over.
    pub fn into_result(self) -> Result<ToolLoopResult, LlmError> {
        self.driver.into_result()
    }

    /// Continues a yielded run, with the caller's edits.
    fn go_on(&mut self) -> Result<(), LlmError> {
        if !self.driver.run().is_yielded() {
            return Ok(());
        }
        if let Some(messages) = self.edited.take() {
            self.driver.input(Input::ReplaceMessages(messages))?;
        }
        self.driver.input(Input::Continue)?;
        Ok(())
    }

    fn turn(&mut self) -> Yielded<'_> {
        let run = self.driver.run();
        let response = run.last_response();
        Yielded {
            tool_calls: response.tool_calls_iter().cloned().collect(),
            results: run.last_results().to_vec(),
            assistant_content: response.content,
            iteration: run.iteration(),
            total_usage: *run.total_usage(),
            events: std::mem::take(&mut self.events),
            handle: self,
        }
    }

    fn failed(&mut self, error: LlmError) -> TurnResult<'_> {
        TurnResult::Error(TurnError {
            error,
            iterations: self.iterations(),
            total_usage: *self.total_usage(),
            events: std::mem::take(&mut self.events),
        })
    }
}

impl Yielded<'_> {
    /// The reply's text, if it has one.
    pub fn assistant_text(&self) -> Option<String> {
        let texts = self.assistant_content.iter().filter_map(|block| match block {
            ContentBlock::Text(text) => Some(text.as_str()),
            _ => None,
        });
        let text: String = texts.collect();
        (!text.is_empty()).then_some(text)
    }

    /// The whole conversation.
    pub fn messages(&self) -> Vec<ChatMessage> {
        self.handle.messages()
    }

    /// The conversation, to edit. What no provider would take is repaired before it is sent.
    pub fn messages_mut(&mut self) -> &mut Vec<ChatMessage> {
        let driver = &self.handle.driver;
        self.handle.edited.get_or_insert_with(|| driver.messages())
    }

    /// Lets the loop go on with the next [`ToolLoopHandle::next_turn`].
    pub fn continue_loop(self) {}

    /// The same, with more messages before the next model call.
    pub fn inject_and_continue(self, messages: Vec<ChatMessage>) {
        let handle = self.handle;
        match &mut handle.edited {
            Some(edited) => edited.extend(messages),
            // A yielded run takes messages; were that ever broken, its result says so.
            None => drop(handle.driver.input(Input::Inject(messages))),
        }
    }

    /// Ends the loop; the next [`ToolLoopHandle::next_turn`] says so.
    pub fn stop(self, reason: Option<String>) {
        let handle = self.handle;
        let edits = handle.edited.take().map(Input::ReplaceMessages);
        for input in edits.into_iter().chain([Input::Stop { reason }]) {
            // A yielded run takes both; were that ever broken, the run reports it as its result.
            let _ = handle.driver.input(input);
        }
    }
}

impl fmt::Debug for ToolLoopHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolLoopHandle")
            .field("iterations", &self.iterations())
            .field("is_finished", &self.is_finished())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Yielded<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Yielded")
            .field("iteration", &self.iteration)
            .field("tool_calls", &self.tool_calls)
            .field("results", &self.results)
            .finish_non_exhaustive()
    }
}
