use std::time::Duration;

use serde_json::{Value, json};
use toolloop::mock::MockProvider;
use toolloop::provider::codec::anthropic::{Options, encode};
use toolloop::provider::{AiCoreProvider, AnthropicProvider};
use toolloop::{
    ChatMessage, ChatParams, ChatResponse, ChatRole, ChatStream, ContentBlock, DynProvider,
    LlmError, Provider, ProviderData, ProviderMetadata, StopReason, TerminationReason, ToolCall,
    ToolDefinition, ToolError, ToolLoopConfig, ToolLoopResult, ToolRegistry, tool_fn, tool_loop,
};
use toolloop_fake::{Call, FakeServer, Fault, Reply, Script};

const KEY: &str = "sk-ant-0123456789";

fn anthropic(server: &FakeServer) -> AnthropicProvider {
    AnthropicProvider::builder("claude-sonnet-4-5")
        .base_url(server.base_url())
        .api_key(KEY)
        .max_retries(0)
        .build()
        .unwrap()
}

/// `wait` is done after so many milliseconds, and says how many they were.
fn tools() -> ToolRegistry {
    let definition = ToolDefinition {
        name: "wait".into(),
        description: "Waits.".into(),
        parameters: json!({"type": "object", "properties": {"ms": {"type": "integer"}},
            "required": ["ms"]})
        .into(),
        retry: None,
    };
    let mut registry = ToolRegistry::new();
    registry.register(tool_fn(definition, |args: Value| async move {
        let ms = args["ms"].as_u64().unwrap_or_default();
        tokio::time::sleep(Duration::from_millis(ms)).await;
        Ok::<_, ToolError>(format!("{ms} ms"))
    }));
    registry
}

fn wait(id: &str, ms: u64) -> Call {
    Call::new("wait", json!({ "ms": ms })).id(id)
}

async fn run(
    provider: &dyn DynProvider,
    messages: Vec<ChatMessage>,
    reasoning_budget: Option<u32>,
) -> Result<ToolLoopResult, LlmError> {
    let params = ChatParams { messages, reasoning_budget, ..ChatParams::default() };
    tool_loop(provider, &tools(), params, ToolLoopConfig::default(), &()).await
}

fn question() -> Vec<ChatMessage> {
    vec![ChatMessage::user("How long?")]
}

fn script() -> Script {
    Script::new([
        Reply::text("Both.").reasoning("Two at once.").call(wait("a", 30)).call(wait("b", 1)),
        Reply::calls([Call::with_text("wait", "{\"ms\": oops").id("c")]),
        Reply::text("").reasoning("Hm.").call(Call::new("nap", json!({})).id("d")),
        Reply::text("31 ms.").reasoning("Enough."),
    ])
    .require_key(KEY)
}

#[tokio::test]
async fn a_loop_of_thoughts_and_calls_is_never_refused() {
    let server = FakeServer::start(script());
    let result = run(&anthropic(&server), question(), Some(2000)).await.unwrap();
    assert_eq!(result.response.text(), Some("31 ms."));
    assert_eq!((result.iterations, result.termination_reason), (4, TerminationReason::Complete));

    let requests = server.requests();
    let last = &requests.last().unwrap().body;
    let messages = last["messages"].as_array().unwrap();
    // The order of the calls, though the second was done first.
    let answered = messages[2]["content"].as_array().unwrap().iter();
    let answered: Vec<_> =
        answered.map(|block| (block["tool_use_id"].as_str().unwrap(), &block["content"])).collect();
    assert_eq!(answered, [("a", &json!("30 ms")), ("b", &json!("1 ms"))]);
    // The server has checked the signatures; here is that there were any.
    let thoughts = messages.iter().flat_map(|m| m["content"].as_array().unwrap());
    assert_eq!(thoughts.filter(|block| block["type"] == "thinking").count(), 2);
    assert_eq!(last["thinking"]["type"], "enabled");

    // What came of it is a conversation that the next run goes on from.
    let server = FakeServer::start(Script::new([Reply::text("Yes.")]));
    let mut messages = result.messages;
    messages.push(ChatMessage::user("Sure?"));
    let result = run(&anthropic(&server), messages, Some(2000)).await.unwrap();
    assert_eq!(result.response.text(), Some("Yes."));
}

#[tokio::test]
async fn the_provider_is_asked_to_sum_up_with_the_header_of_that_beta() {
    let server = FakeServer::start(script());
    let provider = AnthropicProvider::builder("claude-opus-4-6")
        .base_url(server.base_url())
        .api_key(KEY)
        .compact_above(80_000)
        .build()
        .unwrap();
    let result = run(&provider, question(), None).await.unwrap();
    assert_eq!(result.termination_reason, TerminationReason::Complete);
    let request = &server.requests()[0];
    assert_eq!(request.header("anthropic-beta"), Some("compact-2026-01-12"));
    assert_eq!(request.body["context_management"]["edits"][0]["trigger"]["value"], 80_000);
}

#[tokio::test]
async fn a_loop_behind_ai_core_is_never_refused() {
    let server = FakeServer::start(script());
    let root = format!("http://{}", server.address());
    let provider = AiCoreProvider::builder("anthropic--claude-4.5-sonnet", "d1")
        .credentials("client", KEY)
        .auth_url(&root)
        .base_url(&root)
        .max_retries(0)
        .build()
        .unwrap();
    let result = run(&provider, question(), Some(2000)).await.unwrap();
    assert_eq!(result.response.text(), Some("31 ms."));
    let paths: Vec<_> = server.requests().into_iter().map(|request| request.path).collect();
    let invoke = "/v2/inference/deployments/d1/invoke-with-response-stream";
    assert_eq!(paths, ["/oauth/token", invoke, invoke, invoke, invoke]);
}

