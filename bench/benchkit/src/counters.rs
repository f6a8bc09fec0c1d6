//! What a client's user has seen, and what the process has used. Global, because a tool's
//! function has no other way to them.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};

use crate::Options;

static TEXT_EVENTS: AtomicU64 = AtomicU64::new(0);
static TEXT_BYTES: AtomicU64 = AtomicU64::new(0);
static OUTPUT_TOKENS: AtomicU64 = AtomicU64::new(0);
static TOOL_CALLS: AtomicU64 = AtomicU64::new(0);
static RESULT_BYTES: AtomicUsize = AtomicUsize::new(0);
static NEXT_MARK: AtomicU64 = AtomicU64::new(u64::MAX);
static MARKS: Mutex<Marks> = Mutex::new(Marks { due: Vec::new(), done: Vec::new(), cpu0: 0.0 });
static FIRST_EVENT_NS: Mutex<Vec<u64>> = Mutex::new(Vec::new());

struct Marks {
    due: Vec<u64>,
    /// Tool calls executed, and CPU seconds used until then.
    done: Vec<(u64, f64)>,
    cpu0: f64,
}

/// One conversation's view of the counters.
pub struct Conv {
    start: Instant,
    seen: bool,
}

impl Conv {
    pub(crate) fn start() -> Self {
        Self { start: Instant::now(), seen: false }
    }

    /// Called with every text delta the client's user would see.
    #[inline]
    pub fn text(&mut self, delta: &str) {
        if delta.is_empty() {
            return;
        }
        self.raw(delta.len());
        TEXT_EVENTS.fetch_add(1, Relaxed);
    }

    /// Output tokens of one answer or of the whole conversation, as the client's user is told.
    pub fn usage(&mut self, output_tokens: u64) {
        OUTPUT_TOKENS.fetch_add(output_tokens, Relaxed);
    }

    /// Bytes arrived, for the client that does not parse.
    #[inline]
    pub fn raw(&mut self, bytes: usize) {
        TEXT_BYTES.fetch_add(bytes as u64, Relaxed);
        if !self.seen {
            self.seen = true;
            let ns = self.start.elapsed().as_nanos() as u64;
            FIRST_EVENT_NS.lock().expect("no panic under the lock").push(ns);
        }
    }
}

/// Counts one tool call; `add` does it, a client that runs no tools calls it itself.
pub fn count_tool_call() {
    let n = TOOL_CALLS.fetch_add(1, Relaxed) + 1;
    if n == NEXT_MARK.load(Relaxed) {
        mark(n);
    }
}

#[cold]
fn mark(n: u64) {
    let mut marks = MARKS.lock().expect("no panic under the lock");
    let used = cpu() - marks.cpu0;
    marks.done.push((n, used));
    marks.due.retain(|due| *due > n);
    NEXT_MARK.store(marks.due.iter().copied().min().unwrap_or(u64::MAX), Relaxed);
}

/// Sets every counter to its start.
pub(crate) fn start(options: &Options) {
    for counter in [&TEXT_EVENTS, &TEXT_BYTES, &TOOL_CALLS, &OUTPUT_TOKENS] {
        counter.store(0, Relaxed);
    }
    RESULT_BYTES.store(options.result_bytes, Relaxed);
    FIRST_EVENT_NS.lock().expect("no panic under the lock").clear();
    let due = options.marks.clone();
    NEXT_MARK.store(due.iter().copied().min().unwrap_or(u64::MAX), Relaxed);
    *MARKS.lock().expect("no panic under the lock") = Marks { due, done: Vec::new(), cpu0: cpu() };
}

pub(crate) fn report() -> serde_json::Value {
    let mut first = std::mem::take(&mut *FIRST_EVENT_NS.lock().expect("no panic under the lock"));
    first.sort_unstable();
    let quantile_us = |q: f64| match first.len() {
        0 => 0.0,
        n => first[((n - 1) as f64 * q) as usize] as f64 / 1e3,
    };
    serde_json::json!({
        "text_events": TEXT_EVENTS.load(Relaxed),
        "text_bytes": TEXT_BYTES.load(Relaxed),
        "output_tokens": OUTPUT_TOKENS.load(Relaxed),
        "tool_calls": TOOL_CALLS.load(Relaxed),
        "first_event_us": {"p50": quantile_us(0.5), "p90": quantile_us(0.9)},
        "marks": MARKS.lock().expect("no panic under the lock").done,
    })
}

pub(crate) fn result_bytes() -> usize {
    RESULT_BYTES.load(Relaxed)
}

/// CPU seconds (user and system) this process has used.
pub(crate) fn cpu() -> f64 {
    let t = clock_gettime(ClockId::ProcessCPUTime);
    t.tv_sec as f64 + t.tv_nsec as f64 / 1e9
}

/// A line of /proc/self/status, in KiB.
pub(crate) fn memory_kb(key: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(key));
    line.and_then(|rest| rest.trim().trim_end_matches("kB").trim().parse().ok()).unwrap_or(0)
}
