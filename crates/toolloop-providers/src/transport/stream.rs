//! [`ReplyStream`]: one model call, from its first byte out to its last byte in.

use std::future::poll_fn;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures_core::Stream;
use http_body::Body as _;
use reqwest::{Body, Request, Response};
use tokio::time::Instant;
use toolloop_core::{ChatResponse, LlmError, ReplyAssembler, StreamEvent};

use super::deadline::Deadline;
use super::failure::{AttemptError, Peer, RetryClass, root_cause};
use super::headers;
use super::redact::Redactor;
use super::retry::Retries;
use super::{Timeouts, Transport};
use crate::codec::{ApiError, DecodeError, Decoder, Events, Frames, Reading};

/// A reply as it arrives. It sends, waits, tries again and reads as it is polled.
///
/// The last event is held back until the body is read to its end (within bounds), because only
/// then its connection can serve the next call. It can a moment later: a task of the client puts it
/// back, and gives no sign. Turns of the runtime that were left to that task here changed nothing,
/// so a call that follows at once may open another connection, which the pool keeps as well.
/// Dropping the stream earlier closes the request.
pub(crate) struct ReplyStream<D> {
    transport: Arc<Transport>,
    request: Request,
    peer: Peer,
    state: State,
    decoder: D,
    reading: Reading,
    /// Decoded, and not yet taken.
    events: Events,
    retries: Retries,
    started: Instant,
    /// The end of the caller's patience.
    call_ends: Option<Instant>,
    /// The next limit of time, whichever it is.
    deadline: Deadline,
    /// Whether the deadline is set; content unsets it, and waiting sets it anew.
    armed: bool,
    phase: Phase,
    /// Whether anything of a reply came, be it without content.
    heard: bool,
}

/// How far the model has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// It has said nothing; a failure may be followed by another try.
    Silent,
    /// It speaks. What was said cannot be taken back, so there is no other try.
    Speaking,
    /// It has finished; only usage and the end mark can follow.
    Finished,
}

enum State {
    Sending(Pin<Box<dyn Future<Output = reqwest::Result<Response>> + Send>>),
    /// Until the deadline, then the next try.
    Waiting,
    /// The answer is no reply: its body is read for the reason.
    Refused {
        head: http::response::Parts,
        body: Body,
        read: Vec<u8>,
    },
    /// The reply comes as one JSON document.
    Document {
        body: Body,
        read: Vec<u8>,
    },
    /// `fresh`: a piece of the body has come since the clock was last looked at. `room`: so many
    /// bytes may still come.
    Streaming {
        body: Body,
        frames: Frames,
        fresh: bool,
        room: usize,
    },
    /// The reply is whole; what remains of the body is read. `waited`: it was not there at once.
    Draining {
        body: Body,
        left: usize,
        done: StreamEvent,
        waited: bool,
    },
    /// The body is read and gone.
    Released(StreamEvent),
    Failed(LlmError),
    Over,
}

impl<D: Decoder> Stream for ReplyStream<D> {
    type Item = Result<StreamEvent, LlmError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            if let Some(mut event) = this.events.pop_front() {
                this.reading.translate(&mut event);
                return Poll::Ready(Some(Ok(event)));
            }
            if let State::Failed(_) | State::Over = this.state {
                return Poll::Ready(match mem::replace(&mut this.state, State::Over) {
                    State::Failed(error) => Some(Err(error)),
                    _ => None,
                });
            }
            if let Err(failed) = ready!(this.advance(cx)) {
                this.fail(failed);
            }
        }
    }
}

impl<D: Decoder> ReplyStream<D> {
    pub(super) fn new(
        transport: Arc<Transport>,
        request: Request,
        redactor: Redactor,
        patience: Option<Duration>,
        reading: Reading,
    ) -> Self {
        let started = Instant::now();
        // No later than any wait of a short call: a timer that is set to an earlier time wakes the
        // runtime, while one that fires too early is set anew once.
        let Timeouts { first_content, stall, .. } = transport.limits.timeouts;
        let first_wait = started + first_content.min(stall).min(TAIL_TIME);
        let mut stream = Self {
            peer: Peer::new(request.url(), redactor, D::cure),
            retries: Retries::new(transport.limits.max_retries),
            state: State::Over,
            decoder: D::default(),
            reading,
            events: Events::new(),
            started,
            call_ends: patience.and_then(|patience| started.checked_add(patience)),
            deadline: Deadline::new(first_wait),
            armed: false,
            phase: Phase::Silent,
            heard: false,
            transport,
            request,
        };
        stream.send();
        stream
    }

    /// Reads to the end, for a caller who wants nothing before.
    pub(crate) async fn into_response(mut self) -> Result<ChatResponse, LlmError> {
        let mut assembler = ReplyAssembler::detached();
        while let Some(event) = poll_fn(|cx| Pin::new(&mut self).poll_next(cx)).await {
            assembler.push(event?)?;
        }
        assembler.into_response()
    }

