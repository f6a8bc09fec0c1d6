//! [`Running`]: one command while it runs, and how it ended.
//!
//! Everything happens in the futures of a [`Running`]; dropping it ends every process of the
//! command.

use std::convert::Infallible;
use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{ChildStderr, ChildStdout, Command};
use tokio::select;
use tokio::time::{interval, sleep, timeout};

use super::group::Group;
use super::progress::{OpenLine, Progress};
use crate::output::HeadTail;
use crate::sandbox::{Enforced, MAX_PROCESSES, Sandbox, tasks_on_machine};

/// A command that has been started.
pub(crate) struct Running<'a> {
    group: Group,
    pipes: Pipes<'a>,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Exited(ExitStatus),
    /// It ran into its time limit.
    TimedOut(Duration),
    /// It had started too many processes.
    TooManyProcesses,
    /// Somebody wanted it to end.
    Killed,
}

/// A command's end.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) end: End,
    /// Whether it left processes behind, which were killed.
    pub(crate) left_processes: bool,
}

/// What a command has written and nobody has taken yet.
#[derive(Debug, Clone)]
pub(crate) struct Output(Arc<Mutex<Streams>>);

#[derive(Debug)]
pub(crate) struct Streams {
    pub(crate) stdout: HeadTail,
    pub(crate) stderr: HeadTail,
}

impl<'a> Running<'a> {
    /// Starts a command; `sandbox` comes with the paths it may write to.
    pub(crate) async fn start(
        command: Command,
        sandbox: Option<(&Sandbox, Vec<PathBuf>)>,
        output: Output,
        progress: Option<Progress<'a>>,
    ) -> io::Result<Self> {
        let mut group = Group::spawn(command, sandbox).await?;
        let (stdout, stderr) = group.take_pipes();
        let pipes =
            Pipes { stdout: Pipe::new(stdout), stderr: Pipe::new(stderr), output, progress };
        Ok(Self { group, pipes })
    }

    /// What the kernel enforces on it.
    pub(crate) fn enforced(&self) -> Enforced {
        self.group.enforced()
    }

    /// Lets the command run to its end, for `limit` at most, or until `killed` resolves.
    pub(crate) async fn finish(
        mut self,
        limit: Option<Duration>,
        killed: impl Future<Output = ()>,
    ) -> io::Result<Ended> {
        // 1. Until it exits, or must end.
        let end = self.run(limit, killed).await?;
        let Self { group, pipes } = &mut self;
        // 2. Its time is up: ask it to end, so that it can clean up.
        if matches!(end, End::TimedOut(_) | End::Killed) {
            group.ask_to_end();
            let _ = timeout(TERM_GRACE, async {
                select! {
                    _ = group.wait() => {}
                    never = pipes.follow() => match never {},
                }
            })
            .await;
        }
        // 3. Read what is still in the pipes. Only a process left behind keeps them open.
        if end != End::TooManyProcesses {
            let _ = timeout(DRAIN, pipes.read_to_end()).await;
        }
        let left_processes = matches!(end, End::Exited(_)) && group.others() > 0;
        // 4. End the rest. A process in the kernel's hands may outlive even that; the limit holds
        // all the same.
        let _ = timeout(KILL_GRACE, group.end()).await;
        let _ = timeout(DRAIN, pipes.read_to_end()).await;
        Ok(Ended { end, left_processes })
    }

    /// Until it exits, or must end.
    async fn run(
        &mut self,
        limit: Option<Duration>,
        killed: impl Future<Output = ()>,
    ) -> io::Result<End> {
        let Self { group, pipes } = self;
        let must_end = async {
            select! {
                () = killed => End::Killed,
                end = out_of_time(limit) => end,
            }
        };
        tokio::pin!(must_end);
        let mut crowd = Crowd::now();
        let mut watch = interval(WATCH);
        loop {
            select! {
                status = group.wait() => return Ok(End::Exited(status?)),
                end = &mut must_end => return Ok(end),
                never = pipes.follow() => match never {},
                _ = watch.tick() => {
                    if crowd.has_grown() {
                        let counted = timeout(KILL_GRACE, group.stop_and_count()).await;
                        // What cannot even be counted in that time is too much.
                        if counted.is_ok_and(|count| count <= MAX_PROCESSES as usize) {
                            group.resume().await;
                            crowd = Crowd::now();
                        } else {
                            return Ok(End::TooManyProcesses);
                        }
                    }
                }
            }
        }
    }
}

