//! [`Exit`]: what the exit codes mean, the same for every command.

use std::process::ExitCode;

/// How the command ended, as a caller in a script sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    Answered = 0,
    Failed = 1,
    Usage = 2,
    NoModel = 3,
    Limit = 4,
    Approval = 5,
    Temporary = 75,
    HungUp = 129,
    Interrupted = 130,
    BrokenPipe = 141,
    Terminated = 143,
}

impl Exit {
    /// The number the process ends with.
    pub(crate) fn code(self) -> u8 {
        self as u8
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        exit.code().into()
    }
}

/// The table at the end of `toolloop --help`. From 129 on it is 128 + the signal, as shells do.
pub(crate) const TABLE: &str = "\
Exit codes:
    0  answered
    1  failed; the same again will fail
    2  wrong usage or settings
    3  no model, or the key was refused
    4  a limit ended the run (the answer so far is printed)
    5  an approval was needed and nobody could be asked
   75  temporary: network, rate limit, failure of the server
  130  interrupted (129 hung up, 141 nobody reads the output, 143 terminated)";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_names_every_code() {
        use Exit::*;
        for exit in [
            Answered,
            Failed,
            Usage,
            NoModel,
            Limit,
            Approval,
            Temporary,
            HungUp,
            Interrupted,
            BrokenPipe,
            Terminated,
        ] {
            let code = exit.code().to_string();
            let named = TABLE.split(|c: char| !c.is_ascii_digit()).any(|number| number == code);
            assert!(named, "{exit:?} is not in the table");
        }
    }
}
