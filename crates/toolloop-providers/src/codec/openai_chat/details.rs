//! [`Details`]: OpenRouter's `reasoning_details`, put together from their pieces.
//!
//! They hold what the provider behind the gateway wants back with its thoughts: signatures, and
//! thoughts that are encrypted. Returned with their message, whole and in order, they keep a model
//! thinking where it stopped.

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use toolloop_core::{ContentBlock, ProviderData};

use super::API;

/// The member of a message they stand in.
pub(super) const MEMBER: &str = "reasoning_details";

/// The details that came and were not handed on yet.
#[derive(Default)]
pub(super) struct Details(Vec<Value>);

impl Details {
    /// Takes the pieces of one chunk.
    pub(super) fn handle(&mut self, pieces: Value) {
        let Value::Array(pieces) = pieces else { return };
        for piece in pieces {
            match (self.0.last_mut(), piece) {
                (Some(Value::Object(open)), Value::Object(more)) if goes_on(open, &more) => {
                    extend(open, more);
                }
                (_, piece) => self.0.push(piece),
            }
        }
    }

    /// Hands on what came.
    pub(super) fn take(&mut self) -> Option<ProviderData> {
        if self.0.is_empty() {
            return None;
        }
        let details = std::mem::take(&mut self.0);
        Some(ProviderData { api: API.into(), data: json!({ MEMBER: details }).to_string() })
    }
}

/// All details of a message that came from there, in order, byte for byte.
pub(super) fn of_message<'a>(blocks: &'a [ContentBlock], origin: &str) -> Vec<&'a RawValue> {
    #[derive(serde::Deserialize)]
    struct Kept<'a> {
        #[serde(borrow, default)]
        reasoning_details: Vec<&'a RawValue>,
    }
    let kept = blocks.iter().filter_map(|block| match block {
        ContentBlock::ProviderData(data) if data.api == origin => {
            serde_json::from_str::<Kept<'_>>(&data.data).ok()
        }
        _ => None,
    });
    kept.flat_map(|kept| kept.reasoning_details).collect()
}

/// Whether a piece is more of the open detail: only readable thoughts come in pieces.
fn goes_on(open: &Map<String, Value>, more: &Map<String, Value>) -> bool {
    let kind = more.get("type").and_then(Value::as_str);
    matches!(kind, Some("reasoning.text" | "reasoning.summary"))
        && open.get("type") == more.get("type")
        && open.get("index") == more.get("index")
}

fn extend(open: &mut Map<String, Value>, more: Map<String, Value>) {
    for (name, value) in more {
        match (open.get_mut(&name), value) {
            (Some(Value::String(text)), Value::String(piece))
                if name == "text" || name == "summary" =>
            {
                text.push_str(&piece);
            }
            // What a piece does not say was said before.
            (Some(_), Value::Null) => {}
            (Some(_), Value::String(text)) if text.is_empty() => {}
            (_, value) => {
                open.insert(name, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readable_thoughts_are_put_together() {
        let mut details = Details::default();
        let text = |members: Value| {
            let mut piece = json!({"type": "reasoning.text", "index": 0, "format": "f"});
            piece.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
            json!([piece])
        };
        details.handle(text(json!({"text": "I ", "signature": ""})));
        details.handle(text(json!({"text": "think"})));
        details.handle(text(json!({"signature": "s", "format": null})));
        details.handle(Value::Null);
        let sealed = json!({"type": "reasoning.encrypted", "index": 0, "data": "x"});
        details.handle(json!([sealed, sealed]));
        let whole = text(json!({"text": "I think", "signature": "s"}))[0].clone();
        let expected = json!({MEMBER: [whole, sealed, sealed]});
        let data: Value = serde_json::from_str(&details.take().unwrap().data).unwrap();
        assert_eq!(data, expected);
        assert_eq!(details.take(), None);
    }
}
