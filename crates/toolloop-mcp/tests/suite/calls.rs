use serde_json::json;

use super::support::{Fake, call};

#[tokio::test(start_paused = true)]
async fn a_call_carries_its_arguments_and_its_key() {
    let fake = Fake::new(&["add"], async |message, wire| wire.reply_text(&message, "5").await);
    let servers = fake.start().await;

    assert_eq!(call(&servers, "fake__add", json!({"a": 2})).await.unwrap().text, "5");

    let told = fake.told("tools/call");
    assert_eq!(told[0]["params"]["name"], "add");
    assert_eq!(told[0]["params"]["arguments"], json!({"a": 2}));
    assert_eq!(told[0]["params"]["_meta"]["toolloop/idempotencyKey"], "run-7/t/1/0");
}

#[tokio::test(start_paused = true)]
async fn calls_at_once_get_their_own_results() {
    let fake = Fake::new(&["echo"], async |message, wire| {
        let n = message["params"]["arguments"]["n"].as_u64().unwrap();
        tokio::time::sleep(std::time::Duration::from_secs(10 - n)).await;
        wire.reply_text(&message, &n.to_string()).await;
    });
    let servers = fake.start().await;
    let calls = (0..10).map(|n| call(&servers, "fake__echo", json!({"n": n})));
    let results = futures_util::future::join_all(calls).await;
    let texts: Vec<String> = results.into_iter().map(|result| result.unwrap().text).collect();
    assert_eq!(texts, (0..10).map(|n| n.to_string()).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn an_error_of_any_kind_is_told_with_its_server() {
    let fake = Fake::new(&["x"], async |message, wire| {
        let id = &message["id"];
        match message["params"]["arguments"]["how"].as_str().unwrap() {
            "result" => {
                let content = json!([{"type": "text", "text": "no such file"}]);
                wire.reply(&message, json!({"content": content, "isError": true})).await;
            }
            "error" => {
                let error = json!({"code": -32602, "message": "n must be a number"});
                wire.send(json!({"jsonrpc": "2.0", "id": id, "error": error})).await;
            }
            "odd error" => wire.send(json!({"jsonrpc": "2.0", "id": id, "error": "boom"})).await,
            "odd result" => wire.reply(&message, json!([1])).await,
            how => panic!("{how}"),
        }
    });
    let servers = fake.start().await;
    let failed = async |how| call(&servers, "fake__x", json!({"how": how})).await.unwrap_err();
    assert_eq!(failed("result").await, "no such file");
    assert_eq!(failed("error").await, "Server \"fake\" refused the call: n must be a number.");
    assert_eq!(failed("odd error").await, "Server \"fake\" refused the call: \"boom\".");
    assert_eq!(failed("odd result").await, "Server \"fake\" gave a result that is not right: [1].");
}

#[tokio::test(start_paused = true)]
async fn a_closed_server_refuses_calls() {
    let fake = Fake::new(&["x"], async |message, wire| wire.reply_text(&message, "").await);
    let servers = fake.start().await;
    servers.close().await;
    let refused = call(&servers, "fake__x", json!({})).await.unwrap_err();
    assert_eq!(refused, "Server \"fake\" has been closed.");
    assert_eq!(fake.starts(), 1);
}
