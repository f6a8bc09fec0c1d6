//! [`Sandbox`]: what a command may do, and [`Enforced`]: what of that the kernel sees to.
//!
//! Landlock and seccomp bind a *thread* and what it starts. So each command is started by a
//! thread of its own, which binds itself and ends; the program's other threads stay free
//! (`spawn`). `files` says what may be written and read, `secrets` what may not be read,
//! `syscalls` which system calls are refused, and `warden` ends every process of a command.

use std::fmt;
use std::path::PathBuf;

use serde::Serialize;

#[cfg(target_os = "linux")]
mod capabilities;
#[cfg(target_os = "linux")]
mod files;
mod limits;
mod probe;
#[cfg(target_os = "linux")]
mod secrets;
mod spawn;
#[cfg(target_os = "linux")]
mod syscalls;
mod warden;

pub(crate) use limits::{MAX_PROCESSES, tasks_on_machine};
pub use probe::{enforceable, probe};
pub(crate) use spawn::{Spawned, spawn};
pub(crate) use warden::Warden;

/// What commands may do besides reading: write in their folder and in a temporary folder of their
/// own, and nothing on the network.
///
/// They see all files that the user sees, except the ones that usually hold secrets: keys of SSH
/// and GPG, credentials of clouds and registries, browser profiles, shell histories. Where the
/// kernel cannot enforce a part of this, commands run all the same; [`Enforced`] says what holds.
///
/// ```
/// use toolloop_tools::{BashTool, Sandbox};
///
/// let sandbox = Sandbox::new().allow_network().allow_writing("/var/cache/app");
/// let bash = BashTool::new().with_working_dir("/srv/app").with_sandbox(sandbox);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sandbox {
    pub(crate) network: bool,
    pub(crate) writable: Vec<PathBuf>,
}

impl Sandbox {
    /// Writing in the working folder only, no network.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets commands use the network, this machine's own included.
    #[must_use]
    pub fn allow_network(mut self) -> Self {
        self.network = true;
        self
    }

    /// Lets commands write in one more folder, or to one more file; it must exist by then.
    #[must_use]
    pub fn allow_writing(mut self, path: impl Into<PathBuf>) -> Self {
        self.writable.push(path.into());
        self
    }
}

/// What the kernel enforces on a command, as it answered when it was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct Enforced {
    /// The version of Landlock that keeps writing inside the folder and secrets unread; `None`:
    /// commands reach every file that the user reaches.
    pub landlock: Option<u32>,
    /// Whether seccomp refuses the network and system calls that lead out.
    pub seccomp: bool,
    /// Whether every process of a command ends with it, daemons too, and none can send a signal
    /// out (Landlock 6, Linux 6.12). Without, a process that hides well can stay.
    pub processes: bool,
    /// Whether size of files and number of processes are limited.
    pub limits: bool,
}

impl Enforced {
    /// Whether nothing keeps a command from what the user can do.
    pub fn is_nothing(&self) -> bool {
        self.landlock.is_none() && !self.seccomp
    }
}

impl fmt::Display for Enforced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let says = |yes, no, holds| if holds { yes } else { no };
        match self.landlock {
            Some(version) => write!(f, "files confined (Landlock {version})")?,
            None => f.write_str("files open (no Landlock)")?,
        }
        write!(
            f,
            ", network {}, {}, {}",
            says("refused (seccomp)", "open (no seccomp)", self.seccomp),
            says("daemons ended", "daemons may stay", self.processes),
            says("limits set", "no limits", self.limits),
        )
    }
}
