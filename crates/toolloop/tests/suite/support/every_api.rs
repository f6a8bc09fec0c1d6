//! Every provider, each in front of the strict fake server.

use std::sync::Arc;

use toolloop::DynProvider;
use toolloop::provider::{
    AiCoreProvider, AnthropicProvider, GeminiProvider, OllamaProvider, OpenAiProvider,
    ResponsesProvider,
};
use toolloop_fake::FakeServer;

/// The providers by the name of their API; none tries twice.
pub(crate) fn every_api(server: &FakeServer) -> Vec<(&'static str, Arc<dyn DynProvider>)> {
    let (openai, root) = (server.base_url(), format!("http://{}", server.address()));
    let chat = OpenAiProvider::builder("m").base_url(&openai).max_retries(0).build();
    let responses = ResponsesProvider::builder("gpt-5").base_url(&openai).max_retries(0).build();
    let anthropic = AnthropicProvider::builder("claude-sonnet-4-5").base_url(&root).api_key("key");
    let aicore = AiCoreProvider::builder("anthropic--claude-4.5-sonnet", "d1")
        .credentials("client", "secret")
        .auth_url(&root)
        .base_url(&root);
    let gemini = GeminiProvider::builder("gemini-2.5-flash").base_url(&root).api_key("key");
    let ollama = OllamaProvider::builder("m").base_url(&root).max_retries(0).build();
    vec![
        ("chat", Arc::new(chat.unwrap())),
        ("responses", Arc::new(responses.unwrap())),
        ("anthropic", Arc::new(anthropic.max_retries(0).build().unwrap())),
        ("aicore", Arc::new(aicore.max_retries(0).build().unwrap())),
        ("gemini", Arc::new(gemini.max_retries(0).build().unwrap())),
        ("ollama", Arc::new(ollama.unwrap())),
    ]
}
