//! [`DiskCacher`]: stage 3 of the result pipeline, with a folder as its store.

use toolloop_core::estimate_tokens;
use toolloop_tools::ResultStore;

use super::pipeline::{CachedResult, ToolResultCacher};

/// Stores long results in a folder; the model reads their beginning and end, and opens the rest
/// with the tool `read_result`, which must be among its tools.
///
/// ```
/// use std::sync::Arc;
/// use toolloop::tool::{DiskCacher, ToolLoopConfig, ToolRegistry};
/// use toolloop::tools::{Builtin, ResultStore};
///
/// let results = ResultStore::temporary();
/// let mut registry: ToolRegistry = ToolRegistry::new();
/// registry.register_builtin(&Builtin::in_folder(".")?.with_results(results.clone()));
/// let config = ToolLoopConfig {
///     result_cacher: Some(Arc::new(DiskCacher::new(results))),
///     ..ToolLoopConfig::default()
/// };
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct DiskCacher {
    store: ResultStore,
    inline_threshold: u32,
}

impl DiskCacher {
    /// Stores results of more than 2,000 tokens in `store`.
    pub fn new(store: ResultStore) -> Self {
        Self { store, inline_threshold: 2_000 }
    }

    /// Stores results of more than so many tokens.
    #[must_use]
    pub fn with_inline_threshold(mut self, tokens: u32) -> Self {
        self.inline_threshold = tokens;
        self
    }
}

impl ToolResultCacher for DiskCacher {
    fn cache(&self, tool_name: &str, content: &str) -> Option<CachedResult> {
        // What was asked for by its handle is not put behind another one.
        if tool_name == "read_result" {
            return None;
        }
        // A full disk is no reason to lose a result: it stays in the conversation.
        let summary = self.store.spill(content, KEPT.min(content.len() / 2)).ok()?;
        Some(CachedResult {
            original_tokens_est: estimate_tokens(content),
            summary_tokens_est: estimate_tokens(&summary),
            summary,
        })
    }

    fn inline_threshold(&self) -> u32 {
        self.inline_threshold
    }
}

/// Bytes of a stored result that stay in the conversation.
const KEPT: usize = 4096;
