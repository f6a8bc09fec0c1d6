//! [`Process`]: a server that is a program, with all the processes it starts.

use std::collections::VecDeque;
use std::io;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use process_wrap::tokio::{ChildWrapper, CommandWrap, ProcessSession};
use rustix::process::Signal;
use secrecy::ExposeSecret;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};
use tokio::process::Command;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use toolloop_platform::inherited;

use crate::config::{Pipe, ServerCommand};

/// A running program. It leads a session of its own: one signal reaches every process that it
/// started, and Ctrl-C in a terminal reaches none. Dropping it kills them all.
pub(crate) struct Process {
    leader: Box<dyn ChildWrapper>,
    stderr: Arc<Mutex<Tail>>,
    stderr_task: JoinHandle<()>,
}

impl Process {
    /// Starts the program.
    pub(crate) fn start(server: &ServerCommand) -> io::Result<(Self, Pipe)> {
        let mut command = Command::new(&server.program);
        command
            .args(&server.args)
            .env_clear()
            .envs(inherited(std::env::vars_os()))
            .envs(server.env.iter().map(|(name, value)| (name, value.expose_secret())))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if let Some(folder) = &server.folder {
            command.current_dir(folder);
        }
        let mut leader = CommandWrap::from(command).wrap(ProcessSession).spawn()?;
        let taken = (leader.stdin().take(), leader.stdout().take(), leader.stderr().take());
        let (Some(stdin), Some(stdout), Some(stderr)) = taken else {
            return Err(io::Error::other("a pipe to the program is missing"));
        };
        let tail = Arc::new(Mutex::new(Tail::default()));
        let stderr_task = tokio::spawn(keep_tail(stderr, Arc::clone(&tail)));
        let pipe = Pipe { reader: Box::new(stdout), writer: Box::new(stdin) };
        Ok((Self { leader, stderr: tail, stderr_task }, pipe))
    }

    /// Resolves when the program itself has exited.
    pub(crate) async fn exited(&mut self) {
        let _ = self.leader.wait().await;
    }

    /// Ends the program and all it started, in less than two seconds, and gives how it exited and
    /// its last lines. Its standard input must be closed: that asks it to end. May be called again.
    pub(crate) async fn end(&mut self) -> (String, Option<String>) {
        if timeout(GRACE, self.leader.wait()).await.is_err() {
            self.signal(Signal::TERM);
            let _ = timeout(TERM_GRACE, self.leader.wait()).await;
        }
        // What it left behind goes as well, and with it whoever keeps its pipes open.
        self.signal(Signal::KILL);
        let _ = timeout(DRAIN, self.leader.wait()).await;
        if !self.stderr_task.is_finished() {
            let _ = timeout(DRAIN, &mut self.stderr_task).await;
        }
        let status = self.leader.try_wait().ok().flatten();
        let said = self.stderr.lock().unwrap_or_else(PoisonError::into_inner).last_lines();
        (status.map_or_else(|| "killed".to_owned(), exit_words), said)
    }

    fn signal(&self, signal: Signal) {
        // It fails only when nobody is left.
        let _ = self.leader.signal(signal.as_raw());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
        self.stderr_task.abort();
    }
}

/// The last lines of standard error, for errors; never printed as they come.
#[derive(Default)]
struct Tail {
    lines: VecDeque<String>,
}

impl Tail {
    fn push(&mut self, line: &[u8]) {
        let text: String =
            String::from_utf8_lossy(line).chars().filter(|c| !c.is_control()).collect();
        if text.trim().is_empty() {
            return;
        }
        if self.lines.len() == LINES {
            self.lines.pop_front();
        }
        self.lines.push_back(text);
    }

    fn last_lines(&self) -> Option<String> {
        let lines: Vec<&str> = self.lines.iter().map(|line| line.trim()).collect();
        (!lines.is_empty()).then(|| lines.join(" / "))
    }
}

/// Reads lines to the end, keeping the last; of a long line, its beginning.
async fn keep_tail(stderr: impl AsyncRead + Unpin, tail: Arc<Mutex<Tail>>) {
    let mut reader = BufReader::new(stderr);
    let mut line = Vec::new();
    while let Ok(read) = (&mut reader).take(LINE_LENGTH).read_until(b'\n', &mut line).await {
        if read == 0 {
            break;
        }
        tail.lock().unwrap_or_else(PoisonError::into_inner).push(&line);
        line.clear();
    }
}

fn exit_words(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "an unknown end".to_owned(),
    }
}

/// Between the end of its input and SIGTERM.
const GRACE: Duration = Duration::from_millis(500);
/// Between SIGTERM and SIGKILL.
const TERM_GRACE: Duration = Duration::from_millis(300);
/// For what is still in the pipes.
const DRAIN: Duration = Duration::from_millis(200);
const LINES: usize = 3;
const LINE_LENGTH: u64 = 300;
