//! [`Spec`]: a conversation's shape, read from the name of its model.

/// The shape of a conversation; `main.rs` says how it is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spec {
    pub(crate) iterations: u32,
    pub(crate) text: u32,
    pub(crate) calls: u32,
    pub(crate) args: u32,
    pub(crate) group: u32,
    pub(crate) delay_us: u64,
    pub(crate) hold: Option<u32>,
    pub(crate) split: Option<u32>,
}

impl Spec {
    pub(crate) fn parse(model: &str) -> Option<Self> {
        let mut spec = Self { group: 32, ..Self::default() };
        for part in model.strip_prefix("bench-")?.split('-') {
            let value: u32 = part.get(1..)?.parse().ok()?;
            match part.as_bytes()[0] {
                b'i' => spec.iterations = value,
                b't' => spec.text = value,
                b'c' => spec.calls = value,
                b'a' => spec.args = value,
                b'g' => spec.group = value.max(1),
                b'd' => spec.delay_us = value.into(),
                b'h' => spec.hold = Some(value),
                b's' => spec.split = Some(value.max(1)),
                _ => return None,
            }
        }
        Some(spec)
    }

    /// Tokens of an answer, as its usage reports them.
    pub(crate) fn output_tokens(self, with_calls: bool) -> u32 {
        self.text + if with_calls { self.calls * self.args } else { 0 }
    }

    /// What one conversation must yield, as JSON.
    pub(crate) fn expectation(self) -> String {
        let bytes: usize = (0..self.text).map(|i| unescaped(token(i)).len()).sum();
        let answers = self.iterations + 1;
        let tokens = self.iterations * self.output_tokens(true) + self.output_tokens(false);
        format!(
            "{{\"requests\":{answers},\"text_events\":{},\"text_bytes\":{},\"tool_calls\":{},\
             \"output_tokens\":{tokens}}}\n",
            answers * self.text,
            answers as usize * bytes,
            self.iterations * self.calls,
        )
    }
}

/// Text delta `i`, as it stands inside a JSON string.
pub(crate) fn token(i: u32) -> &'static str {
    TOKENS[i as usize % TOKENS.len()]
}

fn unescaped(token: &str) -> String {
    token.replace("\\n", "\n").replace("\\\"", "\"")
}

/// Escapes and characters of several bytes included.
const TOKENS: [&str; 16] = [
    "The",
    " quick",
    " brown",
    " fox",
    " jumps",
    " over",
    " the",
    " lazy",
    " dog",
    ",",
    " says",
    " \\\"hi\\\"",
    "\\n\\n",
    " caf\u{e9}",
    " \u{65e5}\u{672c}",
    " and",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_name_is_a_shape() {
        let spec = Spec {
            iterations: 3,
            text: 20,
            calls: 1,
            args: 8,
            group: 32,
            hold: Some(10),
            ..Spec::default()
        };
        assert_eq!(Spec::parse("bench-i3-t20-c1-a8-h10"), Some(spec));
        for other in ["gpt", "bench-", "bench-i", "bench-x3", "bench-i3-"] {
            assert_eq!(Spec::parse(other), None, "{other}");
        }
    }

    #[test]
    fn the_expectation_counts_all_answers() {
        let spec = Spec { iterations: 2, text: 16, calls: 3, args: 4, ..Spec::default() };
        let want = "{\"requests\":3,\"text_events\":48,\"text_bytes\":219,\"tool_calls\":6,\
                    \"output_tokens\":72}\n";
        assert_eq!(spec.expectation(), want);
    }
}
