//! [`Parameters`]: the schema of a function's arguments, in the form the APIs of OpenAI take.

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Value, json};

/// The schema of a function's arguments: an object, and one without `properties` is refused.
pub(super) struct Parameters<'a>(pub(super) &'a Value);

impl Serialize for Parameters<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut schema = serializer.serialize_map(None)?;
        let words = self.0.as_object();
        let says = |word: &str| words.is_some_and(|words| words.contains_key(word));
        for (word, value) in words.into_iter().flatten() {
            schema.serialize_entry(word, value)?;
        }
        if !says("type") {
            schema.serialize_entry("type", "object")?;
        }
        if !says("properties") {
            schema.serialize_entry("properties", &json!({}))?;
        }
        schema.end()
    }
}
