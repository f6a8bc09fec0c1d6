use std::time::Duration;

use serde_json::json;
use tokio::time::{Instant, sleep, timeout};
use toolloop_mcp::{McpOptions, McpServers};

use super::support::{Call, Fake};

#[tokio::test(start_paused = true)]
async fn progress_comes_in_order_and_before_the_result() {
    let fake = Fake::new(&["work"], async |message, wire| {
        for step in 1..=50 {
            wire.progress(&message, step, "at it").await;
        }
        wire.reply_text(&message, "done").await;
    });
    let servers = fake.start().await;
    let call = Call::new();
    call.run(&servers, "fake__work", json!({})).await.unwrap();
    let expected: Vec<_> = (1..=50).map(|step| format!("[{step}] at it")).collect();
    assert_eq!(call.progress(), expected);
}

#[tokio::test(start_paused = true)]
async fn progress_after_the_end_of_its_call_goes_nowhere() {
    let fake = Fake::new(&["work"], async |message, wire| {
        if message["method"] == "tools/call" {
            wire.progress(&message, 1, "in time").await;
            wire.reply_text(&message, "done").await;
            wire.progress(&message, 2, "late").await;
        }
    });
    let servers = fake.start().await;
    let first = Call::new();
    first.run(&servers, "fake__work", json!({})).await.unwrap();
    let second = Call::new();
    second.run(&servers, "fake__work", json!({})).await.unwrap();
    sleep(Duration::from_secs(1)).await;
    assert_eq!(first.progress(), ["[1] in time"]);
    assert_eq!(second.progress(), ["[1] in time"]);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_call_is_cancelled_at_the_server_and_its_progress_is_dropped() {
    let fake = Fake::new(&["work"], async |message, wire| {
        if message["method"] == "tools/call" {
            wire.progress(&message, 1, "begun").await;
            sleep(Duration::from_secs(10)).await;
            wire.progress(&message, 2, "still at it").await;
            wire.reply_text(&message, "too late").await;
        }
    });
    let servers = fake.start().await;
    let call = Call::new();
    let run = call.run(&servers, "fake__work", json!({}));
    timeout(Duration::from_secs(1), run).await.unwrap_err();
    sleep(Duration::from_secs(20)).await;

    let called = fake.told("tools/call");
    let cancelled = fake.told("notifications/cancelled");
    assert_eq!(cancelled.len(), 1);
    assert_eq!(cancelled[0]["params"]["requestId"], called[0]["id"]);
    assert_eq!(call.progress(), ["[1] begun"]);
    assert_eq!(fake.starts(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_hangs_ends_at_its_limit_and_is_cancelled() {
    let fake = Fake::new(&["hang"], async |_, _| std::future::pending().await);
    let mut config = fake.config();
    config.time_limit = Duration::from_secs(7);
    let servers = McpServers::start(vec![config], McpOptions::default()).await;
    let started = Instant::now();
    let error = Call::new().run(&servers, "fake__hang", json!({})).await.unwrap_err();
    assert_eq!(
        error,
        "Tool \"hang\" of server \"fake\" was cut off at its time limit of 7s. It may have taken \
         effect in part; check before repeating it."
    );
    assert_eq!(started.elapsed().as_secs(), 7);
    sleep(Duration::from_secs(1)).await;
    assert_eq!(fake.told("notifications/cancelled").len(), 1);
}

/// Answers nothing once it has been told to hang, but pings if `pongs`.
fn hanging(pongs: bool) -> Fake {
    Fake::new(&["x"], move |message, wire| async move {
        match message["method"].as_str() {
            Some("ping") if pongs => wire.reply(&message, json!({})).await,
            Some("tools/call") if message["params"]["arguments"]["hang"] != true => {
                wire.reply_text(&message, "fine").await;
            }
            _ => {}
        }
    })
}

#[tokio::test(start_paused = true)]
async fn a_server_that_hangs_is_started_again_and_a_slow_one_is_not() {
    for (pongs, starts) in [(false, 2), (true, 1)] {
        let fake = hanging(pongs);
        let servers = fake.start().await;
        let run = async |arguments| Call::new().run(&servers, "fake__x", arguments).await;
        assert_eq!(run(json!({})).await.unwrap().text, "fine");
        run(json!({"hang": true})).await.unwrap_err();
        assert_eq!(run(json!({})).await.unwrap().text, "fine");
        assert_eq!(fake.starts(), starts);
    }
}
