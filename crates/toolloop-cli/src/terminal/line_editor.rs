//! [`LineEditor`]: a line of text that is edited key by key.

use super::keys::Key;
use super::text::{visible, width};

/// Text and where the cursor stands in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LineEditor {
    chars: Vec<char>,
    cursor: usize,
}

/// What a key did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Edit {
    /// The line goes on.
    Open,
    /// Enter: this is the text.
    Accepted(String),
    /// Escape: forget it.
    Cancelled,
}

impl LineEditor {
    /// Where the cursor stands.
    pub(crate) const CURSOR: char = '▏';

    /// An editor with the cursor behind `text`.
    pub(crate) fn new(text: &str) -> Self {
        let chars: Vec<char> = text.chars().collect();
        Self { cursor: chars.len(), chars }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.chars.is_empty()
    }

    pub(crate) fn handle(&mut self, key: Key) -> Edit {
        match key {
            Key::Char(c) => {
                self.chars.insert(self.cursor, c);
                self.cursor += 1;
            }
            Key::Backspace if self.cursor > 0 => {
                self.cursor -= 1;
                self.chars.remove(self.cursor);
            }
            Key::Delete if self.cursor < self.chars.len() => {
                self.chars.remove(self.cursor);
            }
            Key::Left => self.cursor = self.cursor.saturating_sub(1),
            Key::Right => self.cursor = (self.cursor + 1).min(self.chars.len()),
            Key::Home => self.cursor = 0,
            Key::End => self.cursor = self.chars.len(),
            Key::EraseLine => {
                self.chars.drain(..self.cursor);
                self.cursor = 0;
            }
            Key::EraseWord => {
                let start = self.word_start();
                self.chars.drain(start..self.cursor);
                self.cursor = start;
            }
            Key::Enter => return Edit::Accepted(self.chars.iter().collect()),
            Key::Escape => return Edit::Cancelled,
            Key::Backspace | Key::Delete | Key::Other => {}
        }
        Edit::Open
    }

    /// The line with a block for the cursor, its part around the cursor if it is too long.
    pub(crate) fn render(&self, columns: usize) -> String {
        let shown = |chars: &[char]| {
            let text: String = chars.iter().collect();
            visible(&text).replace('\n', "⏎").replace('\t', " ")
        };
        let before = shown(&self.chars[..self.cursor]);
        let after = shown(&self.chars[self.cursor..]);
        let mut before = before.as_str();
        while width(before) + 1 > columns {
            let mut chars = before.chars();
            chars.next();
            before = chars.as_str();
        }
        let mut line = format!("{before}{}", Self::CURSOR);
        for c in after.chars() {
            line.push(c);
            if width(&line) > columns {
                line.pop();
                break;
            }
        }
        line
    }

    fn word_start(&self) -> usize {
        let before = &self.chars[..self.cursor];
        let end = before.iter().rposition(|c| *c != ' ').map_or(0, |last| last + 1);
        before[..end].iter().rposition(|c| *c == ' ').map_or(0, |blank| blank + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(start: &str, keys: &[Key]) -> String {
        let mut editor = LineEditor::new(start);
        for key in keys {
            assert_eq!(editor.handle(*key), Edit::Open);
        }
        match editor.handle(Key::Enter) {
            Edit::Accepted(text) => text,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn keys_change_the_line_where_the_cursor_is() {
        use Key::*;
        assert_eq!(typed("wc -l", &[Char(' '), Char('*')]), "wc -l *");
        assert_eq!(typed("abc", &[Left, Backspace, Home, Char('x'), End, Char('y')]), "xacy");
        assert_eq!(typed("abc", &[Home, Delete, Delete, Delete, Delete]), "");
        assert_eq!(typed("git log  ", &[EraseWord]), "git ");
        assert_eq!(typed("git log", &[Left, EraseLine]), "g");
        assert_eq!(typed("", &[Backspace, Left, Right, EraseWord, Char('ä')]), "ä");
        assert_eq!(LineEditor::new("x").handle(Escape), Edit::Cancelled);
    }

    #[test]
    fn a_long_line_is_shown_around_its_cursor() {
        let mut editor = LineEditor::new("0123456789");
        assert_eq!(editor.render(20), "0123456789▏");
        assert_eq!(editor.render(5), "6789▏");
        editor.handle(Key::Home);
        assert_eq!(editor.render(5), "▏0123");
        assert_eq!(LineEditor::new("a\nb\u{1b}c").render(9), "a⏎b␛c▏");
    }
}
