//! A model that reads long results for the other.

use std::sync::Arc;
use std::time::Duration;

use insta::assert_snapshot;
use serde_json::json;
use toolloop::mock::MockProvider;
use toolloop::tool::{ModelExtractor, ToolLoopConfig};
use toolloop::{ChatMessage, StreamEvent, Usage};

use super::support::{Paced, Sim, Told, call, reply, says, text};

/// A run whose tool gives `output`, read by a model with these replies.
async fn reading(
    output: &str,
    replies: impl IntoIterator<Item = Vec<StreamEvent>>,
) -> (Told, Arc<MockProvider>) {
    let reader = Arc::new(MockProvider::default());
    for reply in replies {
        reader.queue_stream(reply);
    }
    let extractor = ModelExtractor::new(reader.clone()).with_threshold(10);
    let config =
        ToolLoopConfig { result_extractor: Some(Arc::new(extractor)), ..ToolLoopConfig::default() };
    let sim = Sim::new([reply([call("a", "read", json!({"say": output}))]), says("Done.")]);
    (sim.config(config).run().await, reader)
}

#[tokio::test(start_paused = true)]
async fn the_model_reads_with_the_question_in_mind_and_its_tokens_count() {
    let output = "noise\n".repeat(60) + "line 61: the thing\n";
    let (told, reader) = reading(&output, [says("line 61: the thing")]).await;
    assert_snapshot!(told.transcript(), @r#"
    user: Go
    assistant: a read({"say… (456 bytes)
    tool: a ok: [what a model took for relevant in an output of about 95 tokens]
    line 61: the thing
    assistant: Done.
    "#);
    let asked = &reader.recorded_calls()[0].messages;
    let prompt = format!("The question:\nGo\n\nA part of what the tool read gave:\n{output}");
    assert_eq!(asked, &[ChatMessage::user(prompt)]);
    assert!(told.story().contains("extracted read: 95 to"), "{}", told.story());
    let tokens = Usage { input_tokens: 30, output_tokens: 3, ..Usage::default() };
    assert_eq!(told.result().total_usage, tokens);
}

#[tokio::test(start_paused = true)]
async fn a_result_stays_whole_where_nothing_was_gained() {
    let output = "noise\n".repeat(60);
    let cut = vec![text("line"), StreamEvent::Usage(Usage { input_tokens: 7, ..Usage::default() })];
    for (replies, tokens) in
        [(says("NOTHING"), 33), (says(&"long ".repeat(99)), 33), (says(" "), 33), (cut, 22 + 7)]
    {
        let (told, _) = reading(&output, [replies]).await;
        let results = &told.result().messages[2].content;
        assert!(format!("{results:?}").contains("noise\\nnoise"), "{results:?}");
        assert!(!told.story().contains("extracted"), "{}", told.story());
        assert_eq!(told.result().total_usage.total(), tokens);
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_longer_than_the_model_can_read_comes_in_pieces() {
    let output = "0123456789abcde\n".repeat(20_000);
    let replies = [says("one"), says("NOTHING"), says("three")];
    let (told, reader) = reading(&output, replies).await;
    assert_eq!(reader.recorded_calls().len(), 3);
    assert_snapshot!(told.transcript(), @r#"
    user: Go
    assistant: a read({"say… (340016 bytes)
    tool: a ok: [what a model took for relevant in an output of about 80000 tokens]
    one
    [...]
    three
    assistant: Done.
    "#);
}

#[tokio::test(start_paused = true)]
async fn tokens_of_a_reading_that_is_cut_off_are_counted() {
    let model = Arc::new(MockProvider::default());
    let usage = StreamEvent::Usage(Usage { input_tokens: 7, ..Usage::default() });
    model.queue_stream(vec![usage, text("never")]);
    let reader = Arc::new(Paced { model, pace: Duration::from_millis(100) });
    let extractor = ModelExtractor::new(reader).with_threshold(10);
    let config = ToolLoopConfig {
        result_extractor: Some(Arc::new(extractor)),
        timeout: Some(Duration::from_millis(150)),
        ..ToolLoopConfig::default()
    };
    let sim = Sim::new([reply([call("a", "read", json!({"say": "noise ".repeat(60)}))])]);
    let told = sim.config(config).run().await;
    assert_eq!(told.took, Duration::from_millis(150));
    assert_eq!(told.result().total_usage.input_tokens, 10 + 7);
}
