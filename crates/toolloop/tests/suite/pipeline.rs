//! `result_processor`, `result_extractor`, `result_cacher`: what a result passes on its way.

use std::sync::Arc;

use insta::assert_snapshot;
use serde_json::json;
use toolloop::provider::BoxFuture;
use toolloop::tool::{
    CachedResult, ExtractedResult, ProcessedResult, ToolContent, ToolImage, ToolOutput,
    ToolResultCacher, ToolResultExtractor, ToolResultProcessor, tool_fn,
};
use toolloop::{ChatMessage, ImageSource};

use super::support::{Ledger, Sim, act, call, reply, says};

/// Each stage notes what it is given and puts its letter in front.
struct Stage {
    ledger: Ledger,
    threshold: Option<u32>,
    gives: bool,
}

impl Stage {
    fn new(sim: &Sim, threshold: Option<u32>) -> Self {
        Self { ledger: sim.ledger.clone(), threshold, gives: true }
    }

    fn note(&self, stage: &str, tool_name: &str, text: &str) {
        self.ledger.note(format_args!("{stage} {tool_name}: {}", shortened(text)));
    }
}

impl ToolResultProcessor for Stage {
    fn process(&self, tool_name: &str, output: &str) -> ProcessedResult {
        self.note("process", tool_name, output);
        if !self.gives {
            return ProcessedResult { content: "ignored".into(), ..ProcessedResult::unchanged() };
        }
        ProcessedResult {
            content: format!("P{output}"),
            was_processed: true,
            original_tokens_est: 1,
            processed_tokens_est: 2,
        }
    }
}

impl ToolResultExtractor for Stage {
    fn extract<'a>(
        &'a self,
        tool_name: &'a str,
        output: &'a str,
        user_query: &'a str,
    ) -> BoxFuture<'a, Option<ExtractedResult>> {
        self.note(&format!("extract for {user_query:?}"), tool_name, output);
        Box::pin(async move {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            self.gives.then(|| ExtractedResult {
                content: format!("E{output}"),
                original_tokens_est: 3,
                extracted_tokens_est: 4,
            })
        })
    }

    fn extraction_threshold(&self) -> u32 {
        struct Default;
        impl ToolResultExtractor for Default {
            fn extract<'a>(
                &'a self,
                _: &'a str,
                _: &'a str,
                _: &'a str,
            ) -> BoxFuture<'a, Option<ExtractedResult>> {
                unreachable!()
            }
        }
        self.threshold.unwrap_or_else(|| Default.extraction_threshold())
    }
}

impl ToolResultCacher for Stage {
    fn cache(&self, tool_name: &str, content: &str) -> Option<CachedResult> {
        self.note("cache", tool_name, content);
        self.gives.then(|| CachedResult {
            summary: format!("C{content}"),
            original_tokens_est: 5,
            summary_tokens_est: 6,
        })
    }

    fn inline_threshold(&self) -> u32 {
        struct Default;
        impl ToolResultCacher for Default {
            fn cache(&self, _: &str, _: &str) -> Option<CachedResult> {
                unreachable!()
            }
        }
        self.threshold.unwrap_or_else(|| Default.inline_threshold())
    }
}

