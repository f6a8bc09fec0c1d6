//! [`render`]: a request for a model that writes calls as text.

mod call;
mod history;
mod instructions;

pub use call::call;
pub use instructions::instructions;

use super::{Dialect, ToolLimit};
use crate::params::ChatParams;

/// The request such that nothing in it is a native call: the tools stand in the instructions, the
/// calls and results of the conversation in its text.
///
/// What a tool gave back is escaped, so that nothing in it reads as a call. With a dialect that is
/// no text the request stays as it is.
pub fn render(dialect: Dialect, limit: ToolLimit, params: &ChatParams) -> ChatParams {
    if !dialect.is_text() {
        return params.clone();
    }
    let tools = params.tools.as_deref().unwrap_or_default();
    let told = instructions(dialect, tools, params.tool_choice.as_ref(), limit);
    let system = [params.system.clone(), told].into_iter().flatten().collect::<Vec<_>>();
    ChatParams {
        messages: history::messages(dialect, &params.messages),
        tools: None,
        tool_choice: None,
        system: (!system.is_empty()).then(|| system.join("\n\n")),
        temperature: params.temperature,
        max_tokens: params.max_tokens,
        reasoning_budget: params.reasoning_budget,
        structured_output: params.structured_output.clone(),
        timeout: params.timeout,
        extra_headers: params.extra_headers.clone(),
        metadata: params.metadata.clone(),
        encoded: Default::default(),
    }
}
