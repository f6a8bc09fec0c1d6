//! Models one can ask: the traits, the providers, and [`provider()`] for a model by its name.

use std::sync::Arc;

pub use toolloop_core::params::*;
pub use toolloop_core::provider::*;
pub use toolloop_providers::*;

use toolloop_core::LlmError;

/// The model `"provider/name"`, set up from the provider's usual variables.
///
/// `openai/NAME` reads `OPENAI_API_KEY` and, where it is set, `OPENAI_BASE_URL`, which may name
/// any server that speaks the Chat Completions API.
///
/// ```no_run
/// let model = toolloop::provider("openai/gpt-5")?;
/// assert_eq!(model.metadata().model, "gpt-5");
/// # Ok::<(), toolloop::LlmError>(())
/// ```
///
/// # Errors
/// When the provider is unknown or its key is missing.
pub fn provider(model: &str) -> Result<Arc<dyn DynProvider>, LlmError> {
    match model.split_once('/') {
        Some(("openai", name)) if !name.is_empty() => Ok(Arc::new(OpenAiProvider::from_env(name)?)),
        _ => Err(LlmError::InvalidRequest(
            format!("no provider is known for model {model:?}: write it as openai/NAME").into(),
        )),
    }
}
