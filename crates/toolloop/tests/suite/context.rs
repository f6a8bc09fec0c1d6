//! `ContextWindow`: messages under a budget of tokens.

use serde_json::json;
use toolloop::context::{ContextWindow, Overfull, Weight, message_tokens};
use toolloop::{ChatMessage, ChatRole, ContentBlock, ToolCall};
use toolloop_core::transcript::keeps_grammar;

use super::support::transcript;

#[test]
fn the_newest_fit_and_pairs_stay_together() {
    let mut window = ContextWindow::new(50, 20);
    window.push(ChatMessage::system("be brief"), 4);
    window.push(ChatMessage::user("old"), 10);
    window.push(calls(&["a", "b"]), 5);
    window.push(ChatMessage::tool_result("a", "1"), 5);
    window.push(ChatMessage::tool_result("b", "2"), 5);
    window.push(ChatMessage::user("new"), 8);
    assert_eq!((window.total_tokens(), window.available(), window.len()), (37, 0, 6));
    let fitting = window.fit().unwrap();
    let expected =
        "system: be brief\nassistant: a t({}) | b t({})\ntool: a ok: 1\ntool: b ok: 2\nuser: new";
    assert_eq!(transcript(&fitting), expected);
    // One token less, and the pair goes as a whole.
    let mut smaller = ContextWindow::new(46, 20);
    window.iter().zip([4, 10, 5, 5, 5, 8]).for_each(|(message, tokens)| {
        smaller.push(message.clone(), tokens);
    });
    assert_eq!(transcript(&smaller.fit().unwrap()), "system: be brief\nuser: new");
}

#[test]
fn every_budget_gives_a_valid_conversation_that_fits() {
    for budget in 0..120 {
        let mut window = ContextWindow::new(budget, 0);
        for n in 0..6 {
            let id = format!("c{n}");
            window.push_estimated(ChatMessage::user("x".repeat(n * 7)));
            window.push_estimated(calls(&[&id]));
            window.push_estimated(ChatMessage::tool_result(id, "y".repeat(n * 5)));
        }
        let fitting = window.fit().unwrap();
        assert!(keeps_grammar(
            &fitting.iter().filter(|m| !m.is_empty()).cloned().collect::<Vec<_>>()
        ));
        assert!(fitting.iter().map(message_tokens).sum::<u32>() <= budget);
    }
}

#[test]
fn heavier_messages_stay_longer() {
    let mut window = ContextWindow::new(10, 0);
    window.push_weighted(ChatMessage::user("keep"), 4, Weight::High);
    window.push_weighted(ChatMessage::user("filler"), 4, Weight::Low);
    window.push(ChatMessage::user("latest"), 4);
    assert_eq!(transcript(&window.fit().unwrap()), "user: keep\nuser: latest");
}

#[test]
fn what_is_required_must_fit() {
    let mut window = ContextWindow::new(10, 4);
    window.push(ChatMessage::user("long"), 9).protect_recent(1);
    let error = window.fit().unwrap_err();
    assert_eq!(error, Overfull { required: 9, budget: 6 });
    assert!(error.to_string().contains("reserve less for the reply"), "{error}");
    assert_eq!(ContextWindow::new(4, 9).budget(), 0);
}

#[test]
fn compacting_takes_out_whole_turns() {
    let mut window = ContextWindow::new(8, 0);
    window.push(ChatMessage::system("be brief"), 1);
    window.push(ChatMessage::user("q"), 1);
    window.push(calls(&["a"]), 1);
    window.push(ChatMessage::tool_result("a", "1"), 1);
    // Protecting a result protects its call.
    window.protect_recent(1);
    assert!(!window.needs_compaction(0.5) && window.needs_compaction(0.4));
    assert_eq!(transcript(&window.compact()), "user: q");
    assert_eq!(window.total_tokens(), 3);
    let left: Vec<ChatMessage> = window.iter().cloned().collect();
    assert_eq!(transcript(&left), "system: be brief\nassistant: a t({})\ntool: a ok: 1");
}

fn calls(ids: &[&str]) -> ChatMessage {
    let call = |id: &&str| {
        let (id, name) = ((*id).to_owned(), "t".to_owned());
        ContentBlock::ToolCall(ToolCall { id, name, arguments: json!({}) })
    };
    ChatMessage { role: ChatRole::Assistant, content: ids.iter().map(call).collect() }
}
