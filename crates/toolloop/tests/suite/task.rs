//! A sub-agent as a tool: its answer, its limits, and what of the outer loop holds for it.

use std::sync::Arc;
use std::time::Duration;

use insta::assert_snapshot;
use serde_json::json;
use toolloop::mock::MockProvider;
use toolloop::tool::{
    CancellationToken, EffectClass, LoopContext, LoopDepth, TaskTool, ToolHandler, ToolLoopConfig,
    ToolRegistry, tool_loop,
};
use toolloop::{ChatMessage, ChatParams, StreamEvent, ToolCall, Usage};

use super::support::{Ledger, Sim, act, call, reply, requests, says, text, transcript};

/// A loop with the tool `task` beside `read`, whose sub-agent gives these replies.
fn with_sub_agent(
    replies: impl IntoIterator<Item = Vec<StreamEvent>>,
    sub: impl IntoIterator<Item = Vec<StreamEvent>>,
    config: ToolLoopConfig,
) -> (Sim, Arc<MockProvider>) {
    let mut sim = Sim::new(replies);
    let model = Arc::new(MockProvider::default());
    for reply in sub {
        model.queue_stream(reply);
    }
    let task = TaskTool::new(model.clone(), sim.tools.only(["read"])).with_config(config);
    sim.tools.register(task);
    (sim, model)
}

fn delegate(id: &str) -> StreamEvent {
    call(id, "task", json!({"task": "Find it"}))
}

