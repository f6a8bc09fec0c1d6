//! [`run`]: one command with a time limit, whose processes all end with it.
//!
//! The command leads a session of its own: one signal reaches its whole process group, and no
//! child finds a terminal to ask a password on. Everything happens in the future that [`run`]
//! returns; dropping it kills the group.

use std::convert::Infallible;
use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use process_wrap::tokio::{ChildWrapper, CommandWrap, ProcessSession};
use rustix::process::{Pid, Signal, test_kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{ChildStderr, ChildStdout, Command};
use tokio::select;
use tokio::time::{sleep, timeout};
use toolloop_core::CallContext;

use crate::output::HeadTail;
use crate::progress::{OpenLine, Progress};

/// How a command ended, and what it wrote.
#[derive(Debug)]
pub(crate) struct Ended {
    /// `None`: it ran into the time limit.
    pub(crate) status: Option<ExitStatus>,
    pub(crate) stdout: HeadTail,
    pub(crate) stderr: HeadTail,
    /// Whether it left processes behind, which were killed.
    pub(crate) left_processes: bool,
}

/// Runs a command to its end or `limit`, keeping at most `keep` bytes of each output stream.
pub(crate) async fn run(
    command: Command,
    limit: Duration,
    keep: usize,
    call: &CallContext,
) -> io::Result<Ended> {
    let mut group = Group::spawn(command)?;
    let mut pipes = Pipes::new(&mut group, keep, call);

    // 1. Until it exits or the time is up.
    let status = select! {
        status = group.leader.wait() => Some(status?),
        () = sleep(limit) => None,
        never = pipes.follow() => match never {},
    };
    // 2. Time is up: ask it to end, so that it can clean up.
    if status.is_none() {
        group.signal(Signal::TERM);
        let _ = timeout(TERM_GRACE, async {
            select! {
                _ = group.leader.wait() => {}
                never = pipes.follow() => match never {},
            }
        })
        .await;
    }
    // 3. Read what is still in the pipes. Only a process left behind keeps them open.
    let _ = timeout(DRAIN, pipes.read_to_end()).await;
    let left_processes = group.is_alive();
    group.signal(Signal::KILL);
    let _ = timeout(DRAIN, pipes.read_to_end()).await;
    // A process in the kernel's hands may outlive even that; the limit holds all the same.
    let _ = timeout(DRAIN, group.leader.wait()).await;

    let Pipes { stdout, stderr, .. } = pipes;
    Ok(Ended { status, stdout: stdout.kept, stderr: stderr.kept, left_processes })
}

/// A process group that dies with this value.
struct Group {
    leader: Box<dyn ChildWrapper>,
    id: Option<Pid>,
}

impl Group {
    fn spawn(command: Command) -> io::Result<Self> {
        let leader = CommandWrap::from(command).wrap(ProcessSession).spawn()?;
        let id = leader.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        Ok(Self { leader, id })
    }

    fn signal(&self, signal: Signal) {
        // It fails only when nobody is left.
        let _ = self.leader.signal(signal.as_raw());
    }

    /// Whether anyone in the group still runs.
    fn is_alive(&self) -> bool {
        let Some(id) = self.id else { return false };
        // A process that has ended counts until its parent asks for its status, and in a
        // container nobody may ever ask; so what is found is looked at, where that is possible.
        test_kill_process_group(id).is_ok() && runs_in_group(id).unwrap_or(true)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

/// Whether `/proc` has a process of this group that has not ended.
fn runs_in_group(id: Pid) -> io::Result<bool> {
    let group = id.as_raw_nonzero().to_string();
    for process in std::fs::read_dir("/proc")? {
        let Ok(stat) = std::fs::read_to_string(process?.path().join("stat")) else { continue };
        // pid (name) state parent group ...; the name may hold anything.
        let Some((_, fields)) = stat.rsplit_once(") ") else { continue };
        let mut fields = fields.split(' ');
        let state = fields.next();
        if fields.nth(1) == Some(&group) && !matches!(state, Some("Z" | "X")) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Both output streams of a command.
struct Pipes<'a> {
    stdout: Pipe<ChildStdout>,
    stderr: Pipe<ChildStderr>,
    progress: Progress<'a>,
}

impl<'a> Pipes<'a> {
    fn new(group: &mut Group, keep: usize, call: &'a CallContext) -> Self {
        Self {
            stdout: Pipe::new(group.leader.stdout().take(), keep),
            stderr: Pipe::new(group.leader.stderr().take(), keep),
            progress: Progress::new(call),
        }
    }

    /// Reads for as long as it is polled.
    async fn follow(&mut self) -> Infallible {
        self.read_to_end().await;
        std::future::pending().await
    }

    /// Reads until both streams have ended.
    async fn read_to_end(&mut self) {
        let Self { stdout, stderr, progress } = self;
        let (mut out, mut err) = (vec![0; BUFFER], vec![0; BUFFER]);
        while stdout.is_open() || stderr.is_open() {
            select! {
                read = stdout.read(&mut out) => stdout.take(read, &out, progress),
                read = stderr.read(&mut err) => stderr.take(read, &err, progress),
                () = progress.due() => progress.show(),
            }
        }
    }
}

/// One output stream.
struct Pipe<R> {
    /// `None` once it has ended.
    reader: Option<R>,
    kept: HeadTail,
    open_line: OpenLine,
}

impl<R: AsyncRead + Unpin> Pipe<R> {
    fn new(reader: Option<R>, keep: usize) -> Self {
        Self { reader, kept: HeadTail::new(keep), open_line: OpenLine::default() }
    }

    fn is_open(&self) -> bool {
        self.reader.is_some()
    }

    /// Reads once; loses nothing when it is dropped before.
    async fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.reader {
            Some(reader) => reader.read(buffer).await,
            None => std::future::pending().await,
        }
    }

    /// Takes what was read; nothing, or an error, is the end.
    fn take(&mut self, read: io::Result<usize>, buffer: &[u8], progress: &mut Progress<'_>) {
        match read {
            Ok(length) if length > 0 => {
                self.kept.push(&buffer[..length]);
                progress.push(&mut self.open_line, &buffer[..length]);
            }
            _ => self.reader = None,
        }
    }
}

/// Between SIGTERM and SIGKILL.
const TERM_GRACE: Duration = Duration::from_millis(500);
/// For output that is still in the pipes.
const DRAIN: Duration = Duration::from_millis(200);
const BUFFER: usize = 8 * 1024;
