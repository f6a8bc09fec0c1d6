//! [`Driver`]: carries out what a [`Run`] asks for. It decides nothing.
//!
//! All of its state lives in it and none in a future, so it can be polled from a `tool_loop`, a
//! stream or a handle, and left alone between two polls. Dropping it closes the model's stream
//! and cuts off the tools.

mod host;
mod model;
mod toolbox;
mod usage_scope;

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;
use futures_util::stream::FuturesUnordered;
use tokio::time::{Instant, Sleep};
use tokio_util::sync::WaitForCancellationFutureOwned;
use toolloop_core::effect::{Action, ApprovalOutcome, Effect, EffectKey, EffectKind, Outcome};
use toolloop_core::effect::{LoopVerdict, PipelineOutcome, ToolOutcome};
use toolloop_core::run::{ApiMisuse, Input, Output, Run, RunConfig, ToolSpec};
use toolloop_core::{
    BoxFuture, CallContext, ChatMessage, ChatParams, ChatStream, DynProvider, LlmError, LoopDepth,
    LoopDetection, LoopEvent, StopDecision, ToolCall, ToolLoopResult, ToolResult, Usage,
};

use crate::tool::{Inbox, ToolApproval, ToolLoopConfig, ToolRegistry, run_pipeline};
use host::Host;
use model::{ModelCall, ModelStep};
use toolbox::Bound;
pub(crate) use toolbox::Toolbox;
use usage_scope::UsageScope;

/// A model's stream while it is opened.
pub(crate) type Opening<'p> = BoxFuture<'p, Result<ChatStream, LlmError>>;

/// Opens a model's stream for a request.
pub(crate) type Open<'p> = Box<dyn Fn(Arc<ChatParams>) -> Opening<'p> + Send + 'p>;

/// An effect at work besides the model call: an approval, a tool or a pipeline.
type Work = BoxFuture<'static, (EffectKey, Outcome)>;

/// What a poll of the driver gives.
// An event is handed on at once; boxing it would cost an allocation for each delta.
#[allow(clippy::large_enum_variant)]
pub(crate) enum Step {
    /// Something happened.
    Event(LoopEvent),
    /// A turn has ended; the run waits for its caller.
    Yielded,
    /// The run is over.
    Finished,
}

pub(crate) struct Driver<'p> {
    run: Run,
    open: Open<'p>,
    model: ModelCall<'p>,
    work: FuturesUnordered<Work>,
    /// Work that has not begun: clock and cancellation are looked at before each.
    fresh: VecDeque<(EffectKey, Work)>,
    toolbox: Arc<dyn Toolbox>,
    config: ToolLoopConfig,
    host: Host,
    /// Lines of progress that were told and not yet handed on.
    progress: VecDeque<LoopEvent>,
    /// What runs inside the tools and pipelines at work.
    nested: Vec<Nested>,
    /// The tool this loop is nested in.
    outer: Option<UsageScope>,
    started: Instant,
    clock: Option<Pin<Box<Sleep>>>,
    cancelled: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
    /// Model events until the clock and the cancellation are looked at though the stream does
    /// not pause.
    unchecked: u32,
    /// Whether a callback is at work; still set when it panicked.
    in_callback: bool,
    /// Whether the model call at work, if there is one, is for a summary.
    is_summing_up: bool,
}

/// A stream that never pauses is checked against clock and cancellation after so many events.
const CHECK_EVERY: u32 = 64;

