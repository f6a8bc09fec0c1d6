//! Fingerprints of calls and results: 64 bits that stay the same from process to process.

use serde_json::Value;

use crate::chat::ToolCall;
use crate::tool_content::ToolContent;

/// FNV-1a. A stored run must meet the same figures again, which the standard hasher does not
/// promise; and nobody gains from a collision.
pub(super) struct Fingerprint(u64);

/// A call by its name and arguments; the order of an object's keys does not matter.
pub(super) fn of_call(call: &ToolCall) -> u64 {
    let mut print = Fingerprint::new();
    print.call(call);
    print.0
}

/// A text without the space around it; `None` where nothing is said.
pub(super) fn of_text(text: &str) -> Option<u64> {
    let text = text.trim();
    (!text.is_empty()).then(|| {
        let mut print = Fingerprint::new();
        print.text(text);
        print.0
    })
}

/// A result. An error is taken without what it quotes of the arguments, and without words that
/// differ each time: clock times, durations, ids.
pub(super) fn of_result(call: &ToolCall, content: &ToolContent, is_error: bool) -> u64 {
    let mut print = Fingerprint::new();
    if is_error {
        let mut error = content.text.clone();
        strip(&mut error, &call.arguments);
        print.text("error");
        error.split_whitespace().filter(|word| !is_volatile(word)).for_each(|word| {
            print.text(word);
        });
        return print.0;
    }
    print.text(&content.text);
    for image in &content.images {
        print.text(&image.media_type);
        print.value(&serde_json::to_value(&image.data).unwrap_or_default());
    }
    if let Some(structured) = &content.structured {
        print.value(structured);
    }
    print.0
}

impl Fingerprint {
    pub(super) fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    pub(super) fn call(&mut self, call: &ToolCall) {
        self.text(&call.name);
        self.value(&call.arguments);
    }

    pub(super) fn finish(self) -> u64 {
        self.0
    }

    /// A text and its end, so that "ab", "c" is not "a", "bc".
    fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
        self.bytes(&[0xff]);
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::Null => self.bytes(b"n"),
            Value::Bool(true) => self.bytes(b"t"),
            Value::Bool(false) => self.bytes(b"f"),
            Value::Number(number) => {
                self.bytes(b"#");
                self.text(&number.to_string());
            }
            Value::String(text) => {
                self.bytes(b"s");
                self.text(text);
            }
            Value::Array(items) => {
                self.bytes(b"[");
                items.iter().for_each(|item| self.value(item));
                self.bytes(b"]");
            }
            Value::Object(fields) => {
                let mut fields: Vec<_> = fields.iter().collect();
                fields.sort_unstable_by_key(|(key, _)| *key);
                self.bytes(b"{");
                for (key, value) in fields {
                    self.text(key);
                    self.value(value);
                }
                self.bytes(b"}");
            }
        }
    }

    fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

/// Takes the texts of the arguments out of an error.
fn strip(error: &mut String, arguments: &Value) {
    match arguments {
        // A letter or two stand in every sentence.
        Value::String(text) if text.len() > 2 && error.contains(text) => {
            *error = error.replace(text, "");
        }
        Value::Array(items) => items.iter().for_each(|item| strip(error, item)),
        Value::Object(fields) => fields.values().for_each(|value| strip(error, value)),
        _ => {}
    }
}

/// Whether a word of an error is a clock time, a date, a duration or an id, which differ each time
/// and mean nothing. Other numbers count: "2 tests failed" is not "3 tests failed".
fn is_volatile(word: &str) -> bool {
    let word = word.trim_matches(|c: char| !c.is_alphanumeric());
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    if digits == 0 {
        return false;
    }
    let is_moment = digits >= 4
        && word.contains([':', '-'])
        && word.bytes().all(|b| b.is_ascii_digit() || b":-.+TZ".contains(&b));
    let is_duration = ["ms", "us", "µs", "ns", "s", "m", "h"].iter().any(|unit| {
        word.strip_suffix(unit).is_some_and(|number| {
            !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit() || b == b'.')
        })
    });
    let is_id = word
        .split(['-', '_', '='])
        .any(|part| part.len() >= 8 && part.bytes().all(|b| b.is_ascii_hexdigit()));
    is_moment || is_duration || is_id
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn error(arguments: Value, text: &str) -> u64 {
        let call = ToolCall { id: "any".into(), name: "t".into(), arguments };
        of_result(&call, &text.into(), true)
    }

    #[test]
    fn an_error_is_the_same_whatever_it_quotes_and_whenever_it_came() {
        let at = |path: &str, rest: &str| error(json!({"path": path}), &format!("{path}: {rest}"));
        assert_eq!(at("a.txt", "not found"), at("b/c.md", "not found"));
        assert_ne!(at("a.txt", "not found"), at("a.txt", "not a file"));
        let once = |text| error(json!({}), text);
        assert_eq!(
            once("12:03:04 connection refused after 0.52s (request 8f3a2b1c)"),
            once("12:07:59 connection refused after 3s (request 00aa17ff)")
        );
        assert_eq!(once("2026-11-20T10:00:00Z quota"), once("2026-11-20T10:00:09.5Z quota"));
        assert_ne!(once("3 tests failed"), once("2 tests failed"));
        assert_ne!(once("main.rs:12:5 expected `;`"), once("main.rs:40:1 expected `;`"));
    }

    #[test]
    fn a_result_is_taken_as_it_is() {
        let call = ToolCall { id: "any".into(), name: "t".into(), arguments: json!({}) };
        let ok = |text: &str| of_result(&call, &text.into(), false);
        assert_ne!(ok("running for 3s"), ok("running for 4s"));
        assert_ne!(ok("gone"), of_result(&call, &"gone".into(), true));
        let structured = ToolContent { structured: Some(json!(1)), ..ToolContent::from("gone") };
        assert_ne!(ok("gone"), of_result(&call, &structured, false));
    }

    /// A run that was stored by an earlier version must meet the same figures again.
    #[test]
    fn fingerprints_never_change() {
        let arguments = json!({"b": [1, -2.5, "x", null], "a": {"y": true, "x": false}});
        let call = ToolCall { id: "any".into(), name: "t".into(), arguments };
        let prints = [of_call(&call), of_text(" a ").unwrap(), error(json!({}), "no")];
        assert_eq!(prints, [0xbf26_8420_ed48_fedd, 0x089b_c907_b544_c769, 0x4179_aab6_6afa_5f52]);
    }
}