#[tokio::test(start_paused = true)]
async fn only_the_answer_comes_back_and_all_tokens_count_once() {
    let (sim, sub) = with_sub_agent(
        [reply([delegate("a")]), says("Found.")],
        [
            reply([text("Looking."), call("s", "read", json!({"say": "line 7"}))]),
            says("In line 7."),
        ],
        ToolLoopConfig::default(),
    );
    let told = sim.run().await;
    assert_snapshot!(told.transcript(), @r#"
    user: Go
    assistant: a task({"task":"Find it"})
    tool: a ok: In line 7.
    assistant: Found.
    "#);
    assert_snapshot!(requests(&sub), @r#"
    -- request 1
    user: Find it
    -- request 2
    user: Find it
    assistant: Looking. | s read({"say":"line 7"})
    tool: s ok: line 7
    "#);
    let tokens = Usage { input_tokens: 40, output_tokens: 4, ..Usage::default() };
    assert_eq!(told.result().total_usage, tokens);
    assert!(told.story().contains(r#"progress a: read {"say":"line 7"}"#), "{}", told.story());
    let names: Vec<_> =
        sub.recorded_calls()[0].tools.iter().flatten().map(|t| t.name.clone()).collect();
    assert_eq!(names, ["read"]);
}

#[tokio::test(start_paused = true)]
async fn its_limits_end_it_and_what_it_said_is_kept() {
    let looks = || reply([text("So far: nothing."), call("s", "read", json!({"ms": 100}))]);
    let limited = |config| {
        let (sim, _) = with_sub_agent(
            [reply([delegate("a")]), says("Fine.")],
            [looks(), looks(), says("never")],
            config,
        );
        async move { sim.run().await.transcript() }
    };
    let two = ToolLoopConfig { max_iterations: 2, ..ToolLoopConfig::default() };
    assert_snapshot!(limited(two).await, @r#"
    user: Go
    assistant: a task({"task":"Find it"})
    tool: a ok: So far: nothing.
    [the sub-agent did not get to its end: it reached its limit of 2 iterations]
    assistant: Fine.
    "#);
    let limit = Some(Duration::from_millis(150));
    let short = ToolLoopConfig { timeout: limit, ..ToolLoopConfig::default() };
    assert_snapshot!(limited(short).await, @r#"
    user: Go
    assistant: a task({"task":"Find it"})
    tool: a ok: So far: nothing.
    [the sub-agent did not get to its end: its time of 150ms was over]
    assistant: Fine.
    "#);
}

#[tokio::test(start_paused = true)]
async fn a_sub_agent_without_an_answer_is_a_failed_call() {
    let hangs = || reply([call("s", "read", json!({"hang": true}))]);
    let limit = Some(Duration::from_secs(1));
    let (sim, _) = with_sub_agent(
        [reply([delegate("a"), delegate("b")]), says("Fine.")],
        [hangs(), vec![text("Half")]],
        ToolLoopConfig { timeout: limit, ..ToolLoopConfig::default() },
    );
    assert_snapshot!(sim.run().await.transcript(), @r#"
    user: Go
    assistant: a task({"task":"Find it"}) | b task({"task":"Find it"})
    tool: a failed: The sub-agent gave no answer: its time of 1s was over. Give it a smaller task, or do it yourself.
    tool: b failed: The sub-agent's model failed: the reply broke off: the stream ended without its end marker
    assistant: Fine.
    "#);
}

#[tokio::test(start_paused = true)]
async fn clock_and_cancel_of_the_outer_loop_end_it_and_its_tokens_count() {
    for is_cancelled in [false, true] {
        let cancel = CancellationToken::new();
        let limit = if is_cancelled { None } else { Some(Duration::from_secs(1)) };
        let config = ToolLoopConfig {
            timeout: limit,
            cancel: Some(cancel.clone()),
            ..ToolLoopConfig::default()
        };
        let (sim, _) = with_sub_agent(
            [reply([delegate("a")])],
            [reply([call("s", "read", json!({"hang": true}))])],
            ToolLoopConfig::default(),
        );
        let ends = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            if is_cancelled {
                cancel.cancel();
            }
        };
        let (told, ()) = tokio::join!(sim.config(config).run(), ends);
        assert_eq!(told.took, Duration::from_secs(1));
        assert_eq!(told.ledger.fate("s").as_deref(), Some("cut"));
        assert_eq!((told.result().total_usage.total(), told.result().messages.len()), (22, 3));
    }
}

#[tokio::test(start_paused = true)]
async fn depth_is_that_of_the_context() {
    let model = Arc::new(MockProvider::default());
    model.queue_stream(reply([delegate("a")]));
    model.queue_stream(says("Done myself."));
    let sub = Arc::new(MockProvider::default());
    let mut tools = ToolRegistry::<LoopContext>::new();
    tools.register(TaskTool::new(sub.clone(), ToolRegistry::new()));
    let params = ChatParams { messages: vec![ChatMessage::user("Go")], ..ChatParams::default() };
    let ctx = LoopContext::empty().with_depth(2);
    let result = tool_loop(&*model, &tools, params, ToolLoopConfig::default(), &ctx).await.unwrap();
    assert_snapshot!(transcript(&result.messages), @r#"
    user: Go
    assistant: a task({"task":"Find it"})
    tool: a failed: Sub-agents are nested 3 deep at most, and this is the deepest. Do the task yourself.
    assistant: Done myself.
    "#);
    assert!(sub.recorded_calls().is_empty());
}

#[tokio::test]
async fn a_sub_agent_is_never_given_itself() {
    let model = Arc::new(MockProvider::default());
    let mut tools: ToolRegistry = ToolRegistry::new();
    tools.register(act("read", &Ledger::default()));
    tools.register(TaskTool::new(model.clone(), tools.clone()));
    tools.register(TaskTool::new(model.clone(), tools.clone()));
    model.queue_stream(says("Yes."));
    let input = json!({"task": "Are you alone?"});
    let asked = ToolCall { id: "a".into(), name: "task".into(), arguments: input };
    assert_eq!(tools.execute(&asked, &()).await.content, "Yes.");
    let names: Vec<_> =
        model.recorded_calls()[0].tools.iter().flatten().map(|t| t.name.clone()).collect();
    assert_eq!(names, ["read"]);
}

#[test]
fn it_is_read_only_where_its_tools_are() {
    let model = || Arc::new(MockProvider::default());
    let class = |tools: ToolRegistry| TaskTool::new(model(), tools).effect_class();
    assert_eq!(class(ToolRegistry::new()), EffectClass::ReadOnly);
    let mut tools = ToolRegistry::new();
    tools.register(act("read", &Ledger::default()));
    assert_eq!(class(tools), EffectClass::Once);
}