/// Ids, thoughts and data of another provider, in the middle of its loop.
#[tokio::test]
async fn a_conversation_comes_over_from_another_provider() {
    let call = |id: &str| {
        let arguments = json!({"ms": 1});
        ContentBlock::ToolCall(ToolCall { id: id.into(), name: "wait".into(), arguments })
    };
    let data = ProviderData { api: "openai-responses".into(), data: "not JSON".into() };
    let said = vec![
        ContentBlock::Reasoning { content: "Hm.".into() },
        ContentBlock::ProviderData(data),
        call("fc_1|call/1"),
        call("functions.wait:0"),
    ];
    let mut messages = question();
    messages.push(ChatMessage { role: ChatRole::Assistant, content: said });
    messages.push(ChatMessage::tool_result("fc_1|call/1", "1 ms"));
    messages.push(ChatMessage::tool_error("functions.wait:0", ""));
    let server = FakeServer::start(script());
    let result = run(&anthropic(&server), messages, Some(2000)).await.unwrap();
    assert_eq!(result.response.text(), Some("31 ms."));
    // Thought has to wait until the calls of the other are answered by something said.
    assert_eq!(server.requests()[0].body["thinking"], Value::Null);
}

#[tokio::test]
async fn a_fault_at_any_event_is_an_error_that_keeps_what_came() {
    let reply = || Reply::text("Let me look.").reasoning("Hm.").call(wait("a", 1)).usage(3, 4);
    let whole = FakeServer::start(Script::new([reply(), Reply::text("Done.")]));
    run(&anthropic(&whole), question(), None).await.unwrap();
    whole.idle().await;
    let events = whole.log()[0].events;
    let overloaded = json!({"type": "overloaded_error", "message": "Overloaded"});
    let wrapped = json!({"type": "error", "error": overloaded});
    for event in 0..events - 1 {
        let bytes = format!("event: error\ndata: {wrapped}\n\n").into_bytes();
        let faults = [
            Fault::CutAtEvent(event),
            Fault::MalformedJsonAtEvent(event),
            Fault::ErrorAtEvent { event, error: overloaded.clone() },
            Fault::GarbageAtEvent { event, bytes },
        ];
        for fault in faults {
            let script = Script::new([reply().fault(fault.clone()), Reply::text("Done.")]);
            let server = FakeServer::start(script);
            let outcome = run(&anthropic(&server), question(), None).await;
            let error = outcome.map(|_| ()).expect_err("a broken reply is no answer");
            let overloaded = matches!(
                &error,
                LlmError::Provider { code, retryable: true, .. } if code == "overloaded_error"
            );
            let expected = match fault {
                Fault::CutAtEvent(_) => error.is_retryable(),
                Fault::MalformedJsonAtEvent(_) => {
                    matches!(error, LlmError::ResponseFormat { .. })
                }
                _ => overloaded,
            };
            assert!(expected, "{fault:?}: {error}");
        }
    }
}

/// Compares the bytes that a run has kept of its requests with those written anew.
struct Kept(MockProvider);

impl Provider for Kept {
    async fn generate(&self, params: &ChatParams) -> Result<ChatResponse, LlmError> {
        Provider::generate(&self.0, params).await
    }

    async fn stream(&self, params: &ChatParams) -> Result<ChatStream, LlmError> {
        let encode = |params: &ChatParams| encode("claude-sonnet-4-5", params, &Options::default());
        assert_eq!(encode(params).unwrap(), encode(&params.clone()).unwrap());
        Provider::stream(&self.0, params).await
    }

    fn metadata(&self) -> ProviderMetadata {
        Provider::metadata(&self.0)
    }
}

#[tokio::test(start_paused = true)]
async fn a_result_that_comes_replies_after_its_use_stays_with_it() {
    let model = MockProvider::default();
    let theirs = |block: Value| {
        let data = json!({ "block": block }).to_string();
        ContentBlock::ProviderData(ProviderData { api: "anthropic-messages".into(), data })
    };
    let used = json!({"type": "server_tool_use", "id": "s1", "name": "web_search"});
    let found = json!({"type": "web_search_tool_result", "tool_use_id": "s1", "content": []});
    // The use waits beside a call, as the API has it; its result comes with the next reply.
    let mut blocks = vec![None, None, Some(theirs(used)), Some(theirs(found)), None, None, None];
    let history = std::iter::repeat_n([ChatMessage::user("q"), ChatMessage::assistant("a")], 8);
    let messages = [history.flatten().collect(), question()].concat();
    for (at, block) in blocks.drain(..).enumerate() {
        let arguments = json!({ "ms": at });
        let call = ToolCall { id: format!("c{at}"), name: "wait".into(), arguments };
        model.queue_response(ChatResponse {
            content: block.into_iter().chain([ContentBlock::ToolCall(call)]).collect(),
            stop_reason: StopReason::ToolUse,
            ..ChatResponse::default()
        });
    }
    model.queue_text("Done.");
    let result = run(&Kept(model), messages, None).await.unwrap();
    assert_eq!(result.iterations, 8);
}
