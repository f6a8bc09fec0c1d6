//! [`Report`]: an error as people and programs read it: what happened, and what to do.

use std::fmt;
use std::io::{self, IsTerminal, Write};

use crate::exit::Exit;
use crate::terminal::paint::{Paint, has_colours};
use crate::terminal::text::clean;

/// What went wrong, in whose words, and the cure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Report {
    /// The code the process ends with.
    pub(crate) exit: Exit,
    /// The case, for programs; one word of the JSON schema.
    pub(crate) kind: &'static str,
    /// What happened, in one line.
    pub(crate) what: String,
    /// The provider's own sentence.
    pub(crate) quote: Option<String>,
    /// Where the faulty setting came from and what to do about it, a sentence each.
    pub(crate) advice: Vec<String>,
    /// The HTTP status, if there was one.
    pub(crate) status: Option<u16>,
    /// Whether the same command may succeed later.
    pub(crate) retryable: bool,
    /// The provider's id of the request.
    pub(crate) request_id: Option<String>,
}

impl Report {
    pub(crate) fn new(exit: Exit, kind: &'static str, what: impl Into<String>) -> Self {
        Self {
            exit,
            kind,
            what: what.into(),
            quote: None,
            advice: Vec::new(),
            status: None,
            retryable: exit == Exit::Temporary,
            request_id: None,
        }
    }

    /// A wrong flag or setting.
    pub(crate) fn usage(what: impl Into<String>) -> Self {
        Self::new(Exit::Usage, "usage", what)
    }

    pub(crate) fn quote(mut self, sentence: impl Into<String>) -> Self {
        let sentence = sentence.into();
        self.quote = (!sentence.is_empty()).then_some(sentence);
        self
    }

    pub(crate) fn advice(mut self, sentence: impl Into<String>) -> Self {
        self.advice.push(sentence.into());
        self
    }

    pub(crate) fn maybe_advice(self, sentence: Option<&str>) -> Self {
        match sentence {
            Some(sentence) => self.advice(sentence),
            None => self,
        }
    }

    /// Prints it where errors go.
    pub(crate) fn eprint(&self) {
        let stderr = io::stderr();
        let paint = Paint::new(stderr.is_terminal() && has_colours());
        let label = match self.exit {
            Exit::Limit => paint.yellow("limit:"),
            Exit::Approval => paint.yellow("approval needed:"),
            _ => paint.red("error:"),
        };
        let text = format!("{label} {}\n", clean(&self.to_string()));
        // Standard error that is closed leaves nobody to tell.
        let _ = stderr.lock().write_all(text.as_bytes());
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        if let Some(quote) = &self.quote {
            write!(f, "\n  \"{quote}\"")?;
        }
        for line in &self.advice {
            write!(f, "\n  {line}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Report {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_reads_from_what_happened_to_what_to_do() {
        let report = Report::usage("the folder /x does not exist")
            .quote("a word")
            .advice("It came from --dir.")
            .advice("Give another one.");
        assert_eq!(
            report.to_string(),
            "the folder /x does not exist\n  \"a word\"\n  It came from --dir.\n  Give another one."
        );
        assert_eq!(Report::usage("no").quote("").to_string(), "no");
    }
}
