//! [`AiCoreReply`]: a model call that brings its token.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_core::Stream;
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
        body: Vec<u8>,
        params: &ChatParams,
        reading: Reading,
    ) -> Self {
        let state = open(&sessions, None);
        let params = ChatParams {
            timeout: params.timeout,
            extra_headers: params.extra_headers.clone(),
            ..ChatParams::default()
        };
        let deployment = deployment.to_owned();
        Self { sessions, deployment, body: body.into(), params, reading, state, renewed: false }
    }

    fn ask(&self, session: Session) -> State {
        let path = ["v2", "inference", "deployments", &self.deployment, ENDPOINT];
        let (body, reading) = (self.body.clone(), self.reading.clone());
        let reply = session.transport.post(&path, body, &self.params, reading);
        State::Replying { session, reply: Box::new(reply) }
    }
}

fn open(sessions: &Arc<Sessions>, refused: Option<Session>) -> State {
    let sessions = Arc::clone(sessions);
    State::Opening(Box::pin(async move { sessions.open(refused.as_ref()).await }))
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
                        this.state = open(&this.sessions, Some(session.clone()));
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
