//! What programs rely on at compile time, and the mock they test with.

use std::sync::Arc;
use std::time::Duration;

use toolloop::chat_loop::{ChatLoopConfig, ChatLoopHandle, LoopStep, chat_loop_with_tools};
use toolloop::mock::MockProvider;
use toolloop::tool::{
    CallContext, LoopAction, LoopContext, LoopDetectionConfig, LoopStream,
    ObservationMaskingConfig, ProcessedResult, ToolApproval, ToolContent, ToolError,
    ToolLoopConfig, ToolLoopHandle, ToolOutput, ToolRegistry, ToolRetryConfig, tool_loop,
};
use toolloop::{
    ChatLoopExt, ChatMessage, ChatParams, ChatResponse, ChatRole, ChatStream, ContentBlock,
    DynProvider, LlmError, LoopEvent, Provider, StopReason, StreamExt, TerminationReason,
    ToolLoopResult, Usage, UsageSource,
};

use super::support::{says, text};

#[test]
fn values_travel_between_threads() {
    fn everywhere<T: Send + Sync + 'static>() {}
    fn one_at_a_time<T: Send + 'static>() {}
    everywhere::<ToolRegistry>();
    everywhere::<ToolRegistry<LoopContext<String>>>();
    everywhere::<ToolLoopConfig>();
    everywhere::<ToolLoopResult>();
    everywhere::<TerminationReason>();
    everywhere::<ToolApproval>();
    everywhere::<ToolContent>();
    everywhere::<CallContext>();
    everywhere::<LoopEvent>();
    everywhere::<LlmError>();
    everywhere::<ChatParams>();
    everywhere::<MockProvider>();
    everywhere::<Arc<dyn DynProvider>>();
    everywhere::<ChatLoopConfig>();
    everywhere::<LoopStep>();
    one_at_a_time::<ChatLoopHandle<'static>>();
    one_at_a_time::<LoopStream>();
    one_at_a_time::<ChatStream>();
    one_at_a_time::<ToolLoopHandle>();

    fn sent<T: Send>(value: T) -> T {
        value
    }
    let (model, tools) = (MockProvider::default(), ToolRegistry::<()>::new());
    let run = tool_loop(&model, &tools, ChatParams::default(), ToolLoopConfig::default(), &());
    drop(sent(run));
    let chat = chat_loop_with_tools(&model, Vec::new(), Vec::new(), ChatLoopConfig::new());
    drop(sent(chat));
}

/// Each function that takes a provider by reference also takes one that is shared.
#[tokio::test]
async fn a_shared_provider_goes_wherever_a_reference_does() {
    let model = Arc::new(MockProvider::default());
    for _ in 0..3 {
        model.queue_text("Hello.");
    }
    let shared: Arc<dyn DynProvider> = model;
    let tools = ToolRegistry::<()>::new();
    let params = ChatParams { messages: vec![ChatMessage::user("Hi")], ..ChatParams::default() };
    let run = tool_loop(&shared, &tools, params.clone(), ToolLoopConfig::default(), &()).await;
    assert_eq!(run.unwrap().response.text(), Some("Hello."));
    let messages = params.messages;
    let chat = chat_loop_with_tools(&shared, messages.clone(), Vec::new(), ChatLoopConfig::new());
    assert_eq!(chat.await.unwrap().content, "Hello.");
    let mut chat = shared.chat_loop(messages, Vec::new());
    assert_eq!(chat.next().await.unwrap().unwrap(), LoopStep::Content("Hello.".to_owned()));
    assert_eq!(shared.metadata().name, "mock");
}

#[test]
fn reasons_are_matched_without_a_wildcard() {
    let reason = TerminationReason::Complete;
    let word = match reason {
        TerminationReason::Complete => "complete",
        TerminationReason::StopCondition { reason: _ } => "stop",
        TerminationReason::MaxIterations { limit: _ } => "limit",
        TerminationReason::LoopDetected { tool_name: _, count: _ } => "loop",
        TerminationReason::Timeout { limit: _ } => "timeout",
    };
    assert_eq!(word, "complete");
}

