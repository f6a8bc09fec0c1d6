//! [`Inbox`]: messages for a loop that is running.

use std::sync::{Arc, Mutex, PoisonError};

use toolloop_core::ChatMessage;

/// Takes messages for a loop that is running, to steer it.
///
/// They go in before the next model call, behind the results of the tools at work. A loop that
/// would have ended goes on to answer them, as far as its limits allow. Clones share the inbox.
///
/// ```
/// use toolloop::ChatMessage;
/// use toolloop::tool::{Inbox, ToolLoopConfig};
///
/// let inbox = Inbox::new();
/// let config = ToolLoopConfig { inbox: Some(inbox.clone()), ..ToolLoopConfig::default() };
/// // While a loop with this configuration runs:
/// inbox.send(ChatMessage::user("Only the Rust files, please."));
/// # assert_eq!(inbox.take().len(), 1);
/// # drop(config);
/// ```
#[derive(Debug, Clone, Default)]
pub struct Inbox(Arc<Mutex<Vec<ChatMessage>>>);

impl Inbox {
    /// An empty inbox.
    pub fn new() -> Self {
        Self::default()
    }

    /// Leaves a message.
    pub fn send(&self, message: ChatMessage) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(message);
    }

    /// Takes the messages out: what a loop does, and what its caller does with those that came
    /// too late.
    pub fn take(&self) -> Vec<ChatMessage> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
