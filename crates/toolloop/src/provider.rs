//! Models one can ask: the traits, the providers, and [`provider()`] for a model by its name.
//!
//! Where the environment does not say it all, each provider has a builder:
//!
//! ```
//! use std::time::Duration;
//! use toolloop::provider::{OpenAiProvider, Timeouts};
//!
//! let model = OpenAiProvider::builder("qwen3")
//!     .base_url("http://127.0.0.1:8080/v1")
//!     .timeouts(Timeouts { stall: Duration::from_secs(20), ..Timeouts::default() })
//!     .build()?;
//! let agent = toolloop::Agent::from_provider(std::sync::Arc::new(model));
//! # Ok::<(), toolloop::LlmError>(())
//! ```
//!
//! A server of one's own is a [`Provider`] written with plain `async fn`; [`Fallback`] asks one
//! model after the other.

use std::sync::Arc;

pub use toolloop_core::params::*;
pub use toolloop_core::provider::*;
pub use toolloop_providers::*;

use toolloop_core::{Dialect, LlmError};

/// The model `"provider/name"`, set up from the provider's usual variables.
///
/// | provider | API | variables |
/// |---|---|---|
/// | `openai` | Chat Completions | `OPENAI_API_KEY`, `OPENAI_BASE_URL` |
/// | `responses` | OpenAI's Responses | `OPENAI_API_KEY`, `OPENAI_BASE_URL` |
/// | `anthropic` | Messages | `ANTHROPIC_API_KEY`, `ANTHROPIC_BASE_URL` |
/// | `gemini` | Gemini | `GEMINI_API_KEY` or `GOOGLE_API_KEY`, `GEMINI_BASE_URL` |
/// | `ollama` | Ollama's own | `OLLAMA_HOST`, `OLLAMA_API_KEY` |
/// | `aicore` | Claude at SAP AI Core | those of [`AiCoreProvider::from_env`] |
/// | a name of [`SERVERS`] | Chat Completions | those of that [`Server`] |
///
/// Whatever stands behind the first slash is the model: `groq/openai/gpt-oss-120b`.
///
/// It is asked in [`Dialect::Auto`]: calls are native where the model has such, calls that leak
/// into its text are lifted out of it, and a model that has none is told of its tools in text.
/// What the providers' own constructors give does nothing of that by itself; see [`WithDialect`].
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
    let (provider, name) = model.split_once('/').unwrap_or((model, ""));
    if name.is_empty() {
        return Err(unknown(model));
    }
    let model: Arc<dyn DynProvider> = match provider {
        "openai" => Arc::new(OpenAiProvider::from_env(name)?),
        "responses" => Arc::new(ResponsesProvider::from_env(name)?),
        "anthropic" => Arc::new(AnthropicProvider::from_env(name)?),
        "gemini" => Arc::new(GeminiProvider::from_env(name)?),
        "ollama" => Arc::new(OllamaProvider::from_env(name)?),
        "aicore" => Arc::new(AiCoreProvider::from_env(name)?),
        _ => match server(provider) {
            Some(server) => Arc::new(server.provider(name)?),
            None => return Err(unknown(model)),
        },
    };
    Ok(Arc::new(DialectProvider::new(model, Dialect::Auto)))
}

fn unknown(model: &str) -> LlmError {
    let own = ["openai", "responses", "anthropic", "gemini", "ollama", "aicore"];
    let known: Vec<_> = own.into_iter().chain(SERVERS.iter().map(|server| server.name)).collect();
    let sentence = format!(
        "no provider is known for model {model:?}: write it as PROVIDER/NAME, with one of {}",
        known.join(", ")
    );
    LlmError::InvalidRequest(sentence.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_local_server_needs_nothing() {
        for (model, name) in [("ollama/qwen3:4b", "qwen3:4b"), ("lmstudio/a/b", "a/b")] {
            let metadata = provider(model).unwrap().metadata();
            assert_eq!(
                (&*metadata.name, &*metadata.model),
                (model.split('/').next().unwrap(), name)
            );
        }
    }

    #[test]
    fn an_unknown_provider_is_told_the_known_ones() {
        for model in ["gpt-5", "openai/", "nobody/m"] {
            let Err(error) = provider(model) else { panic!("{model} is known") };
            let sentence = format!(
                "invalid request: no provider is known for model {model:?}: write it as \
                 PROVIDER/NAME, with one of openai, responses, anthropic, gemini, ollama, aicore, \
                 deepseek, mistral, groq, openrouter, xai, together, lmstudio, llamacpp, vllm"
            );
            assert_eq!(error.to_string(), sentence);
        }
    }
}
