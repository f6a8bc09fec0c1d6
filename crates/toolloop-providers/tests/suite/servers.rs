//! Servers that speak the Chat Completions API, each in its own way: what is kept, and what goes
//! back to whom.

use std::path::PathBuf;

use serde_json::{Value, json};
use toolloop_core::effect::Outcome;
use toolloop_core::{
    ChatMessage, ChatParams, ChatRole, ContentBlock, ReplyAssembler, ToolCall, ToolChoice,
    ToolDefinition,
};
use toolloop_providers::{OpenAiProvider, OpenAiProviderBuilder, SERVERS, Server, server};

use crate::support::decode::decode;
use crate::support::server::{self as loopback, says};

/// The blocks of a recorded reply.
/// A reply of OpenRouter.
fn reply(body: &str) -> Vec<ContentBlock> {
    let (events, error) = decode([body.as_bytes()]);
    assert_eq!(error, None);
    let mut assembler = ReplyAssembler::detached();
    for event in events {
        assembler.push(event).unwrap();
    }
    let Outcome::Reply(reply) = assembler.finish() else { panic!("no whole reply") };
    let mut content = reply.response.content;
    for block in &mut content {
        if let ContentBlock::ProviderData(data) = block {
            data.api.push_str("@openrouter.ai");
        }
    }
    content
}

/// The body that a server is sent.
async fn sent_to(server: &Server, params: &ChatParams) -> Value {
    sent_by(server.builder("m"), params).await
}

async fn sent_by(builder: OpenAiProviderBuilder, params: &ChatParams) -> Value {
    let fake = loopback::Server::start([says("ok")]).await;
    let provider = builder.base_url(format!("{}/v1", fake.url)).api_key("k").build().unwrap();
    toolloop_core::Provider::generate(&provider, params).await.unwrap();
    let request = fake.requests().remove(0);
    serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap()
}

fn after(said: Vec<ContentBlock>) -> ChatParams {
    let ids: Vec<_> = said
        .iter()
        .filter_map(|block| match block {
            ContentBlock::ToolCall(call) => Some(call.id.clone()),
            _ => None,
        })
        .collect();
    let mut messages = vec![ChatMessage { role: ChatRole::Assistant, content: said }];
    messages.extend(ids.into_iter().map(|id| ChatMessage::tool_result(id, "done")));
    ChatParams { messages, ..ChatParams::default() }
}

#[tokio::test]
async fn details_of_thoughts_go_back_to_their_gateway_alone() {
    let body = include_str!("../fixtures/openai-chat/reasoning-details.sse");
    let params = after(reply(body));
    let details = json!([
        {"type": "reasoning.text", "index": 0, "text": "So so", "signature": "sig"},
        {"type": "reasoning.encrypted", "index": 1, "data": "x", "id": "c"},
        {"type": "reasoning.encrypted", "index": 2, "data": "y"},
    ]);
    for server in &SERVERS {
        let message = sent_to(server, &params).await["messages"][0].take();
        let expected = if server.name == "openrouter" { details.clone() } else { Value::Null };
        assert_eq!(message["reasoning_details"], expected, "{}", server.name);
        assert_eq!(message["content"], "One two three");
        let members: Vec<_> = message["tool_calls"][0].as_object().unwrap().keys().collect();
        assert_eq!(members, ["id", "type", "function"], "{}", server.name);
    }
    // A server that is not known by name would take them, but they are not its own.
    let unknown = sent_by(OpenAiProvider::builder("m"), &params).await;
    assert_eq!(unknown["messages"][0]["reasoning_details"], Value::Null);
}

#[tokio::test]
async fn recorded_dialogues_go_on_with_their_details() {
    let Some(folder) = std::env::var_os("TOOLLOOP_CORPUS").map(PathBuf::from) else {
        println!("skipped: TOOLLOOP_CORPUS names no folder of recorded streams");
        return;
    };
    let mut compared = 0;
    for entry in std::fs::read_dir(folder.join("_dialogues")).unwrap() {
        let dialogue: Value =
            serde_json::from_slice(&std::fs::read(entry.unwrap().path()).unwrap()).unwrap();
        if dialogue["provider"] != "openrouter" || dialogue["streaming"] != true {
            continue;
        }
        for pair in dialogue["steps"].as_array().unwrap().windows(2) {
            let messages = pair[1]["request"]["messages"].as_array();
            let recorded = messages.into_iter().flatten().rfind(|m| m["role"] == "assistant");
            let Some(recorded) = recorded.filter(|m| m["reasoning_details"].is_array()) else {
                continue;
            };
            let params = after(reply(pair[0]["body"].as_str().unwrap()));
            let mut sent =
                sent_to(server("openrouter").unwrap(), &params).await["messages"][0].take();
            let mut recorded = recorded["reasoning_details"].clone();
            // The client that was recorded forgot the format and made ids null.
            for detail in [&mut sent["reasoning_details"], &mut recorded] {
                for detail in detail.as_array_mut().unwrap() {
                    let detail = detail.as_object_mut().unwrap();
                    detail.retain(|name, value| name != "format" && !value.is_null());
                }
            }
            assert_eq!(sent["reasoning_details"], recorded);
            compared += 1;
        }
    }
    assert!(compared >= 2, "only {compared} dialogues have details");
}

#[tokio::test]
async fn a_server_is_told_what_it_can_read() {
    let call = |id: &str| {
        ContentBlock::ToolCall(ToolCall { id: id.into(), name: "t".into(), arguments: json!({}) })
    };
    let tool = ToolDefinition {
        name: "t".into(),
        description: String::new(),
        parameters: json!({"type": "object", "properties": {}}).into(),
        retry: None,
    };
    let long = "fc_0123456789012345678901234567890123456789";
    let params = ChatParams {
        tools: Some(vec![tool]),
        tool_choice: Some(ToolChoice::Required),
        ..after(vec![
            ContentBlock::Reasoning { content: "Hm".into() },
            call("g6fVbXS8K"),
            call(long),
        ])
    };
    let mistral = sent_to(server("mistral").unwrap(), &params).await;
    assert_eq!(mistral["tool_choice"], "any");
    assert_eq!(mistral["stream_options"], Value::Null);
    let messages = mistral["messages"].as_array().unwrap();
    let ids = |messages: &[Value]| {
        let calls = messages[0]["tool_calls"].as_array().unwrap();
        let mut ids: Vec<_> = calls.iter().map(|call| call["id"].clone()).collect();
        ids.extend(messages[1..].iter().map(|message| message["tool_call_id"].clone()));
        ids.iter().map(|id| id.as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let [kept, made, ..] = &ids(messages)[..] else { panic!("two calls") };
    assert_eq!(kept, "g6fVbXS8K");
    assert!(made.len() == 9 && made.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{made}");
    assert_eq!(ids(messages)[2..], ids(messages)[..2]);

    let groq = sent_to(server("groq").unwrap(), &params).await;
    assert_eq!(groq["tool_choice"], "required");
    assert_eq!(groq["stream_options"], json!({"include_usage": true}));
    let made = &ids(groq["messages"].as_array().unwrap())[1];
    assert!(made.len() == 40 && made != long, "{made}");
    assert_eq!(groq["messages"][0]["reasoning_content"], Value::Null);

    let deepseek = sent_to(server("deepseek").unwrap(), &params).await;
    assert_eq!(deepseek["messages"][0]["reasoning_content"], "Hm");
}
