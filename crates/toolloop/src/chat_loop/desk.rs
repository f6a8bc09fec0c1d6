//! [`Desk`]: where calls lie until the caller of a chat loop brings their results.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;
use toolloop_core::{BoxFuture, CallContext, LlmError, ToolCall, ToolResult};

use crate::driver::Toolbox;

/// A toolbox whose tools are the caller: each call waits for what is submitted for it.
#[derive(Debug, Default)]
pub(super) struct Desk(Mutex<Open>);

/// The calls of the current reply, in order.
#[derive(Debug, Default)]
struct Open {
    calls: Vec<(ToolCall, oneshot::Sender<ToolResult>)>,
    /// Whether the caller knows of them.
    are_shown: bool,
}

impl Desk {
    /// The calls that the caller has not been shown; none where there are none.
    pub(super) fn show(&self) -> Option<Vec<ToolCall>> {
        let mut open = self.open();
        if open.are_shown || open.calls.is_empty() {
            return None;
        }
        open.are_shown = true;
        Some(open.calls.iter().map(|(call, _)| call.clone()).collect())
    }

    /// Hands each call its result; where one does not fit, none is.
    pub(super) fn answer(&self, results: Vec<ToolResult>) -> Result<(), LlmError> {
        let mut open = self.open();
        if !open.are_shown {
            return Err(invalid(
                "no tool results are awaited: take steps until calls are requested",
            ));
        }
        let awaited: BTreeSet<&str> = open.calls.iter().map(|(call, _)| call.id.as_str()).collect();
        let mut given = BTreeSet::new();
        for result in &results {
            let id = result.tool_call_id.as_str();
            if !awaited.contains(id) {
                let awaited = list(awaited);
                return Err(invalid(format!("no call has the id {id:?}; awaited: {awaited}")));
            }
            if !given.insert(id) {
                return Err(invalid(format!("there are two results for the call {id:?}")));
            }
        }
        let missing: Vec<&str> = awaited.difference(&given).copied().collect();
        if !missing.is_empty() {
            let missing = list(missing);
            return Err(invalid(format!(
                "results are missing for {missing}: submit those of all calls at once"
            )));
        }
        open.are_shown = false;
        let mut results = results;
        for (call, answer) in std::mem::take(&mut open.calls) {
            if let Some(at) = results.iter().position(|result| result.tool_call_id == call.id) {
                // A loop that was cancelled meanwhile no longer waits.
                let _ = answer.send(results.swap_remove(at));
            }
        }
        Ok(())
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Toolbox for Desk {
    fn fault(&self, _: &ToolCall) -> Option<String> {
        None
    }

    fn run(&self, call: ToolCall, _: CallContext) -> BoxFuture<'static, ToolResult> {
        let (answer, answered) = oneshot::channel();
        self.open().calls.push((call, answer));
        Box::pin(async move {
            match answered.await {
                Ok(result) => result,
                // The desk keeps its senders until they are used, and outlives the run.
                Err(_) => std::future::pending().await,
            }
        })
    }
}

fn list<'a>(ids: impl IntoIterator<Item = &'a str>) -> String {
    ids.into_iter().map(|id| format!("{id:?}")).collect::<Vec<_>>().join(", ")
}

fn invalid(sentence: impl Into<String>) -> LlmError {
    LlmError::InvalidRequest(sentence.into().into())
}
