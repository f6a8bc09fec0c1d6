//! [`Model`]: what the API refuses for some models and not for others, told from their names.

/// A model of Anthropic; for any other name nothing is refused that some model takes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Model {
    /// Major and minor; `None` for another name.
    version: Option<(u32, u32)>,
    is_opus: bool,
}

impl Model {
    pub(super) fn by_name(name: &str) -> Self {
        let Some(name) = name.strip_prefix("claude-") else { return Self::unknown() };
        let mut numbers = name
            .split('-')
            .skip_while(|word| word.parse::<u32>().is_err())
            .map_while(|word| word.parse().ok().filter(|number| *number < 100));
        let version = numbers.next().map(|major| (major, numbers.next().unwrap_or(0)));
        Self { version, is_opus: name.contains("opus") }
    }

    pub(super) fn unknown() -> Self {
        Self { version: None, is_opus: false }
    }

    pub(super) fn max_output(self) -> Option<u64> {
        Some(match self.version? {
            (..=2, _) | (3, ..=4) => 4_096,
            (3, 5 | 6) => 8_192,
            (4, ..=4) if self.is_opus => 32_000,
            (4, 6..) | (5.., _) => 128_000,
            _ => 64_000,
        })
    }

    pub(super) fn context_window(self) -> Option<u64> {
        Some(match self.version? {
            (4, 6..) | (5.., _) => 1_000_000,
            _ => 200_000,
        })
    }

    /// Whether the model measures its thought and its temperature itself.
    pub(super) fn is_adaptive(self) -> bool {
        self.version.is_some_and(|version| version >= (4, 7))
    }

    /// Whether the model goes on with what an assistant is said to have said.
    pub(super) fn takes_prefill(self) -> bool {
        self.version.is_none_or(|version| version < (4, 6))
    }

    pub(super) fn efforts(self) -> &'static [&'static str] {
        match self.version {
            Some((..=3, _) | (4, ..=4)) => &[],
            Some((4, 5)) => &["high", "low", "medium"],
            Some((4, 6)) => &["high", "low", "max", "medium"],
            _ => &["high", "low", "max", "medium", "xhigh"],
        }
    }
}
