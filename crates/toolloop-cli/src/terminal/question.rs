//! [`Question`]: whatever a person is asked while a run goes.

use super::approval::{self, CallQuestion};
use super::consent::Consent;
use super::form::Form;
use super::keys::Key;
use super::paint::Paint;

/// A question that is open.
#[derive(Debug)]
pub(crate) enum Question {
    /// Whether a call may run.
    Call(CallQuestion),
    /// What a server wants to know.
    Form(Form),
    /// Whether a folder's servers may be started.
    Servers(Consent),
}

/// What the person said.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Said {
    Call(approval::Answer),
    Form(toolloop::mcp::Answer),
    Servers(Agreed),
}

/// Whether a folder's servers may be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Agreed {
    Once,
    /// As long as the file stays as it is.
    Always,
    No,
}

impl Question {
    /// Takes a key; gives the answer once there is one.
    pub(crate) fn handle(&mut self, key: Key) -> Option<Said> {
        match self {
            Self::Call(question) => question.handle(key).map(Said::Call),
            Self::Form(form) => form.handle(key).map(Said::Form),
            Self::Servers(consent) => consent.handle(key).map(Said::Servers),
        }
    }

    /// Whether keys write text now.
    pub(crate) fn is_typing(&self) -> bool {
        match self {
            Self::Call(question) => question.is_typing(),
            Self::Form(form) => form.is_typing(),
            Self::Servers(_) => false,
        }
    }

    /// What to print above the question, after this key; it stays.
    pub(crate) fn above(&self, key: Option<Key>, columns: usize, paint: Paint) -> Vec<String> {
        match (self, key) {
            (Self::Call(question), key) => question.above(key, columns, paint),
            (Self::Servers(consent), None) => consent.above(columns, paint),
            (Self::Form(_) | Self::Servers(_), _) => Vec::new(),
        }
    }

    /// The lines of the question.
    pub(crate) fn lines(&self, columns: usize, paint: Paint) -> Vec<String> {
        match self {
            Self::Call(question) => question.lines(columns, paint),
            Self::Form(form) => form.lines(columns, paint),
            Self::Servers(consent) => consent.lines(columns, paint),
        }
    }
}
