//! [`Cursor`]: reads markup that may not have arrived whole.

/// Why something was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Halt {
    /// It is something else.
    No,
    /// It may be that, once more has arrived.
    More,
}

pub(super) type Read<T> = Result<T, Halt>;

/// A place in a text whose end may be missing.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str, at: usize) -> Self {
        Self { text, at }
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    pub(super) fn literal(&mut self, word: &str) -> Read<()> {
        let rest = self.rest();
        if rest.starts_with(word) {
            self.at += word.len();
            return Ok(());
        }
        Err(if word.starts_with(rest) { Halt::More } else { Halt::No })
    }

    /// The word, where it stands here.
    pub(super) fn optional(&mut self, word: &str) -> Read<bool> {
        match self.literal(word) {
            Ok(()) => Ok(true),
            Err(Halt::No) => Ok(false),
            Err(Halt::More) => Err(Halt::More),
        }
    }

    /// White space; none is fine, too much is no markup.
    pub(super) fn blank(&mut self) -> Read<()> {
        let rest = self.rest();
        let left = rest.trim_ascii_start();
        let blank = rest.len() - left.len();
        self.at += blank;
        match left {
            _ if blank > MAX_BLANK => Err(Halt::No),
            "" => Err(Halt::More),
            _ => Ok(()),
        }
    }

    /// The name of a tool, a parameter or a namespace.
    pub(super) fn name(&mut self) -> Read<&'a str> {
        let rest = self.rest();
        let name = match rest.find(|c: char| c.is_whitespace() || NO_NAME.contains(&c)) {
            Some(end) => &rest[..end],
            None if rest.len() <= MAX_NAME => return Err(Halt::More),
            None => return Err(Halt::No),
        };
        if name.is_empty() || name.len() > MAX_NAME {
            return Err(Halt::No);
        }
        self.at += name.len();
        Ok(name)
    }

    /// White space, at least one.
    pub(super) fn gap(&mut self) -> Read<()> {
        let before = self.at;
        self.blank()?;
        if self.at > before { Ok(()) } else { Err(Halt::No) }
    }

    /// What stands before this character, in one line; the character is read, too.
    pub(super) fn up_to(&mut self, end: char) -> Read<&'a str> {
        let rest = self.rest();
        match rest.find([end, '<', '\n']) {
            Some(at) if at <= MAX_NAME && rest[at..].starts_with(end) => {
                self.at += at + end.len_utf8();
                Ok(&rest[..at])
            }
            None if rest.len() <= MAX_NAME => Err(Halt::More),
            _ => Err(Halt::No),
        }
    }

    /// What stands between quotes of either kind.
    pub(super) fn quoted(&mut self) -> Read<&'a str> {
        let quote = if self.optional("'")? { '\'' } else { '"' };
        if quote == '"' {
            self.literal("\"")?;
        }
        self.up_to(quote)
    }
}

/// Most bytes of a name.
const MAX_NAME: usize = 128;
/// Most bytes of white space inside markup; no more are held for it.
const MAX_BLANK: usize = 64;

const NO_NAME: [char; 10] = ['<', '>', '"', '\'', '=', '`', '^', '&', '[', '{'];
