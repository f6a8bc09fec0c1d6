use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;
use toolloop_mcp::{Answer, Elicitation, McpOptions, McpServers, Wanted};

use super::support::{Fake, call};

fn form() -> Value {
    let meal = json!({"type": "string", "default": "soup"});
    json!({"type": "object", "properties": {"seat": {"type": "string"}, "meal": meal}})
}

/// Asks, and gives the answer as the result of the call.
fn curious() -> Fake {
    let asking: Arc<Mutex<Option<Value>>> = Arc::default();
    Fake::new(&["book"], move |message, wire| {
        let asking = Arc::clone(&asking);
        async move {
            if message["method"] == "tools/call" {
                *asking.lock().unwrap() = Some(message);
                let params = json!({"message": "Which seat?", "requestedSchema": form()});
                let request = json!({"jsonrpc": "2.0", "id": "q1", "method": "elicitation/create",
                                     "params": params});
                wire.send(request).await;
            } else if message["id"] == "q1" {
                let asking = asking.lock().unwrap().clone().unwrap();
                wire.reply_text(&asking, &message["result"].to_string()).await;
            }
        }
    })
}

async fn answered(answer: Option<Answer>) -> (String, Vec<Elicitation>) {
    let fake = curious();
    let asked: Arc<Mutex<Vec<Elicitation>>> = Arc::default();
    let mut options = McpOptions::default();
    if let Some(answer) = answer {
        let asked = Arc::clone(&asked);
        options.elicit = Some(Arc::new(move |question| {
            asked.lock().unwrap().push(question);
            let answer = answer.clone();
            Box::pin(async move {
                sleep(Duration::from_secs(3600)).await;
                answer
            })
        }));
    }
    let mut config = fake.config();
    config.time_limit = Duration::from_secs(60);
    let servers = McpServers::start(vec![config], options).await;
    let text = call(&servers, "fake__book", json!({})).await.unwrap().text;
    let asked = asked.lock().unwrap().clone();
    let declared = fake.told("initialize")[0]["params"]["capabilities"]["elicitation"].is_object();
    assert_eq!(declared, !asked.is_empty());
    (text, asked)
}

#[tokio::test(start_paused = true)]
async fn a_person_may_take_longer_than_the_time_limit_and_leave_out_what_has_a_default() {
    let (text, asked) = answered(Some(Answer::Accept(Some(json!({"seat": "7a"}))))).await;
    assert_eq!(text, r#"{"action":"accept","content":{"seat":"7a","meal":"soup"}}"#);
    assert_eq!(asked[0].server, "fake");
    assert_eq!(asked[0].message, "Which seat?");
    assert_eq!(asked[0].wanted, Wanted::Form(form()));
}

#[tokio::test(start_paused = true)]
async fn a_no_is_told() {
    assert_eq!(answered(Some(Answer::Decline)).await.0, r#"{"action":"decline"}"#);
    assert_eq!(answered(Some(Answer::Cancel)).await.0, r#"{"action":"cancel"}"#);
}

#[tokio::test(start_paused = true)]
async fn without_anybody_to_ask_the_answer_is_no() {
    let (text, asked) = answered(None).await;
    assert_eq!(text, r#"{"action":"decline"}"#);
    assert_eq!(asked, []);
}

#[tokio::test(start_paused = true)]
async fn a_question_that_the_server_takes_back_is_dropped() {
    let fake = Fake::new(&["book"], async |message, wire| {
        if message["method"] == "tools/call" {
            let params = json!({"message": "Which seat?", "requestedSchema": form()});
            wire.send(json!({"jsonrpc": "2.0", "id": "q1", "method": "elicitation/create",
                             "params": params}))
                .await;
            sleep(Duration::from_secs(1)).await;
            wire.notify("cancelled", json!({"requestId": "q1"})).await;
            sleep(Duration::from_secs(1)).await;
            wire.reply_text(&message, "any seat").await;
        }
    });
    let asked = Arc::new(());
    let held = Arc::clone(&asked);
    let elicit = move |_| -> toolloop_core::BoxFuture<'static, Answer> {
        let held = Arc::clone(&held);
        Box::pin(async move {
            let _held = held;
            std::future::pending().await
        })
    };
    let options = McpOptions { elicit: Some(Arc::new(elicit)), ..McpOptions::default() };
    let servers = McpServers::start(vec![fake.config()], options).await;
    let booking = call(&servers, "fake__book", json!({}));
    let (booked, ()) = tokio::join!(booking, async {
        sleep(Duration::from_millis(500)).await;
        assert_eq!(Arc::strong_count(&asked), 3);
        sleep(Duration::from_secs(1)).await;
        assert_eq!(Arc::strong_count(&asked), 2);
    });
    assert_eq!(booked.unwrap().text, "any seat");
}

#[tokio::test(start_paused = true)]
async fn the_working_folder_is_told_when_it_is_asked_for() {
    let fake = Fake::new(&["where"], async |message, wire| {
        if message["method"] == "tools/call" {
            wire.send(json!({"jsonrpc": "2.0", "id": "r", "method": "roots/list"})).await;
            wire.reply_text(&message, "asked").await;
        }
    });
    let options = McpOptions { folder: Some("/srv/my work".into()), ..McpOptions::default() };
    let servers = McpServers::start(vec![fake.config()], options).await;
    call(&servers, "fake__where", json!({})).await.unwrap();
    sleep(Duration::from_secs(1)).await;
    let told = fake.told.lock().unwrap().clone();
    let roots = told.iter().find(|message| message["id"] == "r").unwrap();
    assert_eq!(roots["result"], json!({"roots": [{"uri": "file:///srv/my%20work"}]}));
}
