//! [`Asking`]: gets calls approved, by the policy, by a person, or not at all.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use toolloop::tool::{ToolApproval, ToolApprovalFuture};
use toolloop_core::ToolCall;

use crate::approval::Policy;

/// What the callback of the loop and the one who follows the run share.
#[derive(Clone)]
pub(crate) struct Asking {
    policy: Arc<Mutex<Policy>>,
    /// The call that ended the run because nobody could be asked.
    unanswered: Arc<Mutex<Option<ToolCall>>>,
}

/// A call that waits for a person.
pub(crate) struct Ask {
    pub(crate) call: ToolCall,
    pub(crate) answer: oneshot::Sender<ToolApproval>,
}

impl Asking {
    pub(crate) fn new(policy: Policy) -> Self {
        Self { policy: Arc::new(Mutex::new(policy)), unanswered: Arc::default() }
    }

    /// The loop's callback. Questions go to `person`; where there is none, or none any more, the
    /// first call that needs one ends the run by `cancel`, before a tool of its reply has started.
    pub(crate) fn callback(
        &self,
        person: Option<mpsc::UnboundedSender<Ask>>,
        cancel: CancellationToken,
    ) -> ToolApprovalFuture {
        let this = self.clone();
        Arc::new(move |call| {
            let (this, person, cancel) = (this.clone(), person.clone(), cancel.clone());
            Box::pin(async move {
                if this.policy().allows(&call) {
                    return ToolApproval::Approve;
                }
                if let Some(person) = person {
                    let (answer, answered) = oneshot::channel();
                    let asked = person.send(Ask { call: call.clone(), answer });
                    if let (Ok(()), Ok(approval)) = (asked, answered.await) {
                        return approval;
                    }
                }
                lock(&this.unanswered).get_or_insert(call);
                cancel.cancel();
                std::future::pending().await
            })
        })
    }

    /// Which calls run without asking; a person may add to it.
    pub(crate) fn policy(&self) -> MutexGuard<'_, Policy> {
        lock(&self.policy)
    }

    /// The call that nobody could be asked about, if that ended the run.
    pub(crate) fn take_unanswered(&self) -> Option<ToolCall> {
        lock(&self.unanswered).take()
    }
}

/// Nothing here can panic half-way, so a poisoned lock holds a whole value.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
