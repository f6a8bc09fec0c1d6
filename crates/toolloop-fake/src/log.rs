//! [`Exchange`]: a request and what was really written in answer to it.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Serialize, Serializer};
use serde_json::Value;
use tokio::sync::watch;

/// A request as the server read it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Request {
    /// Counts the requests of the server from 1.
    pub number: usize,
    /// The HTTP method.
    pub method: String,
    /// The path with its query.
    pub path: String,
    /// The headers, names in lower case; of keys only the end is left.
    #[serde(serialize_with = "as_map")]
    pub headers: Vec<(String, String)>,
    /// The body: `Null` where there is none, a `String` of the text where it is not JSON.
    pub body: Value,
    /// Size of the body.
    #[serde(rename = "request_bytes")]
    pub bytes: usize,
}

impl Request {
    /// The path without its query.
    pub(crate) fn route(&self) -> &str {
        self.path.split('?').next().unwrap_or_default()
    }

    /// The first header of this name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }
}

#[cfg(test)]
impl Request {
    /// The seventh of a server, 40 bytes long.
    pub(crate) fn seventh(path: &str, body: Value) -> Self {
        let (method, path) = ("POST".to_owned(), path.to_owned());
        Self { number: 7, method, path, headers: Vec::new(), bytes: 40, body }
    }
}

/// A request and what was really written in answer to it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Exchange {
    /// The request.
    #[serde(flatten)]
    pub request: Request,
    /// The status that was written; `None` where it came to none.
    pub status: Option<u16>,
    /// How many events were written to their end, those of faults included.
    pub events: usize,
    /// Bytes of the body that were written.
    pub bytes: u64,
    /// The body that was written, up to its first MiB.
    #[serde(rename = "reply", serialize_with = "as_text")]
    pub body: Vec<u8>,
    /// How it ended.
    pub end: End,
}

impl Exchange {
    /// The body that was written, as text.
    pub fn body_text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// How an [`Exchange`] ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// It has not.
    Open,
    /// The reply was written to its end.
    Complete,
    /// A fault closed the connection.
    Cut,
    /// The client closed the connection before the end of the reply.
    ClientClosed,
    /// The server was stopped.
    Stopped,
}

/// All exchanges of a server.
pub(crate) struct Log {
    state: Mutex<State>,
    /// Tells those who wait that an exchange began or ended.
    changed: watch::Sender<()>,
}

#[derive(Default)]
struct State {
    exchanges: BTreeMap<usize, Exchange>,
    requests: usize,
    open: usize,
    forget: bool,
    sink: Option<Box<dyn Write + Send>>,
}

impl Log {
    pub(crate) fn new(forget: bool, sink: Option<Box<dyn Write + Send>>) -> Self {
        let state = State { forget, sink, ..State::default() };
        Self { state: Mutex::new(state), changed: watch::Sender::new(()) }
    }

    /// Numbers a request and opens its exchange.
    pub(crate) fn begin(self: &Arc<Self>, mut request: Request) -> (Request, Recorder) {
        let mut state = self.state();
        state.requests += 1;
        state.open += 1;
        let number = state.requests;
        request.number = number;
        let exchange = Exchange {
            request: request.clone(),
            status: None,
            events: 0,
            bytes: 0,
            body: Vec::new(),
            end: End::Open,
        };
        state.exchanges.insert(number, exchange);
        (request, Recorder { log: Arc::clone(self), number })
    }

    pub(crate) fn exchanges(&self) -> Vec<Exchange> {
        self.state().exchanges.values().cloned().collect()
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.state().exchanges.values().map(|exchange| exchange.request.clone()).collect()
    }

    /// Waits until no exchange is open.
    pub(crate) async fn idle(&self) {
        let mut changed = self.changed.subscribe();
        while self.state().open > 0 {
            // The sender is in `self`, so it lives.
            let _ = changed.changed().await;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes down one exchange while it happens. Dropped before its end, the exchange is stopped.
pub(crate) struct Recorder {
    log: Arc<Log>,
    number: usize,
}

impl Recorder {
    pub(crate) fn status(&self, status: u16) {
        self.update(|exchange| exchange.status = Some(status));
    }

    pub(crate) fn wrote(&self, bytes: &[u8]) {
        self.update(|exchange| {
            exchange.bytes += bytes.len() as u64;
            let room = KEPT_BODY.saturating_sub(exchange.body.len());
            exchange.body.extend_from_slice(&bytes[..bytes.len().min(room)]);
        });
    }

    pub(crate) fn event(&self) {
        self.update(|exchange| exchange.events += 1);
    }

    pub(crate) fn end(self, end: End) {
        self.finish(end);
    }

    fn update(&self, change: impl FnOnce(&mut Exchange)) {
        if let Some(exchange) = self.log.state().exchanges.get_mut(&self.number) {
            change(exchange);
        }
    }

    fn finish(&self, end: End) {
        let mut state = self.log.state();
        let state = &mut *state;
        let Some(exchange) = state.exchanges.get_mut(&self.number) else { return };
        if exchange.end != End::Open {
            return;
        }
        exchange.end = end;
        if let Some(sink) = &mut state.sink
            && let Ok(mut line) = serde_json::to_vec(exchange)
        {
            line.push(b'\n');
            // A log that cannot be written is no reason to stop the server.
            let _ = sink.write_all(&line).and_then(|()| sink.flush());
        }
        if state.forget {
            state.exchanges.remove(&self.number);
        }
        state.open -= 1;
        self.log.changed.send_replace(());
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.finish(End::Stopped);
    }
}

/// A header's value as it may be written down: of a key only its end is left.
pub(crate) fn masked(name: &str, value: &str) -> String {
    if !SECRET_HEADERS.contains(&name) {
        return value.to_owned();
    }
    let (scheme, key) = match value.split_once(' ') {
        Some((scheme, key)) => (format!("{scheme} "), key),
        None => (String::new(), value),
    };
    let chars: Vec<char> = key.chars().collect();
    let shown = if chars.len() >= 12 { 4 } else { 0 };
    let end: String = chars[chars.len() - shown..].iter().collect();
    format!("{scheme}****{end}")
}

fn as_map<S: Serializer>(headers: &[(String, String)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(headers.iter().map(|(name, value)| (name, value)))
}

fn as_text<S: Serializer>(body: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&String::from_utf8_lossy(body))
}

const KEPT_BODY: usize = 1 << 20;

const SECRET_HEADERS: [&str; 6] =
    ["authorization", "proxy-authorization", "api-key", "x-api-key", "x-goog-api-key", "cookie"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_key_only_the_end_is_left() {
        assert_eq!(masked("authorization", "Bearer sk-0123456789abcd"), "Bearer ****abcd");
        assert_eq!(masked("authorization", "Bearer short"), "Bearer ****");
        assert_eq!(masked("x-api-key", "sk-0123456789abcd"), "****abcd");
        assert_eq!(masked("accept", "text/event-stream"), "text/event-stream");
    }
}