impl<'p> Driver<'p> {
    pub(crate) fn new<Ctx: LoopDepth + 'static>(
        open: Open<'p>,
        registry: &ToolRegistry<Ctx>,
        mut params: ChatParams,
        config: ToolLoopConfig,
        ctx: &Ctx,
        yield_turns: bool,
    ) -> Result<Self, LlmError> {
        let depth = ctx.loop_depth();
        if let Some(limit) = config.max_depth.filter(|limit| depth >= *limit) {
            return Err(LlmError::MaxDepthExceeded { current: depth, limit });
        }
        if let Some(error) = registry.broken_schema() {
            return Err(LlmError::InvalidRequest(error.into()));
        }
        if params.tools.is_none() && !registry.is_empty() {
            params.tools = Some(registry.definitions());
        }
        let offered = params.tools.iter().flatten().filter_map(|tool| {
            let effect_class = registry.effect_class(&tool.name)?;
            Some(ToolSpec { name: tool.name.clone(), effect_class })
        });
        let run_config = config.run_config(offered.collect(), yield_turns);
        let toolbox = Arc::new(Bound::new(registry.clone(), ctx.with_depth(depth + 1)));
        Ok(Self::with_toolbox(open, toolbox, run_config, params, config))
    }

    /// A driver of a run whose tools are not in a registry.
    pub(crate) fn with_toolbox(
        open: Open<'p>,
        toolbox: Arc<dyn Toolbox>,
        run_config: RunConfig,
        params: ChatParams,
        config: ToolLoopConfig,
    ) -> Self {
        let host = Host::new(config.cancel.as_ref());
        let outer = UsageScope::current();
        let cancelled =
            config.cancel.as_ref().map(|token| Box::pin(token.clone().cancelled_owned()));
        Self {
            run: Run::new(run_config, params),
            open,
            model: ModelCall::idle(outer.clone()),
            work: FuturesUnordered::new(),
            fresh: VecDeque::new(),
            toolbox,
            host,
            progress: VecDeque::new(),
            nested: Vec::new(),
            outer,
            started: Instant::now(),
            clock: None,
            cancelled,
            unchecked: 0,
            in_callback: false,
            is_summing_up: false,
            config,
        }
    }

    pub(crate) fn run(&self) -> &Run {
        &self.run
    }

    pub(crate) fn into_result(self) -> Result<ToolLoopResult, LlmError> {
        self.run.into_result()
    }

    /// The conversation, with the text of a reply that is still arriving.
    pub(crate) fn messages(&self) -> Vec<ChatMessage> {
        let mut messages = self.run.messages();
        if let Some(text) = self.model.text().filter(|_| !self.is_summing_up) {
            messages.push(ChatMessage::assistant(text));
        }
        messages
    }

    /// Carries out another run from now on; of the one before, nothing has been polled.
    pub(crate) fn restart(&mut self, config: RunConfig, params: ChatParams) {
        self.run = Run::new(config, params);
    }

    /// Has another model sum up.
    pub(crate) fn sum_up_with(&mut self, model: Arc<dyn DynProvider>) {
        self.config.compaction_model = Some(model);
    }

    /// Tells the run what happened.
    pub(crate) fn input(&mut self, input: Input) -> Result<(), ApiMisuse> {
        self.run.handle_input(input)
    }

    pub(crate) fn poll_step(&mut self, cx: &mut Context<'_>) -> Poll<Step> {
        if std::mem::take(&mut self.in_callback) {
            // A callback panicked and somebody polls all the same. Asking it again could run
            // tools twice, so the run ends, with a valid conversation.
            let reason = Some("a callback panicked".to_owned());
            if self.input(Input::Stop { reason }).is_err() {
                return Poll::Ready(Step::Finished);
            }
        }
        loop {
            // Before the outputs: what a tool told comes before its end.
            if let Some(event) = self.progress.pop_front() {
                return Poll::Ready(Step::Event(event));
            }
            let input = match self.run.poll_output() {
                Output::Event(event) => return Poll::Ready(Step::Event(event)),
                Output::Perform(effect) => self.perform(effect),
                Output::Abort(key) => Some(self.abort(key)),
                Output::Yielded => return Poll::Ready(Step::Yielded),
                Output::Finished => return Poll::Ready(Step::Finished),
                Output::Wait { deadline } => match self.poll_world(cx, deadline) {
                    Poll::Ready(Happened::Input(input)) => Some(input),
                    Poll::Ready(Happened::Event(event)) => {
                        return Poll::Ready(Step::Event(event));
                    }
                    Poll::Pending => return Poll::Pending,
                },
                // Outputs of a later core that this driver does not know need no answer.
                _ => None,
            };
            let Some(input) = input else { continue };
            // Before the input: it may be the one that leads to the next model call, or ends it.
            let sent = self.config.inbox.as_ref().map(Inbox::take).unwrap_or_default();
            let sent = (!sent.is_empty()).then_some(Input::Inject(sent));
            for input in sent.into_iter().chain([input]) {
                if self.input(input).is_err() {
                    // The run keeps the misuse and reports it as its result.
                    return Poll::Ready(Step::Finished);
                }
            }
        }
    }

    /// Starts an effect; gives its outcome where it has one at once.
    fn perform(&mut self, effect: Effect) -> Option<Input> {
        let Effect { key, action } = effect;
        let outcome = match action {
            Action::CallModel => {
                let opening = (self.open)(Arc::clone(self.run.params()));
                self.model.open(key, opening, self.run.assembler());
                self.is_summing_up = false;
                self.unchecked = 0;
                None
            }
            Action::Summarize => {
                if let Some(params) = self.run.summary_params() {
                    let opening = self.open_summary(params);
                    self.model.open(key, opening, self.run.assembler());
                    self.is_summing_up = true;
                    self.unchecked = 0;
                }
                None
            }
            Action::ReadForceMask => {
                let forced = self.config.force_mask_iterations.as_ref();
                let forced = forced.map(|set| set.lock().unwrap_or_else(PoisonError::into_inner));
                Some(Outcome::ForceMask(
                    forced.iter().flat_map(|set| set.iter().copied()).collect(),
                ))
            }
            Action::DecideStop => Some(Outcome::Stop(self.decide_stop())),
            Action::DecideLoop(found) => Some(Outcome::Loop(self.decide_loop(&found))),
            Action::Approve(call) => self.approve(key, call).map(Outcome::Approval),
            Action::RunTool(call) => {
                self.start_tool(key, call);
                None
            }
            Action::ProcessResult { tool_name, result } => {
                self.start_pipeline(key, tool_name, result);
                None
            }
            // An action of a later core that this driver does not know is never performed.
            _ => None,
        };
        outcome.map(|outcome| Input::Outcome { key, outcome })
    }

    /// Ends an effect. The machine ends all that is at work or nothing, so all of it is dropped.
    fn abort(&mut self, key: EffectKey) -> Input {
        self.host.cancel();
        self.work.clear();
        if let Some(at) = self.fresh.iter().position(|(fresh, _)| *fresh == key) {
            self.fresh.remove(at);
            self.take_nested(key);
            return Input::Outcome { key, outcome: Outcome::NotBegun };
        }
        let partial = match key.kind {
            EffectKind::Model | EffectKind::Compaction => self.model.cut(),
            _ => None,
        };
        let nested = self.take_nested(key);
        let usage = nested.as_ref().and_then(Nested::usage);
        let duration = nested.map(|nested| nested.started.elapsed());
        Input::Outcome { key, outcome: Outcome::Cut { partial, usage, duration } }
    }

    fn open_summary(&self, params: ChatParams) -> Opening<'p> {
        match self.config.compaction_model.clone() {
            Some(model) => Box::pin(async move { model.stream_boxed(&params).await }),
            None => (self.open)(Arc::new(params)),
        }
    }

    fn decide_stop(&mut self) -> StopDecision {
        let Some((stop_when, context)) =
            self.config.stop_when.as_ref().zip(self.run.stop_context())
        else {
            return StopDecision::Continue;
        };
        self.in_callback = true;
        let decision = stop_when(&context);
        self.in_callback = false;
        decision
    }

    /// One objection is enough, but all that was found is shown.
    fn decide_loop(&mut self, found: &[LoopDetection]) -> LoopVerdict {
        let Some(decide) = &self.config.on_loop_detected else { return LoopVerdict::GoOn };
        self.in_callback = true;
        let objections = found.iter().filter(|detection| !decide(detection)).count();
        self.in_callback = false;
        if objections == 0 { LoopVerdict::GoOn } else { LoopVerdict::Terminate }
    }

    fn approve(&mut self, key: EffectKey, call: ToolCall) -> Option<ApprovalOutcome> {
        if let Some(decide) = &self.config.on_tool_call {
            self.in_callback = true;
            let approval = decide(&call);
            self.in_callback = false;
            if approval != ToolApproval::Approve || self.config.on_approval.is_none() {
                return Some(checked(self.toolbox.as_ref(), call, approval));
            }
        }
        let ask = self.config.on_approval.clone()?;
        let toolbox = Arc::clone(&self.toolbox);
        let work = Box::pin(async move {
            let approval = ask(call.clone()).await;
            (key, Outcome::Approval(checked(toolbox.as_ref(), call, approval)))
        });
        self.fresh.push_back((key, work));
        None
    }

    fn start_tool(&mut self, key: EffectKey, call: ToolCall) {
        let (scope, started) = (UsageScope::inside(self.outer.clone()), Instant::now());
        self.nested.push(Nested { key, started, scope: scope.clone() });
        let context =
            CallContext::new(&call.id, self.host.idempotency_key(key), self.host.shared());
        let work = self.toolbox.run(call, context);
        let work = scope.enter(async move {
            let started = Instant::now();
            let ToolResult { content, is_error, .. } = work.await;
            let duration = started.elapsed();
            (key, Outcome::Tool(ToolOutcome { content, is_error, duration, usage: None }))
        });
        self.fresh.push_back((key, Box::pin(work)));
    }

    fn start_pipeline(&mut self, key: EffectKey, tool_name: String, result: ToolResult) {
        let config = self.config.clone();
        let query = match config.result_extractor {
            Some(_) => self.run.last_user_query(),
            None => String::new(),
        };
        // A stage may ask a model.
        let scope = UsageScope::inside(self.outer.clone());
        self.nested.push(Nested { key, started: Instant::now(), scope: scope.clone() });
        let work = scope.enter(async move {
            let outcome: PipelineOutcome =
                run_pipeline(config, tool_name, result.content.text, query).await;
            (key, Outcome::Pipeline(outcome))
        });
        self.fresh.push_back((key, Box::pin(work)));
    }

    /// Waits for the model, the tools, the clock and the cancellation.
    fn poll_world(&mut self, cx: &mut Context<'_>, deadline: Option<Duration>) -> Poll<Happened> {
        while self.model.is_at_work() {
            if self.unchecked == 0 {
                self.unchecked = CHECK_EVERY;
                if let Some(input) = self.poll_interruption(cx, deadline) {
                    return Poll::Ready(Happened::Input(input));
                }
            }
            self.unchecked -= 1;
            match self.model.poll(cx) {
                // A summary is no answer. What is left of it, such as retries, is told.
                Poll::Ready(ModelStep::Event(event)) if !self.is_summing_up || is_news(&event) => {
                    return Poll::Ready(Happened::Event(event));
                }
                Poll::Ready(ModelStep::Event(_)) => {}
                Poll::Ready(ModelStep::Outcome(key, outcome)) => {
                    let outcome = self.with_faults(outcome);
                    return Poll::Ready(Happened::Input(Input::Outcome { key, outcome }));
                }
                Poll::Pending => break,
            }
        }
        loop {
            if let Some(input) = self.poll_work(cx) {
                return Poll::Ready(Happened::Input(input));
            }
            // After the work, so that what has finished counts as finished; before what has not
            // begun, which then never does; before the progress, of which there may be more each
            // time.
            if let Some(input) = self.poll_interruption(cx, deadline) {
                return Poll::Ready(Happened::Input(input));
            }
            match self.fresh.pop_front() {
                Some((_, work)) => self.work.push(work),
                None => break,
            }
        }
        match self.progress.pop_front() {
            Some(event) => Poll::Ready(Happened::Event(event)),
            None => Poll::Pending,
        }
    }

    fn poll_work(&mut self, cx: &mut Context<'_>) -> Option<Input> {
        if self.work.is_empty() {
            return None;
        }
        self.host.wake_on_progress(cx);
        self.in_callback = true;
        let work = Pin::new(&mut self.work).poll_next(cx);
        self.in_callback = false;
        self.host.take_progress(&mut self.progress);
        let Poll::Ready(Some((key, outcome))) = work else { return None };
        let outcome = self.with_nested_usage(key, outcome);
        Some(Input::Outcome { key, outcome })
    }

    fn poll_interruption(
        &mut self,
        cx: &mut Context<'_>,
        deadline: Option<Duration>,
    ) -> Option<Input> {
        if let Some(cancelled) = &mut self.cancelled
            && cancelled.as_mut().poll(cx).is_ready()
        {
            self.cancelled = None;
            return Some(Input::Cancel);
        }
        let due = deadline?;
        // The clock is read besides: a stream that never lets go of its thread keeps timers from
        // firing.
        if self.started.elapsed() < due {
            let at = self.started.checked_add(due)?;
            let clock = self.clock.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(at)));
            if clock.as_mut().poll(cx).is_pending() {
                return None;
            }
        }
        self.clock = None;
        Some(Input::Now(self.started.elapsed().max(due)))
    }

    /// Notes which calls of a reply do not fit their tool's schema.
    fn with_faults(&self, mut outcome: Outcome) -> Outcome {
        if let Outcome::Reply(reply) = &mut outcome {
            let calls = reply.response.tool_calls_iter().enumerate();
            reply.invalid_calls = calls
                .filter_map(|(position, call)| Some((position, self.toolbox.fault(call)?)))
                .collect();
        }
        outcome
    }

    fn with_nested_usage(&mut self, key: EffectKey, mut outcome: Outcome) -> Outcome {
        let usage = match &mut outcome {
            Outcome::Tool(tool) => &mut tool.usage,
            Outcome::Pipeline(pipeline) => &mut pipeline.usage,
            _ => return outcome,
        };
        *usage = self.take_nested(key).and_then(|nested| nested.usage());
        outcome
    }

    fn take_nested(&mut self, key: EffectKey) -> Option<Nested> {
        let at = self.nested.iter().position(|nested| nested.key == key)?;
        Some(self.nested.swap_remove(at))
    }
}

