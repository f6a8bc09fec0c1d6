//! What the model reads of a command: its output, and a last line on how it ended.

use super::process::{End, Ended, Streams};
use crate::output::HeadTail;
use crate::sandbox::MAX_PROCESSES;

impl Streams {
    /// What has come so far, without a character that is not whole yet.
    pub(crate) fn take(&mut self) -> String {
        text(self.stdout.take(), self.stderr.take())
    }

    /// What has come; nothing more will.
    pub(crate) fn take_all(&mut self) -> String {
        let none = || HeadTail::new(0);
        text(
            std::mem::replace(&mut self.stdout, none()),
            std::mem::replace(&mut self.stderr, none()),
        )
    }
}

/// How a command ended, as the last line says it.
pub(crate) fn ending(ended: &Ended) -> String {
    let status = match ended.end {
        End::Exited(status) => status,
        End::TimedOut(limit) => {
            return format!(
                "[killed after its time limit of {} s; give a larger timeout_seconds, or run less]",
                limit.as_secs_f64()
            );
        }
        End::TooManyProcesses => {
            return format!("[killed: it had started more than {MAX_PROCESSES} processes]");
        }
        End::Killed => return "[killed]".to_owned(),
    };
    let left = match ended.left_processes {
        true => {
            "[processes it left in the background were killed; what must go on running is started \
             with background]\n"
        }
        false => "",
    };
    match status.code() {
        Some(code) => format!("{left}[exit code {code}]"),
        // By a signal; the status says which.
        None => format!("{left}[ended by {status}]"),
    }
}

/// Output with a line below it.
pub(crate) fn with_last_line(mut text: String, line: &str) -> String {
    end_line(&mut text);
    if text.is_empty() {
        text.push_str("[no output]\n");
    }
    text.push_str(line);
    text
}

fn text(stdout: HeadTail, stderr: HeadTail) -> String {
    let mut text = stdout.into_text();
    let stderr = stderr.into_text();
    if !stderr.is_empty() {
        end_line(&mut text);
        text.push_str("[stderr]\n");
        text.push_str(&stderr);
    }
    text
}

fn end_line(text: &mut String) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
}
