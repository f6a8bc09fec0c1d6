//! A tool called as the loop calls it.

use serde_json::Value;
use toolloop_core::{ToolContent, ToolHandler};

pub(crate) async fn run<Ctx>(
    tool: &dyn ToolHandler<Ctx>,
    input: Value,
    ctx: &Ctx,
) -> Result<ToolContent, String> {
    tool.execute(input, ctx).await.map(|output| output.content).map_err(|error| error.message)
}
