//! OpenAI and the servers that speak its two APIs: [`OpenAiProvider`] for Chat Completions,
//! [`ResponsesProvider`] for Responses. What is the same of both is in `builder.rs`.

mod builder;
mod chat;
mod responses;

pub use builder::OpenAiBuilder;
pub use chat::{OpenAiProvider, OpenAiProviderBuilder};
pub use responses::{ResponsesProvider, ResponsesProviderBuilder};
