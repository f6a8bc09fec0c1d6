//! [`Elicitation`]: what a server wants to know from a person while one of its tools runs.

use std::sync::Arc;

use serde_json::Value;
use toolloop_core::BoxFuture;

/// A server's question to a person. It comes from somebody else's program: show who asks, and
/// never answer it with a key or password.
#[derive(Debug, Clone, PartialEq)]
pub struct Elicitation {
    /// The server that asks.
    pub server: String,
    /// The question.
    pub message: String,
    /// What kind of answer it wants.
    pub wanted: Wanted,
}

/// What kind of answer a server wants.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Wanted {
    /// The fields of a form. The JSON Schema is a flat object of strings, numbers, booleans and
    /// choices.
    Form(Value),
    /// That a person visits an address; accepting only says that they will.
    Visit(String),
}

/// A person's answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// The fields of the form, as an object; those left out get the form's defaults. `None` for
    /// a visit.
    Accept(Option<Value>),
    /// No.
    Decline,
    /// Neither: the person turned away.
    Cancel,
}

/// Asks a person on behalf of a server. Without one, servers are told that nobody can be asked.
pub type Elicit = Arc<dyn Fn(Elicitation) -> BoxFuture<'static, Answer> + Send + Sync>;
