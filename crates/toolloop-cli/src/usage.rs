//! [`explained`]: a wrong command line, with what clap does not know of it.

use std::ffi::OsString;

use clap::Error;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Adds what to do about a task without quotes, and says where a value came from that nobody
/// typed.
pub(crate) fn explained(mut error: Error, typed: impl IntoIterator<Item = OsString>) -> Error {
    let Some(ContextValue::String(argument)) = error.get(ContextKind::InvalidArg) else {
        return error;
    };
    let flag = argument.split([' ', '=', '[']).next().unwrap_or_default();
    let tip = match error.kind() {
        ErrorKind::UnknownArgument if !flag.starts_with('-') => {
            "a task of several words goes in quotes".to_owned()
        }
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => {
            let is_typed = |word: OsString| word.to_string_lossy().split('=').next() == Some(flag);
            if !flag.starts_with("--") || typed.into_iter().any(is_typed) {
                return error;
            }
            let name = flag.trim_start_matches('-').replace('-', "_").to_uppercase();
            format!("it came from TOOLLOOP_{name} in the environment")
        }
        _ => return error,
    };
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    error
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::args::Cli;

    fn told(line: &[&str]) -> String {
        let error = Cli::command().try_get_matches_from(line).unwrap_err();
        explained(error, line.iter().map(OsString::from)).to_string()
    }

    #[test]
    fn a_task_without_quotes_is_told_so() {
        let text = told(&["toolloop", "run", "what", "is", "here"]);
        assert!(
            text.starts_with(
                "error: unexpected argument 'is' found\n\n  \
                 tip: a task of several words goes in quotes\n"
            ),
            "{text}"
        );
        let text = told(&["toolloop", "run", "--mdoel", "x"]);
        assert!(text.contains("tip: a similar argument exists: '--model'"), "{text}");
    }

    #[test]
    fn a_value_that_was_typed_came_from_nowhere_else() {
        for line in [["run", "--timeout", "x"].as_slice(), &["run", "--timeout=x"]] {
            let line = [&["toolloop"], line].concat();
            assert!(!told(&line).contains("environment"), "{line:?}");
        }
        let line = ["toolloop", "run", "--timeout=x"];
        let error = Cli::command().try_get_matches_from(line).unwrap_err();
        let text = explained(error, ["toolloop", "run"].map(OsString::from)).to_string();
        assert!(text.contains("tip: it came from TOOLLOOP_TIMEOUT in the environment\n"), "{text}");
    }
}