#[tokio::test(start_paused = true)]
async fn a_result_passes_three_stages_on_its_way_to_the_model() {
    let mut sim = Sim::new([
        reply([call("a", "read", json!({"say": "raw"})), call("b", "write", json!({"ms": 3}))]),
        says("done"),
    ]);
    sim.params.messages = vec![
        ChatMessage::user("First?"),
        ChatMessage::assistant("Yes."),
        ChatMessage::user("Then?"),
    ];
    sim.config.result_processor = Some(Arc::new(Stage::new(&sim, None)));
    sim.config.result_extractor = Some(Arc::new(Stage::new(&sim, Some(0))));
    sim.config.result_cacher = Some(Arc::new(Stage::new(&sim, Some(0))));
    let told = sim.run().await;
    assert_snapshot!(told.timed_story(), @r#"
    0 iteration 1, messages 3
    0 call 0: a read({"say":"raw"})
    0 call 1: b write({"ms":3})
    0 usage 10 in · 1 out
    0 start a read({"say":"raw"})
    0 start b write({"ms":3})
    0 end a ok: raw
    3 end b ok: b ran in 3ms
    5 processed read: 1 to 2
    5 extracted read: 3 to 4
    5 cached read: 5 to 6
    8 processed write: 1 to 2
    8 extracted write: 3 to 4
    8 cached write: 5 to 6
    8 iteration 2, messages 6
    8 text "done"
    8 usage 10 in · 1 out
      done: Complete, iterations 2, 20 in · 2 out
    "#);
    assert_snapshot!(told.ledger.lines().join("\n"), @r#"
    0 a started
    0 a finished
    0 b started
    0 process read: raw
    0 extract for "Then?" read: Praw
    3 b finished
    3 process write: b ran
    3 extract for "Then?" write: Pb ran
    5 cache read: EPraw
    8 cache write: EPb ran
    "#);
    assert_snapshot!(told.transcript(), @r#"
    user: First?
    assistant: Yes.
    user: Then?
    assistant: a read({"say":"raw"}) | b write({"ms":3})
    tool: a ok: CEPraw
    tool: b ok: CEPb ran
    assistant: done
    "#);
}

#[tokio::test(start_paused = true)]
async fn a_stage_that_gives_nothing_leaves_the_result_and_says_nothing() {
    let mut sim = Sim::new([reply([call("a", "read", json!({"say": "raw"}))]), says("done")]);
    let silent = |threshold| Stage { gives: false, ..Stage::new(&sim, threshold) };
    let (processor, extractor, cacher) = (silent(None), silent(Some(0)), silent(Some(0)));
    sim.config.result_processor = Some(Arc::new(processor));
    sim.config.result_extractor = Some(Arc::new(extractor));
    sim.config.result_cacher = Some(Arc::new(cacher));
    let told = sim.run().await;
    assert_snapshot!(told.timed_story(), @r#"
    0 iteration 1, messages 1
    0 call 0: a read({"say":"raw"})
    0 usage 10 in · 1 out
    0 start a read({"say":"raw"})
    0 end a ok: raw
    5 iteration 2, messages 3
    5 text "done"
    5 usage 10 in · 1 out
      done: Complete, iterations 2, 20 in · 2 out
    "#);
    assert_snapshot!(told.ledger.lines().join("\n"), @r#"
    0 a started
    0 a finished
    0 process read: raw
    0 extract for "Go" read: raw
    5 cache read: raw
    "#);
}

#[tokio::test(start_paused = true)]
async fn thresholds_mean_strictly_above() {
    let mut sim = Sim::new([
        // Tokens are bytes / 4 rounded up: 60,000 bytes are 15,000 tokens.
        reply([60_000, 60_001].map(sized)),
        says("done"),
    ]);
    sim.config.result_extractor = Some(Arc::new(Stage::new(&sim, None)));
    let told = sim.run().await;
    assert_snapshot!(told.ledger.lines().join("\n"), @r#"
    0 b60000 started
    0 b60000 finished
    0 b60001 started
    0 b60001 finished
    0 extract for "Go" read: 60001 bytes
    "#);

    let mut sim = Sim::new([reply([8_000, 8_001].map(sized)), says("done")]);
    sim.config.result_cacher = Some(Arc::new(Stage::new(&sim, None)));
    let told = sim.run().await;
    assert_snapshot!(told.ledger.lines().join("\n"), @r"
    0 b8000 started
    0 b8000 finished
    0 b8001 started
    0 b8001 finished
    0 cache read: 8001 bytes
    ");
}

#[tokio::test(start_paused = true)]
async fn failures_and_refusals_skip_the_pipeline() {
    let mut sim = Sim::new([
        reply([
            call("a", "read", json!({"fail": "no such file"})),
            call("b", "nothing", json!({})),
            call("c", "read", json!({"panic": "oh"})),
        ]),
        says("done"),
    ]);
    sim.config.result_processor = Some(Arc::new(Stage::new(&sim, None)));
    let told = sim.run().await;
    assert_snapshot!(told.ledger.lines().join("\n"), @r"
    0 a started
    0 a failed
    0 c started
    0 c panicked
    ");
    assert_snapshot!(told.transcript(), @r#"
    user: Go
    assistant: a read({"fail":"no such file"}) | b nothing({}) | c read({"panic":"oh"})
    tool: a failed: no such file
    tool: b failed: Unknown tool 'nothing'. Available tools: read, write.
    tool: c failed: Tool 'read' panicked: oh
    assistant: done
    "#);
}

#[tokio::test(start_paused = true)]
async fn only_text_goes_through_it() {
    let picture =
        ToolImage { media_type: "image/png".into(), data: ImageSource::Base64("AAAA".into()) };
    let content = ToolContent {
        text: "a chart".into(),
        images: vec![picture.clone()],
        structured: Some(json!({"n": 1})),
    };
    let mut sim = Sim::new([reply([call("a", "chart", json!({}))]), says("done")]);
    let given = content.clone();
    sim.tools.register(tool_fn(act("chart", &sim.ledger).definition, move |_| {
        let output = ToolOutput::new(given.clone());
        async move { Ok(output) }
    }));
    sim.config.result_processor = Some(Arc::new(Stage::new(&sim, None)));
    let told = sim.run().await;
    let result = told.result().messages[2].tool_results().next().unwrap().clone();
    assert_eq!(result.content, ToolContent { text: "Pa chart".into(), ..content });
}

fn sized(bytes: usize) -> toolloop::StreamEvent {
    call(&format!("b{bytes}"), "read", json!({"say": "x".repeat(bytes)}))
}

fn shortened(text: &str) -> String {
    if text.len() > 100 { format!("{} bytes", text.len()) } else { text.to_owned() }
}