    /// What has read the reply so far.
    pub(crate) fn decoder(&self) -> &D {
        &self.decoder
    }

    fn send(&mut self) {
        self.decoder = D::default();
        self.peer.asked();
        self.heard = false;
        // The clock starts with the first wait: until it is polled, nothing is sent.
        self.armed = false;
        // Always there: the body is bytes, not a stream.
        let request = self.request.try_clone().unwrap_or_else(|| unreachable!("a body of bytes"));
        self.state = State::Sending(Box::pin(self.transport.client.execute(request)));
    }

    /// One step: events have come, or the state is another.
    fn advance(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), AttemptError>> {
        match &mut self.state {
            State::Sending(answer) => match answer.as_mut().poll(cx) {
                Poll::Ready(Ok(response)) => self.receive(response),
                Poll::Ready(Err(error)) => Poll::Ready(Err(self.peer.unreachable(&error))),
                Poll::Pending => self.poll_clock(cx),
            },
            State::Waiting => self.poll_clock(cx),
            State::Refused { head, body, read } => match poll_piece(body, cx) {
                Poll::Ready(Some(Ok(piece))) if read.len() < MAX_ERROR_BODY => {
                    read.extend_from_slice(&piece[..piece.len().min(MAX_ERROR_BODY - read.len())]);
                    Poll::Ready(Ok(()))
                }
                Poll::Ready(_) => {
                    Poll::Ready(Err(self.peer.refused(head.status, &head.headers, read)))
                }
                Poll::Pending => self.poll_clock(cx),
            },
            State::Document { body, read } => match poll_piece(body, cx) {
                Poll::Ready(Some(Ok(piece))) => {
                    if read.len() + piece.len() > self.transport.limits.max_event.get() {
                        let message = "the answer is larger than the limit";
                        return Poll::Ready(Err(self.peer.unreadable(message, &[])));
                    }
                    read.extend_from_slice(&piece);
                    Poll::Ready(Ok(()))
                }
                Poll::Ready(Some(Err(error))) => Poll::Ready(Err(self.broken(&error))),
                Poll::Ready(None) => {
                    let document = mem::take(read);
                    Poll::Ready(self.read_document(&document))
                }
                Poll::Pending => self.poll_clock(cx),
            },
            State::Streaming { .. } => self.read(cx),
            State::Draining { body, left, waited, .. } => match poll_piece(body, cx) {
                Poll::Ready(Some(Ok(piece))) if piece.len() < *left => {
                    *left -= piece.len();
                    Poll::Ready(Ok(()))
                }
                // The connection goes back to its pool in a task of its own, which is to run before
                // a next request is made: that would open another.
                Poll::Ready(_) => {
                    self.release();
                    cx.waker().wake_by_ref();
                    Poll::Pending
                }
                // Mostly the end has come, and the task of the connection has yet to look at it.
                Poll::Pending if !mem::replace(waited, true) => {
                    cx.waker().wake_by_ref();
                    Poll::Pending
                }
                Poll::Pending => self.poll_clock(cx),
            },
            State::Released(_) => Poll::Ready(self.close()),
            State::Failed(_) | State::Over => Poll::Ready(Ok(())),
        }
    }

    /// The head of the answer is here.
    fn receive(&mut self, response: Response) -> Poll<Result<(), AttemptError>> {
        let (head, body) = http::Response::<Body>::from(response).into_parts();
        self.peer.answered(&head.headers);
        if !head.status.is_success() || headers::is_html(&head.headers) {
            self.set_deadline(ERROR_BODY_TIME);
            self.state = State::Refused { head, body, read: Vec::new() };
            return Poll::Ready(Ok(()));
        }
        self.events.extend(headers::request_id(&head.headers).map(StreamEvent::RequestId));
        self.events.extend(headers::rate_limits(&head.headers).map(StreamEvent::RateLimits));
        self.events.extend(self.reading.take_reduced());
        self.state = if headers::is_json(&head.headers) {
            State::Document { body, read: Vec::new() }
        } else {
            let limits = &self.transport.limits;
            let frames = Frames::new(D::FRAMING, limits.max_event);
            State::Streaming { body, frames, fresh: false, room: limits.max_stream() }
        };
        Poll::Ready(Ok(()))
    }

