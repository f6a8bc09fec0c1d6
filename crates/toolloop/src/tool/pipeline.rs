//! The three stages a result may pass on its way to the model: process, extract, cache.

use std::future::Future;
use std::pin::Pin;

use toolloop_core::effect::{PipelineOutcome, StageReport};
use toolloop_core::estimate_tokens;

use super::config::ToolLoopConfig;

/// Stage 1: makes a result smaller or clearer by rule.
pub trait ToolResultProcessor: Send + Sync {
    /// Gives the new text, or [`ProcessedResult::unchanged`].
    fn process(&self, tool_name: &str, output: &str) -> ProcessedResult;
}

/// What a [`ToolResultProcessor`] made of a result.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProcessedResult {
    /// The new text.
    pub content: String,
    /// Whether there is a new text; if not, `content` is ignored.
    pub was_processed: bool,
    /// Estimate before, in tokens.
    pub original_tokens_est: u32,
    /// Estimate after, in tokens.
    pub processed_tokens_est: u32,
}

impl ProcessedResult {
    /// Keeps the result as it is.
    pub fn unchanged() -> Self {
        Self::default()
    }
}

/// Stage 2: takes what matters to the user's question out of a long result.
pub trait ToolResultExtractor: Send + Sync {
    /// Gives the part that matters; `None` keeps the result.
    fn extract<'a>(
        &'a self,
        tool_name: &'a str,
        output: &'a str,
        user_query: &'a str,
    ) -> Pin<Box<dyn Future<Output = Option<ExtractedResult>> + Send + 'a>>;

    /// Results above this many tokens are sent here.
    fn extraction_threshold(&self) -> u32 {
        15_000
    }
}

/// What a [`ToolResultExtractor`] took out of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtractedResult {
    /// The part that matters.
    pub content: String,
    /// Estimate before, in tokens.
    pub original_tokens_est: u32,
    /// Estimate after, in tokens.
    pub extracted_tokens_est: u32,
}

/// Stage 3: stores a result elsewhere and leaves a summary.
pub trait ToolResultCacher: Send + Sync {
    /// Stores the result and gives what stands in its place; `None` keeps it inline.
    fn cache(&self, tool_name: &str, content: &str) -> Option<CachedResult>;

    /// Results above this many tokens are sent here.
    fn inline_threshold(&self) -> u32 {
        2_000
    }
}

/// What a [`ToolResultCacher`] left of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CachedResult {
    /// What the model reads.
    pub summary: String,
    /// Estimate before, in tokens.
    pub original_tokens_est: u32,
    /// Estimate after, in tokens.
    pub summary_tokens_est: u32,
}

/// Sends a result through the stages that are configured.
pub(crate) async fn run_pipeline(
    config: ToolLoopConfig,
    tool_name: String,
    mut text: String,
    user_query: String,
) -> PipelineOutcome {
    let mut stages = Vec::new();
    if let Some(processor) = &config.result_processor {
        let processed = processor.process(&tool_name, &text);
        if processed.was_processed {
            let (original, now) = (processed.original_tokens_est, processed.processed_tokens_est);
            stages.push(StageReport::Processed { original, now });
            text = processed.content;
        }
    }
    if let Some(extractor) = &config.result_extractor
        && estimate_tokens(&text) > extractor.extraction_threshold()
        && let Some(extracted) = extractor.extract(&tool_name, &text, &user_query).await
    {
        let (original, now) = (extracted.original_tokens_est, extracted.extracted_tokens_est);
        stages.push(StageReport::Extracted { original, now });
        text = extracted.content;
    }
    if let Some(cacher) = &config.result_cacher
        && estimate_tokens(&text) > cacher.inline_threshold()
        && let Some(cached) = cacher.cache(&tool_name, &text)
    {
        let (original, now) = (cached.original_tokens_est, cached.summary_tokens_est);
        stages.push(StageReport::Cached { original, now });
        text = cached.summary;
    }
    let text = (!stages.is_empty()).then_some(text);
    PipelineOutcome { text, stages, usage: None }
}
