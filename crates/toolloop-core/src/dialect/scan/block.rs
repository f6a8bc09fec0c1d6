//! [`Block`]: a call that has begun, in one of its forms.

use super::caret::Caret;
use super::json::Json;
use super::opening::Known;
use super::tagged::Tagged;

/// A call that has begun. It stands at the start of a text that grows.
#[derive(Debug, Clone)]
pub(super) enum Block {
    Tagged(Tagged),
    Json(Json),
    Caret(Caret),
}

/// How far a block has come.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Progress {
    /// Its end has not arrived.
    Open,
    /// It is none.
    Failed,
    /// It has so many bytes and makes these calls.
    Whole(usize, Vec<Found>),
}

/// A call that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) name: String,
    /// The arguments as JSON text, or the whole block where they cannot be read.
    pub(super) arguments: String,
}

impl Block {
    /// Reads on in the block's text; `is_end` says that no more will come.
    pub(super) fn advance(&mut self, text: &str, is_end: bool, known: &Known) -> Progress {
        match self {
            Self::Tagged(block) => block.advance(text, known),
            Self::Json(block) => block.advance(text, is_end, known),
            Self::Caret(block) => block.advance(text, is_end, known),
        }
    }

    /// How far the text was read.
    pub(super) fn at(&self) -> usize {
        match self {
            Self::Tagged(block) => block.at(),
            Self::Json(block) => block.at(),
            Self::Caret(block) => block.at(),
        }
    }

    /// The tool it calls, where that and all that came since read like a call.
    pub(super) fn name(&self) -> Option<&str> {
        match self {
            Self::Tagged(block) => block.name(),
            Self::Json(_) => None,
            Self::Caret(block) => block.name(),
        }
    }

    /// The tag that may close around the block, and others like it.
    pub(super) fn wrapper(&self) -> Option<String> {
        match self {
            Self::Tagged(block) => block.wrapper(),
            Self::Json(_) | Self::Caret(_) => None,
        }
    }

    /// Whether it is of a form that no instructions ask for.
    pub(super) fn is_leak(&self) -> bool {
        match self {
            Self::Tagged(block) => block.is_leak(),
            Self::Json(_) => true,
            Self::Caret(_) => false,
        }
    }
}
