//! [`on_thread`]: a tool whose work blocks, off the async threads. The work stops when nobody waits
//! for it, or when its [`Patience`] is at an end.

use std::io;
use std::panic;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::task;
use toolloop_core::{ToolError, ToolFuture, ToolOutput, read_arguments};

/// Runs a tool whose `work` blocks, with the arguments of its call.
pub(crate) fn on_thread<'a, A, W>(tool_name: &'a str, input: Value, work: W) -> ToolFuture<'a>
where
    A: DeserializeOwned + Send + 'static,
    W: FnOnce(&A, &Cut) -> Result<String, ToolError> + Send + 'static,
{
    Box::pin(async move {
        let arguments: A = read_arguments(tool_name, input)?;
        run_blocking(move |cut| work(&arguments, cut)).await.map(ToolOutput::from)
    })
}

/// Whether the caller has gone; long work asks now and then.
#[derive(Clone, Default)]
pub(crate) struct Cut(Arc<AtomicBool>);

impl Cut {
    /// An error once the caller has gone; nobody will read it.
    pub(crate) fn check(&self) -> io::Result<()> {
        match self.0.load(Ordering::Relaxed) {
            true => Err(io::Error::other("cut off")),
            false => Ok(()),
        }
    }
}

/// How long a search goes on: for a time, and while its caller is there.
pub(crate) struct Patience<'a> {
    cut: &'a Cut,
    until: Instant,
}

impl<'a> Patience<'a> {
    pub(crate) fn new(cut: &'a Cut, limit: Duration) -> Self {
        Self { cut, until: Instant::now() + limit }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.cut.check().is_err() || Instant::now() >= self.until
    }
}

/// Runs `work` on a thread that may block. Dropping the future tells `work` through its [`Cut`].
async fn run_blocking<T, F>(work: F) -> Result<T, ToolError>
where
    T: Send + 'static,
    F: FnOnce(&Cut) -> Result<T, ToolError> + Send + 'static,
{
    let on_drop = CutOnDrop(Cut::default());
    let cut = on_drop.0.clone();
    match task::spawn_blocking(move || work(&cut)).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => panic::resume_unwind(panic),
            Err(_) => Err(ToolError::new("the program is shutting down")),
        },
    }
}

struct CutOnDrop(Cut);

impl Drop for CutOnDrop {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn work_learns_that_its_caller_has_gone() {
        let (started, has_started) = mpsc::channel();
        let (ended, has_ended) = mpsc::channel();
        let work = tokio::spawn(run_blocking(move |cut| {
            started.send(()).unwrap();
            while cut.check().is_ok() {
                std::thread::yield_now();
            }
            ended.send(()).unwrap();
            Ok(())
        }));
        task::spawn_blocking(move || has_started.recv().unwrap()).await.unwrap();
        work.abort();
        task::spawn_blocking(move || has_ended.recv().unwrap()).await.unwrap();
    }
}
