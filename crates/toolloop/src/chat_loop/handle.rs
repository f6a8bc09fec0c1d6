//! [`ChatLoopHandle`]: a loop whose caller runs the tools.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use toolloop_core::run::{Input, RunConfig};
use toolloop_core::transcript::repair;
use toolloop_core::{
    ChatMessage, ChatParams, CompactionConfig, ContentBlock, DynProvider, LlmError, LoopEvent,
    ToolCall, ToolDefinition, ToolResult,
};

use super::desk::Desk;
use super::step::LoopStep;
use crate::driver::{Driver, Open, Step, open_borrowed, open_shared};
use crate::tool::ToolLoopConfig;

/// Opens chat loops on any model.
pub trait ChatLoopExt: DynProvider {
    /// A loop over this conversation, in which the model may call these tools and the caller runs
    /// them. Nothing is asked before the first [`ChatLoopHandle::next`].
    fn chat_loop(
        &self,
        messages: Vec<ChatMessage>,
        tools: Vec<ToolDefinition>,
    ) -> ChatLoopHandle<'_> {
        let tools = (!tools.is_empty()).then_some(tools);
        let params = ChatParams { messages, tools, ..ChatParams::default() };
        ChatLoopHandle::open(open_borrowed(self), params)
    }
}

impl<P: DynProvider + ?Sized> ChatLoopExt for P {}

/// A loop whose caller runs the tools.
///
/// All of the loop's state lives in the handle: it holds no task and no thread, a dropped
/// [`next`](Self::next) loses nothing, and dropping the handle closes the model's stream. It has
/// no limit of rounds, for its caller takes each of them.
pub struct ChatLoopHandle<'p> {
    /// What the run will begin with; `None` once it has begun.
    start: Option<Start>,
    /// Of an empty run until then.
    driver: Driver<'p>,
    desk: Arc<Desk>,
    /// What the caller will be told next.
    steps: VecDeque<LoopStep>,
    /// The text of the current reply.
    text: String,
    all_tool_calls: Vec<ToolCall>,
    is_over: bool,
}

impl ChatLoopHandle<'static> {
    /// A loop that shares its model, with all that a request may hold.
    pub fn new(provider: Arc<dyn DynProvider>, params: ChatParams) -> Self {
        Self::open(open_shared(provider), params)
    }
}

impl<'p> ChatLoopHandle<'p> {
    fn open(open: Open<'p>, params: ChatParams) -> Self {
        let config = ToolLoopConfig { max_iterations: u32::MAX, ..ToolLoopConfig::default() };
        let mut run_config = config.run_config(Vec::new(), true);
        run_config.runs_any_tool = true;
        let desk = Arc::new(Desk::default());
        let toolbox = Arc::clone(&desk);
        let (no_run, nothing) = (RunConfig::default(), ChatParams::default());
        Self {
            start: Some(Start { config: run_config, params }),
            driver: Driver::with_toolbox(open, toolbox, no_run, nothing, config),
            desk,
            steps: VecDeque::new(),
            text: String::new(),
            all_tool_calls: Vec::new(),
            is_over: false,
        }
    }

    /// Most tool turns that a request shows; see [`ToolLoopConfig`].
    ///
    /// # Panics
    /// When a step has been taken: the loop has begun.
    #[must_use]
    pub fn with_max_tool_turns(mut self, turns: u32) -> Self {
        self.before_the_first_step().config.max_tool_turns = Some(turns);
        self
    }

    /// When the conversation of a request is shortened; see [`ToolLoopConfig`]. What a model says
    /// to sum up is no step of the loop, but its tokens count.
    ///
    /// # Panics
    /// When a step has been taken: the loop has begun.
    #[must_use]
    pub fn with_compaction(mut self, config: CompactionConfig) -> Self {
        self.before_the_first_step().config.compaction = Some(config);
        self
    }

    /// The model that sums up, instead of the loop's own.
    #[must_use]
    pub fn with_compaction_model(mut self, model: Arc<dyn DynProvider>) -> Self {
        self.driver.sum_up_with(model);
        self
    }

    fn before_the_first_step(&mut self) -> &mut Start {
        match &mut self.start {
            Some(start) => start,
            None => panic!("a chat loop is set up before its first step"),
        }
    }

    /// Begins the run where it has not begun. Not before it must: a run that begins makes its
    /// first request, and until then tools and settings may change.
    fn begin(&mut self) {
        if let Some(Start { config, params }) = self.start.take() {
            self.driver.restart(config, params);
        }
    }

