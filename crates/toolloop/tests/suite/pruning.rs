//! `max_tool_turns`: which old tool turns a request no longer shows.

use insta::assert_snapshot;
use serde_json::json;
use toolloop::chat_loop::{ChatLoopConfig, LoopStep, chat_loop_with_tools};
use toolloop::tool::{ToolLoopConfig, TurnResult};
use toolloop::{
    ChatLoopExt, ChatMessage, ChatRole, ContentBlock, StreamEvent, ToolCall, ToolResult,
};

use super::support::{Sim, call, reply, requests, says, transcript};

#[tokio::test(start_paused = true)]
async fn a_request_shows_only_the_newest_turns() {
    let told = pruning(2, (1..=4).map(turn).chain([says("done")])).run().await;
    assert_snapshot!(requests(&told.model), @r#"
    -- request 1
    user: Go
    -- request 2
    user: Go
    assistant: c1 read({})
    tool: c1 ok: c1 ran
    -- request 3
    user: Go
    assistant: c1 read({})
    tool: c1 ok: c1 ran
    assistant: c2 read({})
    tool: c2 ok: c2 ran
    -- request 4
    user: Go
    assistant: c2 read({})
    tool: c2 ok: c2 ran
    assistant: c3 read({})
    tool: c3 ok: c3 ran
    -- request 5
    user: Go
    assistant: c3 read({})
    tool: c3 ok: c3 ran
    assistant: c4 read({})
    tool: c4 ok: c4 ran
    "#);
    let news: Vec<String> =
        told.story().lines().filter(|l| l.starts_with("pruned")).map(str::to_owned).collect();
    assert_eq!(news, ["pruned 1 turns, saving 4", "pruned 1 turns, saving 4"]);
}

#[tokio::test(start_paused = true)]
async fn the_conversation_keeps_them() {
    let told = pruning(1, (1..=3).map(turn).chain([says("done")])).run().await;
    assert_snapshot!(told.transcript(), @r#"
    user: Go
    assistant: c1 read({})
    tool: c1 ok: c1 ran
    assistant: c2 read({})
    tool: c2 ok: c2 ran
    assistant: c3 read({})
    tool: c3 ok: c3 ran
    assistant: done
    "#);
}

/// One reply of several calls is one turn, and what was said between turns is none.
#[tokio::test(start_paused = true)]
async fn what_was_said_between_turns_stays() {
    let mut sim = pruning(
        1,
        [reply([call("a", "read", json!({})), call("b", "write", json!({}))]), says("done")],
    );
    let old = ToolCall { id: "old".into(), name: "read".into(), arguments: json!({}) };
    let mut asked = ChatMessage::assistant("let me look");
    asked.content.push(toolloop::ContentBlock::ToolCall(old));
    sim.params.messages = vec![
        ChatMessage::user("first"),
        asked,
        ChatMessage::tool_result("old", "seen"),
        ChatMessage::assistant("I saw it"),
        ChatMessage::user("second"),
    ];
    let told = sim.run().await;
    let sent = told.model.recorded_calls();
    assert_snapshot!(transcript(&sent[1].messages), @r#"
    user: first
    assistant: I saw it
    user: second
    assistant: a read({}) | b write({})
    tool: a ok: a ran
    tool: b ok: b ran
    "#);
}

#[tokio::test(start_paused = true)]
async fn the_newest_turn_stays_in_any_case() {
    let told = pruning(0, [turn(1), turn(2), says("done")]).run().await;
    let sent = told.model.recorded_calls();
    assert_snapshot!(transcript(&sent[2].messages), @r#"
    user: Go
    assistant: c2 read({})
    tool: c2 ok: c2 ran
    "#);
}

/// A caller edits the whole conversation. What is hidden stays hidden while it is as it was.
#[tokio::test(start_paused = true)]
async fn an_edit_sees_all_and_shows_only_what_it_changes() {
    let sim = pruning(1, (1..=5).map(turn).chain([says("done")]));
    let mut handle = sim.handle();
    let mut seen = Vec::new();
    loop {
        match handle.next_turn().await {
            TurnResult::Yielded(mut turn) => {
                let number = turn.iteration;
                let messages = turn.messages_mut();
                seen.push(messages.len());
                match number {
                    3 => messages.push(ChatMessage::user("go on")),
                    4 => messages[4] = ChatMessage::tool_result("c2", "edited"),
                    _ => {}
                }
                turn.continue_loop();
            }
            TurnResult::Completed(_) => break,
            TurnResult::Error(failed) => panic!("{}", failed.error),
        }
    }
    assert_eq!(seen, [3, 5, 7, 10, 12]);
    let sent = sim.model.recorded_calls();
    assert_snapshot!(transcript(&sent[3].messages), @r#"
    user: Go
    assistant: c3 read({})
    tool: c3 ok: c3 ran
    user: go on
    "#);
    assert_snapshot!(transcript(&sent[5].messages), @r#"
    user: Go
    user: go on
    assistant: c5 read({})
    tool: c5 ok: c5 ran
    "#);
    assert_snapshot!(transcript(&handle.messages()[4..6]), @r#"
    tool: c2 ok: edited
    assistant: c3 read({})
    "#);
}

#[tokio::test]
async fn a_chat_loop_prunes_as_well() {
    let sim = pruning(1, [turn(1), turn(2), says("done")]);
    let config = ChatLoopConfig::new()
        .with_tool(
            "read",
            |call: ToolCall| async move { Ok::<_, String>(format!("{} ran", call.id)) },
        )
        .with_max_tool_turns(1);
    let (asked, tools) = (vec![ChatMessage::user("Go")], sim.tools.definitions());
    let told = chat_loop_with_tools(&*sim.model, asked, tools, config).await.unwrap();
    assert_eq!((told.content.as_str(), told.rounds), ("done", 2));
    let sent = sim.model.recorded_calls();
    assert_snapshot!(transcript(&sent[2].messages), @r#"
    user: Go
    assistant: c2 read({})
    tool: c2 ok: c2 ran
    "#);
}

#[tokio::test]
async fn a_chat_loop_of_the_callers_prunes_as_well() {
    let sim = pruning(1, [turn(1), turn(2), says("done")]);
    // What came before the loop counts as well.
    let before = |n: u32| {
        let content = vec![ContentBlock::ToolCall(ToolCall {
            id: format!("b{n}"),
            name: "read".into(),
            arguments: json!({}),
        })];
        let call = ChatMessage { role: ChatRole::Assistant, content };
        [call, ChatMessage::tool_result(format!("b{n}"), "old")]
    };
    let asked = [ChatMessage::user("Go")].into_iter().chain(before(1)).chain(before(2)).collect();
    let mut steps = sim.model.chat_loop(asked, sim.tools.definitions()).with_max_tool_turns(1);
    while let Some(step) = steps.next().await {
        if let LoopStep::ToolCallsRequested { tool_calls, .. } = step.unwrap() {
            let results = tool_calls.into_iter().map(|call| ToolResult {
                content: format!("{} ran", call.id).into(),
                tool_call_id: call.id,
                is_error: false,
            });
            steps.submit_tool_results(results.collect()).unwrap();
        }
    }
    let sent = sim.model.recorded_calls();
    assert_snapshot!(transcript(&sent[0].messages), @r#"
    user: Go
    assistant: b2 read({})
    tool: b2 ok: old
    "#);
    assert_snapshot!(transcript(&sent[2].messages), @r#"
    user: Go
    assistant: c2 read({})
    tool: c2 ok: c2 ran
    "#);
    assert_eq!(steps.messages().len(), 10);
}

fn turn(n: u32) -> Vec<StreamEvent> {
    reply([call(&format!("c{n}"), "read", json!({}))])
}

fn pruning(turns: u32, replies: impl IntoIterator<Item = Vec<StreamEvent>>) -> Sim {
    Sim::new(replies)
        .config(ToolLoopConfig { max_tool_turns: Some(turns), ..ToolLoopConfig::default() })
}