impl Output {
    /// Keeps at most `keep` bytes of each stream.
    pub(crate) fn new(keep: usize) -> Self {
        let streams = Streams { stdout: HeadTail::new(keep), stderr: HeadTail::new(keep) };
        Self(Arc::new(Mutex::new(streams)))
    }

    /// Changes what is kept.
    pub(crate) fn with<T>(&self, change: impl FnOnce(&mut Streams) -> T) -> T {
        // Nothing panics while it is held, and a half-done change is text all the same.
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

async fn out_of_time(limit: Option<Duration>) -> End {
    match limit {
        Some(limit) => {
            sleep(limit).await;
            End::TimedOut(limit)
        }
        None => std::future::pending().await,
    }
}

/// How busy the machine was when a command began: cheap to ask, so that the command's own
/// processes are counted only when there may be too many.
struct Crowd(Option<u64>);

impl Crowd {
    fn now() -> Self {
        Self(tasks_on_machine())
    }

    fn has_grown(&self) -> bool {
        let (Some(then), Some(now)) = (self.0, tasks_on_machine()) else { return false };
        now > then + u64::from(MAX_PROCESSES)
    }
}

/// Both output streams of a command.
struct Pipes<'a> {
    stdout: Pipe<ChildStdout>,
    stderr: Pipe<ChildStderr>,
    output: Output,
    progress: Option<Progress<'a>>,
}

impl Pipes<'_> {
    /// Reads for as long as it is polled.
    async fn follow(&mut self) -> Infallible {
        self.read_to_end().await;
        std::future::pending().await
    }

    /// Reads until both streams have ended.
    async fn read_to_end(&mut self) {
        let Self { stdout, stderr, output, progress } = self;
        let (mut out, mut err) = (vec![0; BUFFER], vec![0; BUFFER]);
        while stdout.is_open() || stderr.is_open() {
            let due = async {
                match &progress {
                    Some(progress) => progress.due().await,
                    None => std::future::pending().await,
                }
            };
            select! {
                read = stdout.read(&mut out) => {
                    let bytes = stdout.take(read, &out, progress.as_mut());
                    output.with(|streams| streams.stdout.push(bytes));
                }
                read = stderr.read(&mut err) => {
                    let bytes = stderr.take(read, &err, progress.as_mut());
                    output.with(|streams| streams.stderr.push(bytes));
                }
                () = due => progress.as_mut().into_iter().for_each(Progress::show),
            }
        }
    }
}

/// One output stream.
struct Pipe<R> {
    /// `None` once it has ended.
    reader: Option<R>,
    open_line: OpenLine,
}

impl<R: AsyncRead + Unpin> Pipe<R> {
    fn new(reader: Option<R>) -> Self {
        Self { reader, open_line: OpenLine::default() }
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

    /// The bytes that were read; none, or an error, is the end.
    fn take<'b>(
        &mut self,
        read: io::Result<usize>,
        buffer: &'b [u8],
        progress: Option<&mut Progress<'_>>,
    ) -> &'b [u8] {
        let bytes = &buffer[..read.unwrap_or(0)];
        if bytes.is_empty() {
            self.reader = None;
        } else if let Some(progress) = progress {
            progress.push(&mut self.open_line, bytes);
        }
        bytes
    }
}

/// Between the request to end and the end.
const TERM_GRACE: Duration = Duration::from_millis(500);
/// For the kernel to end what must end.
const KILL_GRACE: Duration = Duration::from_secs(2);
/// For output that is still in the pipes.
const DRAIN: Duration = Duration::from_millis(200);
/// How often a command's processes are looked at.
const WATCH: Duration = Duration::from_millis(100);
const BUFFER: usize = 64 * 1024;
