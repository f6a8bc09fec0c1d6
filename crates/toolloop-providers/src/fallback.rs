//! [`Fallback`]: one model after the other until one answers.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;
use tokio::time::Instant;
use toolloop_core::{
    BoxFuture, ChatParams, ChatResponse, ChatStream, DynProvider, LlmError, Provider,
    ProviderMetadata, ReplyAssembler, RetryNotice, StreamEvent,
};

/// Asks one model after the other until one answers.
///
/// A model that failed is followed by the next at once; what it had said is void, and followers
/// hear so ([`StreamEvent::AttemptDiscarded`]). A model that limits its rate is passed over until
/// the time it named, also by other runs that share this value, while another one is there.
///
/// Each call keeps a copy of its request for the next model.
///
/// ```no_run
/// use std::sync::Arc;
/// use toolloop_providers::{Fallback, OpenAiProvider};
///
/// # fn main() -> Result<(), toolloop_core::LlmError> {
/// let cloud = Arc::new(OpenAiProvider::from_env("gpt-5")?);
/// let local = OpenAiProvider::builder("qwen3").base_url("http://127.0.0.1:11434/v1").build()?;
/// let model = Fallback::new(cloud).or(Arc::new(local)).restarts(1);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Fallback {
    models: Arc<Vec<Model>>,
    restarts: u32,
}

struct Model {
    provider: Arc<dyn DynProvider>,
    /// Until when it is passed over.
    limited_until: Mutex<Option<Instant>>,
}

impl Fallback {
    /// The model that is asked first.
    pub fn new(first: Arc<dyn DynProvider>) -> Self {
        Self { models: Arc::new(vec![Model::new(first)]), restarts: 0 }
    }

    /// A model that is asked when those before it have failed.
    #[must_use]
    pub fn or(self, next: Arc<dyn DynProvider>) -> Self {
        let known = self.models.iter().map(|model| Model::new(Arc::clone(&model.provider)));
        let models = known.chain([Model::new(next)]).collect();
        Self { models: Arc::new(models), ..self }
    }

    /// How often a reply that broke off is begun anew on the same model; 0 unless set.
    #[must_use]
    pub fn restarts(self, restarts: u32) -> Self {
        Self { restarts, ..self }
    }

    fn attempts(&self, params: &ChatParams) -> Attempts {
        let mut attempts = Attempts {
            models: Arc::clone(&self.models),
            params: Arc::new(params.clone()),
            asked: vec![false; self.models.len()],
            at: 0,
            attempt: 0,
            restarts_left: self.restarts,
            has_said: false,
            pending: Vec::new(),
            state: State::Over,
        };
        attempts.ask_next();
        attempts
    }
}

impl Provider for Fallback {
    async fn generate(&self, params: &ChatParams) -> Result<ChatResponse, LlmError> {
        let mut attempts = self.attempts(params);
        let mut assembler = ReplyAssembler::of_request(Arc::clone(&attempts.params));
        while let Some(event) = poll_fn(|cx| Pin::new(&mut attempts).poll_next(cx)).await {
            assembler.push(event?)?;
        }
        assembler.into_response()
    }

    async fn stream(&self, params: &ChatParams) -> Result<ChatStream, LlmError> {
        Ok(Box::pin(self.attempts(params)))
    }

    /// That of the model that is asked first.
    fn metadata(&self) -> ProviderMetadata {
        self.models[0].provider.metadata()
    }
}

impl fmt::Debug for Fallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.models.iter().map(Model::name)).finish()
    }
}

impl Model {
    fn new(provider: Arc<dyn DynProvider>) -> Self {
        Self { provider, limited_until: Mutex::default() }
    }

    fn name(&self) -> String {
        let ProviderMetadata { name, model, .. } = self.provider.metadata();
        format!("{name}/{model}")
    }

    fn limited_until(&self) -> Option<Instant> {
        let until = *self.limited_until.lock().unwrap_or_else(PoisonError::into_inner);
        until.filter(|until| *until > Instant::now())
    }

    fn note(&self, error: &LlmError) {
        if error.status() == Some(429) {
            let wait = error.retry_after().unwrap_or(DEFAULT_WAIT);
            let until = Instant::now().checked_add(wait);
            *self.limited_until.lock().unwrap_or_else(PoisonError::into_inner) = until;
        }
    }
}

