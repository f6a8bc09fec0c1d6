//! [`Provider`]: a model one can ask. [`DynProvider`] is its object-safe form.

use std::borrow::Cow;
use std::collections::HashSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::chat::ChatResponse;
use crate::error::LlmError;
use crate::params::ChatParams;
use crate::stream::ChatStream;

/// A model one can ask. Implement it with plain `async fn`.
///
/// ```
/// use toolloop_core::{ChatParams, ChatResponse, ChatStream, LlmError, Provider, ProviderMetadata};
///
/// struct Offline;
///
/// impl Provider for Offline {
///     async fn generate(&self, _: &ChatParams) -> Result<ChatResponse, LlmError> {
///         Err(LlmError::InvalidRequest("this model is offline".into()))
///     }
///     async fn stream(&self, _: &ChatParams) -> Result<ChatStream, LlmError> {
///         Err(LlmError::InvalidRequest("this model is offline".into()))
///     }
///     fn metadata(&self) -> ProviderMetadata {
///         ProviderMetadata {
///             name: "offline".into(),
///             model: "none".into(),
///             context_window: 0,
///             capabilities: Default::default(),
///         }
///     }
/// }
/// ```
pub trait Provider: Send + Sync {
    /// Asks and waits for the whole reply.
    fn generate(
        &self,
        params: &ChatParams,
    ) -> impl Future<Output = Result<ChatResponse, LlmError>> + Send;

    /// Asks and hands over the reply as it arrives. Dropping the stream ends the request.
    fn stream(
        &self,
        params: &ChatParams,
    ) -> impl Future<Output = Result<ChatStream, LlmError>> + Send;

    /// What this model is and can.
    fn metadata(&self) -> ProviderMetadata;
}

/// A future in a box, as the object-safe traits return it.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The object-safe form of [`Provider`]; every provider has it.
pub trait DynProvider: Send + Sync {
    /// See [`Provider::generate`].
    fn generate_boxed<'a>(
        &'a self,
        params: &'a ChatParams,
    ) -> BoxFuture<'a, Result<ChatResponse, LlmError>>;

    /// See [`Provider::stream`].
    fn stream_boxed<'a>(
        &'a self,
        params: &'a ChatParams,
    ) -> BoxFuture<'a, Result<ChatStream, LlmError>>;

    /// See [`Provider::metadata`].
    fn metadata(&self) -> ProviderMetadata;
}

impl<T: Provider> DynProvider for T {
    fn generate_boxed<'a>(
        &'a self,
        params: &'a ChatParams,
    ) -> BoxFuture<'a, Result<ChatResponse, LlmError>> {
        Box::pin(self.generate(params))
    }

    fn stream_boxed<'a>(
        &'a self,
        params: &'a ChatParams,
    ) -> BoxFuture<'a, Result<ChatStream, LlmError>> {
        Box::pin(self.stream(params))
    }

    fn metadata(&self) -> ProviderMetadata {
        Provider::metadata(self)
    }
}

/// So that a shared provider goes wherever a reference to one does: `tool_loop(&shared, ..)`.
impl<T: DynProvider + ?Sized> DynProvider for Arc<T> {
    fn generate_boxed<'a>(
        &'a self,
        params: &'a ChatParams,
    ) -> BoxFuture<'a, Result<ChatResponse, LlmError>> {
        (**self).generate_boxed(params)
    }

    fn stream_boxed<'a>(
        &'a self,
        params: &'a ChatParams,
    ) -> BoxFuture<'a, Result<ChatStream, LlmError>> {
        (**self).stream_boxed(params)
    }

    fn metadata(&self) -> ProviderMetadata {
        (**self).metadata()
    }
}

/// What a provider says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderMetadata {
    /// The provider, for example `openai`.
    pub name: Cow<'static, str>,
    /// The model, as the provider names it.
    pub model: String,
    /// Most tokens of one request and its reply; 0 where unknown.
    pub context_window: u64,
    /// What the model can.
    pub capabilities: HashSet<Capability>,
}

/// Something a model may be able to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Capability {
    /// Calls tools natively.
    Tools,
    /// Answers in a given JSON Schema.
    StructuredOutput,
    /// Thinks before it answers.
    Reasoning,
    /// Reads pictures.
    Vision,
    /// Caches prompt prefixes.
    Caching,
    /// Takes system messages in mid-conversation.
    MidSystem,
}
