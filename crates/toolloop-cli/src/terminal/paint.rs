//! [`Paint`]: colours, or none. [`Style`]: how a piece of text looks.

/// Paints texts where the terminal takes colours; elsewhere it leaves them as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Paint {
    enabled: bool,
}

impl Paint {
    pub(crate) const fn new(enabled: bool) -> Self {
        Self { enabled }
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.apply(text, Style::DIM)
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.apply(text, Style::BOLD)
    }

    pub(crate) fn red(self, text: &str) -> String {
        self.apply(text, Style::RED)
    }

    pub(crate) fn green(self, text: &str) -> String {
        self.apply(text, Style::GREEN)
    }

    pub(crate) fn yellow(self, text: &str) -> String {
        self.apply(text, Style::YELLOW)
    }

    /// The text with the escape sequences of a style around it.
    pub(crate) fn apply(self, text: &str, style: Style) -> String {
        if !self.enabled || style == Style::PLAIN || text.is_empty() {
            return text.to_owned();
        }
        let codes: Vec<&str> = CODES
            .iter()
            .enumerate()
            .filter(|(bit, _)| style.0 >> bit & 1 == 1)
            .map(|(_, code)| *code)
            .collect();
        format!("\x1b[{}m{text}\x1b[0m", codes.join(";"))
    }
}

/// Whether escape sequences are wanted where there is a terminal.
pub(crate) fn has_colours() -> bool {
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb" || term.is_empty());
    !set("NO_COLOR") && !dumb
}

/// A set of looks: bold, dim, a colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Style(u16);

impl Style {
    pub(crate) const PLAIN: Self = Self(0);
    pub(crate) const BOLD: Self = Self(1);
    pub(crate) const DIM: Self = Self(1 << 1);
    pub(crate) const ITALIC: Self = Self(1 << 2);
    pub(crate) const UNDERLINE: Self = Self(1 << 3);
    pub(crate) const STRIKE: Self = Self(1 << 4);
    pub(crate) const RED: Self = Self(1 << 5);
    pub(crate) const GREEN: Self = Self(1 << 6);
    pub(crate) const YELLOW: Self = Self(1 << 7);
    pub(crate) const CYAN: Self = Self(1 << 8);

    /// Both looks together.
    pub(crate) fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// The parameters of the escape sequence, in the order of the bits.
const CODES: [&str; 9] = ["1", "2", "3", "4", "9", "31", "32", "33", "36"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paint_that_is_off_leaves_no_trace() {
        assert_eq!(Paint::new(false).apply("x", Style::BOLD.and(Style::RED)), "x");
        assert_eq!(Paint::new(true).apply("x", Style::BOLD.and(Style::RED)), "\x1b[1;31mx\x1b[0m");
        assert_eq!(Paint::new(true).apply("x", Style::PLAIN), "x");
    }
}