/// One call, over as many models as it takes.
struct Attempts {
    models: Arc<Vec<Model>>,
    params: Arc<ChatParams>,
    /// Which models have had their turn.
    asked: Vec<bool>,
    /// The model that is asked.
    at: usize,
    attempt: u32,
    restarts_left: u32,
    /// Whether this attempt has said anything that is void if it fails.
    has_said: bool,
    /// Events to give out before the next of the model, the last one first.
    pending: Vec<StreamEvent>,
    state: State,
}

enum State {
    Opening(BoxFuture<'static, Result<ChatStream, LlmError>>),
    Streaming(ChatStream),
    Over,
}

impl Attempts {
    /// Asks the next model, those that are not limited first; `false` when all had their turn.
    fn ask_next(&mut self) -> bool {
        let left = (0..self.models.len()).filter(|at| !self.asked[*at]);
        let Some(at) = left.min_by_key(|at| (self.models[*at].limited_until(), *at)) else {
            return false;
        };
        self.asked[at] = true;
        self.at = at;
        self.ask();
        true
    }

    fn ask(&mut self) {
        let provider = Arc::clone(&self.models[self.at].provider);
        let params = Arc::clone(&self.params);
        self.attempt += 1;
        self.has_said = false;
        self.state = State::Opening(Box::pin(async move { provider.stream_boxed(&params).await }));
    }

    /// Takes the next attempt, or gives the error that is the call's.
    fn failed(&mut self, error: LlmError) -> Option<LlmError> {
        let (attempt, name, said) = (self.attempt, self.models[self.at].name(), self.has_said);
        self.models[self.at].note(&error);
        if let LlmError::Streaming(_) = error {
            // Nobody wants the reply, so nobody else is asked.
            self.state = State::Over;
            return Some(error);
        }
        let broke_off = said && error.is_retryable();
        if broke_off && self.restarts_left > 0 {
            self.restarts_left -= 1;
            self.ask();
        } else if !self.ask_next() {
            self.state = State::Over;
            return Some(match attempt {
                1 => error,
                attempts => LlmError::RetryExhausted { attempts, last_error: Box::new(error) },
            });
        }
        if said {
            self.pending.push(StreamEvent::AttemptDiscarded { attempt });
        }
        let left = self.asked.iter().filter(|asked| !**asked).count();
        self.pending.push(StreamEvent::RetryScheduled(RetryNotice {
            attempt,
            max_attempts: attempt + 1 + left as u32,
            delay: Duration::ZERO,
            reason: format!("{name}: {error}"),
            // What had been said is counted as it is made void.
            may_have_cost: !said && error.may_have_cost(),
        }));
        None
    }
}

impl Stream for Attempts {
    type Item = Result<StreamEvent, LlmError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(event) = self.pending.pop() {
                return Poll::Ready(Some(Ok(event)));
            }
            let error = match &mut self.state {
                State::Over => return Poll::Ready(None),
                State::Opening(opening) => match std::task::ready!(opening.as_mut().poll(cx)) {
                    Ok(stream) => {
                        self.state = State::Streaming(stream);
                        continue;
                    }
                    Err(error) => error,
                },
                State::Streaming(stream) => {
                    match std::task::ready!(stream.as_mut().poll_next(cx)) {
                        Some(Ok(event)) => {
                            match event {
                                StreamEvent::Done { .. } => self.state = State::Over,
                                StreamEvent::RetryScheduled(_) | StreamEvent::RateLimits(_) => {}
                                _ => self.has_said = true,
                            }
                            return Poll::Ready(Some(Ok(event)));
                        }
                        Some(Err(error)) => error,
                        None => LlmError::StreamInterrupted {
                            message: "the stream ended without its end marker".into(),
                        },
                    }
                }
            };
            if let Some(error) = self.failed(error) {
                return Poll::Ready(Some(Err(error)));
            }
        }
    }
}

/// How long a model that limits its rate is passed over when it names no time.
const DEFAULT_WAIT: Duration = Duration::from_secs(30);
