//! OpenAI and the servers that speak its two APIs: [`OpenAiProvider`] for Chat Completions,
//! [`ResponsesProvider`] for Responses. What is the same of both is an [`OpenAiModel`].

mod chat;
mod model;
mod responses;
mod unsealed;

pub use chat::{OpenAiProvider, OpenAiProviderBuilder};
pub use model::OpenAiModel;
pub use responses::{ResponsesProvider, ResponsesProviderBuilder};
