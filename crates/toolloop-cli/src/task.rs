//! [`read`]: what the model is asked, from the command line and standard input.

use std::io::{self, IsTerminal, Read, Write};
use std::sync::mpsc;
use std::time::Duration;

use crate::report::Report;

/// Reads the task; `-` is standard input, and input that is no terminal is added to any other.
pub(crate) fn read(argument: Option<&str>, quiet: bool) -> Result<String, Report> {
    let stdin = io::stdin();
    let wanted = argument == Some("-");
    let input = match wanted || (!stdin.is_terminal() && holds_data(&stdin)) {
        true => Some(read_input(wanted && stdin.is_terminal(), quiet)?),
        false => None,
    };
    combine(argument, input)
}

fn combine(argument: Option<&str>, input: Option<Vec<u8>>) -> Result<String, Report> {
    let input = String::from_utf8(input.unwrap_or_default())
        .map_err(|_| Report::usage("standard input is no text (it is not valid UTF-8)"))?;
    let task = argument.filter(|task| *task != "-").unwrap_or("");
    let parts: Vec<&str> =
        [task, &input].into_iter().map(str::trim).filter(|part| !part.is_empty()).collect();
    match parts.as_slice() {
        [] => Err(Report::usage("the task is empty")
            .advice("Say what to do: toolloop run \"what is in this folder?\"")),
        parts => Ok(parts.join("\n\n")),
    }
}

/// Whether there can be something to read: a pipe, a socket or a file, not `/dev/null`.
fn holds_data(stdin: &io::Stdin) -> bool {
    use rustix::fs::{FileType, fstat};
    fstat(stdin).is_ok_and(|stat| {
        matches!(
            FileType::from_raw_mode(stat.st_mode),
            FileType::Fifo | FileType::Socket | FileType::RegularFile
        )
    })
}

/// Reads to the end. A pipe that nobody writes to or closes is a common trap, so a wait is told.
fn read_input(from_terminal: bool, quiet: bool) -> Result<Vec<u8>, Report> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut input = Vec::new();
        let result = io::stdin().lock().take(MAX_INPUT + 1).read_to_end(&mut input);
        // Nobody receives only when the process is ending.
        let _ = sender.send(result.map(|_| input));
    });
    let told = if from_terminal { Duration::ZERO } else { PATIENCE };
    let result = match receiver.recv_timeout(told) {
        Err(mpsc::RecvTimeoutError::Timeout) => {
            if !quiet {
                let _ = writeln!(
                    io::stderr(),
                    "Reading the task from standard input until its end ({}).",
                    if from_terminal { "Ctrl-D" } else { "give < /dev/null to skip it" }
                );
            }
            receiver.recv().map_err(io::Error::other).and_then(|result| result)
        }
        result => result.map_err(io::Error::other).and_then(|result| result),
    };
    let input =
        result.map_err(|error| Report::usage(format!("cannot read standard input: {error}")))?;
    if input.len() as u64 > MAX_INPUT {
        return Err(Report::usage("standard input is larger than 16 MiB")
            .advice("No model reads that much at once: put it in a file and let it look there."));
    }
    Ok(input)
}

const MAX_INPUT: u64 = 16 << 20;
const PATIENCE: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn argument_and_input_are_put_together() {
        let combined = |argument, input: Option<&str>| {
            combine(argument, input.map(|text| text.as_bytes().to_vec())).ok()
        };
        assert_eq!(combined(Some("explain"), None).as_deref(), Some("explain"));
        assert_eq!(combined(Some("explain"), Some("data\n")).as_deref(), Some("explain\n\ndata"));
        assert_eq!(combined(Some("-"), Some("task\n")).as_deref(), Some("task"));
        assert_eq!(combined(None, Some("task")).as_deref(), Some("task"));
        assert_eq!(combined(Some("x"), Some("")).as_deref(), Some("x"));
    }

    #[test]
    fn an_empty_task_says_what_to_write() {
        for (argument, input) in
            [(None, None), (Some("  "), None), (Some("-"), Some(b"\n".to_vec()))]
        {
            assert_eq!(
                combine(argument, input).unwrap_err().to_string(),
                "the task is empty\n  \
                 Say what to do: toolloop run \"what is in this folder?\""
            );
        }
        let report = combine(None, Some(vec![0xff])).unwrap_err();
        assert_eq!(report.what, "standard input is no text (it is not valid UTF-8)");
    }
}
