//! [`estimated_size`] of a request's body.

use toolloop_core::ChatParams;

/// About the size of the body, so that the buffer grows once at most.
pub(in crate::codec) fn estimated_size(params: &ChatParams) -> usize {
    use toolloop_core::ContentBlock::{ProviderData, Reasoning, Text, ToolCall, ToolResult};
    const ENVELOPE: usize = 96;
    let blocks = params.messages.iter().flat_map(|message| &message.content);
    let messages = blocks.map(|block| {
        let text = match block {
            Text(text) => text.len(),
            Reasoning { content } => content.len(),
            ToolCall(call) => call.name.len() + 256,
            ToolResult(result) => result.content.len(),
            ProviderData(data) => data.data.len(),
            _ => 0,
        };
        ENVELOPE + text + text / 16
    });
    let tools = params.tools.as_deref().unwrap_or_default().len() * 512;
    1024 + params.system.as_deref().map_or(0, str::len) + tools + messages.sum::<usize>()
}
