//! [`Consent`]: asks whether the MCP servers that a folder brings may be started.

use super::keys::Key;
use super::paint::{Paint, Style};
use super::question::Agreed;
use super::text::{packed, quoted, truncate, visible};

/// A folder's servers, before any of them has been started.
#[derive(Debug)]
pub(crate) struct Consent {
    /// Name, and the program or address.
    servers: Vec<(String, String)>,
}

impl Consent {
    pub(crate) fn new(servers: Vec<(String, String)>) -> Self {
        Self { servers }
    }

    /// Name, and the program or address.
    pub(crate) fn servers(&self) -> &[(String, String)] {
        &self.servers
    }

    pub(super) fn handle(&self, key: Key) -> Option<Agreed> {
        match key {
            Key::Char('y' | 'Y') => Some(Agreed::Once),
            Key::Char('a' | 'A') => Some(Agreed::Always),
            Key::Char('n' | 'N') | Key::Escape => Some(Agreed::No),
            // Enter means nothing here: a line typed ahead must not start a program.
            _ => None,
        }
    }

    /// Every command in full: nobody may agree to what they cannot see.
    pub(super) fn above(&self, columns: usize, paint: Paint) -> Vec<String> {
        let place = |(name, place): &(String, String)| {
            let text = format!("{}: {}", visible(name), visible(place));
            quoted(&text, Style::PLAIN, columns, paint)
        };
        self.servers.iter().flat_map(place).collect()
    }

    pub(super) fn lines(&self, columns: usize, paint: Paint) -> Vec<String> {
        let question = format!(
            "{} {}",
            paint.yellow("?"),
            truncate(".mcp.json of this folder wants to start these", columns.saturating_sub(2))
        );
        let choices = ["y once", "a always, while the file stays as it is", "n no"];
        std::iter::once(question).chain(packed(&choices, columns, paint)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_shown_whole() {
        let servers = vec![
            ("files".to_owned(), "npx -y server .".to_owned()),
            ("evil".to_owned(), format!("sh -c {} \u{1b}[8mhidden", "x".repeat(30))),
        ];
        let (consent, paint) = (Consent::new(servers), Paint::new(false));
        assert_eq!(
            consent.above(40, paint),
            [
                "  │ files: npx -y server .",
                "  │ evil: sh -c",
                "  │ xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
                "  │ ␛[8mhidden",
            ]
        );
        assert_eq!(
            consent.lines(40, paint),
            [
                "? .mcp.json of this folder wants to sta…",
                "  y once",
                "  a always, while the file stays as it …",
                "  n no",
            ]
        );
    }

    #[test]
    fn only_a_key_that_says_so_agrees() {
        let consent = Consent::new(Vec::new());
        assert_eq!(consent.handle(Key::Enter), None);
        assert_eq!(consent.handle(Key::Char('y')), Some(Agreed::Once));
        assert_eq!(consent.handle(Key::Char('a')), Some(Agreed::Always));
        assert_eq!(consent.handle(Key::Escape), Some(Agreed::No));
    }
}
