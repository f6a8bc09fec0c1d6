//! [`Turn`]: what a request says, as far as the demo model understands it.

use serde_json::Value;

/// The user's last message and what happened since.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) task: String,
    offered: Vec<String>,
    results: Vec<ToolResult>,
}

/// A call that has its result.
#[derive(Debug)]
pub(super) struct ToolResult {
    name: String,
    pub(super) arguments: Value,
    pub(super) text: String,
}

impl Turn {
    pub(super) fn read(body: &Value) -> Self {
        let messages = body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
        let at = messages.iter().rposition(|message| message["role"] == "user");
        let (task, since) = match at {
            Some(at) => (text(&messages[at]["content"]), &messages[at + 1..]),
            None => (String::new(), messages),
        };
        let tools = match body["tool_choice"].as_str() {
            Some("none") => &[],
            _ => body["tools"].as_array().map(Vec::as_slice).unwrap_or_default(),
        };
        let names = tools.iter().filter_map(|tool| tool["function"]["name"].as_str());
        Self { task, offered: names.map(str::to_owned).collect(), results: results(since) }
    }

    pub(super) fn offers(&self, name: &str) -> bool {
        self.offered.iter().any(|offered| offered == name)
    }

    /// The results of one tool, in the order of its calls.
    pub(super) fn results(&self, name: &str) -> Vec<&ToolResult> {
        self.results.iter().filter(|result| result.name == name).collect()
    }
}

impl ToolResult {
    /// Why the call was not run, if somebody forbade it.
    pub(super) fn denial(&self) -> Option<&str> {
        let line = self.text.lines().next()?;
        let lower = line.to_lowercase();
        DENIALS.iter().any(|words| lower.contains(words)).then_some(line)
    }
}

fn results(messages: &[Value]) -> Vec<ToolResult> {
    let calls = messages.iter().filter_map(|message| message["tool_calls"].as_array()).flatten();
    let answered = calls.filter_map(|call| {
        let result = messages
            .iter()
            .find(|message| message["role"] == "tool" && message["tool_call_id"] == call["id"])?;
        let function = &call["function"];
        let arguments = function["arguments"].as_str().unwrap_or_default();
        Some(ToolResult {
            name: function["name"].as_str()?.to_owned(),
            arguments: serde_json::from_str(arguments).unwrap_or_default(),
            text: text(&result["content"]),
        })
    });
    answered.collect()
}

/// Content as text, whether it is a string or parts.
fn text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts: Vec<&str> = parts.iter().filter_map(|part| part["text"].as_str()).collect();
            texts.join("\n")
        }
        _ => String::new(),
    }
}

const DENIALS: [&str; 7] = [
    "call was denied",
    "call was not run",
    "denied by",
    "user denied",
    "user rejected",
    "user declined",
    "user refused",
];
