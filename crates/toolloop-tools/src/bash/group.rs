//! [`Group`]: all processes of one command, which end with this value.

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;

use process_wrap::tokio::ChildWrapper;
use rustix::process::{Pid, Signal, kill_process, test_kill_process_group};
use tokio::process::{ChildStderr, ChildStdout, Command};

use crate::sandbox::{self, Enforced, Sandbox, Spawned, Warden};

/// A command and what it started. The command leads a session of its own: one signal reaches its
/// process group, and no child finds a terminal to ask a password on.
///
/// What leaves the group is found by its environment, where the command left its mark; what has
/// wiped that too is ended by the [`Warden`], where the kernel can have one.
#[derive(Debug)]
pub(crate) struct Group {
    leader: Box<dyn ChildWrapper>,
    id: Option<Pid>,
    mark: String,
    warden: Option<Warden>,
    enforced: Enforced,
    /// Whether all of it has ended; its numbers may then be somebody else's.
    has_ended: bool,
}

impl Group {
    /// Starts a command, in a sandbox if one is given, with the paths it may write to.
    pub(crate) async fn spawn(
        mut command: Command,
        sandbox: Option<(&Sandbox, Vec<PathBuf>)>,
    ) -> io::Result<Self> {
        let mark = format!("{:016x}", fastrand::u64(..));
        command.env(MARK, &mark);
        let Spawned { leader, warden, enforced } = sandbox::spawn(command, sandbox).await?;
        let id = leader.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        Ok(Self { leader, id, mark, warden, enforced, has_ended: false })
    }

    /// What the kernel enforces on it.
    pub(crate) fn enforced(&self) -> Enforced {
        self.enforced
    }

    pub(crate) fn take_pipes(&mut self) -> (Option<ChildStdout>, Option<ChildStderr>) {
        (self.leader.stdout().take(), self.leader.stderr().take())
    }

    /// Waits until the command itself has ended.
    pub(crate) async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.leader.wait().await
    }

    /// Asks every process of the group to end.
    pub(crate) fn ask_to_end(&self) {
        self.signal(Signal::TERM);
    }

    /// Stops the processes where they are, so that they become no more, and counts them.
    pub(crate) async fn stop_and_count(&mut self) -> usize {
        self.signal(Signal::STOP);
        let counted = match &mut self.warden {
            Some(warden) => warden.stop_and_count().await,
            None => None,
        };
        counted.unwrap_or_else(|| self.others())
    }

    /// Lets them go on.
    pub(crate) async fn resume(&mut self) {
        self.signal(Signal::CONT);
        if let Some(warden) = &mut self.warden {
            warden.resume().await;
        }
    }

    /// How many processes still run, the command itself not counted.
    pub(crate) fn others(&self) -> usize {
        match self.processes() {
            Ok(running) => running.into_iter().filter(|&pid| Some(pid) != self.id).count(),
            Err(_) => self.id.is_some_and(|id| test_kill_process_group(id).is_ok()).into(),
        }
    }

    /// Ends every process, and waits until that has been done.
    pub(crate) async fn end(&mut self) {
        self.signal(Signal::KILL);
        let struck = match &mut self.warden {
            Some(warden) => warden.strike().await,
            None => false,
        };
        if !struck {
            self.kill_found();
        }
        // Its status must be asked for while the number is still its own.
        let _ = self.leader.wait().await;
        self.has_ended = true;
    }

    fn signal(&self, signal: Signal) {
        // It fails only when nobody is left.
        let _ = self.leader.signal(signal.as_raw());
    }

    fn kill_found(&self) {
        // One that is found may have started another meanwhile.
        for _ in 0..KILL_ROUNDS {
            let running = self.processes().unwrap_or_default();
            if running.is_empty() {
                return;
            }
            for pid in running {
                let _ = kill_process(pid, Signal::KILL);
            }
        }
    }

    /// The processes of the command that have not ended, as far as `/proc` shows them.
    fn processes(&self) -> io::Result<Vec<Pid>> {
        let Some(leader) = self.id else { return Ok(Vec::new()) };
        let numbers = std::fs::read_dir("/proc")?
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok().and_then(Pid::from_raw));
        // Numbers are given in order, so they are higher; but some day they start again.
        let started_again =
            newest_process().is_none_or(|newest| newest < leader.as_raw_nonzero().get());
        Ok(numbers
            .filter(|pid| started_again || pid.as_raw_nonzero() >= leader.as_raw_nonzero())
            .filter(|pid| self.owns(leader, *pid))
            .collect())
    }

    fn owns(&self, leader: Pid, pid: Pid) -> bool {
        let process = format!("/proc/{}", pid.as_raw_nonzero());
        let Ok(stat) = std::fs::read_to_string(format!("{process}/stat")) else { return false };
        // pid (name) state parent group session ...; the name may hold anything.
        let Some((_, fields)) = stat.rsplit_once(") ") else { return false };
        let fields: Vec<_> = fields.splitn(5, ' ').collect();
        let &[state, _, group, session, _] = fields.as_slice() else { return false };
        // One that has ended counts until its parent asks for its status, and in a container
        // nobody may ever ask.
        if matches!(state, "Z" | "X") {
            return false;
        }
        let leader = leader.as_raw_nonzero().to_string();
        group == leader || session == leader || self.marked(&process)
    }

    fn marked(&self, process: &str) -> bool {
        let mark = format!("{MARK}={}", self.mark);
        std::fs::read(format!("{process}/environ")).is_ok_and(|all| {
            all.split(|&byte| byte == 0).any(|variable| variable == mark.as_bytes())
        })
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if self.has_ended {
            return;
        }
        self.signal(Signal::KILL);
        // A warden, dropped with this, does the rest.
        if self.warden.is_none() {
            self.kill_found();
        }
    }
}

/// The number that was given last.
fn newest_process() -> Option<i32> {
    let load = std::fs::read_to_string("/proc/loadavg").ok()?;
    load.trim_end().rsplit_once(' ')?.1.parse().ok()
}

/// The variable that marks what a command started.
const MARK: &str = "TOOLLOOP_COMMAND";
const KILL_ROUNDS: usize = 20;
