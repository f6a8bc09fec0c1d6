//! [`Ending`]: why a connection ended, for all who wait for something from it.

use tokio::sync::watch;

/// Why a connection ended. The first reason stays.
#[derive(Clone)]
pub(crate) struct Ending(watch::Sender<Option<String>>);

impl Ending {
    pub(crate) fn new() -> Self {
        Self(watch::Sender::new(None))
    }

    pub(crate) fn set(&self, why: String) {
        self.0.send_if_modified(|ending| {
            let is_first = ending.is_none();
            ending.get_or_insert(why);
            is_first
        });
    }

    /// The reason; `None` while the connection lives.
    pub(crate) fn get(&self) -> Option<String> {
        self.0.borrow().clone()
    }

    /// Resolves when the connection has ended.
    pub(crate) async fn wait(&self) {
        // It fails only when no sender is left, and this is one.
        let _ = self.0.subscribe().wait_for(Option::is_some).await;
    }
}
