//! A provider that is asked without a run, with messages that nobody has looked at.

use serde_json::json;
use toolloop::provider::codec::outgoing;
use toolloop::tool::LoopEvent;
use toolloop::{ChatMessage, ChatParams, ChatRole, ContentBlock, ToolCall};
use toolloop_fake::{FakeServer, Reply, Script};

use super::apis::APIS;
use super::choices::Choices;
use super::messages::message;
use crate::suite::support::every_api::every_api;
use crate::suite::support::{Sim, says};

#[test]
fn damaged_messages_are_mended_on_their_way() {
    for seed in 0..1_000 {
        let mut choices = Choices::random(seed);
        let messages = choices.list(8, message);
        let params = ChatParams { messages, ..ChatParams::default() };
        let mended = outgoing(&params);
        for api in APIS.iter().copied().flatten() {
            if let Err(what) = api.ask(&mended) {
                panic!("seed {seed}: {what}\n{:#?}", params.messages);
            }
        }
    }
}

/// A run mends what it is given before it asks, and says so.
#[tokio::test]
async fn a_run_tells_what_it_mended() {
    let mut sim = Sim::new([says("Yes.")]);
    sim.params.messages = vec![
        ChatMessage::user("q"),
        ChatMessage::tool_result("a", "orphan"),
        ChatMessage::user(""),
    ];
    let mut told = Vec::new();
    let ran = sim.run_watched(|event| {
        if let LoopEvent::MessagesRepaired { repairs } = event {
            told.push(repairs.clone());
        }
    });
    let asked = ran.await.model.recorded_calls()[0].messages.clone();
    let mended = ChatMessage::user("Result of an earlier tool call:\norphan");
    assert_eq!(asked, [ChatMessage::user("q"), mended]);
    let empty = "dropped an empty message".to_owned();
    let orphan = "turned the result of the unknown call a to text".to_owned();
    assert_eq!(told, [[empty, orphan]]);
}

#[tokio::test]
async fn every_provider_mends_what_it_is_given() {
    let call = |id: &str| {
        let (id, name, arguments) = (id.into(), "add".into(), json!({"x": 1}));
        ContentBlock::ToolCall(ToolCall { id, name, arguments })
    };
    let calls = |ids: &[&str]| {
        let content = ids.iter().copied().map(call).collect();
        ChatMessage { role: ChatRole::Assistant, content }
    };
    let damaged = [
        vec![],
        vec![ChatMessage::user("")],
        vec![ChatMessage::tool_result("a", "orphan")],
        vec![ChatMessage::user("q"), calls(&["a", "b"]), ChatMessage::tool_result("b", "2")],
        vec![ChatMessage::user("q"), calls(&["a", "a"]), ChatMessage::user("and now?")],
        vec![calls(&["a"]), calls(&["a"]), ChatMessage::tool_result("a", "late")],
    ];
    let server = FakeServer::start(Script::from_fn(|_| Reply::text("Yes.")));
    for (name, provider) in every_api(&server) {
        for messages in &damaged {
            let params = ChatParams { messages: messages.clone(), ..ChatParams::default() };
            let reply = provider.generate_boxed(&params).await;
            let reply = reply.unwrap_or_else(|error| panic!("{name}: {error}\n{messages:#?}"));
            assert_eq!(reply.text(), Some("Yes."), "{name}");
        }
    }
}
