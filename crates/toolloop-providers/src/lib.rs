//! Providers of models for toolloop.
//!
//! A provider is three layers, each a small thing over the one below:
//!
//! ```text
//!  provider    OpenAiProvider: generate · stream · metadata · list_models
//!     │
//!  transport   one HTTP client: TLS, pool, deadlines, retry before the first delta,
//!     │        stall watchdog, rate limits, bounded buffers
//!     │           ▲ body bytes out              │ pieces of a body in
//!  codec       ChatParams ─► request bytes       Frames ─► Decoder ─► StreamEvents
//!              pure: no socket, no clock, no key
//! ```
//!
//! [`OpenAiProvider`] speaks to OpenAI and to every server that has its Chat Completions API (those
//! that are known by name are in [`SERVERS`]), [`ResponsesProvider`] to those that have its
//! Responses API, [`AnthropicProvider`] and [`AiCoreProvider`] to Claude, [`GeminiProvider`] to
//! Google, [`OllamaProvider`] to Ollama. What tokens cost is a [`Price`].
//!
//! [`DialectProvider`] asks any of them so that the model writes its calls as text, or makes no more
//! than so many in a reply; [`Fallback`] asks one after the other.
//!
//! A reply is one [`ChatStream`](toolloop_core::ChatStream) that does its work as it is polled:
//! no task, no channel. Dropping it closes the request.

mod aicore;
mod anthropic;
mod builder;
pub mod codec;
mod dialect;
mod fallback;
mod gemini;
mod models;
mod ollama;
mod openai;
mod prices;
mod servers;
mod transport;

pub use aicore::{AiCoreProvider, AiCoreProviderBuilder};
pub use anthropic::{AnthropicProvider, AnthropicProviderBuilder};
pub use builder::ProviderBuilder;
pub use dialect::{DialectProvider, WithDialect};
pub use fallback::Fallback;
pub use gemini::{GeminiProvider, GeminiProviderBuilder};
pub use ollama::{OllamaProvider, OllamaProviderBuilder};
pub use openai::{
    OpenAiModel, OpenAiProvider, OpenAiProviderBuilder, ResponsesProvider, ResponsesProviderBuilder,
};
pub use prices::Price;
pub use servers::{SERVERS, Server, server};
pub use transport::Timeouts;
