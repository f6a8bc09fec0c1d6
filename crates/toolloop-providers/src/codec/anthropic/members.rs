//! [`Members`]: the members of a JSON object, in their order and each as it was written.

use std::fmt;

use serde::de::{Deserializer, MapAccess, Visitor};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

/// A JSON object that is kept rather than understood.
#[derive(Default)]
pub(super) struct Members(Vec<(String, Box<RawValue>)>);

impl Members {
    pub(super) fn set(&mut self, name: &str, value: Box<RawValue>) {
        match self.0.iter_mut().find(|(known, _)| known == name) {
            Some((_, known)) => *known = value,
            None => self.0.push((name.to_owned(), value)),
        }
    }

    /// Goes on with the strings of these members; any other value replaces the one before.
    pub(super) fn extend(&mut self, delta: Self) {
        for (name, value) in delta.0.into_iter().filter(|(name, _)| name != "type") {
            let known = self.0.iter().find(|(known, _)| *known == name);
            let joined = known.and_then(|(_, before)| joined(before, &value));
            self.set(&name, joined.unwrap_or(value));
        }
    }
}

/// Two strings as one.
fn joined(first: &RawValue, second: &RawValue) -> Option<Box<RawValue>> {
    let first: String = serde_json::from_str(first.get()).ok()?;
    let second: String = serde_json::from_str(second.get()).ok()?;
    to_raw_value(&(first + &second)).ok()
}

impl Members {
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &RawValue)> {
        self.0.iter().map(|(name, value)| (name.as_str(), &**value))
    }
}

impl Serialize for Members {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;

        impl<'de> Visitor<'de> for InOrder {
            type Value = Members;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = object.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(InOrder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(text: &str) -> Members {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn what_is_kept_is_kept_byte_for_byte() {
        let text = r#"{"b":1.50,"a":{"x":1e400},"c":"\u00e9\/"}"#;
        assert_eq!(serde_json::to_string(&members(text)).unwrap(), text);
    }

    #[test]
    fn strings_go_on_and_other_values_replace() {
        let mut block = members(r#"{"type":"compaction","content":null,"id":"x"}"#);
        block.extend(members(r#"{"type":"compaction_delta","content":"a"}"#));
        block.extend(members(r#"{"type":"compaction_delta","content":"b","n":1}"#));
        let expected = r#"{"type":"compaction","content":"ab","id":"x","n":1}"#;
        assert_eq!(serde_json::to_string(&block).unwrap(), expected);
    }
}