    /// The next step. An error is the last item, as is [`LoopStep::Done`]; then comes `None`.
    ///
    /// While results are awaited it stays pending: drop it, or better, do not ask before
    /// [`submit_tool_results`](Self::submit_tool_results).
    ///
    /// Where a provider starts a reply anew, the steps of the broken one stay said; the `content`
    /// of [`LoopStep::ToolCallsRequested`] and [`LoopStep::Done`] is that of the whole one alone.
    // An iterator cannot wait.
    #[allow(clippy::should_implement_trait)]
    pub async fn next(&mut self) -> Option<Result<LoopStep, LlmError>> {
        std::future::poll_fn(|cx| self.poll_next(cx)).await
    }

    /// Gives the model the results of all requested calls, in any order.
    ///
    /// # Errors
    /// [`LlmError::InvalidRequest`] when no results are awaited, or a result is missing, answers
    /// no requested call, or answers one twice. Nothing is taken then, and the right results can
    /// still be submitted.
    pub fn submit_tool_results(&mut self, results: Vec<ToolResult>) -> Result<(), LlmError> {
        if self.is_over {
            let sentence = "the chat loop is over: begin another with its messages";
            return Err(LlmError::InvalidRequest(sentence.into()));
        }
        let count = results.len();
        self.desk.answer(results)?;
        self.steps.push_back(LoopStep::ToolResultsReceived { count });
        Ok(())
    }

    /// Changes the tools that the model may call, from the next model call on.
    pub fn update_tools(&mut self, tools: Vec<ToolDefinition>) {
        match &mut self.start {
            Some(start) => start.params.tools = (!tools.is_empty()).then_some(tools),
            // A loop that is over asks no model any more.
            None => drop(self.driver.input(Input::OfferTools(tools))),
        }
    }

    /// Whether there are steps to come.
    pub fn is_active(&self) -> bool {
        !self.is_over
    }

    /// Ends the loop and closes the model's stream; no step follows. The conversation says of
    /// each open call that it was cut off.
    pub fn cancel(&mut self) {
        if self.is_over {
            return;
        }
        self.begin();
        self.is_over = true;
        self.steps.clear();
        // The run is not over, so it takes a cancel; its driver answers each abort at once.
        let _ = self.driver.input(Input::Cancel);
        let mut cx = Context::from_waker(Waker::noop());
        while let Poll::Ready(Step::Event(_)) = self.driver.poll_step(&mut cx) {}
    }

    /// The whole conversation, valid for a next request in every state of the loop.
    pub fn messages(&self) -> Vec<ChatMessage> {
        let Some(start) = &self.start else { return self.driver.messages() };
        let mut messages = start.params.messages.clone();
        repair(&mut messages);
        messages
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<LoopStep, LlmError>>> {
        self.begin();
        loop {
            if let Some(step) = self.steps.pop_front() {
                return Poll::Ready(Some(Ok(step)));
            }
            if self.is_over {
                return Poll::Ready(None);
            }
            match self.driver.poll_step(cx) {
                Poll::Ready(Step::Event(event)) => {
                    let step = self.seen(event);
                    self.steps.extend(step);
                }
                Poll::Ready(Step::Yielded) => {
                    let reply = self.driver.run().last_response();
                    self.all_tool_calls.extend(reply.into_tool_calls());
                    if let Err(misuse) = self.driver.input(Input::Continue) {
                        self.is_over = true;
                        return Poll::Ready(Some(Err(misuse.into())));
                    }
                }
                Poll::Ready(Step::Finished) => {
                    self.is_over = true;
                    return Poll::Ready(Some(self.done()));
                }
                Poll::Pending => {
                    let Some(tool_calls) = self.desk.show() else { return Poll::Pending };
                    let content = self.text.clone();
                    self.steps.push_back(LoopStep::ToolCallsRequested { tool_calls, content });
                }
            }
        }
    }

    fn seen(&mut self, event: LoopEvent) -> Option<LoopStep> {
        match event {
            LoopEvent::TextDelta(text) => {
                self.text.push_str(&text);
                Some(LoopStep::Content(text))
            }
            LoopEvent::ReasoningDelta(text) => Some(LoopStep::Thinking(text)),
            LoopEvent::IterationStart { .. } | LoopEvent::AttemptDiscarded { .. } => {
                self.text.clear();
                None
            }
            _ => None,
        }
    }

    fn done(&mut self) -> Result<LoopStep, LlmError> {
        let result = self.driver.run().result()?;
        let texts = result.response.content.iter().filter_map(|block| match block {
            ContentBlock::Text(text) => Some(text.as_str()),
            _ => None,
        });
        Ok(LoopStep::Done {
            content: texts.collect(),
            finish_reason: result.response.stop_reason.into(),
            total_usage: result.total_usage,
            all_tool_calls: std::mem::take(&mut self.all_tool_calls),
        })
    }
}

/// A run that has not begun.
struct Start {
    config: RunConfig,
    params: ChatParams,
}

impl fmt::Debug for ChatLoopHandle<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChatLoopHandle")
            .field("rounds", &self.driver.run().iteration())
            .field("is_active", &self.is_active())
            .finish_non_exhaustive()
    }
}
