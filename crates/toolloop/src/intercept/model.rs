//! [`ModelInterceptor`]: around each call of a model.

use std::fmt;
use std::sync::Arc;

use toolloop_core::{
    BoxFuture, ChatParams, ChatResponse, ChatStream, DynProvider, LlmError, Provider,
    ProviderMetadata,
};

use crate::reply_stream::whole;

/// Code around each call of a model. A function of the same form is one.
///
/// A call is a stream of events; [`ModelNext::response`] reads it to its end where the whole
/// reply is wanted, and [`as_stream`](super::as_stream) makes a stream of a reply again.
///
/// ```
/// use std::sync::Arc;
/// use std::time::Instant;
/// use toolloop::intercept::{ModelInterceptor, ModelInterceptors, ModelNext};
/// use toolloop::mock::MockProvider;
/// use toolloop::provider::BoxFuture;
/// use toolloop::{Agent, ChatParams, ChatStream, LlmError};
///
/// /// Says how long a model took to answer, and lowers its temperature.
/// struct Timing;
///
/// impl ModelInterceptor for Timing {
///     fn call<'a>(
///         &'a self,
///         params: &'a ChatParams,
///         next: ModelNext<'a>,
///     ) -> BoxFuture<'a, Result<ChatStream, LlmError>> {
///         Box::pin(async move {
///             let started = Instant::now();
///             let params = ChatParams { temperature: Some(0.2), ..params.clone() };
///             let stream = next.stream(&params).await;
///             println!("{} opened after {:?}", next.metadata().model, started.elapsed());
///             stream
///         })
///     }
/// }
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let model = MockProvider::default();
/// model.queue_text("Hello!");
/// let model = ModelInterceptors::new().with(Timing).around(Arc::new(model));
/// let result = Agent::from_provider(model).run("Hi").await?;
/// assert_eq!(result.response.text(), Some("Hello!"));
/// # Ok::<(), LlmError>(())
/// # }).unwrap();
/// ```
pub trait ModelInterceptor: Send + Sync {
    /// Answers a call, as a rule with what [`ModelNext::stream`] gives.
    fn call<'a>(
        &'a self,
        params: &'a ChatParams,
        next: ModelNext<'a>,
    ) -> BoxFuture<'a, Result<ChatStream, LlmError>>;
}

impl<F> ModelInterceptor for F
where
    F: for<'a> Fn(&'a ChatParams, ModelNext<'a>) -> BoxFuture<'a, Result<ChatStream, LlmError>>
        + Send
        + Sync,
{
    fn call<'a>(
        &'a self,
        params: &'a ChatParams,
        next: ModelNext<'a>,
    ) -> BoxFuture<'a, Result<ChatStream, LlmError>> {
        self(params, next)
    }
}

/// The rest of the way to a model: the interceptors behind this one, and the model itself. It may
/// be taken more than once, or not at all.
#[derive(Clone, Copy)]
pub struct ModelNext<'a> {
    interceptors: &'a [Arc<dyn ModelInterceptor>],
    provider: &'a dyn DynProvider,
}

impl ModelNext<'_> {
    /// Hands a request on.
    ///
    /// # Errors
    /// Those of the provider and of the interceptors behind.
    pub async fn stream(&self, params: &ChatParams) -> Result<ChatStream, LlmError> {
        match self.interceptors.split_first() {
            Some((first, interceptors)) => {
                first.call(params, ModelNext { interceptors, ..*self }).await
            }
            None => self.provider.stream_boxed(params).await,
        }
    }

    /// Hands a request on and waits for the whole reply.
    ///
    /// # Errors
    /// Those of the provider and of the interceptors behind.
    pub async fn response(&self, params: &ChatParams) -> Result<ChatResponse, LlmError> {
        whole(self.stream(params).await?).await
    }

    /// What the model is and can.
    pub fn metadata(&self) -> ProviderMetadata {
        self.provider.metadata()
    }
}

/// Interceptors in their order, the outermost first.
#[derive(Clone, Default)]
pub struct ModelInterceptors {
    interceptors: Vec<Arc<dyn ModelInterceptor>>,
}

impl ModelInterceptors {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one behind those that are there.
    #[must_use]
    pub fn with(mut self, interceptor: impl ModelInterceptor + 'static) -> Self {
        self.interceptors.push(Arc::new(interceptor));
        self
    }

    /// The provider with these interceptors around each of its calls, whole or streamed.
    pub fn around(&self, provider: Arc<dyn DynProvider>) -> Arc<dyn DynProvider> {
        Arc::new(Intercepted { interceptors: self.interceptors.clone(), provider })
    }
}

impl fmt::Debug for ModelInterceptors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelInterceptors").field("count", &self.interceptors.len()).finish()
    }
}

struct Intercepted {
    interceptors: Vec<Arc<dyn ModelInterceptor>>,
    provider: Arc<dyn DynProvider>,
}

impl Provider for Intercepted {
    async fn generate(&self, params: &ChatParams) -> Result<ChatResponse, LlmError> {
        whole(self.stream(params).await?).await
    }

    async fn stream(&self, params: &ChatParams) -> Result<ChatStream, LlmError> {
        let next = ModelNext { interceptors: &self.interceptors, provider: &*self.provider };
        next.stream(params).await
    }

    fn metadata(&self) -> ProviderMetadata {
        self.provider.metadata()
    }
}
