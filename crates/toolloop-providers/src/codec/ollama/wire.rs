//! The lines of an answer as they lie in the buffer: only what is needed, borrowed.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::codec::forgiving::{Text, count};

/// One line of a stream, or a whole answer.
#[derive(Deserialize)]
pub(super) struct Line<'a> {
    #[serde(borrow, default)]
    pub(super) model: Text<'a>,
    #[serde(borrow, default)]
    pub(super) message: Option<Message<'a>>,
    #[serde(default)]
    pub(super) done: bool,
    #[serde(borrow, default)]
    pub(super) done_reason: Text<'a>,
    #[serde(default, deserialize_with = "count")]
    pub(super) prompt_eval_count: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    pub(super) eval_count: Option<u64>,
    #[serde(default)]
    pub(super) error: Option<Box<Value>>,
}

#[derive(Deserialize)]
pub(super) struct Message<'a> {
    #[serde(borrow, default)]
    pub(super) content: Text<'a>,
    #[serde(borrow, default)]
    pub(super) thinking: Text<'a>,
    #[serde(borrow, default)]
    pub(super) tool_calls: Option<Vec<Call<'a>>>,
}

#[derive(Deserialize)]
pub(super) struct Call<'a> {
    /// Older servers give none.
    #[serde(borrow, default)]
    pub(super) id: Text<'a>,
    #[serde(borrow)]
    pub(super) function: Function<'a>,
}

#[derive(Deserialize)]
pub(super) struct Function<'a> {
    #[serde(borrow, default)]
    pub(super) name: Text<'a>,
    #[serde(borrow, default)]
    pub(super) arguments: Option<&'a RawValue>,
}
