//! [`Retries`]: whether and when a failed try is repeated.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use toolloop_core::RetryNotice;

use super::failure::{AttemptError, RetryClass};

/// The tries of one call.
pub(super) struct Retries {
    /// The try under way, from 1.
    pub(super) attempt: u32,
    max_retries: u32,
    delays: Option<ExponentialBackoff>,
}

impl Retries {
    pub(super) fn new(max_retries: u32) -> Self {
        Self { attempt: 1, max_retries, delays: None }
    }

    /// The pause before the next try; `None`: there is none.
    ///
    /// A provider that asks for more patience than is reasonable in the middle of a call gets no
    /// second try; its wish goes to the caller with the error. `heard`: the server had begun to
    /// answer.
    pub(super) fn next(&mut self, failed: &AttemptError, heard: bool) -> Option<RetryNotice> {
        let retries = match failed.class {
            RetryClass::Never => 0,
            RetryClass::Network => self.max_retries.min(NETWORK_RETRIES),
            RetryClass::Server => self.max_retries,
        };
        if self.attempt > retries {
            return None;
        }
        let delays = self.delays.get_or_insert_with(|| DELAYS.build());
        let delay = match failed.error.retry_after() {
            Some(wish) if wish > LONGEST_WISH => return None,
            Some(wish) => wish,
            None => delays.next()?,
        };
        let notice = RetryNotice {
            attempt: self.attempt,
            max_attempts: retries + 1,
            delay,
            reason: failed.error.to_string(),
            may_have_cost: heard || failed.error.may_have_cost(),
        };
        self.attempt += 1;
        Some(notice)
    }
}

/// Jitter adds up to the same again. Three tries of a server that is away take 3 to 6 s.
const DELAYS: ExponentialBuilder = ExponentialBuilder::new()
    .with_min_delay(Duration::from_secs(1))
    .with_max_delay(Duration::from_secs(30))
    .without_max_times()
    .with_jitter();

/// Tries after the first, where no server answered.
const NETWORK_RETRIES: u32 = 2;

const LONGEST_WISH: Duration = Duration::from_secs(60);
