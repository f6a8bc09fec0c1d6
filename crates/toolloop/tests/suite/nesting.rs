//! Loops in the tools of loops: depth, and how cancel, clock and usage flow between them.

use std::sync::Arc;
use std::time::Duration;

use insta::assert_snapshot;
use serde_json::{Value, json};
use tokio::time::Instant;
use toolloop::mock::MockProvider;
use toolloop::provider::BoxFuture;
use toolloop::tool::{
    CancellationToken, LoopContext, LoopDepth, ToolLoopConfig, ToolRegistry, ToolRetryConfig,
    tool_fn, tool_fn_with_ctx, tool_loop,
};
use toolloop::{
    ChatMessage, ChatParams, JsonSchema, LlmError, StreamEvent, ToolDefinition, ToolLoopResult,
    Usage, UsageSource,
};

use super::support::{Ledger, call, reply, says, text, transcript};

type Ctx = LoopContext<Ledger>;

/// A loop with one tool, `deeper`, that opens the next loop of the row.
#[derive(Clone)]
struct Level {
    model: Arc<MockProvider>,
    config: ToolLoopConfig,
    retry: Option<ToolRetryConfig>,
}

#[tokio::test(start_paused = true)]
async fn three_loops_may_be_open_and_no_fourth() {
    let levels = [
        level([reply([call("a", "deeper", json!({}))]), says("top")]),
        level([reply([call("b", "deeper", json!({}))]), says("middle")]),
        level([reply([call("c", "deeper", json!({}))]), says("bottom")]),
        level([says("never")]),
    ];
    let ledger = Ledger::default();
    let result = run(&levels, &ledger, 0).await.unwrap();
    assert_snapshot!(ledger.lines().join("\n"), @r"
    0 depth 1 begins
    0 depth 2 begins
    0 depth 3 begins
    0 depth 3 ends
    0 depth 2 ends
    0 depth 1 ends
    ");
    assert_snapshot!(transcript(&result.messages), @r"
    user: Go
    assistant: a deeper({})
    tool: a ok: middle
    assistant: top
    ");
    assert!(levels[3].model.recorded_calls().is_empty());
}

#[tokio::test(start_paused = true)]
async fn depth_is_checked_before_it_grows() {
    for (max_depth, depth, may_open) in [
        (Some(3), 2, true),
        (Some(3), 3, false),
        (Some(0), 0, false),
        (Some(1), 0, true),
        (None, 1000, true),
    ] {
        let mut top = level([says("open")]);
        top.config.max_depth = max_depth;
        let result = run(&[top], &Ledger::default(), depth).await;
        match result {
            Ok(_) => assert!(may_open, "{max_depth:?} {depth}"),
            Err(LlmError::MaxDepthExceeded { current, limit }) => {
                assert_eq!((current, Some(limit), false), (depth, max_depth, may_open));
            }
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
fn the_unit_context_knows_no_depth() {
    assert_eq!(().loop_depth(), 0);
    let () = ().with_depth(9);
    assert_eq!(LoopContext::empty().with_depth(2).loop_depth(), 2);
    let context = LoopContext::new("state").with_depth(1);
    assert_eq!((context.state, context.clone().loop_depth()), ("state", 1));
}

#[tokio::test(start_paused = true)]
async fn tokens_of_all_levels_are_counted_once() {
    let levels = [
        level([
            // Two at the same time.
            reply([call("a", "deeper", json!({})), call("b", "deeper", json!({}))]),
            says("top"),
        ]),
        level([
            reply([call("c", "deeper", json!({}))]),
            reply([call("d", "deeper", json!({}))]),
            says("middle"),
            says("middle"),
        ]),
        level([says("bottom"), says("bottom")]),
    ];
    let result = run(&levels, &Ledger::default(), 0).await.unwrap();
    // Two at the top, four in the middle, two at the bottom.
    assert_eq!(result.total_usage, tokens(8));
}

#[tokio::test(start_paused = true)]
async fn tokens_of_a_loop_that_failed_are_counted() {
    let levels = [
        level([reply([call("a", "deeper", json!({}))]), says("top")]),
        level([
            reply([call("b", "deeper", json!({}))]),
            // Breaks off after its tokens were told.
            vec![text("Half"), StreamEvent::Usage(tokens(5))],
        ]),
        level([says("bottom")]),
    ];
    let result = run(&levels, &Ledger::default(), 0).await.unwrap();
    assert_eq!(result.total_usage, tokens(2 + 1 + 5 + 1));
    assert_snapshot!(transcript(&result.messages), @r"
    user: Go
    assistant: a deeper({})
    tool: a failed: the reply broke off: the stream ended without its end marker
    assistant: top
    ");
}

#[tokio::test(start_paused = true)]
async fn tokens_of_every_try_of_a_tool_are_counted() {
    let mut top = level([reply([call("a", "deeper", json!({}))]), says("top")]);
    top.retry = Some(ToolRetryConfig { max_retries: 2, ..ToolRetryConfig::default() });
    let below = level([]);
    for _ in 0..2 {
        below.model.queue_stream(vec![StreamEvent::Usage(tokens(3))]);
    }
    below.model.queue_stream(says("at last"));
    let result = run(&[top, below], &Ledger::default(), 0).await.unwrap();
    // The tries that broke off had told what was read, and nobody knows what was written.
    let source = UsageSource::Estimated;
    assert_eq!(result.total_usage, Usage { source, ..tokens(2 + 3 + 3 + 1) });
    assert_snapshot!(transcript(&result.messages), @r"
    user: Go
    assistant: a deeper({})
    tool: a ok: at last
    assistant: top
    ");
}

#[tokio::test(start_paused = true)]
async fn a_cancel_cuts_all_levels_and_their_tokens_count_as_far_as_known() {
    let cancel = CancellationToken::new();
    let levels = three_levels_of_which_the_last_hangs();
    let mut levels = levels.to_vec();
    levels[0].config.cancel = Some(cancel.clone());
    let ledger = Ledger::default();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(40)).await;
        cancel.cancel();
    });
    let started = Instant::now();
    let result = run(&levels, &ledger, 0).await.unwrap();
    assert_eq!(started.elapsed(), Duration::from_millis(40));
    // A reply at each level, and the one that was cut.
    assert_eq!(result.total_usage, tokens(3) + cut_at_the_bottom());
    assert_snapshot!(ledger.lines().join("\n"), @r"
    0 depth 1 begins
    0 depth 2 begins
    40 depth 2 ends
    40 depth 1 ends
    ");
    assert_snapshot!(transcript(&result.messages), @r"
    user: Go
    assistant: a deeper({})
    tool: a failed: This call was cut off while it ran: the run was cancelled. It may have taken effect in part; check before repeating it.
    ");
}

#[tokio::test(start_paused = true)]
async fn the_clock_of_the_outer_loop_is_that_of_the_inner_ones() {
    let mut levels = three_levels_of_which_the_last_hangs().to_vec();
    levels[0].config.timeout = Some(Duration::from_millis(300));
    levels[1].config.timeout = Some(Duration::from_secs(3600));
    let ledger = Ledger::default();
    let started = Instant::now();
    let result = run(&levels, &ledger, 0).await.unwrap();
    assert_eq!(started.elapsed(), Duration::from_millis(300));
    assert_eq!(result.total_usage, tokens(3) + cut_at_the_bottom());
    assert_snapshot!(ledger.lines().join("\n"), @r"
    0 depth 1 begins
    0 depth 2 begins
    300 depth 2 ends
    300 depth 1 ends
    ");
    assert_snapshot!(transcript(&result.messages), @r"
    user: Go
    assistant: a deeper({})
    tool: a failed: This call was cut off while it ran: the run reached its time limit of 300ms. It may have taken effect in part; check before repeating it.
    ");
}

#[tokio::test(start_paused = true)]
async fn the_clock_of_an_inner_loop_is_its_own() {
    let mut levels = three_levels_of_which_the_last_hangs().to_vec();
    levels[0].model.queue_stream(says("top"));
    levels[1].config.timeout = Some(Duration::from_millis(300));
    let ledger = Ledger::default();
    let result = run(&levels, &ledger, 0).await.unwrap();
    assert_eq!(result.total_usage, tokens(4) + cut_at_the_bottom());
    assert_snapshot!(ledger.lines().join("\n"), @r"
    0 depth 1 begins
    0 depth 2 begins
    300 depth 2 ends
    300 depth 1 ends
    ");
    assert_snapshot!(transcript(&result.messages), @r"
    user: Go
    assistant: a deeper({})
    tool: a ok: nothing
    assistant: top
    ");
}

/// The third one's second model call hangs.
fn three_levels_of_which_the_last_hangs() -> [Level; 3] {
    let levels = [
        level([reply([call("a", "deeper", json!({}))])]),
        level([reply([call("b", "deeper", json!({}))])]),
        level([reply([call("c", "look", json!({}))])]),
    ];
    levels[2].model.queue_hanging_stream(vec![text("As far as I")]);
    levels
}

/// The tokens of its second model call, which had told nothing of them.
fn cut_at_the_bottom() -> Usage {
    let tools = [r#"look{"type":"object"}"#, r#"deeper{"type":"object"}"#].concat();
    let asked = ["Go", "look{}", "seen", &tools].map(|text| text.len().div_ceil(4) as u64);
    Usage {
        input_tokens: asked.iter().sum(),
        output_tokens: "As far as I".len().div_ceil(4) as u64,
        source: UsageSource::Estimated,
        ..Usage::default()
    }
}

fn level(replies: impl IntoIterator<Item = Vec<StreamEvent>>) -> Level {
    let model = Arc::new(MockProvider::default());
    for reply in replies {
        model.queue_stream(reply);
    }
    Level { model, config: ToolLoopConfig::default(), retry: None }
}

/// Runs the first level at this depth; each notes in the ledger that it is open.
async fn run(levels: &[Level], ledger: &Ledger, depth: u32) -> Result<ToolLoopResult, LlmError> {
    open(levels.to_vec(), LoopContext::new(ledger.clone()).with_depth(depth)).await
}

/// Boxed, because it leads to itself.
fn open(mut levels: Vec<Level>, ctx: Ctx) -> BoxFuture<'static, Result<ToolLoopResult, LlmError>> {
    let Level { model, config, retry } = levels.remove(0);
    let mut tools: ToolRegistry<Ctx> = ToolRegistry::new();
    tools.register(tool_fn(definition("look", None), |_: Value| async { Ok("seen") }));
    tools.register(tool_fn_with_ctx(definition("deeper", retry), move |_: Value, ctx: &Ctx| {
        let (levels, ctx) = (levels.clone(), ctx.clone());
        async move {
            let _closing = Closing(ctx.clone());
            ctx.state.note(format_args!("depth {} begins", ctx.loop_depth()));
            let result = open(levels, ctx).await.map_err(|error| error.to_string())?;
            Ok(result.response.text().unwrap_or("nothing").to_owned())
        }
    }));
    let params = ChatParams { messages: vec![ChatMessage::user("Go")], ..ChatParams::default() };
    Box::pin(async move { tool_loop(&*model, &tools, params, config, &ctx).await })
}

fn definition(name: &str, retry: Option<ToolRetryConfig>) -> ToolDefinition {
    let parameters = JsonSchema::new(json!({"type": "object"}));
    ToolDefinition { name: name.into(), description: String::new(), parameters, retry }
}

/// Notes the end of a level, however it comes.
struct Closing(Ctx);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.state.note(format_args!("depth {} ends", self.0.loop_depth()));
    }
}

/// The tokens of so many scripted replies.
fn tokens(replies: u64) -> Usage {
    Usage { input_tokens: 10 * replies, output_tokens: replies, ..Usage::default() }
}