/// A tool or pipeline at work, in which loops may run.
struct Nested {
    key: EffectKey,
    started: Instant,
    /// Tokens of the loops.
    scope: UsageScope,
}

impl Nested {
    /// `None` where no model was asked.
    fn usage(&self) -> Option<Usage> {
        Some(self.scope.usage()).filter(|usage| *usage != Usage::default())
    }
}

/// Something the run or whoever follows it must hear of.
enum Happened {
    Input(Input),
    Event(LoopEvent),
}

/// Whether an event of a model call tells of the call and not of its reply.
fn is_news(event: &LoopEvent) -> bool {
    matches!(event, LoopEvent::RetryScheduled(_) | LoopEvent::RateLimits(_))
}

/// Opens the streams of a provider that outlives its driver.
pub(crate) fn open_borrowed<P: DynProvider + ?Sized>(provider: &P) -> Open<'_> {
    Box::new(move |params| Box::pin(async move { provider.stream_boxed(&params).await }))
}

/// Opens the streams of a provider that is shared.
pub(crate) fn open_shared(provider: Arc<dyn DynProvider>) -> Open<'static> {
    Box::new(move |params| {
        let provider = Arc::clone(&provider);
        Box::pin(async move { provider.stream_boxed(&params).await })
    })
}

/// An approval as an outcome; changed arguments are held against the schema again.
fn checked(toolbox: &dyn Toolbox, mut call: ToolCall, approval: ToolApproval) -> ApprovalOutcome {
    match approval {
        ToolApproval::Approve => ApprovalOutcome::Approved,
        ToolApproval::Deny(reason) => ApprovalOutcome::Denied(reason),
        ToolApproval::Answer(content) => ApprovalOutcome::Answered(content),
        ToolApproval::Modify(arguments) => {
            call.arguments = arguments;
            match toolbox.fault(&call) {
                Some(fault) => ApprovalOutcome::ModifiedInvalid(fault),
                None => ApprovalOutcome::Modified(call.arguments),
            }
        }
    }
}
