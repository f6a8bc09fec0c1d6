//! [`collect`]: a stream of events as one reply.

use std::future::poll_fn;
use std::pin::Pin;

use futures_core::Stream;
use toolloop_core::{ChatResponse, LlmError, ReplyAssembler, StreamEvent};

/// Waits for the whole reply.
pub(crate) async fn collect<S>(mut reply: S) -> Result<ChatResponse, LlmError>
where
    S: Stream<Item = Result<StreamEvent, LlmError>> + Unpin,
{
    let mut assembler = ReplyAssembler::detached();
    while let Some(event) = poll_fn(|cx| Pin::new(&mut reply).poll_next(cx)).await {
        assembler.push(event?)?;
    }
    assembler.into_response()
}
