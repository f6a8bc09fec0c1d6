//! [`Body`]: the body of a request, an object whose last member is the list of the messages.
//!
//! All codecs write it so: what a run has sent before is a prefix of what it sends next, so the
//! bytes are written once and lent to one request after the other.

use std::hash::Hash;
use std::sync::Arc;

use bytes::Bytes;
use serde::Serialize;
use toolloop_core::{ChatMessage, ChatParams, ContentBlock, Encoded, LlmError};

/// A body under way.
pub(in crate::codec) struct Body<'a>(&'a mut Encoded);

/// Has a body written, the head first, then the messages that are not settled.
///
/// `codec` is the API with all that the bytes of its settled messages depend on besides them.
///
/// # Errors
/// When a value cannot be written as JSON.
pub(in crate::codec) fn written(
    params: &ChatParams,
    codec: impl Hash,
    write: impl FnOnce(&mut Body<'_>) -> serde_json::Result<()>,
) -> Result<Bytes, LlmError> {
    let body = params.encoded.write(codec, |encoded| {
        let new = params.messages.get(encoded.settled()..).unwrap_or_default();
        let head = if encoded.settled() == 0 { head_size(params) } else { 0 };
        encoded.reserve(head + size(new));
        write(&mut Body(encoded))?;
        encoded.bytes().extend_from_slice(b"]}");
        Ok(())
    });
    match body.map(Arc::try_unwrap) {
        Ok(Ok(bytes)) => Ok(bytes.into()),
        Ok(Err(shared)) => Ok(Bytes::from_owner(Lent(shared))),
        Err(error) => {
            let error: serde_json::Error = error;
            Err(LlmError::InvalidRequest(error.to_string().into()))
        }
    }
}

impl Body<'_> {
    /// How many messages are written for good. What they came to stands there.
    pub(in crate::codec) fn settled(&self) -> usize {
        self.0.settled()
    }

    /// What was noted of them.
    pub(in crate::codec) fn notes(&self) -> &[u64] {
        self.0.notes()
    }

    /// Writes the members of an object, then `list` as the name of its last.
    pub(in crate::codec) fn write_head(
        &mut self,
        members: &impl Serialize,
        list: &str,
    ) -> serde_json::Result<()> {
        self.0.write_head(|bytes| {
            serde_json::to_writer(&mut *bytes, members)?;
            // The brace.
            bytes.pop();
            bytes.extend_from_slice(if bytes.len() > 1 { b",\"" } else { b"\"" });
            bytes.extend_from_slice(list.as_bytes());
            bytes.extend_from_slice(b"\":[");
            Ok(())
        })
    }

    /// Whether nothing stands in the list.
    pub(in crate::codec) fn is_empty(&mut self) -> bool {
        self.0.bytes().ends_with(b"[")
    }

    /// Adds to the list.
    pub(in crate::codec) fn push(&mut self, element: &impl Serialize) -> serde_json::Result<()> {
        if !self.is_empty() {
            self.0.bytes().push(b',');
        }
        serde_json::to_writer(self.0.bytes(), element)
    }

    /// What stands in the list is what the first `messages` come to, whatever follows them.
    pub(in crate::codec) fn settle(
        &mut self,
        messages: usize,
        notes: impl IntoIterator<Item = u64>,
    ) {
        self.0.settle(messages, notes);
    }

    /// Begins again with the first message; before the head is written.
    pub(in crate::codec) fn start_over(&mut self) {
        self.0.start_over();
    }
}

/// Bytes that the run takes back once the request is over.
struct Lent(Arc<Vec<u8>>);

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// About the size of what stands before the messages, so that the buffer grows once at most.
fn head_size(params: &ChatParams) -> usize {
    let tools = params.tools.as_deref().unwrap_or_default().len() * 512;
    1024 + params.system.as_deref().map_or(0, str::len) + tools
}

/// About the size of the messages.
fn size(messages: &[ChatMessage]) -> usize {
    use ContentBlock::{ProviderData, Reasoning, Text, ToolCall, ToolResult};
    const ENVELOPE: usize = 96;
    let blocks = messages.iter().flat_map(|message| &message.content);
    let sizes = blocks.map(|block| {
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
    sizes.sum()
}
