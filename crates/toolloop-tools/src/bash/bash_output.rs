//! [`BashOutput`]: the tool `bash_output`.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use toolloop_core::{
    EffectClass, ToolDefinition, ToolFuture, ToolHandler, ToolOutput, read_arguments,
};

use crate::Jobs;

/// Gives what a background command has written since it was last asked, and how it is.
///
/// The result reads like that of [`BashTool`](crate::BashTool), and is never an error for
/// how the command ended.
#[derive(Debug, Clone)]
pub struct BashOutput {
    jobs: Jobs,
}

impl BashOutput {
    /// Looks at these jobs.
    pub fn new(jobs: Jobs) -> Self {
        Self { jobs }
    }
}

impl<Ctx> ToolHandler<Ctx> for BashOutput {
    fn definition(&self) -> ToolDefinition {
        ToolDefinition::from_type::<Arguments>(
            NAME,
            "Gives what a background job of bash has written since it was last asked, and whether \
             it still runs.",
        )
    }

    fn execute<'a>(&'a self, input: Value, _: &'a Ctx) -> ToolFuture<'a> {
        Box::pin(async move {
            let arguments = read_arguments::<Arguments>(NAME, input)?;
            let wait = arguments.wait_seconds.unwrap_or_default().min(MAX_WAIT);
            self.jobs.look(&arguments.job, Duration::from_secs(wait)).await.map(ToolOutput::from)
        })
    }

    fn effect_class(&self) -> EffectClass {
        EffectClass::ReadOnly
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The job, as bash named it.
    job: String,
    /// How long to wait for its end before answering, at most 300; default 0.
    #[schemars(range(max = 300))]
    wait_seconds: Option<u64>,
}

const NAME: &str = "bash_output";
const MAX_WAIT: u64 = 300;
