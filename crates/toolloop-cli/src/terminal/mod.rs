//! What a person sees: rendered Markdown, one line per tool, live lines at the bottom.
//!
//! Everything here but `face`, `keys`, `page` and `screen` is pure: it makes lines, somebody else prints them.

pub(crate) mod approval;
pub(crate) mod consent;
pub(crate) mod face;
pub(crate) mod form;
pub(crate) mod keys;
pub(crate) mod line_editor;
pub(crate) mod live;
pub(crate) mod markdown;
mod markdown_block;
mod notes;
mod page;
pub(crate) mod paint;
pub(crate) mod question;
pub(crate) mod screen;
pub(crate) mod table;
pub(crate) mod text;
pub(crate) mod tool_line;
