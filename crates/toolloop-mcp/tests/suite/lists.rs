use serde_json::{Value, json};
use tokio::time::{Duration, sleep};
use toolloop::mock::MockProvider;
use toolloop::{ToolLoopConfig, ToolRegistry, tool_loop};
use toolloop_core::{ChatMessage, ChatParams, ChatResponse, ContentBlock, ToolCall};
use toolloop_mcp::{McpOptions, McpServers};

use super::support::{Fake, call};

fn names(servers: &McpServers) -> Vec<String> {
    servers.tools::<()>().iter().map(|tool| tool.definition().name).collect()
}

fn echo(tools: &[&str]) -> Fake {
    Fake::new(tools, async |message, wire| {
        if message["method"] == "tools/call" {
            if message["params"]["arguments"]["change"] == true {
                wire.notify("tools/list_changed", json!({})).await;
            }
            wire.reply_text(&message, "fine").await;
        }
    })
}

#[tokio::test(start_paused = true)]
async fn a_changed_list_is_fetched_and_moves_nothing() {
    let (one, two) = (echo(&["a", "b"]), echo(&["c"]));
    let (mut first, mut second) = (one.config(), two.config());
    (first.name, second.name) = ("one".into(), "two".into());
    let servers = McpServers::start(vec![first, second], McpOptions::default()).await;
    assert_eq!(names(&servers), ["one__a", "one__b", "two__c"]);

    let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
    *one.tools.lock().unwrap() = json!([tool("new"), tool("b")]);
    let gone = servers.tools::<()>().remove(0);
    call(&servers, "one__a", json!({"change": true})).await.unwrap();
    sleep(Duration::from_secs(1)).await;

    assert_eq!(names(&servers), ["one__b", "two__c", "one__new"]);
    let context = toolloop_core::CallContext::detached("c");
    let refused = gone.call(json!({}), &context, &()).await.unwrap_err().message;
    assert_eq!(refused, "Server \"one\" no longer has the tool \"a\". Use another one.");
    assert_eq!(call(&servers, "one__new", json!({})).await.unwrap().text, "fine");
}

#[tokio::test(start_paused = true)]
async fn duplicates_and_wrong_tools_cost_only_themselves() {
    let fake = echo(&[]);
    let good = json!({"name": "good", "inputSchema": {"type": "object"}});
    let again = json!({"name": "good", "description": "a double", "inputSchema": {}});
    *fake.tools.lock().unwrap() =
        json!([good, {"name": 7}, again, "what", {"name": "also", "inputSchema": {}}]);
    let servers = fake.start().await;
    assert_eq!(names(&servers), ["fake__also", "fake__good"]);
    assert_eq!(servers.tools::<()>()[1].definition().description, "");
}

#[tokio::test(start_paused = true)]
async fn names_that_no_api_takes_are_made_legal_and_reach_their_tool() {
    let fake = Fake::new(&["git/log", "git.log"], async |message, wire| {
        let name = message["params"]["name"].as_str().unwrap();
        wire.reply_text(&message, name).await;
    });
    let servers = fake.start().await;
    let names = names(&servers);
    assert_eq!(names, ["fake__git_log", "fake__git_log_a9b640cd"]);
    assert_eq!(call(&servers, &names[0], json!({})).await.unwrap().text, "git.log");
    assert_eq!(call(&servers, &names[1], json!({})).await.unwrap().text, "git/log");
}

/// Not in virtual time: a real listener would see a connection.
#[tokio::test]
async fn a_schema_that_points_elsewhere_loads_nothing() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("schema.json");
    std::fs::write(&file, "{\"type\": \"string\"}").unwrap();

    let called = async |reference: String| {
        let fake = echo(&[]);
        let schema = json!({"type": "object", "properties": {"a": {"$ref": reference}}});
        *fake.tools.lock().unwrap() = json!([{"name": "x", "inputSchema": schema}]);
        let servers = fake.start().await;
        let mut registry = ToolRegistry::<()>::new();
        for tool in servers.tools() {
            registry.register_shared(tool);
        }
        let arguments: Value = json!({"a": "text"});
        let call = ToolCall { id: "1".into(), name: "fake__x".into(), arguments };
        registry.execute(&call, &()).await
    };
    for reference in
        [format!("http://127.0.0.1:{port}/schema"), format!("file://{}", file.display())]
    {
        let result = called(reference).await;
        // The server itself checks what nobody here can.
        assert_eq!((result.is_error, result.content.text.as_str()), (false, "fine"));
    }
    let connection = tokio::time::timeout(Duration::from_millis(50), listener.accept()).await;
    assert!(connection.is_err(), "somebody fetched the schema");
}

#[tokio::test(start_paused = true)]
async fn a_tool_whose_schema_is_broken_does_not_end_a_run() {
    let fake = echo(&["good"]);
    let schema = json!({"type": "object", "properties": {"a": {"$ref": "#/definitions/gone"}}});
    let tools =
        json!([{"name": "bad", "inputSchema": schema}, {"name": "good", "inputSchema": {}}]);
    *fake.tools.lock().unwrap() = tools;
    let servers = fake.start().await;
    let mut registry = ToolRegistry::<()>::new();
    for tool in servers.tools() {
        registry.register_shared(tool);
    }
    let model = MockProvider::default();
    let arguments = json!({"a": 1});
    let call = ToolCall { id: "1".into(), name: "fake__bad".into(), arguments };
    let content = vec![ContentBlock::ToolCall(call)];
    model.queue_response(ChatResponse { content, ..ChatResponse::default() });
    model.queue_text("Done.");
    let params = ChatParams { messages: vec![ChatMessage::user("Go")], ..ChatParams::default() };
    let result = tool_loop(&model, &registry, params, ToolLoopConfig::default(), &()).await;
    let messages = result.unwrap().messages;
    assert_eq!(messages[2], ChatMessage::tool_result("1", "fine"));
}

#[tokio::test(start_paused = true)]
async fn a_reference_inside_the_schema_works() {
    let fake = echo(&[]);
    let schema = json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/n"}},
                        "$defs": {"n": {"type": "integer"}}});
    *fake.tools.lock().unwrap() = json!([{"name": "x", "inputSchema": schema}]);
    let servers = fake.start().await;
    let mut registry = ToolRegistry::<()>::new();
    for tool in servers.tools() {
        registry.register_shared(tool);
    }
    let run = async |a: Value| {
        let arguments = json!({"a": a});
        let call = ToolCall { id: "1".into(), name: "fake__x".into(), arguments };
        registry.execute(&call, &()).await.is_error
    };
    assert!(!run(json!(1)).await);
    assert!(run(json!("one")).await);
}
