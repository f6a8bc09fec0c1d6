use std::time::Duration;

use serde_json::json;
use tokio::time::sleep;
use toolloop_mcp::{McpOptions, McpServers};

use super::support::{Fake, call};

/// Answers, or does what the argument `how` says.
fn mortal() -> Fake {
    Fake::new(&["x"], async |message, wire| match message["params"]["arguments"]["how"].as_str() {
        Some("die") => wire.die().await,
        Some("babble") => {
            wire.raw(b"Listening on port 80\n\n\xff\xfe\n{\"level\":\"info\"}\n42\n").await;
            wire.reply_text(&message, "fine").await;
        }
        Some("last words") => {
            wire.raw(b"\x1b[31mout of disk\n").await;
            wire.die().await;
        }
        Some("flood") => {
            let line = vec![b'x'; 1 << 20];
            for _ in 0..17 {
                wire.raw(&line).await;
            }
        }
        Some("large") => {
            let text = "x".repeat(15 << 20);
            wire.reply_text(&message, &text).await;
        }
        _ => wire.reply_text(&message, "fine").await,
    })
}

#[tokio::test(start_paused = true)]
async fn a_server_that_dies_in_a_call_fails_it_and_is_started_again() {
    let fake = mortal();
    let servers = fake.start().await;
    let before: Vec<_> = servers.tools::<()>().iter().map(|tool| tool.definition()).collect();
    let failed = call(&servers, "fake__x", json!({"how": "die"})).await.unwrap_err();
    assert_eq!(
        failed,
        "Server \"fake\" closed the connection. The call may have taken effect in part; check \
         before repeating it. The server is started again at the next call."
    );
    assert_eq!(fake.starts(), 1);
    assert_eq!(call(&servers, "fake__x", json!({})).await.unwrap().text, "fine");
    assert_eq!(fake.starts(), 2);
    let after: Vec<_> = servers.tools::<()>().iter().map(|tool| tool.definition()).collect();
    assert_eq!(format!("{after:?}"), format!("{before:?}"));
}

#[tokio::test(start_paused = true)]
async fn all_calls_under_way_fail_when_their_server_dies() {
    let fake = Fake::new(&["x"], async |message, wire| {
        if message["params"]["arguments"]["die"] == true {
            sleep(Duration::from_secs(1)).await;
            wire.die().await;
        }
    });
    let servers = fake.start().await;
    let (a, b) = tokio::join!(
        call(&servers, "fake__x", json!({})),
        call(&servers, "fake__x", json!({"die": true}))
    );
    assert!(a.unwrap_err().starts_with("Server \"fake\" closed the connection."));
    assert!(b.unwrap_err().starts_with("Server \"fake\" closed the connection."));
}

#[tokio::test(start_paused = true)]
async fn starts_in_a_row_are_spaced_and_the_first_answer_ends_that() {
    let fake = mortal();
    let servers = fake.start().await;
    let die = async || call(&servers, "fake__x", json!({"how": "die"})).await.unwrap_err();
    let fine = async || call(&servers, "fake__x", json!({})).await;
    die().await;
    assert!(die().await.starts_with("Server \"fake\" closed the connection."));
    assert_eq!(fake.starts(), 2);
    assert_eq!(
        fine().await.unwrap_err(),
        "Server \"fake\" does not work. It is started again by the first call after 1 s."
    );
    sleep(Duration::from_millis(1001)).await;
    die().await;
    assert_eq!(fake.starts(), 3);
    assert!(fine().await.unwrap_err().ends_with("after 2 s."));
    sleep(Duration::from_millis(2001)).await;
    assert_eq!(fine().await.unwrap().text, "fine");
    die().await;
    assert_eq!(fine().await.unwrap().text, "fine");
    assert_eq!(fake.starts(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_cannot_be_reached_again_says_so() {
    let fake = mortal();
    let servers = fake.start().await;
    call(&servers, "fake__x", json!({"how": "die"})).await.unwrap_err();
    *fake.up.lock().unwrap() = false;
    assert_eq!(
        call(&servers, "fake__x", json!({})).await.unwrap_err(),
        "Server \"fake\" cannot be reached: connection refused."
    );
    assert_eq!(servers.tools::<()>().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_is_no_message_is_passed_over() {
    let fake = mortal();
    let servers = fake.start().await;
    assert_eq!(call(&servers, "fake__x", json!({"how": "babble"})).await.unwrap().text, "fine");
    assert_eq!(fake.starts(), 1);
}

#[tokio::test(start_paused = true)]
async fn words_in_the_wrong_place_explain_an_end() {
    let fake = mortal();
    let servers = fake.start().await;
    let failed = call(&servers, "fake__x", json!({"how": "last words"})).await.unwrap_err();
    let said = "Server \"fake\" closed the connection ([31mout of disk). ";
    assert!(failed.starts_with(said), "{failed}");
}

#[tokio::test(start_paused = true)]
async fn a_line_without_end_costs_the_connection_and_no_more_memory() {
    let fake = mortal();
    let servers = fake.start().await;
    let failed = call(&servers, "fake__x", json!({"how": "flood"})).await.unwrap_err();
    assert!(failed.starts_with("Server \"fake\" sent a message of more than 16 MiB. "), "{failed}");
    assert_eq!(call(&servers, "fake__x", json!({})).await.unwrap().text, "fine");
    let large = call(&servers, "fake__x", json!({"how": "large"})).await.unwrap();
    assert_eq!(large.text.len(), 15 << 20);
}

#[tokio::test(start_paused = true)]
async fn a_dead_server_does_not_take_the_others_with_it() {
    let (dead, live) = (mortal(), mortal());
    *dead.up.lock().unwrap() = false;
    let (mut first, second) = (dead.config(), live.config());
    first.name = "dead".into();
    let servers = McpServers::start(vec![first, second], McpOptions::default()).await;
    let faults: Vec<_> = servers.faults().iter().map(ToString::to_string).collect();
    assert_eq!(faults, ["server \"dead\" cannot be reached: connection refused."]);
    assert_eq!(call(&servers, "fake__x", json!({})).await.unwrap().text, "fine");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_says_nothing_is_given_up() {
    let silent = Fake::new(&[], async |_, _| {});
    let mut config = silent.config();
    config.start_limit = Duration::from_secs(5);
    config.transport = toolloop_mcp::ServerTransport::Pipe(std::sync::Arc::new(|| {
        Box::pin(async {
            let (ours, theirs) = tokio::io::duplex(1024);
            tokio::spawn(async move {
                let _theirs = theirs;
                sleep(Duration::from_secs(1000)).await;
            });
            let (reader, writer) = tokio::io::split(ours);
            Ok(toolloop_mcp::Pipe { reader: Box::new(reader), writer: Box::new(writer) })
        })
    }));
    let servers = McpServers::start(vec![config], McpOptions::default()).await;
    assert_eq!(
        servers.faults()[0].to_string(),
        "server \"fake\" did not begin within 5s. Start it by hand to see why: a pipe."
    );
}
