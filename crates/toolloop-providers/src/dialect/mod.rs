//! [`DialectProvider`]: any provider, asked in a [`Dialect`] and within a [`ToolLimit`].

mod stream;
mod tokens;

use std::fmt;
use std::sync::Arc;

use toolloop_core::dialect::render::render;
use toolloop_core::{
    Capability, ChatParams, ChatResponse, ChatStream, Dialect, DynProvider, LlmError, Provider,
    ProviderMetadata, StreamEvent, ToolLimit,
};

use crate::transport::collect;
use stream::DialectStream;

/// A provider, asked in a [`Dialect`] and within a [`ToolLimit`].
///
/// In a text dialect the request goes out without native tools, and the calls in the text come
/// back as native ones; the limit is [`ToolLimit::One`] unless set. With native calls, those that
/// leaked into the text are lifted out of it, and there is no limit unless set.
///
/// Where one call more than allowed begins, the request is closed at once, and the reply ends
/// there as if the model had ended it: its text and its calls, what the provider had reported of
/// tokens, and an estimate for the rest. Code above sees nothing special.
///
/// ```no_run
/// use toolloop_core::{Dialect, ToolLimit};
/// use toolloop_providers::{OpenAiProvider, WithDialect};
///
/// # fn main() -> Result<(), toolloop_core::LlmError> {
/// let local = OpenAiProvider::builder("qwen3").base_url("http://127.0.0.1:8080/v1").build()?;
/// let model = local.with_dialect(Dialect::Xml);
/// let several = model.clone().with_tool_limit(ToolLimit::Unlimited);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct DialectProvider {
    inner: Arc<dyn DynProvider>,
    /// Resolved: never [`Dialect::Auto`].
    dialect: Dialect,
    limit: ToolLimit,
    cancels: Option<Cancels>,
}

/// Whether the user wants no more of a reply from this event on.
type Cancels = Arc<dyn Fn(&StreamEvent) -> bool + Send + Sync>;

impl DialectProvider {
    /// The provider in a dialect; [`Dialect::Auto`] is decided here.
    pub fn new(inner: Arc<dyn DynProvider>, dialect: Dialect) -> Self {
        let dialect = dialect.resolve(&inner.metadata());
        let limit = if dialect.is_text() { ToolLimit::One } else { ToolLimit::Unlimited };
        Self { inner, dialect, limit, cancels: None }
    }

    /// How many calls a reply may have.
    #[must_use]
    pub fn with_tool_limit(self, limit: ToolLimit) -> Self {
        Self { limit, ..self }
    }

    /// Shows each event of a reply to a function before it is given out. Where that says `true`,
    /// the request is closed, what came of the reply is void, and it ends with
    /// [`StreamingError::UserCancelled`](toolloop_core::StreamingError::UserCancelled).
    #[must_use]
    pub fn cancel_when(
        self,
        cancels: impl Fn(&StreamEvent) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self { cancels: Some(Arc::new(cancels)), ..self }
    }

    /// The dialect; never [`Dialect::Auto`].
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Whether a reply to this request can be given as it comes.
    fn passes(&self, params: &ChatParams) -> bool {
        let has_tools = params.tools.as_ref().is_some_and(|tools| !tools.is_empty());
        !self.dialect.is_text() && !has_tools && self.cancels.is_none()
    }
}

impl Provider for DialectProvider {
    async fn generate(&self, params: &ChatParams) -> Result<ChatResponse, LlmError> {
        match self.passes(params) {
            true => self.inner.generate_boxed(params).await,
            false => collect(self.stream(params).await?).await,
        }
    }

    async fn stream(&self, params: &ChatParams) -> Result<ChatStream, LlmError> {
        if self.passes(params) {
            return self.inner.stream_boxed(params).await;
        }
        let reply = DialectStream::new(self.dialect, self.limit, self.cancels.clone(), params);
        Ok(Box::pin(if self.dialect.is_text() {
            let rendered = render(self.dialect, self.limit, params);
            reply.of(self.inner.stream_boxed(&rendered).await?, &rendered)
        } else {
            reply.of(self.inner.stream_boxed(params).await?, params)
        }))
    }

    /// That of the provider; in a text dialect it has tools, whatever it says.
    fn metadata(&self) -> ProviderMetadata {
        let mut metadata = self.inner.metadata();
        metadata.capabilities.extend(self.dialect.is_text().then_some(Capability::Tools));
        metadata
    }
}

impl fmt::Debug for DialectProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ProviderMetadata { name, model, .. } = self.inner.metadata();
        f.debug_struct("DialectProvider")
            .field("model", &format!("{name}/{model}"))
            .field("dialect", &self.dialect)
            .field("limit", &self.limit)
            .field("has_cancels", &self.cancels.is_some())
            .finish()
    }
}

/// Puts any provider behind a [`DialectProvider`]; one in an `Arc<dyn DynProvider>` goes to
/// [`DialectProvider::new`].
pub trait WithDialect: Provider + Sized + 'static {
    /// Asks it in a dialect.
    fn with_dialect(self, dialect: Dialect) -> DialectProvider {
        DialectProvider::new(Arc::new(self), dialect)
    }

    /// Allows so many calls in a reply, made as the provider makes them.
    fn with_tool_limit(self, limit: ToolLimit) -> DialectProvider {
        self.with_dialect(Dialect::Native).with_tool_limit(limit)
    }
}

impl<P: Provider + 'static> WithDialect for P {}
