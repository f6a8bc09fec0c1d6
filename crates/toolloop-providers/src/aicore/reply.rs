//! [`AiCoreReply`]: a model call that brings its token.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures_core::Stream;
use tokio::time::{Instant, timeout_at};
use toolloop_core::{BoxFuture, ChatParams, LlmError, StreamEvent};

use super::session::{Session, Sessions};
use crate::codec::Reading;
use crate::codec::anthropic::MessagesDecoder;
use crate::transport::ReplyStream;

/// A reply of a deployment. A token that is refused is replaced once.
pub(super) struct AiCoreReply {
    sessions: Arc<Sessions>,
    deployment: String,
    body: Bytes,
    /// Without messages: they are in the body.
    params: ChatParams,
    reading: Reading,
    state: State,
    renewed: bool,
    started: Instant,
}

enum State {
    Opening(BoxFuture<'static, Result<Session, LlmError>>),
    Replying { session: Session, reply: Box<ReplyStream<MessagesDecoder>> },
    Over,
}

impl AiCoreReply {
    pub(super) fn new(
        sessions: Arc<Sessions>,
        deployment: &str,
        body: Bytes,
        params: &ChatParams,
        reading: Reading,
    ) -> Self {
        let started = Instant::now();
        let state = open(&sessions, None, params.timeout, started);
        let params = ChatParams {
            timeout: params.timeout,
            extra_headers: params.extra_headers.clone(),
            ..ChatParams::default()
        };
        let deployment = deployment.to_owned();
        let renewed = false;
        Self { sessions, deployment, body, params, reading, state, renewed, started }
    }

    fn ask(&mut self, session: Session) -> State {
        // What the token took is gone.
        let gone = std::mem::replace(&mut self.started, Instant::now()).elapsed();
        self.params.timeout = self.params.timeout.map(|patience| patience.saturating_sub(gone));
        let path = ["v2", "inference", "deployments", &self.deployment, ENDPOINT];
        let (body, reading) = (self.body.clone(), self.reading.clone());
        let reply = session.transport.post(&path, body, &self.params, reading);
        State::Replying { session, reply: Box::new(reply) }
    }
}

/// Gets a token, within what is left of the caller's patience.
fn open(
    sessions: &Arc<Sessions>,
    refused: Option<Session>,
    patience: Option<Duration>,
    started: Instant,
) -> State {
    let sessions = Arc::clone(sessions);
    State::Opening(Box::pin(async move {
        let opening = sessions.open(refused.as_ref());
        let Some(ends) = patience.and_then(|patience| started.checked_add(patience)) else {
            return opening.await;
        };
        timeout_at(ends, opening).await.unwrap_or_else(|_| {
            Err(LlmError::Timeout { elapsed_ms: started.elapsed().as_millis() as u64 })
        })
    }))
}

impl Stream for AiCoreReply {
    type Item = Result<StreamEvent, LlmError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            match &mut this.state {
                State::Opening(session) => match ready!(session.as_mut().poll(cx)) {
                    Ok(session) => this.state = this.ask(session),
                    Err(error) => {
                        this.state = State::Over;
                        return Poll::Ready(Some(Err(error)));
                    }
                },
                State::Replying { session, reply } => match ready!(Pin::new(reply).poll_next(cx)) {
                    Some(Err(error)) if error.status() == Some(401) && !this.renewed => {
                        this.renewed = true;
                        let refused = Some(session.clone());
                        let patience = this.params.timeout;
                        this.state = open(&this.sessions, refused, patience, this.started);
                    }
                    event => return Poll::Ready(event),
                },
                State::Over => return Poll::Ready(None),
            }
        }
    }
}

/// Serves the events of the Messages API as they come.
const ENDPOINT: &str = "invoke-with-response-stream";
