//! [`ArgumentsText`]: the arguments of a call as the JSON text that OpenAI's APIs want.

use std::fmt;

use serde::ser::{Serialize, Serializer};
use serde_json::Value;

/// The compact JSON text of an object, in a string.
///
/// They refuse a history whose arguments are no JSON object, so what the model said
/// otherwise is kept as the value of a member.
pub(in crate::codec) struct ArgumentsText<'a>(pub(in crate::codec) &'a Value);

impl Serialize for ArgumentsText<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Display for ArgumentsText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::Object(_) => self.0.fmt(f),
            Value::Null => f.write_str("{}"),
            other => write!(f, "{{\"unreadable_arguments\":{other}}}"),
        }
    }
}
