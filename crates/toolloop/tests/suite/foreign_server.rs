//! `.ci/run` starts a server that speaks every API and names it in `TOOLLOOP_AIMOCK_URL`; what it
//! says is in `tests/aimock`.

use std::sync::Arc;

use serde_json::json;
use toolloop::provider::{
    AnthropicProvider, GeminiProvider, OllamaProvider, OpenAiProvider, ResponsesProvider,
};
use toolloop::tool::{ToolLoopHandle, TurnResult};
use toolloop::{
    Agent, ChatMessage, ChatParams, ContentBlock, DynProvider, LlmError, LoopEvent, StreamExt,
    TerminationReason, ToolContent, ToolLoopConfig, ToolRegistry, tool,
};

/// Current weather of a city.
#[tool(read_only)]
fn get_weather(
    /** City name */
    city: String,
) -> ToolContent {
    format!("18 degrees in {city}").as_str().into()
}

/// Every API of the server, with a provider that asks once.
fn models() -> Vec<(&'static str, Arc<dyn DynProvider>)> {
    let Ok(url) = std::env::var("TOOLLOOP_AIMOCK_URL") else {
        println!("skipped: TOOLLOOP_AIMOCK_URL is not set");
        return Vec::new();
    };
    let openai = format!("{url}/v1");
    vec![
        (
            "openai-chat",
            Arc::new(
                OpenAiProvider::builder("gpt-5").base_url(&openai).max_retries(0).build().unwrap(),
            ),
        ),
        (
            "openai-responses",
            Arc::new(
                ResponsesProvider::builder("gpt-5")
                    .base_url(&openai)
                    .max_retries(0)
                    .build()
                    .unwrap(),
            ),
        ),
        (
            "anthropic",
            Arc::new(
                AnthropicProvider::builder("claude-sonnet-4-5")
                    .base_url(&url)
                    .api_key("test")
                    .max_retries(0)
                    .build()
                    .unwrap(),
            ),
        ),
        (
            "gemini",
            Arc::new(
                GeminiProvider::builder("gemini-2.5-flash")
                    .base_url(&url)
                    .api_key("test")
                    .max_retries(0)
                    .build()
                    .unwrap(),
            ),
        ),
        (
            "ollama",
            Arc::new(
                OllamaProvider::builder("qwen3").base_url(&url).max_retries(0).build().unwrap(),
            ),
        ),
    ]
}

#[tokio::test]
async fn two_calls_at_once_and_an_answer() {
    for (api, model) in models() {
        let agent = Agent::from_provider(model).tool(get_weather);
        let result = agent.run("weather in Paris and Rome?").await;
        let result = result.unwrap_or_else(|error| panic!("{api}: {error}"));
        assert_eq!(
            result.response.text(),
            Some("Mild in both, naïve as it sounds: 18° ☀."),
            "{api}"
        );
        assert_eq!(result.iterations, 2, "{api}");
        let calls = result.messages.iter().flat_map(ChatMessage::tool_calls);
        let calls: Vec<_> = calls.map(|call| call.arguments.clone()).collect();
        assert_eq!(calls, [json!({"city": "Paris"}), json!({"city": "Rome"})], "{api}");
        assert!(toolloop_core::transcript::keeps_grammar(&result.messages), "{api}");
    }
}

#[tokio::test]
async fn a_thought_and_an_answer() {
    for (api, model) in models() {
        let mut events = Agent::from_provider(model).stream("think first");
        let (mut thought, mut text) = (String::new(), String::new());
        while let Some(event) = events.next().await {
            match event.unwrap_or_else(|error| panic!("{api}: {error}")) {
                LoopEvent::ReasoningDelta(delta) => thought.push_str(&delta),
                LoopEvent::TextDelta(delta) => text.push_str(&delta),
                LoopEvent::Done(result) => {
                    assert_eq!(result.termination_reason, TerminationReason::Complete, "{api}");
                }
                _ => {}
            }
        }
        // This server does not know that Ollama's models think.
        let expected = if api == "ollama" { "" } else { "Six times seven." };
        assert_eq!((thought.as_str(), text.as_str()), (expected, "42"), "{api}");
    }
}

#[tokio::test]
async fn a_limited_rate_is_told_as_such() {
    for (api, model) in models() {
        let error = Agent::from_provider(model).run("too fast").await.unwrap_err();
        assert_eq!(error.status(), Some(429), "{api}: {error}");
        assert!(error.is_retryable(), "{api}: {error}");
    }
}

#[tokio::test]
async fn a_reply_that_is_cut_off_is_kept_and_no_answer() {
    for (api, model) in models() {
        let registry = Arc::new(ToolRegistry::<()>::new());
        let messages = vec![ChatMessage::user("be cut off")];
        let params = ChatParams { messages, ..ChatParams::default() };
        let config = ToolLoopConfig::default();
        let mut handle =
            ToolLoopHandle::new(model, registry, params, config, Arc::new(())).unwrap();
        let TurnResult::Error(failed) = handle.next_turn().await else { panic!("{api}: no error") };
        let is_cut = matches!(failed.error, LlmError::StreamInterrupted { .. });
        assert!(is_cut, "{api}: {}", failed.error);
        let messages = handle.messages();
        assert_eq!(messages.len(), 2, "{api}: {}", failed.error);
        let kept = messages[1].content.iter().find_map(|block| match block {
            ContentBlock::Text(text) => Some(text.as_str()),
            _ => None,
        });
        let whole = "This answer is long enough to be cut off somewhere in the middle of it, whatever an \
                     API sends before its text and however few words it puts into \
                     each of its events, so that a part of \
                     it arrives and the rest does not.";
        assert!(
            kept.is_some_and(|text| whole.starts_with(text) && text != whole),
            "{api}: {kept:?}"
        );
    }
}
