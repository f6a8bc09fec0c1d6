//! Tools that do what their arguments say, and the ledger of what they did.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;
use toolloop::tool::{CallContext, ToolError, ToolFuture, ToolHandler};
use toolloop::{JsonSchema, ToolDefinition};

/// What tools really did, `ms id word` a line: started, finished, failed or cut.
#[derive(Debug, Clone)]
pub(crate) struct Ledger {
    began: Instant,
    lines: Arc<Mutex<Vec<String>>>,
}

/// A tool that takes its orders from its arguments, all of them optional: `ms` to sleep, `say`
/// to answer, `fail` and `panic` to end so, `hang` never to end, `progress` to tell first.
#[derive(Clone)]
pub(crate) struct ActTool {
    pub(crate) definition: ToolDefinition,
    pub(crate) time_limit: Option<Duration>,
    ledger: Ledger,
}

pub(crate) fn act(name: &str, ledger: &Ledger) -> ActTool {
    let parameters = JsonSchema::new(json!({
        "type": "object",
        "properties": {
            "ms": { "type": "integer" },
            "say": { "type": "string" },
            "fail": { "type": "string" },
            "panic": { "type": "string" },
            "hang": { "type": "boolean" },
            "progress": { "type": "array", "items": { "type": "string" } },
        },
    }));
    let definition = ToolDefinition {
        name: name.into(),
        description: format!("Acts as {name}."),
        parameters,
        retry: None,
    };
    ActTool { definition, time_limit: None, ledger: ledger.clone() }
}

impl ToolHandler for ActTool {
    fn definition(&self) -> ToolDefinition {
        self.definition.clone()
    }

    fn time_limit(&self) -> Option<Duration> {
        self.time_limit
    }

    fn execute<'a>(&'a self, _: Value, (): &'a ()) -> ToolFuture<'a> {
        unreachable!("the loop uses `call`")
    }

    fn call<'a>(&'a self, input: Value, call: &'a CallContext, (): &'a ()) -> ToolFuture<'a> {
        Box::pin(async move {
            let mut entry = Entry::open(&self.ledger, call.call_id());
            for line in input["progress"].as_array().into_iter().flatten() {
                call.progress(line.as_str().unwrap());
            }
            if let Some(ms) = input["ms"].as_u64() {
                tokio::time::sleep(Duration::from_millis(ms)).await;
            }
            if input["hang"] == true {
                std::future::pending::<()>().await;
            }
            if let Some(words) = input["panic"].as_str() {
                panic!("{words}");
            }
            if let Some(words) = input["fail"].as_str() {
                entry.close("failed");
                return Err(ToolError::new(words));
            }
            entry.close("finished");
            let said = input["say"].as_str();
            Ok(said.map_or_else(|| format!("{} ran", call.call_id()), str::to_owned).into())
        })
    }
}

impl Default for Ledger {
    fn default() -> Self {
        Self { began: Instant::now(), lines: Arc::default() }
    }
}

impl Ledger {
    pub(crate) fn note(&self, what: impl std::fmt::Display) {
        let ms = self.began.elapsed().as_millis();
        self.lines.lock().unwrap().push(format!("{ms} {what}"));
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap().clone()
    }

    /// The last word on a call: `None` where it never started.
    pub(crate) fn fate(&self, id: &str) -> Option<String> {
        let of_call = |line: &String| {
            let mut words = line.splitn(3, ' ').skip(1);
            (words.next() == Some(id)).then(|| words.next().unwrap_or_default().to_owned())
        };
        self.lines().iter().rev().find_map(of_call)
    }
}

/// One execution; dropped before it is closed, it was cut.
struct Entry<'a> {
    ledger: &'a Ledger,
    id: &'a str,
    is_open: bool,
}

impl<'a> Entry<'a> {
    fn open(ledger: &'a Ledger, id: &'a str) -> Self {
        ledger.note(format_args!("{id} started"));
        Self { ledger, id, is_open: true }
    }

    fn close(&mut self, word: &str) {
        self.is_open = false;
        self.ledger.note(format_args!("{} {word}", self.id));
    }
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        if self.is_open {
            let word = if std::thread::panicking() { "panicked" } else { "cut" };
            self.close(word);
        }
    }
}