    /// Decodes one event, or reads more of the body.
    fn read(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), AttemptError>> {
        let State::Streaming { frames, fresh, .. } = &mut self.state else {
            return Poll::Ready(Ok(()));
        };
        match frames.next_data() {
            Some(Ok(data)) => {
                let decoded = self.decoder.handle_data(&data, &mut self.events);
                self.heard |= decoded.is_ok();
                self.take_note();
                return Poll::Ready(decoded.map_err(|error| self.peer.undecodable(error)));
            }
            Some(Err(error)) => {
                return Poll::Ready(Err(self.peer.unreadable(&error.to_string(), &[])));
            }
            None => {}
        }
        // What lies ready comes before the clock, for a caller who was away longer than a limit;
        // but a server that never pauses must not keep the clock from being looked at.
        if mem::take(fresh)
            && let Poll::Ready(alarm) = self.poll_clock(cx)
        {
            return Poll::Ready(alarm);
        }
        let State::Streaming { body, frames, fresh, room } = &mut self.state else {
            return Poll::Ready(Ok(()));
        };
        match poll_piece(body, cx) {
            Poll::Ready(Some(Ok(piece))) => {
                let Some(left) = room.checked_sub(piece.len()) else {
                    let limit = self.transport.limits.max_stream();
                    let message = format!("the stream is larger than {limit} bytes");
                    return Poll::Ready(Err(self.peer.unreadable(&message, &[])));
                };
                *room = left;
                frames.push(piece);
                *fresh = true;
                Poll::Ready(Ok(()))
            }
            Poll::Ready(Some(Err(_))) if self.decoder.is_finished() => Poll::Ready(self.end()),
            Poll::Ready(Some(Err(error))) => Poll::Ready(Err(self.broken(&error))),
            Poll::Ready(None) => Poll::Ready(self.end()),
            Poll::Pending => self.poll_clock(cx),
        }
    }

    /// Draws the conclusions from what was just decoded.
    fn take_note(&mut self) {
        if self.phase != Phase::Finished {
            if self.events.iter().any(is_content) {
                if self.phase == Phase::Silent {
                    // There is no other try from here on, so the bytes need not be held for one.
                    *self.request.body_mut() = None;
                }
                self.phase = Phase::Speaking;
                self.armed = false;
            }
            if self.decoder.is_finished() {
                self.phase = Phase::Finished;
                self.armed = false;
            }
        }
        if let Some(done) = self.events.pop_back_if(|e| matches!(e, StreamEvent::Done { .. })) {
            match mem::replace(&mut self.state, State::Over) {
                State::Streaming { body, .. } => {
                    self.armed = false;
                    self.state = State::Draining { body, left: DRAIN_BYTES, done, waited: false };
                }
                _ => self.events.push_back(done),
            }
        }
    }

    /// The body is over.
    fn end(&mut self) -> Result<(), AttemptError> {
        if let State::Streaming { frames, .. } = &mut self.state
            && let Some(data) = frames.finish()
        {
            // What is unreadable here was cut.
            match self.decoder.handle_data(&data, &mut self.events) {
                Err(error @ DecodeError::Api(_)) => return Err(self.peer.undecodable(error)),
                decoded => self.heard |= decoded.is_ok(),
            }
        }
        self.decoder.handle_end(&mut self.events);
        if let Some(StreamEvent::Done { .. }) = self.events.back() {
            self.state = State::Over;
            return Ok(());
        }
        if let Some(told) = self.told() {
            return Err(told);
        }
        match self.stray() {
            _ if self.heard => {
                Err(self.peer.interrupted("the stream ended without its end marker".into()))
            }
            // Only its media type says that it is a stream.
            Some(document) if document.trim_start().starts_with(['{', '[']) => {
                self.read_document(document.as_bytes())
            }
            Some(text) => {
                Err(self.peer.unreadable("the answer is no stream of events", text.as_bytes()))
            }
            None => Err(self.peer.silent()),
        }
    }

    /// What the server wrote between its events, where it may say why they ended.
    fn stray(&self) -> Option<String> {
        let State::Streaming { frames, .. } = &self.state else { return None };
        let stray = frames.stray();
        (!stray.trim().is_empty()).then(|| stray.into_owned())
    }

    fn read_document(&mut self, document: &[u8]) -> Result<(), AttemptError> {
        if document.trim_ascii().is_empty() {
            return Err(self.peer.silent());
        }
        let text = String::from_utf8_lossy(document);
        let text = text.trim_start_matches('\u{feff}');
        let decoded = self.decoder.handle_document(text, &mut self.events);
        self.take_note();
        decoded.map_err(|error| self.peer.undecodable(error))
    }

    /// The body was read as far as it is worth it.
    fn release(&mut self) {
        if let State::Draining { done, .. } = mem::replace(&mut self.state, State::Over) {
            self.state = State::Released(done);
        }
    }

    fn close(&mut self) -> Result<(), AttemptError> {
        if let State::Draining { done, .. } | State::Released(done) =
            mem::replace(&mut self.state, State::Over)
        {
            self.events.push_back(done);
        }
        Ok(())
    }

