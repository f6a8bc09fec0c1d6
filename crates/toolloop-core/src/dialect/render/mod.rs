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
/// What a tool gave back is escaped, so that nothing in it reads as a call. The shape of the answer
/// is asked for in words, too, while the model has tools: held to it by the provider, it could not
/// write a call. With a dialect that is no text the request stays as it is.
pub fn render(dialect: Dialect, limit: ToolLimit, params: &ChatParams) -> ChatParams {
    if !dialect.is_text() {
        return params.clone();
    }
    let tools = params.tools.as_deref().unwrap_or_default();
    let told = instructions(dialect, tools, params.tool_choice.as_ref(), limit);
    let (in_words, by_provider) = match told.is_some() {
        true => (params.structured_output.as_ref(), None),
        false => (None, params.structured_output.clone()),
    };
    let shape = in_words.map(|schema| format!("{SHAPE}\n{}", schema.as_value()));
    let system = [params.system.clone(), told, shape].into_iter().flatten().collect::<Vec<_>>();
    ChatParams {
        messages: history::messages(dialect, &params.messages),
        tools: None,
        tool_choice: None,
        system: (!system.is_empty()).then(|| system.join("\n\n")),
        temperature: params.temperature,
        max_tokens: params.max_tokens,
        reasoning_budget: params.reasoning_budget,
        structured_output: by_provider,
        timeout: params.timeout,
        extra_headers: params.extra_headers.clone(),
        metadata: params.metadata.clone(),
        encoded: Default::default(),
    }
}

const SHAPE: &str = "Once you need no more tools, answer with one JSON value that fits this JSON \
Schema, and nothing else:";
