//! [`Host`]: what the tools of a driver may reach: progress, cancellation, idempotency keys.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Context;

use futures_util::task::AtomicWaker;
use tokio_util::sync::CancellationToken;
use toolloop_core::effect::EffectKey;
use toolloop_core::{BoxFuture, CallHost, LoopEvent};

pub(super) struct Host {
    /// Random, so that keys of two runs differ.
    run_id: u64,
    shared: Arc<Shared>,
}

struct Shared {
    cancel: CancellationToken,
    /// Whether `progress` holds anything; saves the lock where tools are quiet.
    has_progress: AtomicBool,
    progress: Mutex<VecDeque<LoopEvent>>,
    waker: AtomicWaker,
}

impl Host {
    pub(super) fn new(cancel: Option<&CancellationToken>) -> Self {
        let shared = Shared {
            cancel: cancel.map_or_else(CancellationToken::new, CancellationToken::child_token),
            has_progress: AtomicBool::new(false),
            progress: Mutex::default(),
            waker: AtomicWaker::new(),
        };
        Self { run_id: fastrand::u64(..), shared: Arc::new(shared) }
    }

    pub(super) fn shared(&self) -> Arc<dyn CallHost> {
        Arc::clone(&self.shared) as Arc<dyn CallHost>
    }

    pub(super) fn idempotency_key(&self, key: EffectKey) -> String {
        format!("{:016x}/{key}", self.run_id)
    }

    /// Tells tools that dropping does not stop, such as blocking threads.
    pub(super) fn cancel(&self) {
        self.shared.cancel.cancel();
    }

    pub(super) fn wake_on_progress(&self, cx: &Context<'_>) {
        self.shared.waker.register(cx.waker());
    }

    pub(super) fn take_progress(&self, told: &mut VecDeque<LoopEvent>) {
        if self.shared.has_progress.swap(false, Ordering::AcqRel) {
            let mut progress = self.shared.progress.lock().unwrap_or_else(PoisonError::into_inner);
            told.append(&mut progress);
        }
    }
}

/// A driver that is gone cancels what its tools left running.
impl Drop for Host {
    fn drop(&mut self) {
        self.cancel();
    }
}

impl CallHost for Shared {
    fn progress(&self, call_id: &str, text: String) {
        let event = LoopEvent::ToolProgress { call_id: call_id.to_owned(), text };
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        // Progress is for people: where nobody keeps up, the oldest lines go first.
        if progress.len() >= MOST_LINES {
            progress.pop_front();
        }
        progress.push_back(event);
        self.has_progress.store(true, Ordering::Release);
        drop(progress);
        self.waker.wake();
    }

    fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    fn cancelled(&self) -> BoxFuture<'static, ()> {
        Box::pin(self.cancel.clone().cancelled_owned())
    }
}

/// Lines of progress that may wait to be read.
const MOST_LINES: usize = 1024;
