//! `masking` and `force_mask_iterations`: what later requests show of old results.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use insta::assert_snapshot;
use serde_json::json;
use toolloop::StreamEvent;
use toolloop::tool::{ObservationMaskingConfig, ToolLoopConfig, tool_fn};

use super::support::{Sim, act, call, reply, requests, says, transcript};

#[tokio::test(start_paused = true)]
async fn a_result_is_old_after_two_more_iterations() {
    let told = masking((1..=5).map(|n| reply([long(n)])).chain([says("done")])).run().await;
    // Before call 5, results 1 and 2 are masked, 3 and 4 whole.
    assert_snapshot!(requests(&told.model), @r#"
    -- request 1
    user: Go
    -- request 2
    user: Go
    assistant: c1 read({"say… (3516 bytes)
    tool: c1 ok: long 1 lon… (3500 bytes)
    -- request 3
    user: Go
    assistant: c1 read({"say… (3516 bytes)
    tool: c1 ok: long 1 lon… (3500 bytes)
    assistant: c2 read({"say… (3516 bytes)
    tool: c2 ok: long 2 lon… (3500 bytes)
    -- request 4
    user: Go
    assistant: c1 read({"say… (3516 bytes)
    tool: c1 ok: [Masked — read result from iteration 1, 875 tokens. Use result_cache tool if available, or re-invoke tool.]
    assistant: c2 read({"say… (3516 bytes)
    tool: c2 ok: long 2 lon… (3500 bytes)
    assistant: c3 read({"say… (3516 bytes)
    tool: c3 ok: long 3 lon… (3500 bytes)
    -- request 5
    user: Go
    assistant: c1 read({"say… (3516 bytes)
    tool: c1 ok: [Masked — read result from iteration 1, 875 tokens. Use result_cache tool if available, or re-invoke tool.]
    assistant: c2 read({"say… (3516 bytes)
    tool: c2 ok: [Masked — read result from iteration 2, 875 tokens. Use result_cache tool if available, or re-invoke tool.]
    assistant: c3 read({"say… (3516 bytes)
    tool: c3 ok: long 3 lon… (3500 bytes)
    assistant: c4 read({"say… (3516 bytes)
    tool: c4 ok: long 4 lon… (3500 bytes)
    -- request 6
    user: Go
    assistant: c1 read({"say… (3516 bytes)
    tool: c1 ok: [Masked — read result from iteration 1, 875 tokens. Use result_cache tool if available, or re-invoke tool.]
    assistant: c2 read({"say… (3516 bytes)
    tool: c2 ok: [Masked — read result from iteration 2, 875 tokens. Use result_cache tool if available, or re-invoke tool.]
    assistant: c3 read({"say… (3516 bytes)
    tool: c3 ok: [Masked — read result from iteration 3, 875 tokens. Use result_cache tool if available, or re-invoke tool.]
    assistant: c4 read({"say… (3516 bytes)
    tool: c4 ok: long 4 lon… (3500 bytes)
    assistant: c5 read({"say… (3516 bytes)
    tool: c5 ok: long 5 lon… (3500 bytes)
    "#);
    assert_snapshot!(told.story(), @r#"
    iteration 1, messages 1
    call 0: c1 read({"say… (3516 bytes)
    usage 10 in · 1 out
    start c1 read({"say":"lo… (3510 bytes))
    end c1 ok: long 1 lon… (3500 bytes)
    iteration 2, messages 3
    call 0: c2 read({"say… (3516 bytes)
    usage 10 in · 1 out
    start c2 read({"say":"lo… (3510 bytes))
    end c2 ok: long 2 lon… (3500 bytes)
    iteration 3, messages 5
    call 0: c3 read({"say… (3516 bytes)
    usage 10 in · 1 out
    start c3 read({"say":"lo… (3510 bytes))
    end c3 ok: long 3 lon… (3500 bytes)
    masked 1, saving 847
    iteration 4, messages 7
    call 0: c4 read({"say… (3516 bytes)
    usage 10 in · 1 out
    start c4 read({"say":"lo… (3510 bytes))
    end c4 ok: long 4 lon… (3500 bytes)
    masked 1, saving 847
    iteration 5, messages 9
    call 0: c5 read({"say… (3516 bytes)
    usage 10 in · 1 out
    start c5 read({"say":"lo… (3510 bytes))
    end c5 ok: long 5 lon… (3500 bytes)
    masked 1, saving 847
    iteration 6, messages 11
    text "done"
    usage 10 in · 1 out
    done: Complete, iterations 6, 60 in · 6 out
    "#);
}

#[tokio::test(start_paused = true)]
async fn masking_is_a_view_and_the_conversation_keeps_the_results() {
    let told = masking((1..=4).map(|n| reply([long(n)])).chain([says("done")])).run().await;
    assert_snapshot!(told.transcript(), @r#"
    user: Go
    assistant: c1 read({"say… (3516 bytes)
    tool: c1 ok: long 1 lon… (3500 bytes)
    assistant: c2 read({"say… (3516 bytes)
    tool: c2 ok: long 2 lon… (3500 bytes)
    assistant: c3 read({"say… (3516 bytes)
    tool: c3 ok: long 3 lon… (3500 bytes)
    assistant: c4 read({"say… (3516 bytes)
    tool: c4 ok: long 4 lon… (3500 bytes)
    assistant: done
    "#);
}

#[tokio::test(start_paused = true)]
async fn failures_and_small_results_stay() {
    let told = masking(
        [reply([
            call("small", "read", json!({"say": "x".repeat(2_000)})),
            call("large", "read", json!({"say": "x".repeat(2_001)})),
            call("wrong", "read", json!({"fail": "x".repeat(9_000)})),
        ])]
        .into_iter()
        .chain((2..=3).map(|n| reply([call(&format!("c{n}"), "write", json!({}))])))
        .chain([says("done")]),
    )
    .run()
    .await;
    let sent = told.model.recorded_calls();
    assert_snapshot!(transcript(&sent[3].messages), @r#"
    user: Go
    assistant: small read({"say… (2016 bytes) | large read({"say… (2017 bytes) | wrong read({"fai… (9017 bytes)
    tool: small ok: xxxxxxxxxx… (2000 bytes)
    tool: large ok: [Masked — read result from iteration 1, 501 tokens. Use result_cache tool if available, or re-invoke tool.]
    tool: wrong failed: xxxxxxxxxx… (9000 bytes)
    assistant: c2 write({})
    tool: c2 ok: c2 ran
    assistant: c3 write({})
    tool: c3 ok: c3 ran
    "#);
}

#[tokio::test(start_paused = true)]
async fn the_size_that_counts_is_that_after_the_pipeline() {
    use toolloop::tool::{ProcessedResult, ToolResultProcessor};
    struct Shortens;
    impl ToolResultProcessor for Shortens {
        fn process(&self, _: &str, output: &str) -> ProcessedResult {
            ProcessedResult {
                content: output[..9].to_owned(),
                was_processed: true,
                ..ProcessedResult::default()
            }
        }
    }
    let mut sim = masking((1..=3).map(|n| reply([long(n)])).chain([says("done")]));
    sim.config.result_processor = Some(Arc::new(Shortens));
    let told = sim.run().await;
    let sent = told.model.recorded_calls();
    assert_snapshot!(transcript(&sent[3].messages), @r#"
    user: Go
    assistant: c1 read({"say… (3516 bytes)
    tool: c1 ok: long 1 lo
    assistant: c2 read({"say… (3516 bytes)
    tool: c2 ok: long 2 lo
    assistant: c3 read({"say… (3516 bytes)
    tool: c3 ok: long 3 lo
    "#);
}

#[tokio::test(start_paused = true)]
async fn a_tool_may_force_iterations_to_be_masked_while_the_loop_runs() {
    let forced = Arc::new(Mutex::new(HashSet::new()));
    let mut sim = masking([
        reply([long(1), call("wrong", "read", json!({"fail": "x".repeat(9_000)}))]),
        reply([call("f", "forget", json!({"iteration": 1}))]),
        reply([call("g", "remember", json!({}))]),
        says("done"),
    ]);
    sim.config.force_mask_iterations = Some(Arc::clone(&forced));
    let set = Arc::clone(&forced);
    sim.tools.register(tool_fn(act("forget", &sim.ledger).definition, move |args| {
        set.lock().unwrap().insert(u32::try_from(args["iteration"].as_u64().unwrap()).unwrap());
        async { Ok("forgotten") }
    }));
    sim.tools.register(tool_fn(act("remember", &sim.ledger).definition, move |_| {
        forced.lock().unwrap().clear();
        async { Ok("too late: what is masked once stays masked") }
    }));
    let told = sim.run().await;
    assert_snapshot!(requests(&told.model), @r#"
    -- request 1
    user: Go
    -- request 2
    user: Go
    assistant: c1 read({"say… (3516 bytes) | wrong read({"fai… (9017 bytes)
    tool: c1 ok: long 1 lon… (3500 bytes)
    tool: wrong failed: xxxxxxxxxx… (9000 bytes)
    -- request 3
    user: Go
    assistant: c1 read({"say… (3516 bytes) | wrong read({"fai… (9017 bytes)
    tool: c1 ok: [Masked — read result from iteration 1, 875 tokens. Use result_cache tool if available, or re-invoke tool.]
    tool: wrong failed: xxxxxxxxxx… (9000 bytes)
    assistant: f forget({"iteration":1})
    tool: f ok: forgotten
    -- request 4
    user: Go
    assistant: c1 read({"say… (3516 bytes) | wrong read({"fai… (9017 bytes)
    tool: c1 ok: [Masked — read result from iteration 1, 875 tokens. Use result_cache tool if available, or re-invoke tool.]
    tool: wrong failed: xxxxxxxxxx… (9000 bytes)
    assistant: f forget({"iteration":1})
    tool: f ok: forgotten
    assistant: g remember({})
    tool: g ok: too late: what is masked once stays masked
    "#);
    assert_snapshot!(told.story(), @r#"
    iteration 1, messages 1
    call 0: c1 read({"say… (3516 bytes)
    call 1: wrong read({"fai… (9017 bytes)
    usage 10 in · 1 out
    start c1 read({"say":"lo… (3510 bytes))
    start wrong read({"fail":"x… (9011 bytes))
    end c1 ok: long 1 lon… (3500 bytes)
    end wrong failed: xxxxxxxxxx… (9000 bytes)
    iteration 2, messages 4
    call 0: f forget({"iteration":1})
    usage 10 in · 1 out
    start f forget({"iteration":1})
    end f ok: forgotten
    masked 1, saving 847
    iteration 3, messages 6
    call 0: g remember({})
    usage 10 in · 1 out
    start g remember({})
    end g ok: too late: what is masked once stays masked
    iteration 4, messages 8
    text "done"
    usage 10 in · 1 out
    done: Complete, iterations 4, 40 in · 4 out
    "#);
}

#[tokio::test(start_paused = true)]
async fn forcing_needs_masking() {
    let mut sim = masking([reply([long(1)]), says("done")]);
    sim.config.masking = None;
    sim.config.force_mask_iterations = Some(Arc::new(Mutex::new(HashSet::from([1]))));
    let told = sim.run().await;
    let sent = told.model.recorded_calls();
    assert_snapshot!(transcript(&sent[1].messages), @r#"
    user: Go
    assistant: c1 read({"say… (3516 bytes)
    tool: c1 ok: long 1 lon… (3500 bytes)
    "#);
}

#[tokio::test(start_paused = true)]
async fn how_many_iterations_stay_whole_is_configured() {
    let mut sim = masking((1..=3).map(|n| reply([long(n)])).chain([says("done")]));
    sim.config.masking =
        Some(ObservationMaskingConfig { max_iterations_to_keep: 0, min_tokens_to_mask: 500 });
    let told = sim.run().await;
    assert_snapshot!(requests(&told.model), @r#"
    -- request 1
    user: Go
    -- request 2
    user: Go
    assistant: c1 read({"say… (3516 bytes)
    tool: c1 ok: [Masked — read result from iteration 1, 875 tokens. Use result_cache tool if available, or re-invoke tool.]
    -- request 3
    user: Go
    assistant: c1 read({"say… (3516 bytes)
    tool: c1 ok: [Masked — read result from iteration 1, 875 tokens. Use result_cache tool if available, or re-invoke tool.]
    assistant: c2 read({"say… (3516 bytes)
    tool: c2 ok: [Masked — read result from iteration 2, 875 tokens. Use result_cache tool if available, or re-invoke tool.]
    -- request 4
    user: Go
    assistant: c1 read({"say… (3516 bytes)
    tool: c1 ok: [Masked — read result from iteration 1, 875 tokens. Use result_cache tool if available, or re-invoke tool.]
    assistant: c2 read({"say… (3516 bytes)
    tool: c2 ok: [Masked — read result from iteration 2, 875 tokens. Use result_cache tool if available, or re-invoke tool.]
    assistant: c3 read({"say… (3516 bytes)
    tool: c3 ok: [Masked — read result from iteration 3, 875 tokens. Use result_cache tool if available, or re-invoke tool.]
    "#);
}

fn masking(replies: impl IntoIterator<Item = Vec<StreamEvent>>) -> Sim {
    Sim::new(replies).config(ToolLoopConfig {
        masking: Some(ObservationMaskingConfig::default()),
        ..ToolLoopConfig::default()
    })
}

/// A call whose result has 750 tokens and a bit.
fn long(n: u32) -> StreamEvent {
    call(&format!("c{n}"), "read", json!({"say": format!("long {n} ").repeat(500)}))
}