#[test]
fn values_have_the_fields_and_defaults_that_programs_write() {
    fn copied<T: Copy + PartialEq>(value: T) -> T {
        value
    }
    let LoopDetectionConfig { threshold, action } = copied(LoopDetectionConfig::default());
    assert_eq!((threshold, copied(action)), (3, LoopAction::Warn));
    let ObservationMaskingConfig { max_iterations_to_keep, min_tokens_to_mask } =
        copied(ObservationMaskingConfig::default());
    assert_eq!((max_iterations_to_keep, min_tokens_to_mask), (2, 500));
    let ToolRetryConfig {
        max_retries,
        initial_backoff,
        max_backoff,
        backoff_multiplier,
        jitter,
        retry_if,
    } = ToolRetryConfig::default();
    assert_eq!((max_retries, initial_backoff), (3, Duration::from_millis(100)));
    assert_eq!((max_backoff, backoff_multiplier, jitter), (Duration::from_secs(5), 2.0, 0.5));
    assert!(retry_if.is_none());
    let Usage {
        input_tokens,
        output_tokens,
        reasoning_tokens,
        cache_read_tokens,
        cache_write_tokens,
        source,
    } = Usage::default();
    assert_eq!((input_tokens, output_tokens, source), (0, 0, UsageSource::Reported));
    assert_eq!((reasoning_tokens, cache_read_tokens, cache_write_tokens), (None, None, None));
    let ProcessedResult { content, was_processed, original_tokens_est, processed_tokens_est } =
        ProcessedResult::unchanged();
    assert_eq!((content.as_str(), was_processed), ("", false));
    assert_eq!((original_tokens_est, processed_tokens_est), (0, 0));
    let ToolError { message } = ToolError::new("why");
    let ToolOutput { content } = ToolOutput::from("out");
    assert_eq!((message.as_str(), content.as_str()), ("why", "out"));
    let ChatMessage { role, content } = ChatMessage::user("Hi");
    assert_eq!((role, content), (ChatRole::User, vec![ContentBlock::Text("Hi".into())]));
    let ChatResponse { content, usage, stop_reason, model, metadata } = ChatResponse::default();
    assert!(content.is_empty() && model.is_empty() && metadata.is_empty());
    assert_eq!((usage, stop_reason), (Usage::default(), StopReason::EndTurn));
}

#[tokio::test(start_paused = true)]
async fn a_mock_plays_its_queue_and_remembers_what_it_was_asked() {
    let model = MockProvider::default();
    let response = ChatResponse {
        content: vec![
            ContentBlock::Reasoning { content: "Hm.".into() },
            ContentBlock::Text("Hi".into()),
        ],
        usage: Usage { input_tokens: 3, ..Usage::default() },
        model: "mock-1".into(),
        ..ChatResponse::default()
    };
    model.queue_response(response.clone()).queue_response(response.clone());
    model.queue_error(LlmError::EmptyReply);
    model.queue_stream(says("Streamed")).queue_stream(vec![text("Cut")]);
    let params = |n: u32| ChatParams {
        messages: vec![ChatMessage::user(n.to_string())],
        ..ChatParams::default()
    };

    // A queued reply serves both kinds of call.
    assert_eq!(model.generate(&params(1)).await.unwrap(), response);
    let mut stream = model.stream(&params(2)).await.unwrap();
    let mut events = 0;
    while stream.next().await.transpose().unwrap().is_some() {
        events += 1;
    }
    assert_eq!(events, 5, "model, thought, text, usage, end");

    assert_eq!(
        model.generate(&params(3)).await.unwrap_err().to_string(),
        LlmError::EmptyReply.to_string()
    );
    assert_eq!(model.generate(&params(4)).await.unwrap().text(), Some("Streamed"));
    let error = model.generate(&params(5)).await.unwrap_err();
    assert!(matches!(error, LlmError::StreamInterrupted { .. }), "{error}");
    let error = model.generate(&params(6)).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "invalid request: MockProvider has no reply for call 6: queue one more"
    );
    assert_eq!(model.recorded_calls(), (1..=6).map(params).collect::<Vec<_>>());
}
