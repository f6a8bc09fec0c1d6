//! [`Deadline`]: a point in time that moves with every piece of content, at next to no cost.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::time::{Instant, Sleep, sleep_until};

/// One timer. Moving the deadline later leaves the timer as it is; when that fires too early,
/// it is set anew.
pub(super) struct Deadline {
    at: Instant,
    timer: Pin<Box<Sleep>>,
}

impl Deadline {
    pub(super) fn new(at: Instant) -> Self {
        Self { at, timer: Box::pin(sleep_until(at)) }
    }

    pub(super) fn set(&mut self, at: Instant) {
        self.at = at;
        if at < self.timer.deadline() {
            self.timer.as_mut().reset(at);
        }
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            ready!(self.timer.as_mut().poll(cx));
            if self.timer.deadline() >= self.at {
                return Poll::Ready(());
            }
            self.timer.as_mut().reset(self.at);
        }
    }
}
