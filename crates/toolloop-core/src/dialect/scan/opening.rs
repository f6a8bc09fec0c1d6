//! [`opening`]: which form of markup begins at a place in the text.

use super::block::Block;
use super::caret::Caret;
use super::cursor::{Cursor, Halt, Read};
use super::json::Json;
use super::tagged::Tagged;
use super::tools::Offered;
use crate::dialect::Dialect;

/// The forms a scanner knows, and the tools that can be called in them.
#[derive(Debug)]
pub(super) struct Known {
    /// The dialect of the instructions. In it, a tool that is not offered can be called, too, so
    /// that the model is told so.
    pub(super) own: Dialect,
    pub(super) tools: Offered,
}

/// What begins at a place in the text.
#[derive(Debug)]
pub(super) enum Opening {
    Block(Block),
    /// Thought, up to this tag.
    Thought(&'static str),
}

/// Where in a reply a text stands.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Place {
    /// Only blanks stand before it in its line.
    pub(super) is_line_start: bool,
    /// No text stands before it. A native model that thinks in its text does so there; further on
    /// it speaks of the tag.
    pub(super) is_first: bool,
}

/// What begins with the first character of a text, and where what it contains begins.
pub(super) fn opening(text: &str, place: Place, known: &Known) -> Read<(Opening, usize)> {
    let has_tools = !known.tools.is_empty();
    match text.as_bytes() {
        [b'<', b'|', ..] if has_tools => opened(Json::open_python(text).map(Block::Json)),
        [b'<', second, ..] if !second.is_ascii_alphanumeric() => Err(Halt::No),
        [b'<', ..] => {
            let thoughts = THOUGHTS.iter().map(|(opener, closer)| {
                let mut cursor = Cursor::new(text, 0);
                cursor.literal(opener)?;
                Ok((Opening::Thought(closer), cursor.at()))
            });
            let thoughts = thoughts.filter(|_| known.own.is_text() || place.is_first);
            let xml =
                (known.own == Dialect::Xml && has_tools).then(|| Tagged::open_xml(text, known));
            let leaks = [Tagged::open_function, Tagged::open_invoke];
            let leaks = leaks.into_iter().map(|open| open(text, known));
            let blocks = xml.into_iter().chain(leaks).map(|tagged| tagged.map(Block::Tagged));
            let blocks = blocks.chain([Json::open_tag(text).map(Block::Json)]).map(opened);
            first(thoughts.chain(blocks))
        }
        [b'[', ..] => opened(Json::open_list(text, known).map(Block::Json)),
        [b'^', ..] if known.own == Dialect::Caret && place.is_line_start && has_tools => {
            opened(Caret::open(text, known).map(Block::Caret))
        }
        _ => Err(Halt::No),
    }
}

fn opened(block: Read<Block>) -> Read<(Opening, usize)> {
    block.map(|block| {
        let at = block.at();
        (Opening::Block(block), at)
    })
}

/// The first that was read; else whether one of them still can be.
fn first<T>(all: impl Iterator<Item = Read<T>>) -> Read<T> {
    let mut halt = Halt::No;
    for read in all {
        match read {
            Err(Halt::No) => {}
            Err(Halt::More) => halt = Halt::More,
            found => return found,
        }
    }
    Err(halt)
}

const THOUGHTS: [(&str, &str); 2] = [("<think>", "</think>"), ("<thinking>", "</thinking>")];
