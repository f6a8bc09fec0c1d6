//! [`Jobs`]: commands that run in the background.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout};
use toolloop_core::ToolError;

use super::process::{Ended, Output, Running};
use super::report::{ending, with_last_line};

/// The commands that a [`BashTool`](crate::BashTool) has started in the background, shared with
/// [`BashOutput`](crate::BashOutput) and [`BashKill`](crate::BashKill).
///
/// At most 8 run at a time. Of what one writes between two looks, 32 KiB of each stream are kept,
/// its beginning and its end. Every process of every job ends when the last clone of this is
/// dropped, or the program ends.
#[derive(Debug, Clone)]
pub struct Jobs {
    table: Arc<Mutex<Table>>,
    /// One permit for each that may run.
    room: Arc<Semaphore>,
}

#[derive(Debug, Default)]
struct Table {
    last: u32,
    jobs: BTreeMap<u32, Arc<Job>>,
}

#[derive(Debug)]
struct Job {
    command: String,
    started: Instant,
    output: Output,
    ended: watch::Receiver<Option<Arc<io::Result<Ended>>>>,
    kill: Arc<Notify>,
    task: AbortHandle,
}

impl Jobs {
    /// No jobs yet.
    pub fn new() -> Self {
        Self { table: Arc::default(), room: Arc::new(Semaphore::new(MAX_RUNNING)) }
    }

    /// Room for one more; an error when as many run as may.
    pub(crate) fn room(&self) -> Result<OwnedSemaphorePermit, ToolError> {
        self.room.clone().try_acquire_owned().map_err(|_| {
            ToolError::new(format!(
                "{MAX_RUNNING} jobs run already, which is the limit. {} End one with bash_kill \
                 first.",
                self.table().describe()
            ))
        })
    }

    /// Takes a command that was started, and gives its name. `keep` lives as long as it runs.
    pub(crate) fn add(
        &self,
        command: String,
        running: Running<'static>,
        output: Output,
        limit: Option<Duration>,
        keep: impl Send + 'static,
    ) -> String {
        let kill = Arc::new(Notify::new());
        let killed = kill.clone();
        let (tell, ended) = watch::channel(None);
        let task = tokio::spawn(async move {
            let result = running.finish(limit, killed.notified()).await;
            drop(keep);
            tell.send_replace(Some(Arc::new(result)));
        });
        let (started, task) = (Instant::now(), task.abort_handle());
        let mut table = self.table();
        table.forget_oldest();
        table.last += 1;
        let number = table.last;
        table.jobs.insert(number, Arc::new(Job { command, started, output, ended, kill, task }));
        format!("{PREFIX}{number}")
    }

    /// What a job has written since it was last looked at, and how it is; waits for its end up to
    /// `wait` long.
    pub(crate) async fn look(&self, name: &str, wait: Duration) -> Result<String, ToolError> {
        Ok(self.find(name)?.look(wait).await)
    }

    /// Ends a job, and gives what it had still written.
    pub(crate) async fn kill(&self, name: &str) -> Result<String, ToolError> {
        let job = self.find(name)?;
        // Kept for the job in case it does not listen yet.
        job.kill.notify_one();
        Ok(job.look(KILL_WAIT).await)
    }

    fn find(&self, name: &str) -> Result<Arc<Job>, ToolError> {
        let number = name.strip_prefix(PREFIX).and_then(|number| number.parse::<u32>().ok());
        let table = self.table();
        number.and_then(|number| table.jobs.get(&number)).cloned().ok_or_else(|| {
            ToolError::new(format!(
                "There is no job `{name}`. {} Jobs end with the program that started them.",
                table.describe()
            ))
        })
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        // Every change of the table is one step.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Jobs {
    fn default() -> Self {
        Self::new()
    }
}

impl Table {
    /// The jobs, as an error lists them.
    fn describe(&self) -> String {
        if self.jobs.is_empty() {
            return "There are no jobs; bash starts one with background.".to_owned();
        }
        let jobs = self.jobs.iter().map(|(number, job)| {
            let state = if job.is_running() { "running" } else { "ended" };
            let command: String = job.command.chars().take(60).collect();
            format!("{PREFIX}{number} ({state}: {})", command.lines().next().unwrap_or_default())
        });
        format!("Jobs are: {}.", jobs.collect::<Vec<_>>().join(", "))
    }

    /// Makes room for what a new job will have to say.
    fn forget_oldest(&mut self) {
        if self.jobs.len() < MAX_KEPT {
            return;
        }
        let ended = self.jobs.iter().find(|(_, job)| !job.is_running());
        if let Some(number) = ended.map(|(number, _)| *number) {
            self.jobs.remove(&number);
        }
    }
}

impl Job {
    fn is_running(&self) -> bool {
        self.ended.borrow().is_none()
    }

    async fn look(&self, wait: Duration) -> String {
        let mut ended = self.ended.clone();
        // It fails when the job was cut off, which then shows as still running.
        let _ = timeout(wait, ended.wait_for(Option::is_some)).await;
        let ended = self.ended.borrow().clone();
        let text = self.output.with(|streams| match &ended {
            Some(_) => streams.take_all(),
            None => streams.take(),
        });
        let line = match ended.as_deref() {
            None => format!("[running for {} s]", self.started.elapsed().as_secs()),
            Some(Ok(ended)) => ending(ended),
            Some(Err(error)) => format!("[lost: {error}]"),
        };
        with_last_line(text, &line)
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        self.task.abort();
    }
}

const PREFIX: &str = "job_";
const MAX_RUNNING: usize = 8;
/// Jobs that can still be asked about.
const MAX_KEPT: usize = 32;
/// Longer than a killed command has to clean up.
const KILL_WAIT: Duration = Duration::from_secs(5);
