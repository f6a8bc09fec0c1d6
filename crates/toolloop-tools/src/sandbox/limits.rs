//! Limits of a command that has been started and waits to begin.

use rustix::process::Pid;
#[cfg(target_os = "linux")]
use rustix::process::{Resource, Rlimit, getrlimit, prlimit};

/// Limits the command led by `leader`: how large a file it writes, how many processes the user
/// may have, no core dump, and that it ends first when memory runs out. Gives whether all of it
/// was set.
#[cfg(target_os = "linux")]
pub(super) fn limit(leader: Pid) -> bool {
    // The kernel counts all processes of a user, so the limit lies above what runs already.
    let processes = tasks_on_machine().unwrap_or(0) + u64::from(MAX_PROCESSES);
    let limits = [(Resource::Core, 0), (Resource::Fsize, MAX_FILE), (Resource::Nproc, processes)];
    let set = limits.map(|(resource, limit)| {
        let own = getrlimit(resource);
        let below = |own: Option<u64>| Some(own.map_or(limit, |own| own.min(limit)));
        let new = Rlimit { current: below(own.current), maximum: below(own.maximum) };
        prlimit(Some(leader), resource, new).is_ok()
    });
    ends_first(leader) && set == [true; 3]
}

/// Lets the kernel end the command before this program when memory runs out.
#[cfg(target_os = "linux")]
fn ends_first(leader: Pid) -> bool {
    let own = std::fs::read_to_string("/proc/self/oom_score_adj").ok();
    let own: i32 = own.and_then(|own| own.trim().parse().ok()).unwrap_or(0);
    // Less than its own a program may not give.
    let score = own.max(500).to_string();
    std::fs::write(format!("/proc/{}/oom_score_adj", leader.as_raw_nonzero()), score).is_ok()
}

#[cfg(not(target_os = "linux"))]
pub(super) fn limit(_: Pid) -> bool {
    false
}

/// Processes and threads on this machine.
pub(crate) fn tasks_on_machine() -> Option<u64> {
    // 0.20 0.18 0.12 running/all last-pid
    let load = std::fs::read_to_string("/proc/loadavg").ok()?;
    load.split(' ').nth(3)?.split_once('/')?.1.parse().ok()
}

/// Processes that one command may have; a build of many files at once has hundreds.
pub(crate) const MAX_PROCESSES: u32 = 1024;
/// Bytes of the largest file a command may write.
#[cfg(target_os = "linux")]
const MAX_FILE: u64 = 16 * 1024 * 1024 * 1024;
