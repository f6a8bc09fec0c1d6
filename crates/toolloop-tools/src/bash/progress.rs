//! [`Progress`]: the lines of a running command, a few at a time, for whoever watches.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use toolloop_core::CallContext;

/// Shows the last lines of a command's output while it runs, at most [`LINES`] every [`PAUSE`].
pub(crate) struct Progress<'a> {
    call: &'a CallContext,
    waiting: VecDeque<String>,
    next: Instant,
}

/// The unfinished last line of one output stream.
#[derive(Default)]
pub(crate) struct OpenLine(Vec<u8>);

impl<'a> Progress<'a> {
    pub(crate) fn new(call: &'a CallContext) -> Self {
        Self { call, waiting: VecDeque::new(), next: Instant::now() }
    }

    /// Takes output; `open` is the stream's own.
    pub(crate) fn push(&mut self, open: &mut OpenLine, bytes: &[u8]) {
        // Of much output at once only the last lines can be shown.
        let skip = bytes.len().saturating_sub(LINES * LINE_LENGTH);
        for &byte in &bytes[skip..] {
            match byte {
                b'\n' | b'\r' => self.add_line(std::mem::take(&mut open.0)),
                _ if open.0.len() < LINE_LENGTH => open.0.push(byte),
                _ => {}
            }
        }
        if Instant::now() >= self.next {
            self.show();
        }
    }

    /// Resolves when waiting lines may be shown; never without any.
    pub(crate) async fn due(&self) {
        match self.waiting.is_empty() {
            true => std::future::pending().await,
            false => sleep_until(self.next).await,
        }
    }

    /// Shows the lines that wait.
    pub(crate) fn show(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        for line in self.waiting.drain(..) {
            self.call.progress(line);
        }
        self.next = Instant::now() + PAUSE;
    }

    fn add_line(&mut self, line: Vec<u8>) {
        let text: String =
            String::from_utf8_lossy(&line).chars().filter(|c| !c.is_control()).collect();
        if text.trim().is_empty() {
            return;
        }
        if self.waiting.len() == LINES {
            self.waiting.pop_front();
        }
        self.waiting.push_back(text);
    }
}

/// What a screen shows of a running tool.
const LINES: usize = 3;
const LINE_LENGTH: usize = 400;
const PAUSE: Duration = Duration::from_millis(100);
