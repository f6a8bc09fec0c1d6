//! [`MockProvider`]: a model that says what a test tells it to.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use futures_core::Stream;
use toolloop_core::{
    ChatParams, ChatResponse, ChatStream, ContentBlock, LlmError, Provider, ProviderMetadata,
    StreamEvent,
};

use crate::reply_stream::{events_of, whole};

/// What a mocked call fails with; any [`LlmError`] will do.
pub type MockError = LlmError;

/// A model that says what a test tells it to, one queued reply a call, and records its calls.
///
/// ```
/// use toolloop::mock::MockProvider;
/// use toolloop::{ChatParams, Provider};
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let model = MockProvider::default();
/// model.queue_text("Good morning.");
/// let reply = model.generate(&ChatParams::default()).await?;
/// assert_eq!(reply.text(), Some("Good morning."));
/// assert_eq!(model.recorded_calls().len(), 1);
/// # Ok::<(), toolloop::LlmError>(())
/// # }).unwrap();
/// ```
pub struct MockProvider {
    metadata: ProviderMetadata,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    replies: VecDeque<Reply>,
    calls: Vec<ChatParams>,
}

enum Reply {
    Refused(LlmError),
    Stream(Playback),
}

impl MockProvider {
    /// A model that says this of itself.
    pub fn new(metadata: ProviderMetadata) -> Self {
        Self { metadata, state: Mutex::default() }
    }

    /// The next call is answered with this reply, whole or as a stream.
    pub fn queue_response(&self, response: ChatResponse) -> &Self {
        self.queue_stream(events_of(response))
    }

    /// The next call is answered with this text.
    pub fn queue_text(&self, text: impl Into<String>) -> &Self {
        let content = vec![ContentBlock::Text(text.into())];
        self.queue_response(ChatResponse { content, ..ChatResponse::default() })
    }

    /// The next call fails before its first event.
    pub fn queue_error(&self, error: LlmError) -> &Self {
        self.queue(Reply::Refused(error))
    }

    /// The next call is answered with these events. A stream that is to end well needs a
    /// [`StreamEvent::Done`].
    pub fn queue_stream(&self, events: Vec<StreamEvent>) -> &Self {
        self.queue_playback(events, Ending::Ends)
    }

    /// The next call is answered with these events and then an error.
    pub fn queue_stream_error(&self, events: Vec<StreamEvent>, error: LlmError) -> &Self {
        self.queue_playback(events, Ending::Fails(error))
    }

    /// The next call is answered with these events, and then its stream hangs.
    pub fn queue_hanging_stream(&self, events: Vec<StreamEvent>) -> &Self {
        self.queue_playback(events, Ending::Hangs)
    }

    /// What the model was asked, call by call.
    pub fn recorded_calls(&self) -> Vec<ChatParams> {
        self.state().calls.clone()
    }

    fn queue_playback(&self, events: Vec<StreamEvent>, ending: Ending) -> &Self {
        self.queue(Reply::Stream(Playback { events: events.into(), ending }))
    }

    fn queue(&self, reply: Reply) -> &Self {
        self.state().replies.push_back(reply);
        self
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Provider for MockProvider {
    async fn generate(&self, params: &ChatParams) -> Result<ChatResponse, LlmError> {
        whole(self.stream(params).await?).await
    }

    async fn stream(&self, params: &ChatParams) -> Result<ChatStream, LlmError> {
        let mut state = self.state();
        state.calls.push(params.clone());
        let number = state.calls.len();
        match state.replies.pop_front() {
            Some(Reply::Stream(playback)) => Ok(Box::pin(playback)),
            Some(Reply::Refused(error)) => Err(error),
            None => Err(LlmError::InvalidRequest(
                format!("MockProvider has no reply for call {number}: queue one more").into(),
            )),
        }
    }

    fn metadata(&self) -> ProviderMetadata {
        self.metadata.clone()
    }
}

impl Default for MockProvider {
    fn default() -> Self {
        Self::new(ProviderMetadata {
            name: "mock".into(),
            model: "mock".into(),
            context_window: 0,
            capabilities: Default::default(),
        })
    }
}

impl fmt::Debug for MockProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        f.debug_struct("MockProvider")
            .field("model", &self.metadata.model)
            .field("queued", &state.replies.len())
            .field("calls", &state.calls.len())
            .finish()
    }
}

/// A stream that plays its events.
struct Playback {
    events: VecDeque<StreamEvent>,
    ending: Ending,
}

enum Ending {
    Ends,
    Fails(LlmError),
    Hangs,
}

impl Stream for Playback {
    type Item = Result<StreamEvent, LlmError>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Some(event) = self.events.pop_front() {
            return Poll::Ready(Some(Ok(event)));
        }
        match std::mem::replace(&mut self.ending, Ending::Ends) {
            Ending::Ends => Poll::Ready(None),
            Ending::Fails(error) => Poll::Ready(Some(Err(error))),
            Ending::Hangs => {
                self.ending = Ending::Hangs;
                Poll::Pending
            }
        }
    }
}
