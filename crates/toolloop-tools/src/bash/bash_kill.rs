//! [`BashKill`]: the tool `bash_kill`.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use toolloop_core::{
    EffectClass, ToolDefinition, ToolFuture, ToolHandler, ToolOutput, read_arguments,
};

use crate::Jobs;

/// Ends a background command with all its processes: SIGTERM first, and half a second later
/// SIGKILL.
#[derive(Debug, Clone)]
pub struct BashKill {
    jobs: Jobs,
}

impl BashKill {
    /// Ends these jobs.
    pub fn new(jobs: Jobs) -> Self {
        Self { jobs }
    }
}

impl<Ctx> ToolHandler<Ctx> for BashKill {
    fn definition(&self) -> ToolDefinition {
        ToolDefinition::from_type::<Arguments>(
            NAME,
            "Ends a background job of bash, and gives what it had still written.",
        )
    }

    fn execute<'a>(&'a self, input: Value, _: &'a Ctx) -> ToolFuture<'a> {
        Box::pin(async move {
            let arguments = read_arguments::<Arguments>(NAME, input)?;
            self.jobs.kill(&arguments.job).await.map(ToolOutput::from)
        })
    }

    fn effect_class(&self) -> EffectClass {
        EffectClass::Idempotent
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The job, as bash named it.
    job: String,
}

const NAME: &str = "bash_kill";
