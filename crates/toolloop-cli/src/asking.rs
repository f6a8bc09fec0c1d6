//! [`Asking`]: gets calls approved, by the policy, by a person, or not at all.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{mpsc, oneshot};
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;
use toolloop::mcp::{Answer, Elicit, Elicitation};
use toolloop::tool::{ToolApproval, ToolApprovalFuture, Verdict};
use toolloop::tools::{Root, preview};
use toolloop_core::ToolCall;

use crate::approval::Policy;

/// What the callback of the loop and the one who follows the run share.
#[derive(Clone)]
pub(crate) struct Asking {
    policy: Arc<Mutex<Policy>>,
    root: Root,
    /// The call that ended the run because nobody could be asked.
    unanswered: Arc<Mutex<Option<ToolCall>>>,
}

/// Somebody who waits for a person.
pub(crate) enum Asked {
    Call(Ask),
    Server(ServerAsk),
}

/// A server that wants to know something.
pub(crate) struct ServerAsk {
    pub(crate) elicitation: Elicitation,
    pub(crate) answer: oneshot::Sender<Answer>,
}

/// A call that waits for a person.
pub(crate) struct Ask {
    pub(crate) call: ToolCall,
    /// What it would change in a file.
    pub(crate) preview: Option<String>,
    pub(crate) answer: oneshot::Sender<ToolApproval>,
}

impl Asking {
    pub(crate) fn new(policy: Policy, root: Root) -> Self {
        Self { policy: Arc::new(Mutex::new(policy)), root, unanswered: Arc::default() }
    }

    /// The loop's callback. Questions go to `person`; where there is none, or none any more, the
    /// first call that needs one ends the run by `cancel`, before a tool of its reply has started.
    pub(crate) fn callback(
        &self,
        person: Option<mpsc::UnboundedSender<Asked>>,
        cancel: CancellationToken,
    ) -> ToolApprovalFuture {
        let this = self.clone();
        Arc::new(move |call| {
            let (this, person, cancel) = (this.clone(), person.clone(), cancel.clone());
            Box::pin(async move {
                let verdict = this.policy().decide(&call);
                match verdict {
                    Verdict::Allow => return ToolApproval::Approve,
                    Verdict::Deny(reason) => return ToolApproval::Deny(reason),
                    Verdict::Ask => {}
                }
                if let Some(person) = person {
                    let (answer, answered) = oneshot::channel();
                    let (root, of) = (this.root.clone(), call.clone());
                    let preview = spawn_blocking(move || preview(&root, &of)).await;
                    let preview = preview.unwrap_or_default();
                    let ask = Ask { call: call.clone(), preview, answer };
                    let asked = person.send(Asked::Call(ask));
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

/// Puts the questions of servers to `person`.
pub(crate) fn elicit(person: mpsc::UnboundedSender<Asked>) -> Elicit {
    Arc::new(move |elicitation| {
        let (answer, answered) = oneshot::channel();
        let asked = person.send(Asked::Server(ServerAsk { elicitation, answer }));
        Box::pin(async move {
            match (asked, answered.await) {
                (Ok(()), Ok(answer)) => answer,
                // The run is over, or the person is gone.
                _ => Answer::Cancel,
            }
        })
    })
}

/// Nothing here can panic half-way, so a poisoned lock holds a whole value.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
