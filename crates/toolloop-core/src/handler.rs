//! [`ToolHandler`]: a tool that can be run.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::params::ToolDefinition;
use crate::provider::BoxFuture;
use crate::tool_content::ToolContent;

/// A tool: how the model sees it, and what running it does.
///
/// Most tools are made with `tool_fn` or `#[tool]`. Implement the trait for a tool that has
/// state, names its [`EffectClass`], or wants to know more of its call.
///
/// Dropping the future that [`call`](Self::call) returned cuts the tool off. A tool that blocks
/// its thread cannot be cut; such work belongs in `spawn_blocking`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tool",
    label = "not a tool",
    note = "write `#[tool]` above a function, with a doc comment for it and for each argument",
    note = "or make a tool of a closure with `tool_fn`"
)]
pub trait ToolHandler<Ctx = ()>: Send + Sync {
    /// How the model sees the tool.
    fn definition(&self) -> ToolDefinition;

    /// Runs the tool with arguments that passed its schema.
    fn execute<'a>(&'a self, input: Value, ctx: &'a Ctx) -> ToolFuture<'a>;

    /// Runs the tool for a call it may ask about; by default [`execute`](Self::execute).
    fn call<'a>(&'a self, input: Value, call: &'a CallContext, ctx: &'a Ctx) -> ToolFuture<'a> {
        let _ = call;
        self.execute(input, ctx)
    }

    /// What running it twice would mean; by default the careful answer.
    fn effect_class(&self) -> EffectClass {
        EffectClass::Once
    }

    /// Longest time one execution may take; `None`: as long as the loop lasts.
    fn time_limit(&self) -> Option<Duration> {
        None
    }
}

/// A tool at work; also what stands around one.
pub type ToolFuture<'a> = BoxFuture<'a, Result<ToolOutput, ToolError>>;

/// What running a tool twice would mean. Decides what happens to a call that a crash cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EffectClass {
    /// Nothing changes; may be repeated.
    ReadOnly,
    /// The second time changes nothing more; may be repeated.
    Idempotent,
    /// Must not be repeated without asking.
    #[default]
    Once,
}

/// What a tool gives back.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolOutput {
    /// What the model reads.
    pub content: ToolContent,
}

impl ToolOutput {
    /// Output of text, or of text with pictures and data.
    pub fn new(content: impl Into<ToolContent>) -> Self {
        Self { content: content.into() }
    }
}

impl From<String> for ToolOutput {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

impl From<&str> for ToolOutput {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<ToolContent> for ToolOutput {
    fn from(content: ToolContent) -> Self {
        Self { content }
    }
}

/// Reads a call's arguments into a type. A whole number is an integer however it is written: to
/// JSON Schema, and to models, 5.0 is 5.
///
/// # Errors
/// When they do not fit; the model reads what is wrong.
pub fn read_arguments<T: DeserializeOwned>(
    tool_name: &str,
    mut input: Value,
) -> Result<T, ToolError> {
    write_whole_numbers_as_integers(&mut input);
    serde_json::from_value(input).map_err(|error| {
        ToolError::new(format!(
            "The arguments of {tool_name} are not right: {error}. Call it again."
        ))
    })
}

fn write_whole_numbers_as_integers(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            // Above this, not every integer has a floating point number of its own.
            const MOST: f64 = (1_u64 << 53) as f64;
            let number = number.as_f64().filter(|n| n.fract() == 0.0 && n.abs() <= MOST);
            if let Some(number) = number {
                *value = (number as i64).into();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(write_whole_numbers_as_integers),
        Value::Object(fields) => fields.values_mut().for_each(write_whole_numbers_as_integers),
        _ => {}
    }
}

/// Why a tool failed. The model reads the message, so it should name the cure.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ToolError {
    /// What went wrong and what to do about it.
    pub message: String,
}

impl ToolError {
    /// An error with this message.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }
}

impl From<String> for ToolError {
    fn from(message: String) -> Self {
        Self { message }
    }
}

impl From<&str> for ToolError {
    fn from(message: &str) -> Self {
        Self::new(message)
    }
}

/// What a tool may know of the call it serves.
#[derive(Clone)]
pub struct CallContext {
    call_id: String,
    idempotency_key: String,
    host: Arc<dyn CallHost>,
}

/// Where a call's progress goes and its cancellation comes from; implemented by a driver.
pub trait CallHost: Send + Sync {
    /// Takes a line of progress of the call with this id.
    fn progress(&self, call_id: &str, text: String);
    /// Whether the run has been cancelled.
    fn is_cancelled(&self) -> bool;
    /// Resolves when the run is cancelled.
    fn cancelled(&self) -> BoxFuture<'static, ()>;
}

impl CallContext {
    /// A context for the call `call_id`; drivers make it.
    pub fn new(
        call_id: impl Into<String>,
        idempotency_key: impl Into<String>,
        host: Arc<dyn CallHost>,
    ) -> Self {
        Self { call_id: call_id.into(), idempotency_key: idempotency_key.into(), host }
    }

    /// A context outside any loop: progress goes nowhere, nothing cancels.
    pub fn detached(call_id: impl Into<String>) -> Self {
        let call_id = call_id.into();
        Self { idempotency_key: call_id.clone(), call_id, host: Arc::new(Detached) }
    }

    /// The id of the call in its conversation.
    pub fn call_id(&self) -> &str {
        &self.call_id
    }

    /// The same for every execution of this call, also after a crash: `run/key`.
    pub fn idempotency_key(&self) -> &str {
        &self.idempotency_key
    }

    /// Shows a line of progress to whoever follows the run.
    pub fn progress(&self, text: impl Into<String>) {
        self.host.progress(&self.call_id, text.into());
    }

    /// Whether the run has been cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.host.is_cancelled()
    }

    /// Resolves when the run is cancelled; for work that dropping does not stop.
    pub fn cancelled(&self) -> BoxFuture<'static, ()> {
        self.host.cancelled()
    }
}

impl fmt::Debug for CallContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallContext")
            .field("call_id", &self.call_id)
            .field("idempotency_key", &self.idempotency_key)
            .finish_non_exhaustive()
    }
}

struct Detached;

impl CallHost for Detached {
    fn progress(&self, _: &str, _: String) {}

    fn is_cancelled(&self) -> bool {
        false
    }

    fn cancelled(&self) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_whole_number_is_an_integer_however_it_is_written() {
        let read =
            |input| read_arguments::<(u64, Vec<i64>, f64)>("t", input).map_err(|e| e.message);
        assert_eq!(read(json!([5.0, [-0.0, -3.0, 4], 6.0])), Ok((5, vec![0, -3, 4], 6.0)));
        let fault = "The arguments of t are not right: invalid type: floating point `5.5`, expected \
                     u64. Call it again.";
        assert_eq!(read(json!([5.5, [], 0])), Err(fault.to_owned()));
        assert!(read(json!([1e300, [], 0])).is_err());
    }
}
