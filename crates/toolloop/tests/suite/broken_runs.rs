//! A fault at every event of a reply, in a run: it ends in a typed error, what came is kept, no
//! call of a cut reply runs, and the strict server takes what is said next.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout};
use toolloop::tool::TurnResult;
use toolloop::{ChatMessage, ChatRole, ContentBlock, LlmError};
use toolloop_fake::{FakeServer, Fault, Reply, Script};

use super::support::broken::{Api, reply};
use super::support::every_api::every_api;
use super::support::{Sim, act};

#[tokio::test(start_paused = true)]
async fn a_run_outlives_a_reply_that_breaks_anywhere() {
    for api in Api::all().await {
        let cut = runs(&api, Fault::CutAtEvent).await;
        let texts: Vec<_> = cut.iter().map(|run| run.text.as_str()).collect();
        assert!(texts.is_sorted_by_key(|text| text.len()), "{}: {texts:?}", api.name);
        assert_eq!((texts[0], texts[api.events - 1]), ("", "one two three"), "{}", api.name);
        for run in &cut {
            let is_cut = matches!(run.error, None | Some(LlmError::StreamInterrupted { .. }));
            assert!(is_cut, "{}: {run:?}", api.name);
        }
        for run in runs(&api, Fault::MalformedJsonAtEvent).await {
            let is_told = matches!(run.error, Some(LlmError::ResponseFormat { .. }));
            assert!(is_told, "{}: {run:?}", api.name);
        }
    }
}

/// A server that falls silent is given up at the same moment whether it sends pings or not.
#[tokio::test(start_paused = true)]
async fn a_run_outlives_a_reply_that_stalls_anywhere() {
    let stall = |ping_every| move |event| Fault::StallAtEvent { event, ping_every };
    for api in Api::all().await {
        let cut = runs(&api, Fault::CutAtEvent).await;
        let silent = runs(&api, stall(None)).await;
        let pinging = runs(&api, stall(Some(Duration::from_secs(7)))).await;
        for ((silent, pinging), cut) in silent.iter().zip(&pinging).zip(&cut) {
            for run in [silent, pinging] {
                let at = format!("{}: {run:?}", api.name);
                assert_eq!(
                    (&run.text, run.error.is_none()),
                    (&cut.text, cut.error.is_none()),
                    "{at}"
                );
                match &run.error {
                    // Nothing is missing but the end mark, and that is not waited for long.
                    None => assert!(run.seconds <= 5, "{at}"),
                    Some(LlmError::StreamInterrupted { message }) => {
                        assert!(message.contains("(keep-alives are no content)"), "{at}");
                        assert!([60, 120].contains(&run.seconds), "{at}");
                    }
                    Some(LlmError::Timeout { elapsed_ms }) => {
                        assert_eq!((&*run.text, elapsed_ms / 1000), ("", run.seconds), "{at}");
                    }
                    Some(other) => panic!("{at}: {other}"),
                }
            }
            assert_eq!(silent.seconds, pinging.seconds, "{}", api.name);
        }
    }
}

/// What is left of a run.
#[derive(Debug)]
struct Run {
    /// What the broken reply has left in the conversation.
    text: String,
    /// `None`: the reply was whole.
    error: Option<LlmError>,
    seconds: u64,
}

/// A run for each event at which the reply can have the fault, and behind it another with the
/// conversation that it left.
async fn runs(api: &Api, fault: impl Fn(usize) -> Fault) -> Vec<Run> {
    let broken = |event| [reply().fault(fault(event)), Reply::text("Done.")];
    let server = FakeServer::start_here(Script::new((0..api.events).flat_map(broken)));
    let (_, provider) = every_api(&server).swap_remove(api.at);
    let mut runs = Vec::new();
    for _ in 0..api.events {
        let mut sim = Sim::new([]);
        sim.other_model = Some(Arc::clone(&provider));
        sim.tools.register(act("add", &sim.ledger));
        let started = Instant::now();
        let mut handle = sim.handle();
        let error = loop {
            let turn = timeout(Duration::from_secs(3600), handle.next_turn());
            match turn.await.expect("a silent server is given up") {
                TurnResult::Yielded(turn) => turn.continue_loop(),
                TurnResult::Completed(done) => {
                    assert_eq!(done.response.text(), Some("Done."), "{}", api.name);
                    break None;
                }
                TurnResult::Error(failed) => break Some(failed.error),
            }
        };
        let seconds = started.elapsed().as_secs();
        let mut messages = handle.messages();
        let calls = messages.iter().flat_map(|message| &message.content);
        let calls = calls.filter(|block| matches!(block, ContentBlock::ToolCall(_))).count();
        let (expected, ran) = match error {
            Some(_) => ((0, 0), sim.ledger.lines().len()),
            None => ((2, 4), sim.ledger.lines().len()),
        };
        assert_eq!((calls, ran), expected, "{}: {:?}", api.name, sim.ledger.lines());
        let text = messages.get(1).map_or_else(String::new, text_of);
        if error.is_some() {
            messages.push(ChatMessage::user("Go on"));
            sim.params.messages = messages;
            let next = sim.run().await;
            assert_eq!(next.result().response.text(), Some("Done."), "{}", api.name);
        }
        runs.push(Run { text, error, seconds });
    }
    runs
}

fn text_of(message: &ChatMessage) -> String {
    assert_eq!(message.role, ChatRole::Assistant);
    let texts = message.content.iter().filter_map(|block| match block {
        ContentBlock::Text(text) => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}
