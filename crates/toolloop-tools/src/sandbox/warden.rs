//! [`Warden`]: a small process that ends all others of a command, whatever they did to hide.
//!
//! A daemon leaves its process group and its parents, but it cannot leave a Landlock domain. The
//! warden lives in the outermost domain of one command, from which signals reach nothing else, so
//! `kill -1`, which means every process that may be signalled, means exactly those of the command.
//! They live one domain further in and cannot touch it. It reads orders from a pipe: when that
//! closes, because the command is over or because this program was killed, it strikes.

use std::ffi::OsString;
use std::io;
use std::process::Stdio;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// Ends every process of its command when it is dropped.
#[derive(Debug)]
pub(crate) struct Warden {
    process: Child,
    orders: Option<ChildStdin>,
    answers: Option<BufReader<ChildStdout>>,
}

impl Warden {
    /// Starts it; the calling thread must have bound its signals before.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "Landlock is Linux's"))]
    pub(super) fn start(path: Option<OsString>) -> io::Result<Self> {
        let mut command = Command::new("sh");
        command.args(["-c", SCRIPT]).env_clear().envs(path.map(|path| ("PATH", path)));
        // In a group of its own, a Ctrl-C at the terminal does not reach it.
        command.process_group(0).current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn()?;
        let orders = process.stdin.take();
        let answers = process.stdout.take().map(BufReader::new);
        Ok(Self { process, orders, answers })
    }

    /// Stops every process of the command where it is, and counts them; `None` if it could not.
    pub(crate) async fn stop_and_count(&mut self) -> Option<usize> {
        self.order(b"STOP\ncount\n").await?;
        let mut count = String::new();
        self.answers.as_mut()?.read_line(&mut count).await.ok()?;
        count.trim().parse().ok()
    }

    /// Lets every process of the command go on.
    pub(crate) async fn resume(&mut self) {
        // Without a warden to take the order, nothing was stopped.
        let _ = self.order(b"CONT\n").await;
    }

    async fn order(&mut self, order: &[u8]) -> Option<()> {
        self.orders.as_mut()?.write_all(order).await.ok()
    }

    /// Ends every process of the command, and waits until that has been done; `false` if it was
    /// not.
    pub(crate) async fn strike(&mut self) -> bool {
        self.orders = None;
        self.process.wait().await.is_ok_and(|status| status.success())
    }
}

/// If it can signal its parent, nothing keeps its signals in, and it must not strike. In words that
/// dash, bash and busybox all know.
const SCRIPT: &str = "kill -0 $PPID && exit 1
    while read -r order; do
        case $order in
            count)
                count=0
                for process in /proc/[0-9]*; do
                    kill -0 \"${process#/proc/}\" && count=$((count + 1))
                done
                echo $count;;
            *) kill -\"$order\" -1;;
        esac
    done
    kill -KILL -1";