    fn fail(&mut self, failed: AttemptError) {
        let silent = self.phase == Phase::Silent;
        if silent && let Some(notice) = self.retries.next(&failed, self.heard) {
            self.set_deadline(notice.delay);
            self.events.push_back(StreamEvent::RetryScheduled(notice));
            self.state = State::Waiting;
            return;
        }
        let AttemptError { error, class } = failed;
        let attempts = self.retries.attempt;
        self.state = State::Failed(if silent && attempts > 1 && class != RetryClass::Never {
            LlmError::RetryExhausted { attempts, last_error: Box::new(error) }
        } else {
            error
        });
    }

    fn broken(&self, error: &reqwest::Error) -> AttemptError {
        let lost = || format!("the connection was lost: {}", root_cause(error));
        self.told().unwrap_or_else(|| self.peer.interrupted(lost()))
    }

    /// The error that the server wrote between its events.
    fn told(&self) -> Option<AttemptError> {
        let error = ApiError::parse(&self.stray()?)?;
        Some(self.peer.undecodable(DecodeError::Api(error)))
    }

    fn set_deadline(&mut self, limit: Duration) {
        let now = Instant::now();
        let at = now.checked_add(limit).unwrap_or_else(|| now + FAR);
        self.deadline.set(self.call_ends.map_or(at, |end| at.min(end)));
        self.armed = true;
    }

    fn poll_clock(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), AttemptError>> {
        if !self.armed {
            self.set_deadline(match (&self.state, self.phase) {
                (State::Draining { .. }, _) => DRAIN_TIME,
                (_, Phase::Silent) => self.transport.limits.timeouts.first_content,
                (_, Phase::Speaking) => self.transport.limits.timeouts.stall,
                (_, Phase::Finished) => TAIL_TIME,
            });
        }
        ready!(self.deadline.poll(cx));
        Poll::Ready(self.handle_deadline())
    }

    fn handle_deadline(&mut self) -> Result<(), AttemptError> {
        match &self.state {
            State::Draining { .. } => return self.close(),
            State::Refused { head, read, .. } => {
                return Err(self.peer.refused(head.status, &head.headers, read));
            }
            State::Streaming { .. } if self.phase == Phase::Finished => return self.end(),
            _ => {}
        }
        let timeout = |since: Duration| LlmError::Timeout { elapsed_ms: since.as_millis() as u64 };
        if self.call_ends.is_some_and(|end| end <= Instant::now()) {
            let error = timeout(self.started.elapsed());
            return Err(AttemptError { error, class: RetryClass::Never });
        }
        if let Some(told) = self.told() {
            return Err(told);
        }
        let Timeouts { first_content, stall, .. } = self.transport.limits.timeouts;
        match self.state {
            State::Waiting => {
                self.send();
                Ok(())
            }
            State::Streaming { .. } if self.phase == Phase::Speaking => {
                let how = format!("no content for {stall:?} (keep-alives are no content)");
                Err(self.peer.interrupted(how))
            }
            _ => Err(AttemptError { error: timeout(first_content), class: RetryClass::Network }),
        }
    }
}

fn poll_piece(body: &mut Body, cx: &mut Context<'_>) -> Poll<Option<reqwest::Result<Bytes>>> {
    loop {
        match ready!(Pin::new(&mut *body).poll_frame(cx)) {
            Some(Ok(frame)) => match frame.into_data() {
                Ok(piece) => return Poll::Ready(Some(Ok(piece))),
                Err(_trailers) => {}
            },
            Some(Err(error)) => return Poll::Ready(Some(Err(error))),
            None => return Poll::Ready(None),
        }
    }
}

/// What the model says, and so what the watchdog counts.
fn is_content(event: &StreamEvent) -> bool {
    matches!(
        event,
        StreamEvent::TextDelta(_)
            | StreamEvent::ReasoningDelta(_)
            | StreamEvent::ToolCallStart { .. }
            | StreamEvent::ToolCallDelta { .. }
            | StreamEvent::ToolCallComplete { .. }
            | StreamEvent::ProviderData { .. }
    )
}

/// Most bytes of the body of an error.
const MAX_ERROR_BODY: usize = 64 << 10;
/// Time for the body of an error, after its head.
const ERROR_BODY_TIME: Duration = Duration::from_secs(5);
/// Most bytes read after a whole reply, for the sake of the connection.
const DRAIN_BYTES: usize = 64 << 10;
/// Time for them. The end of the body usually lies ready with the end of the reply.
const DRAIN_TIME: Duration = Duration::from_millis(250);
/// Time for usage and end mark after the finish reason.
const TAIL_TIME: Duration = Duration::from_secs(5);
/// In place of limits that no clock can hold.
const FAR: Duration = Duration::from_secs(86_400 * 365);
