//! [`Claude`]: what a model is and can, as far as its name tells.

/// A model, told from its name: `claude-sonnet-4-5-20250929`, `claude-3-7-sonnet-latest`, or as
/// others write it: `anthropic--claude-4.5-sonnet`, `anthropic/claude-opus-4.1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Claude {
    family: Family,
    /// Major and minor; 0.0 for a model that is not known.
    version: (u32, u32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Family {
    Haiku,
    Opus,
    Other,
}

impl Claude {
    pub(crate) fn by_name(name: &str) -> Self {
        let name = name.to_ascii_lowercase();
        let Some((_, name)) = name.split_once("claude") else {
            return Self { family: Family::Other, version: (0, 0) };
        };
        let family = match name {
            name if name.contains("haiku") => Family::Haiku,
            name if name.contains("opus") => Family::Opus,
            _ => Family::Other,
        };
        // Longer numbers are dates.
        let mut numbers = name
            .split(|c: char| !c.is_ascii_alphanumeric())
            .skip_while(|word| word.parse::<u32>().is_err())
            .map_while(|word| word.parse().ok().filter(|number| *number < 100));
        let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        Self { family, version }
    }

    /// Tokens of a request and its reply.
    pub(crate) fn context_window(self) -> u64 {
        match (self.version, self.family) {
            ((0, 0), _) => 0,
            ((4, 6..) | (5.., _), Family::Opus | Family::Other) => 1_000_000,
            _ => 200_000,
        }
    }

    /// Most tokens the model can write in one reply.
    pub(super) fn max_output(self) -> u32 {
        match (self.version, self.family) {
            ((0, 0), _) => 8_192,
            ((..=2, _) | (3, ..=4), _) => 4_096,
            ((3, 5..=6), _) => 8_192,
            ((4, ..=4), Family::Opus) => 32_000,
            ((4, 6..) | (5.., _), Family::Opus) => 128_000,
            _ => 64_000,
        }
    }

    /// How the model can be asked to think.
    pub(super) fn thinking(self) -> Thinking {
        match self.version {
            // A server of its own models knows best whether they think.
            (0, 0) | (3, 7..) | (4, ..=6) => Thinking::Budget,
            (..=3, _) => Thinking::No,
            _ => Thinking::Adaptive,
        }
    }

    /// Whether the model thinks if it is asked to.
    pub(crate) fn thinks(self) -> bool {
        self.version != (0, 0) && self.thinking() != Thinking::No
    }

    /// Whether the model sees pictures.
    pub(crate) fn sees(self) -> bool {
        self.version >= (3, 0)
    }

    /// Whether the API can hold the model to a schema.
    pub(super) fn has_output_format(self) -> bool {
        self.version >= (4, 5) || (self.version == (4, 1) && self.family == Family::Opus)
    }

    /// Whether the model goes on with a text that the assistant is said to have begun.
    pub(super) fn takes_prefill(self) -> bool {
        self.version < (4, 6)
    }

    /// Whether the model takes a temperature.
    pub(super) fn has_temperature(self) -> bool {
        self.thinking() != Thinking::Adaptive
    }
}

/// How a model can be asked to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Thinking {
    No,
    /// With a number of tokens.
    Budget,
    /// As much as it sees fit; a number is refused.
    Adaptive,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_write_a_name_is_read() {
        for (name, version, family) in [
            ("claude-sonnet-4-5-20250929", (4, 5), Family::Other),
            ("claude-sonnet-4-20250514", (4, 0), Family::Other),
            ("claude-opus-4-0", (4, 0), Family::Opus),
            ("claude-3-5-haiku-latest", (3, 5), Family::Haiku),
            ("claude-3-opus-20240229", (3, 0), Family::Opus),
            ("anthropic--claude-3.7-sonnet", (3, 7), Family::Other),
            ("us.anthropic.claude-haiku-4-5-20251001-v1:0", (4, 5), Family::Haiku),
            ("anthropic/claude-opus-4.7", (4, 7), Family::Opus),
            ("claude-sonnet-5", (5, 0), Family::Other),
            ("deepseek-chat", (0, 0), Family::Other),
        ] {
            assert_eq!(Claude::by_name(name), Claude { family, version }, "{name}");
        }
    }

    #[test]
    fn what_a_model_can_follows_from_its_version() {
        let told = |name| {
            let model = Claude::by_name(name);
            (model.context_window(), model.max_output(), model.thinking())
        };
        assert_eq!(told("claude-3-haiku-20240307"), (200_000, 4_096, Thinking::No));
        assert_eq!(told("claude-3-5-sonnet-20241022"), (200_000, 8_192, Thinking::No));
        assert_eq!(told("claude-3-7-sonnet-latest"), (200_000, 64_000, Thinking::Budget));
        assert_eq!(told("claude-opus-4-1"), (200_000, 32_000, Thinking::Budget));
        assert_eq!(told("claude-haiku-4-5"), (200_000, 64_000, Thinking::Budget));
        assert_eq!(told("claude-opus-4-6"), (1_000_000, 128_000, Thinking::Budget));
        assert_eq!(told("claude-opus-4-7"), (1_000_000, 128_000, Thinking::Adaptive));
        assert_eq!(told("glm-4.6"), (0, 8_192, Thinking::Budget));
    }
}
