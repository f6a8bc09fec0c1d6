//! [`spawn`]: starts a command behind its walls.

use std::io;
use std::path::PathBuf;

use process_wrap::tokio::{ChildWrapper, CommandWrap, ProcessSession};
use rustix::process::Pid;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

#[cfg(target_os = "linux")]
use super::files::FileRules;
use super::{Enforced, Sandbox, Warden, limits};

/// A command that has been started.
#[derive(Debug)]
pub(crate) struct Spawned {
    pub(crate) leader: Box<dyn ChildWrapper>,
    pub(crate) warden: Option<Warden>,
    pub(crate) enforced: Enforced,
}

/// Starts a command that waits for a line on its standard input before it begins; by then its
/// limits are set and the thread that started it, which shares its walls, is gone: a thread of
/// this program that the command may look into must not be there.
///
/// Without `sandbox` it is started as it is, with limits all the same.
pub(crate) async fn spawn(
    command: Command,
    sandbox: Option<(&Sandbox, Vec<PathBuf>)>,
) -> io::Result<Spawned> {
    let mut command = CommandWrap::from(command);
    command.wrap(ProcessSession);
    let mut spawned = match sandbox {
        None => plain(command)?,
        Some((sandbox, writable)) => confined(command, sandbox.network, writable).await?,
    };
    let id = spawned.leader.id().and_then(|id| Pid::from_raw(id.cast_signed()));
    spawned.enforced.limits = id.is_some_and(limits::limit);
    if let Some(mut begin) = spawned.leader.stdin().take() {
        // It fails when the command has ended already, which its status tells.
        let _ = begin.write_all(b"\n").await;
    }
    Ok(spawned)
}

fn plain(mut command: CommandWrap) -> io::Result<Spawned> {
    Ok(Spawned { leader: command.spawn()?, warden: None, enforced: Enforced::default() })
}

#[cfg(not(target_os = "linux"))]
async fn confined(command: CommandWrap, _: bool, _: Vec<PathBuf>) -> io::Result<Spawned> {
    plain(command)
}

#[cfg(target_os = "linux")]
async fn confined(
    command: CommandWrap,
    network: bool,
    writable: Vec<PathBuf>,
) -> io::Result<Spawned> {
    let runtime = tokio::runtime::Handle::current();
    let (tell, told) = tokio::sync::oneshot::channel();
    let thread = std::thread::Builder::new().name("sandbox".into()).spawn(move || {
        let _inside = runtime.enter();
        // Whoever asked may be gone; then what was started is dropped, and ends.
        let _ = tell.send(behind_walls(command, network, &writable));
    })?;
    let spawned = told.await.map_err(|_| io::Error::other("the sandbox could not be built"))?;
    // It has nothing left to do.
    let _ = thread.join();
    spawned
}

/// Binds this thread for good, and starts the command from it.
#[cfg(target_os = "linux")]
fn behind_walls(
    mut command: CommandWrap,
    network: bool,
    writable: &[PathBuf],
) -> io::Result<Spawned> {
    let rules = FileRules::new(writable);
    // The outer domain, in which the warden is alone; then the inner one.
    let processes = super::files::keep_signals_in()?;
    let warden = match processes {
        true => Some(Warden::start(std::env::var_os("PATH"))?),
        false => None,
    };
    let enforced = Enforced { processes, ..confine_thread(network, &rules)? };
    Ok(Spawned { leader: command.spawn()?, warden, enforced })
}

/// Takes from this thread, and what it starts, all that a sandbox takes but signals.
#[cfg(target_os = "linux")]
pub(super) fn confine_thread(network: bool, rules: &FileRules) -> io::Result<Enforced> {
    super::capabilities::drop_for_thread()?;
    let landlock = rules.restrict_thread().map_err(io::Error::other)?;
    let filter = super::syscalls::filter(network, landlock.is_some());
    let seccomp = filter.is_ok_and(|filter| seccompiler::apply_filter(&filter).is_ok());
    Ok(Enforced { landlock, seccomp, ..Enforced::default() })
}
