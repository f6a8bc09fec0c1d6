//! [`enforceable`] and [`probe`]: what this machine enforces, asked and tried out.

use std::net::TcpListener;
use std::sync::OnceLock;

#[cfg(target_os = "linux")]
use super::files::FileRules;
use super::{Enforced, Sandbox};
use crate::BashTool;

/// What the kernel says it enforces, limits left out. It is asked once, by a thread that binds
/// itself and ends.
pub fn enforceable() -> Enforced {
    static SAID: OnceLock<Enforced> = OnceLock::new();
    *SAID.get_or_init(ask)
}

#[cfg(target_os = "linux")]
fn ask() -> Enforced {
    let thread = std::thread::Builder::new().spawn(|| {
        let processes = super::files::keep_signals_in()?;
        let enforced = super::spawn::confine_thread(false, &FileRules::nothing())?;
        std::io::Result::Ok(Enforced { processes, ..enforced })
    });
    // A sandbox that cannot be built is none.
    let said = thread.ok().and_then(|thread| thread.join().ok());
    said.and_then(Result::ok).unwrap_or_default()
}

#[cfg(not(target_os = "linux"))]
fn ask() -> Enforced {
    Enforced::default()
}

/// Runs commands in a sandbox that try to get out of it, and gives what held.
///
/// # Errors
/// When no command can be run here at all; the text says why.
pub async fn probe() -> Result<Enforced, String> {
    let io = |error: std::io::Error| error.to_string();
    let inside = tempfile::tempdir().map_err(io)?;
    let outside = tempfile::tempdir().map_err(io)?;
    let listener = TcpListener::bind("127.0.0.1:0").map_err(io)?;
    let port = listener.local_addr().map_err(io)?.port();
    let tool = BashTool::new().with_working_dir(inside.path()).with_sandbox(Sandbox::new());
    let escape = outside.path().join("escaped");
    let script = format!(
        "(: >'{}'); (: <>/dev/tcp/127.0.0.1/{port}) && echo connected; kill -0 {} && echo \
         signalled; ulimit -c; exit 0",
        escape.display(),
        std::process::id(),
    );
    let (output, mut held) = tool.try_out(&script).await.map_err(|error| error.message)?;
    let did = |what: &str| output.lines().any(|line| line == what);
    // The kernel's word, unless a command could do what it must not.
    held.landlock = held.landlock.filter(|_| !escape.exists());
    held.seccomp &= !did("connected");
    held.processes &= !did("signalled");
    held.limits &= did("0");
    Ok(held)
}
