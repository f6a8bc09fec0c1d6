//! What the code of `#[tool]` needs when it runs: arguments in, [`Returned`] values out.
//!
//! It is public as `toolloop::__private` and no part of the interface; only the texts of
//! [`ToolReturn`] and [`ToolFailure`] are seen, when a function returns what a tool cannot.

use std::convert::Infallible;
use std::fmt::Display;

use serde::Serialize;
use serde::de::DeserializeOwned;
use toolloop_core::ToolContent;

pub use schemars;
pub use serde;
pub use serde_json::Value;
pub use toolloop_core::{
    BoxFuture, CallContext, EffectClass, ToolDefinition, ToolError, ToolHandler, ToolOutput,
    read_arguments,
};

/// How a tool ends.
pub type Outcome = Result<ToolOutput, ToolError>;

/// A type that a tool can take.
#[diagnostic::on_unimplemented(
    message = "a tool cannot take `{Self}`",
    label = "the model could not write this",
    note = "derive `serde::Deserialize` and `schemars::JsonSchema` for it; both crates are in `toolloop`, too"
)]
pub trait ToolArgument {}

#[diagnostic::do_not_recommend]
impl<T: DeserializeOwned + schemars::JsonSchema> ToolArgument for T {}

/// Compiles for what a tool can take.
pub const fn check_argument<T: ToolArgument>() {}

/// A value that a tool can return. Strings are given as they are, other values as JSON text,
/// which programs also get as data.
#[diagnostic::on_unimplemented(
    message = "a tool cannot return `{Self}`",
    label = "the model could not read this",
    note = "return a `String`, a type that derives `serde::Serialize`, a `ToolOutput`, or a \
            `Result` of one of these"
)]
pub trait ToolReturn {
    /// What the model reads.
    ///
    /// # Errors
    /// When the value cannot be written as JSON.
    fn into_output(self) -> Outcome;
}

#[diagnostic::do_not_recommend]
impl<T: Serialize> ToolReturn for T {
    fn into_output(self) -> Outcome {
        let value = serde_json::to_value(self).map_err(|error| {
            ToolError::new(format!("The tool's result cannot be written as JSON: {error}."))
        })?;
        Ok(match value {
            Value::String(text) => text.into(),
            value => ToolOutput::new(ToolContent {
                structured: Some(value.clone()),
                ..value.to_string().into()
            }),
        })
    }
}

/// An error that a tool can return.
#[diagnostic::on_unimplemented(
    message = "a tool cannot return the error `{Self}`",
    label = "the model could not read this",
    note = "implement `std::fmt::Display` for it; say what went wrong and what to do about it"
)]
pub trait ToolFailure {
    /// What the model reads.
    fn into_error(self) -> ToolError;
}

#[diagnostic::do_not_recommend]
impl<E: Display> ToolFailure for E {
    fn into_error(self) -> ToolError {
        // Error types that know their causes write them in this form.
        ToolError::new(format!("{self:#}"))
    }
}

/// What a tool's function returned. Methods of some types come before those of
/// [`ReturnedAny`], which is how types are told apart whose traits overlap.
#[derive(Debug)]
pub struct Returned<T>(pub T);

impl<T, E> Returned<Result<T, E>> {
    /// The result itself.
    pub fn into_result(self) -> Result<T, E> {
        self.0
    }
}

impl Returned<ToolOutput> {
    /// The output as it is.
    pub fn into_value(self) -> Ready {
        Ready(self.0)
    }
}

impl Returned<ToolContent> {
    /// The content as it is.
    pub fn into_value(self) -> Ready {
        Ready(self.0.into())
    }
}

impl Returned<()> {
    /// A word where there is nothing to say: APIs refuse an empty text.
    pub fn into_value(self) -> Ready {
        Ready("done".into())
    }
}

/// What holds for all other types.
pub trait ReturnedAny<T> {
    /// No error.
    fn into_result(self) -> Result<T, Infallible>;
    /// The value.
    fn into_value(self) -> T;
}

impl<T> ReturnedAny<T> for Returned<T> {
    fn into_result(self) -> Result<T, Infallible> {
        Ok(self.0)
    }

    fn into_value(self) -> T {
        self.0
    }
}

/// An output that is not serialised any more.
#[derive(Debug)]
pub struct Ready(ToolOutput);

impl ToolReturn for Ready {
    fn into_output(self) -> Outcome {
        Ok(self.0)
    }
}

/// The output that a value makes.
///
/// # Errors
/// When the value cannot be written as JSON.
pub fn output(value: impl ToolReturn) -> Outcome {
    value.into_output()
}

/// The error that a function's error makes.
pub fn failure(error: impl ToolFailure) -> ToolError {
    error.into_error()
}
