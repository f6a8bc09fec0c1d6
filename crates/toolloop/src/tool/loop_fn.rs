//! The two doors to a loop: [`tool_loop`] waits for the end, [`tool_loop_stream`] shows the way.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;
use toolloop_core::{ChatParams, DynProvider, LlmError, LoopDepth, LoopEvent, ToolLoopResult};

use super::config::ToolLoopConfig;
use super::registry::ToolRegistry;
use crate::driver::{Driver, Step, open_borrowed, open_shared};

/// The events of a run; [`LoopEvent::Done`] or an error is the last item. Dropping it ends the
/// run: the model's stream is closed and the tools are cut off.
pub type LoopStream = Pin<Box<dyn Stream<Item = Result<LoopEvent, LlmError>> + Send>>;

/// Runs a loop to its end.
///
/// # Errors
/// When a model call fails, or the loop is nested too deep. A failed tool, a denial, a limit and
/// a cancellation are no errors. An error carries no conversation; who wants it then takes a
/// [`ToolLoopHandle`](super::ToolLoopHandle).
///
/// ```
/// use toolloop::mock::MockProvider;
/// use toolloop::tool::{ToolLoopConfig, ToolRegistry, tool_loop};
/// use toolloop::{ChatMessage, ChatParams, ChatResponse, ContentBlock};
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let provider = MockProvider::default();
/// provider.queue_response(ChatResponse {
///     content: vec![ContentBlock::Text("Hello!".into())],
///     ..ChatResponse::default()
/// });
/// let registry: ToolRegistry = ToolRegistry::new();
/// let params = ChatParams { messages: vec![ChatMessage::user("Hi")], ..ChatParams::default() };
///
/// let result = tool_loop(&provider, &registry, params, ToolLoopConfig::default(), &()).await?;
/// assert_eq!(result.response.text(), Some("Hello!"));
/// # Ok::<(), toolloop::LlmError>(())
/// # }).unwrap();
/// ```
pub async fn tool_loop<Ctx: LoopDepth + 'static>(
    provider: &dyn DynProvider,
    registry: &ToolRegistry<Ctx>,
    params: ChatParams,
    config: ToolLoopConfig,
    ctx: &Ctx,
) -> Result<ToolLoopResult, LlmError> {
    let open = open_borrowed(provider);
    let mut driver = Driver::new(open, registry, params, config, ctx, false)?;
    std::future::poll_fn(|cx| {
        loop {
            match driver.poll_step(cx) {
                Poll::Ready(Step::Event(_)) => {}
                Poll::Ready(Step::Yielded | Step::Finished) => return Poll::Ready(()),
                Poll::Pending => return Poll::Pending,
            }
        }
    })
    .await;
    driver.into_result()
}

/// Runs a loop and gives its events as they happen.
pub fn tool_loop_stream<Ctx: LoopDepth + 'static>(
    provider: Arc<dyn DynProvider>,
    registry: Arc<ToolRegistry<Ctx>>,
    params: ChatParams,
    config: ToolLoopConfig,
    ctx: Arc<Ctx>,
) -> LoopStream {
    let open = open_shared(provider);
    let state = match Driver::new(open, &registry, params, config, &ctx, false) {
        Ok(driver) => Events::Running(Box::new(driver)),
        Err(error) => Events::Failed(error),
    };
    Box::pin(state)
}

enum Events {
    Running(Box<Driver<'static>>),
    Failed(LlmError),
    Ended,
}

impl Stream for Events {
    type Item = Result<LoopEvent, LlmError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        if let Self::Running(driver) = this {
            match driver.poll_step(cx) {
                Poll::Ready(Step::Event(event)) => return Poll::Ready(Some(Ok(event))),
                Poll::Ready(Step::Yielded | Step::Finished) => {}
                Poll::Pending => return Poll::Pending,
            }
        }
        Poll::Ready(match std::mem::replace(this, Self::Ended) {
            Self::Running(driver) => Some(driver.into_result().map(LoopEvent::Done)),
            Self::Failed(error) => Some(Err(error)),
            Self::Ended => None,
        })
    }
}
