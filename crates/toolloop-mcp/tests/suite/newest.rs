use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;
use toolloop_mcp::{Answer, McpOptions, McpServers};

use super::support::{Fake, Wire, call};

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// Tells somebody who listens that the tools have changed; `again`: not the acknowledgement.
async fn tell(wire: &Wire, listening: &Value, again: bool) {
    let id = json!({SUBSCRIPTION: listening["id"]});
    match again {
        true => wire.notify("tools/list_changed", json!({"_meta": id})).await,
        false => {
            let params = json!({"_meta": id, "notifications": {"toolsListChanged": true}});
            wire.notify("subscriptions/acknowledged", params).await;
        }
    }
}

fn newest(tools: &[&str]) -> Fake {
    let mut fake = Fake::new(tools, async |message, wire| match message["method"].as_str() {
        Some("subscriptions/listen") => {
            tell(&wire, &message, false).await;
            sleep(Duration::from_secs(10)).await;
            tell(&wire, &message, true).await;
        }
        Some("tools/call") => {
            let params = &message["params"];
            match params["inputResponses"]["seat"]["content"]["seat"].as_str() {
                // Not before it knows the seat, and got its own state back.
                None => {
                    let form =
                        json!({"type": "object", "properties": {"seat": {"type": "string"}}});
                    let ask = json!({"method": "elicitation/create",
                                     "params": {"message": "Which?", "requestedSchema": form}});
                    let result = json!({"resultType": "input_required", "requestState": "s-1",
                                        "inputRequests": {"seat": ask}});
                    wire.reply(&message, result).await;
                }
                Some(seat) => {
                    let text = format!("{seat} {}", params["requestState"]);
                    let content = json!([{"type": "text", "text": text}]);
                    wire.reply(&message, json!({"resultType": "complete", "content": content}))
                        .await;
                }
            }
        }
        _ => {}
    });
    fake.newest = true;
    fake
}

#[tokio::test(start_paused = true)]
async fn a_server_without_a_greeting_is_spoken_to_in_its_way() {
    let fake = newest(&["book"]);
    let options = McpOptions {
        elicit: Some(Arc::new(|_| Box::pin(async { Answer::Accept(Some(json!({"seat": "7a"}))) }))),
        ..McpOptions::default()
    };
    let servers = McpServers::start(vec![fake.config()], options).await;
    assert_eq!(servers.faults(), []);
    assert_eq!(call(&servers, "fake__book", json!({})).await.unwrap().text, "7a \"s-1\"");

    let calls = fake.told("tools/call");
    assert_eq!(calls.len(), 2);
    for call in calls {
        let meta = &call["params"]["_meta"];
        assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
        assert_eq!(meta["toolloop/idempotencyKey"], "run-7/t/1/0");
    }
}

#[tokio::test(start_paused = true)]
async fn its_changes_are_listened_to() {
    let fake = newest(&["a"]);
    let servers = fake.start().await;
    let new = json!({"name": "new", "inputSchema": {"type": "object"}});
    fake.tools.lock().unwrap().as_array_mut().unwrap().push(new);
    sleep(Duration::from_secs(20)).await;
    let names: Vec<_> = servers.tools::<()>().iter().map(|tool| tool.definition().name).collect();
    assert_eq!(names, ["fake__a", "fake__new"]);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_asks_for_ever_is_cut_off() {
    let mut fake = Fake::new(&["x"], async |message, wire| {
        if message["method"] == "tools/call" {
            let result = json!({"resultType": "input_required", "requestState": "more"});
            wire.reply(&message, result).await;
        }
    });
    fake.newest = true;
    let servers = fake.start().await;
    let error = call(&servers, "fake__x", json!({})).await.unwrap_err();
    assert_eq!(error, "Server \"fake\" asked for more input 10 times.");
}
