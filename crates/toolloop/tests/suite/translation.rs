use std::sync::Arc;

use serde_json::{Value, json};
use toolloop::provider::{
    AnthropicProvider, GeminiProvider, OllamaProvider, OpenAiProvider, ResponsesProvider,
};
use toolloop::{
    ChatMessage, ChatParams, ContentBlock, DynProvider, LoopEvent, StreamExt, ToolDefinition,
    ToolError, ToolLoopConfig, ToolLoopResult, ToolRegistry, tool_fn, tool_loop_stream,
};
use toolloop_core::ReducedSchema;
use toolloop_fake::{Call, FakeServer, Reply, Script};

/// One tool, whose schema no API can be told whole.
fn tools(name: &str) -> Arc<ToolRegistry> {
    let definition = ToolDefinition {
        name: name.into(),
        description: "Waits.".into(),
        parameters: json!({
            "type": "object",
            "properties": {"ms": {"type": "integer", "multipleOf": 5}},
            "required": ["ms"],
        })
        .into(),
        retry: None,
    };
    let mut registry = ToolRegistry::new();
    registry.register(tool_fn(definition, |args: Value| async move {
        Ok::<_, ToolError>(format!("{} ms", args["ms"]))
    }));
    Arc::new(registry)
}

fn gemini(server: &FakeServer) -> Arc<dyn DynProvider> {
    let builder = GeminiProvider::builder("gemini-2.5-flash").api_key("k");
    Arc::new(builder.base_url(format!("http://{}", server.address())).build().unwrap())
}

fn responses(server: &FakeServer) -> Arc<dyn DynProvider> {
    let builder = ResponsesProvider::builder("gpt-5").api_key("k").base_url(server.base_url());
    Arc::new(builder.build().unwrap())
}

async fn run(
    provider: Arc<dyn DynProvider>,
    tools: Arc<ToolRegistry>,
    messages: Vec<ChatMessage>,
) -> (Vec<LoopEvent>, ToolLoopResult) {
    let params = ChatParams { messages, ..ChatParams::default() };
    let stream = tool_loop_stream(provider, tools, params, ToolLoopConfig::default(), Arc::new(()));
    let mut events: Vec<_> = stream.map(|event| event.unwrap()).collect().await;
    let Some(LoopEvent::Done(result)) = events.pop() else { panic!("no end: {events:?}") };
    (events, result)
}

fn results(messages: &[ChatMessage]) -> Vec<(String, bool)> {
    let results = messages.iter().flat_map(ChatMessage::tool_results);
    results.map(|result| (result.content.to_string(), result.is_error)).collect()
}

#[tokio::test]
async fn what_a_provider_was_not_told_is_told_once_and_still_enforced() {
    let wait = |ms: u64| Reply::calls([Call::new("wait", json!({ "ms": ms }))]);
    let server = FakeServer::start(Script::new([wait(7), wait(10), Reply::text("Done.")]));
    let (events, result) = run(gemini(&server), tools("wait"), vec![ChatMessage::user("Go")]).await;

    let told: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            LoopEvent::SchemasReduced { schemas } => Some(schemas.clone()),
            _ => None,
        })
        .collect();
    let reduced = ReducedSchema {
        tool: Some("wait".into()),
        dropped: vec!["properties.ms: `multipleOf` was left out".into()],
    };
    assert_eq!(told, [[reduced]]);
    let declared = &server.requests()[0].body["tools"][0]["functionDeclarations"][0]["parameters"];
    let ms = json!({"type": "integer", "description": "(multipleOf: 5)"});
    assert_eq!(declared["properties"]["ms"], ms);
    let refusal = "The arguments do not fit the schema of 'wait': /ms: 7 is not a multiple of 5. The \
                   call was not run. Call 'wait' again with a JSON object that fits its schema.";
    assert_eq!(
        results(&result.messages),
        [(refusal.to_owned(), true), ("10 ms".to_owned(), false)]
    );
}

#[tokio::test]
async fn a_tool_may_have_any_name() {
    let name = "files/wait für: a name that is far too long for every API there is, and then some, \
                because it goes on and on until it has more than one hundred and twenty-eight bytes";
    type Provide = fn(&FakeServer) -> Arc<dyn DynProvider>;
    let apis: [Provide; 5] = [
        |server| {
            let builder = OpenAiProvider::builder("gpt-4o").api_key("k");
            Arc::new(builder.base_url(server.base_url()).build().unwrap())
        },
        responses,
        |server| {
            let builder = AnthropicProvider::builder("claude-sonnet-4-5").api_key("k");
            Arc::new(builder.base_url(server.base_url()).build().unwrap())
        },
        gemini,
        |server| {
            let builder = OllamaProvider::builder("qwen3");
            Arc::new(builder.base_url(server.address().to_string()).build().unwrap())
        },
    ];
    for provide in apis {
        // The model calls what it was offered.
        let script = Script::from_fn(|request| {
            let tool = &request.body["tools"][0];
            let places = ["/function/name", "/name", "/functionDeclarations/0/name"];
            let offered = places.iter().find_map(|place| tool.pointer(place)?.as_str()).unwrap();
            match request.number {
                1 => Reply::calls([Call::new(offered, json!({"ms": 5}))]),
                _ => Reply::text("Done."),
            }
        });
        let server = FakeServer::start(script);
        let (events, result) =
            run(provide(&server), tools(name), vec![ChatMessage::user("Go")]).await;
        let mut names = events.iter().filter_map(|event| match event {
            LoopEvent::ToolCallStart { name, .. } => Some(name.as_str()),
            LoopEvent::ToolCallComplete { call, .. } => Some(call.name.as_str()),
            LoopEvent::ToolExecutionStart { tool_name, .. } => Some(tool_name.as_str()),
            _ => None,
        });
        assert!(names.all(|known| known == name), "{events:?}");
        assert_eq!(results(&result.messages), [("5 ms".to_owned(), false)]);
        assert_eq!(server.requests().len(), 2);
    }
}

#[tokio::test]
async fn sealed_thoughts_go_back_to_the_server_that_sealed_them_alone() {
    let script = |name: &str| {
        let replies = (0..4).map(|n| match n {
            0 => Reply::calls([Call::new("wait", json!({"ms": 5}))]).reasoning("Hm."),
            _ => Reply::text("Done.").reasoning("So."),
        });
        // Either refuses what the other has sealed.
        FakeServer::start(Script::new(replies.collect::<Vec<_>>()).sealed_by(name))
    };
    let (a, b) = (script("a"), script("b"));
    let mut messages = Vec::new();
    for server in [&a, &b, &a] {
        messages.push(ChatMessage::user("Go"));
        messages = run(responses(server), tools("wait"), messages).await.1.messages;
    }
    let origins = messages.iter().flat_map(|message| &message.content).filter_map(|it| match it {
        ContentBlock::ProviderData(data) => Some(data.api.clone()),
        _ => None,
    });
    let mut origins: Vec<_> = origins.collect();
    origins.dedup();
    let origin = |server: &FakeServer| format!("openai-responses@{}", server.address());
    assert_eq!(origins, [origin(&a), origin(&b), origin(&a)]);

    let sealed = |server: &FakeServer| {
        let body = server.requests().pop().unwrap().body;
        let items = body["input"].as_array().unwrap().iter();
        let sealed = items.filter_map(|item| item["encrypted_content"].as_str().map(str::to_owned));
        sealed.collect::<Vec<_>>()
    };
    assert_eq!(sealed(&a), ["gAAAA_a_1", "gAAAA_a_2"]);
    assert_eq!(sealed(&b), ["gAAAA_b_1"]);
}
